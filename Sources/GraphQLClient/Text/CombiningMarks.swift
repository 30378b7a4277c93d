internal import Foundation

/// A guard against text that takes time quadratic in its length to compare.
///
/// Swift compares strings by canonical equivalence, which requires it to sort the combining marks of each character.
/// For a run of marks that are out of order, the sort takes time quadratic in the length of the run. If a key in any
/// object of a reply were such a run of 256 KB, hashing it would take ten seconds. Ordinary text has a few marks per
/// character; Unicode's stream-safe format allows 30.
///
/// - SeeAlso: Unicode Standard Annex #15, section 13.
struct CombiningMarks {
  /// The maximum number of consecutive marks in a body.
  static let maximumRunLength = 256

  private var runLength = 0
  /// The first half of a surrogate pair that is written as two escapes.
  private var highSurrogate: UInt32?

  /// Returns UTF-8 encoded JSON in which U+FFFD separates each run of marks, literal or escaped, into runs within the
  /// limit; the same JSON if all runs are.
  ///
  /// - Complexity: O(*n*), where *n* is the number of bytes.
  static func separated(in json: Data) -> Data {
    json.withUnsafeBytes { bytes in
      var scanner = CombiningMarks()
      var output: Data?
      var (index, start, copiedEnd) = (0, 0, 0)
      while index < bytes.count {
        let (scalar, length) = scanner.readScalar(at: index, in: bytes)
        index += length
        // A surrogate pair of two escapes is read in two steps.
        guard let scalar else { continue }
        if !scanner.accept(scalar) {
          var separated = output.take() ?? Data(capacity: bytes.count + 64)
          separated.append(contentsOf: bytes[copiedEnd..<start])
          separated.append(contentsOf: "\u{FFFD}".utf8)
          (output, copiedEnd, scanner.runLength) = (separated, start, 1)
        }
        start = index
      }
      guard var output else { return json }
      output.append(contentsOf: bytes[copiedEnd...])
      return output
    }
  }

  /// Counts a scalar if it is a mark, and returns whether the current run is within the limit.
  private mutating func accept(_ scalar: UInt32) -> Bool {
    // U+0300 is the lowest combining mark.
    guard scalar >= 0x300, let scalar = Unicode.Scalar(scalar),
      scalar.properties.canonicalCombiningClass != .notReordered
    else {
      runLength = 0
      return true
    }
    runLength += 1
    return runLength <= Self.maximumRunLength
  }

  /// Reads the scalar at an index, and returns it with its length in bytes.
  ///
  /// The scalar is `nil` for the first half of a surrogate pair. It is 0, which isn't a mark, for a truncated sequence
  /// and for an escape that isn't `\u` with four digits.
  private mutating func readScalar(at index: Int, in bytes: UnsafeRawBufferPointer) -> (UInt32?, length: Int) {
    let byte = bytes[index]
    if byte == UInt8(ascii: "\\") { return readEscape(at: index, in: bytes) }
    highSurrogate = nil
    guard byte >= 0xC0 else { return (UInt32(byte), 1) }
    let length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2
    guard index + length <= bytes.count else { return (0, bytes.count - index) }
    var value = UInt32(byte) & (0x7F >> UInt32(length))
    for next in bytes[(index + 1)..<(index + length)] { value = value << 6 | UInt32(next & 0x3F) }
    return (value, length)
  }

  private mutating func readEscape(at index: Int, in bytes: UnsafeRawBufferPointer) -> (UInt32?, length: Int) {
    guard index + 5 < bytes.count, bytes[index + 1] == UInt8(ascii: "u") else {
      highSurrogate = nil
      return (0, min(2, bytes.count - index))
    }
    var value: UInt32 = 0
    for digit in bytes[(index + 2)..<(index + 6)] {
      guard let digit = Character(Unicode.Scalar(digit)).hexDigitValue else { return (0, 2) }
      value = value << 4 | UInt32(digit)
    }
    switch (value, highSurrogate) {
    case (0xD800...0xDBFF, _):
      highSurrogate = value
      return (nil, 6)
    case (0xDC00...0xDFFF, let high?):
      highSurrogate = nil
      return (0x10000 + ((high - 0xD800) << 10) + (value - 0xDC00), 6)
    default:
      highSurrogate = nil
      return (value, 6)
    }
  }
}

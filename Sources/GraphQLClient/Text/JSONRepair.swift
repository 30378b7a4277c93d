internal import Foundation

/// Repairs the text in a JSON body that a strict decoder would reject as a whole.
///
/// Servers send such text: JavaScript cuts a string between the halves of a surrogate pair, a database contains bytes
/// of another encoding, and a hand-written encoder forgets control characters. One such string would make a whole reply
/// unreadable for ever, because the server would send it again with every request.
///
/// Inside strings, U+FFFD replaces
/// - each escape of a surrogate that isn't part of a pair,
/// - each byte sequence that isn't well-formed UTF-8, including the surrogates of CESU-8 (the maximal subparts of the
///   Unicode Standard, section 3.9),
/// - each control character that JSON requires to be escaped and that has no short escape.
///
/// A backspace, tab, line feed, form feed or carriage return becomes its short escape, so it is kept.
///
/// Outside strings, `null` replaces `NaN`, `Infinity` and `-Infinity`, which Python's encoder writes although JSON has
/// no such numbers.
struct JSONRepair {
  private let bytes: UnsafeRawBufferPointer
  private var index = 0
  /// The repaired bytes before `copiedEnd`; `nil` if there was nothing to repair.
  private var output: Data?
  private var copiedEnd = 0

  /// Returns the repaired body, which is at most three times as long; the same body if there is nothing to repair.
  ///
  /// - Complexity: O(*n*), where *n* is the number of bytes.
  static func repaired(_ json: Data) -> Data {
    json.withUnsafeBytes { bytes in
      var repair = JSONRepair(bytes: bytes)
      repair.scan()
      guard var output = repair.output else { return json }
      output.append(contentsOf: bytes[repair.copiedEnd...])
      return output
    }
  }

  private init(bytes: UnsafeRawBufferPointer) {
    self.bytes = bytes
  }

  private static let quotationMark = UInt8(ascii: "\"")
  private static let backslash = UInt8(ascii: "\\")
  private static let replacementCharacter: StaticString = "\u{FFFD}"

  private mutating func scan() {
    while index < bytes.count {
      switch bytes[index] {
      case Self.quotationMark:
        index += 1
        scanString()
      case UInt8(ascii: "N"), UInt8(ascii: "I"), UInt8(ascii: "-"): scanNumber()
      default: index += 1
      }
    }
  }

  private mutating func scanNumber() {
    for name in ["NaN", "Infinity", "-Infinity"] where bytes[index...].starts(with: name.utf8) {
      return replace(name.utf8.count, with: "null")
    }
    index += 1
  }

  /// Scans a string after its first quotation mark, up to and including the last one.
  private mutating func scanString() {
    while index < bytes.count {
      let byte = bytes[index]
      switch byte {
      case Self.quotationMark:
        index += 1
        return
      case Self.backslash: scanEscape()
      case ..<0x20: replace(1, with: Self.escape(ofControl: byte) ?? Self.replacementCharacter)
      case ..<0x80: index += 1
      default:
        let (length, isWellFormed) = sequenceLength(at: index)
        if isWellFormed { index += length } else { replace(length, with: Self.replacementCharacter) }
      }
    }
  }

  private mutating func scanEscape() {
    switch escapedCodeUnit(at: index) {
    case .some(0xD800...0xDBFF):
      if let low = escapedCodeUnit(at: index + 6), (0xDC00...0xDFFF).contains(low) {
        index += 12
      } else {
        replace(6, with: "\\uFFFD")
      }
    case .some(0xDC00...0xDFFF): replace(6, with: "\\uFFFD")
    case .some: index += 6
    // An escape of one character, or an invalid one, which the decoder rejects. A byte that isn't a printable ASCII
    // character isn't part of the escape.
    case nil: index += index + 1 < bytes.count && (0x20..<0x80).contains(bytes[index + 1]) ? 2 : 1
    }
  }

  /// Returns the value of an escape such as `\u00E9`; `nil` if there is no such escape at the index.
  private func escapedCodeUnit(at index: Int) -> UInt32? {
    guard index + 6 <= bytes.count, bytes[index] == Self.backslash, bytes[index + 1] == UInt8(ascii: "u") else {
      return nil
    }
    var value: UInt32 = 0
    for digit in bytes[(index + 2)..<(index + 6)] {
      switch digit {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): value = value << 4 | UInt32(digit - UInt8(ascii: "0"))
      case UInt8(ascii: "a")...UInt8(ascii: "f"): value = value << 4 | UInt32(digit - UInt8(ascii: "a") + 10)
      case UInt8(ascii: "A")...UInt8(ascii: "F"): value = value << 4 | UInt32(digit - UInt8(ascii: "A") + 10)
      default: return nil
      }
    }
    return value
  }

  /// Returns the length of the UTF-8 sequence at an index, or of the part of it that is well-formed, at least 1.
  ///
  /// See table 3-7 of the Unicode Standard.
  private func sequenceLength(at index: Int) -> (length: Int, isWellFormed: Bool) {
    let (continuationCount, secondBytes): (Int, ClosedRange<UInt8>)
    switch bytes[index] {
    case 0xC2...0xDF: (continuationCount, secondBytes) = (1, 0x80...0xBF)
    case 0xE0: (continuationCount, secondBytes) = (2, 0xA0...0xBF)
    case 0xED: (continuationCount, secondBytes) = (2, 0x80...0x9F)
    case 0xE1...0xEF: (continuationCount, secondBytes) = (2, 0x80...0xBF)
    case 0xF0: (continuationCount, secondBytes) = (3, 0x90...0xBF)
    case 0xF1...0xF3: (continuationCount, secondBytes) = (3, 0x80...0xBF)
    case 0xF4: (continuationCount, secondBytes) = (3, 0x80...0x8F)
    default: return (1, false)
    }
    for offset in 1...continuationCount {
      let allowed = offset == 1 ? secondBytes : 0x80...0xBF
      guard index + offset < bytes.count, allowed.contains(bytes[index + offset]) else { return (offset, false) }
    }
    return (continuationCount + 1, true)
  }

  private static func escape(ofControl byte: UInt8) -> StaticString? {
    switch byte {
    case 0x08: "\\b"
    case 0x09: "\\t"
    case 0x0A: "\\n"
    case 0x0C: "\\f"
    case 0x0D: "\\r"
    default: nil
    }
  }

  /// Replaces the next `length` bytes.
  private mutating func replace(_ length: Int, with replacement: StaticString) {
    var repaired = output.take() ?? Data(capacity: bytes.count + 64)
    repaired.append(contentsOf: bytes[copiedEnd..<index])
    replacement.withUTF8Buffer { repaired.append(contentsOf: $0) }
    output = repaired
    index += length
    copiedEnd = index
  }
}

internal import Foundation

/// A fast parser of the header line in the form in which ``Envelope`` writes it.
///
/// A JSON decoder takes longer for the line than for a small value. A line that the scanner doesn't recognize is left
/// to the decoder.
enum HeaderScanner {
  /// Returns the header, or `nil` for a line that isn't recognized.
  ///
  /// - Parameter line: The part of the line after the checksum, without the line break.
  static func header(in line: Data) -> Envelope.Header? {
    line.withUnsafeBytes { bytes in
      var rest = bytes[...]
      guard take(#","format":3"#, from: &rest) else { return nil }
      var longID: String?
      if take(#","id":"#, from: &rest) {
        guard let id = takeString(from: &rest) else { return nil }
        longID = id
      }
      var partIDs: [String]?
      if take(#","parts":["#, from: &rest) {
        var ids: [String] = []
        while let id = takeString(from: &rest) {
          ids.append(id)
          if !take(",", from: &rest) { break }
        }
        guard take("]", from: &rest) else { return nil }
        partIDs = ids
      }
      guard take(#","savedAt":"#, from: &rest), let savedAt = takeNumber(from: &rest).flatMap(Double.init) else {
        return nil
      }
      // The envelope pads the time to a fixed width with spaces.
      while take(" ", from: &rest) {}
      guard
        take(#","schema":"#, from: &rest), let schema = takeNumber(from: &rest).flatMap({ Int($0) }), schema >= 1,
        take(#","tag":"#, from: &rest), let tag = takeString(from: &rest).flatMap(StoreTag.init(text:)),
        take("}", from: &rest), rest.isEmpty
      else { return nil }
      return Envelope.Header(
        schema: schema, savedAt: Date(timeIntervalSinceReferenceDate: savedAt), tag: tag, partIDs: partIDs,
        longID: longID)
    }
  }

  private typealias Bytes = Slice<UnsafeRawBufferPointer>

  /// Consumes a text if `rest` begins with it.
  ///
  /// - Returns: Whether it does.
  private static func take(_ text: StaticString, from rest: inout Bytes) -> Bool {
    let text = UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
    guard rest.starts(with: text) else { return false }
    rest = rest.dropFirst(text.count)
    return true
  }

  /// Consumes a quoted string of the characters of encoded names: lower-case letters, digits, `%`, `_` and `-`.
  ///
  /// - Returns: The string without its quotation marks.
  private static func takeString(from rest: inout Bytes) -> String? {
    guard take("\"", from: &rest) else { return nil }
    let string = rest.prefix { byte in
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "%"),
        UInt8(ascii: "_"), UInt8(ascii: "-"):
        true
      default: false
      }
    }
    rest = rest[string.endIndex...]
    return take("\"", from: &rest) ? String(decoding: string, as: UTF8.self) : nil
  }

  /// Consumes the text of a number, which the caller parses.
  private static func takeNumber(from rest: inout Bytes) -> String? {
    let number = rest.prefix { byte in
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "+"), UInt8(ascii: "."),
        UInt8(ascii: "e"):
        true
      default: false
      }
    }
    rest = rest[number.endIndex...]
    return number.isEmpty ? nil : String(decoding: number, as: UTF8.self)
  }
}

internal import Foundation

/// Collects the lines of a response's heads and trailers: a pure reader.
struct HTTPHeadReader {
  /// The most bytes of all heads of one response, interim ones and trailers included.
  static let maximumSize = 64 * 1024
  /// The most fields of one head.
  static let maximumFieldCount = 256

  enum Action: Equatable {
    case proceed
    /// A head is complete.
    case head(HTTPHeaders)
    case tooLarge
  }

  private var size = 0
  /// With the status line.
  private var lineCount = 0
  private var headers = HTTPHeaders()

  /// Takes a line as it came, with its line break: the status line, fields, and an empty one that ends the head.
  ///
  /// Lines that are no field are left out. A value that is not UTF-8, or has much of it, is read as Latin-1. Control
  /// characters become spaces, as RFC 9110, section 5.5, asks.
  mutating func receive(line: Data) -> Action {
    size += line.count
    guard size <= Self.maximumSize else { return .tooLarge }
    let text = line.trimmingSuffix { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }
    if text.isEmpty {
      defer { (headers, lineCount) = (HTTPHeaders(), 0) }
      return .head(headers)
    }
    lineCount += 1
    guard lineCount <= Self.maximumFieldCount + 1 else { return .tooLarge }
    if let field = Self.field(text) { headers.add(field.value, for: field.name) }
    return .proceed
  }

  private static func field(_ line: Data) -> HTTPHeaders.Field? {
    guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return nil }
    let value = line[line.index(after: colon)...].drop(while: \.isBlank).trimmingSuffix(while: \.isBlank)
    let field = HTTPHeaders.Field(name: String(decoding: line[..<colon], as: UTF8.self), value: text(value))
    return field.isValid ? field : nil
  }

  private static func text(_ bytes: Data) -> String {
    let clean = bytes.map { $0.isBlank ? UInt8(ascii: " ") : $0 }
    // Latin-1 has no combining marks, see `CombiningMarks`.
    let isShort = clean.count { $0 >= 0x80 } <= CombiningMarks.maximumRun
    if isShort, let text = String(validating: clean, as: UTF8.self) { return text }
    return String(String.UnicodeScalarView(clean.map { Unicode.Scalar($0) }))
  }
}

extension UInt8 {
  /// Whether it is a space or a control character.
  fileprivate var isBlank: Bool { self <= UInt8(ascii: " ") || self == 0x7F }
}

extension Data {
  fileprivate func trimmingSuffix(while predicate: (UInt8) -> Bool) -> Data {
    guard let last = lastIndex(where: { !predicate($0) }) else { return Data() }
    return self[...last]
  }
}

internal import Foundation

/// A pure parser for the lines of a response's heads and trailers.
struct HTTPHeadReader {
  /// The maximum size, in bytes, of all heads of one response together, including interim heads and trailers.
  static let maximumSize = 64 * 1024
  /// The maximum number of fields of one head.
  static let maximumFieldCount = 256

  enum Action: Equatable {
    case proceed
    /// A head is complete.
    case head(HTTPHeaders)
    case tooLarge
  }

  private var totalSize = 0
  /// The number of lines of the current head, including the status line.
  private var lineCount = 0
  private var headers = HTTPHeaders()

  /// Receives a line, including its line break: the status line, a field, or the empty line that ends a head.
  ///
  /// The status line and invalid lines are ignored. A value is decoded as Latin-1 if it isn't valid UTF-8, or if it has
  /// more than ``CombiningMarks/maximumRunLength`` non-ASCII bytes. Control characters become spaces; for CR, LF and
  /// NUL, RFC 9110, section 5.5, requires this or the rejection of the response.
  mutating func receive(line: Data) -> Action {
    totalSize += line.count
    guard totalSize <= Self.maximumSize else { return .tooLarge }
    let content = line.trimmingSuffix { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }
    if content.isEmpty {
      defer { (headers, lineCount) = (HTTPHeaders(), 0) }
      return .head(headers)
    }
    lineCount += 1
    guard lineCount <= Self.maximumFieldCount + 1 else { return .tooLarge }
    if let field = Self.field(content) { headers.add(field.value, for: field.name) }
    return .proceed
  }

  private static func field(_ line: Data) -> HTTPHeaders.Field? {
    guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return nil }
    let value = line[line.index(after: colon)...].drop(while: \.isBlank).trimmingSuffix(while: \.isBlank)
    let field = HTTPHeaders.Field(name: String(decoding: line[..<colon], as: UTF8.self), value: text(value))
    return field.isValid ? field : nil
  }

  private static func text(_ bytes: Data) -> String {
    let cleanBytes = bytes.map { $0.isBlank ? UInt8(ascii: " ") : $0 }
    // Combining marks could make the text expensive to compare; see `CombiningMarks`. Latin-1 has none.
    let hasFewNonASCIIBytes = cleanBytes.count { $0 >= 0x80 } <= CombiningMarks.maximumRunLength
    if hasFewNonASCIIBytes, let text = String(validating: cleanBytes, as: UTF8.self) { return text }
    return String(String.UnicodeScalarView(cleanBytes.map { Unicode.Scalar($0) }))
  }
}

extension UInt8 {
  /// Whether the byte is a space or a control character.
  fileprivate var isBlank: Bool { self <= UInt8(ascii: " ") || self == 0x7F }
}

extension Data {
  fileprivate func trimmingSuffix(while predicate: (UInt8) -> Bool) -> Data {
    guard let last = lastIndex(where: { !predicate($0) }) else { return Data() }
    return self[...last]
  }
}

internal import Foundation

/// Collects the lines of a response's heads and trailers: a pure reader.
struct HTTPHeadReader {
  /// The most bytes of all heads of one response, interim ones and trailers included.
  static let maximumSize = 64 * 1024

  enum Action: Equatable {
    case proceed
    /// A head is complete.
    case head(HTTPHeaders)
    case tooLarge
  }

  private var size = 0
  private var headers = HTTPHeaders()

  /// Takes a line as it came, with its line break. An empty one ends a head.
  ///
  /// Lines that are no field are left out, since nothing in this module depends on them. A value that is not UTF-8 is read
  /// as Latin-1, as RFC 9110, section 5.5, asks.
  mutating func receive(line: Data) -> Action {
    size += line.count
    guard size <= Self.maximumSize else { return .tooLarge }
    let text = line.trimmingSuffix { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }
    if text.isEmpty {
      defer { headers = HTTPHeaders() }
      return .head(headers)
    }
    if let field = Self.field(text) { headers.add(field.value, for: field.name) }
    return .proceed
  }

  private static func field(_ line: Data) -> HTTPHeaders.Field? {
    guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return nil }
    let value = line[line.index(after: colon)...].trimmingSuffix(while: \.isBlank).drop(while: \.isBlank)
    let field = HTTPHeaders.Field(name: String(decoding: line[..<colon], as: UTF8.self), value: Self.text(value))
    return field.isValid ? field : nil
  }

  private static func text(_ bytes: Data) -> String {
    String(validating: bytes, as: UTF8.self) ?? String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
  }
}

extension UInt8 {
  fileprivate var isBlank: Bool { self == UInt8(ascii: " ") || self == UInt8(ascii: "\t") }
}

extension Data {
  fileprivate func trimmingSuffix(while predicate: (UInt8) -> Bool) -> Data {
    guard let last = lastIndex(where: { !predicate($0) }) else { return Data() }
    return self[...last]
  }
}

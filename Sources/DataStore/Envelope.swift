internal import Foundation

/// What a stored value looks like as bytes: one line of JSON about it, then the value as JSON.
///
/// ```
/// {"format":1,"savedAt":816932841.5499938,"schema":1}
/// {"moments":[],"userDetails":{"id":"0","name":"Jake Lin"}}
/// ```
///
/// The first line is read first and by itself, so the value of a newer program is recognised even where nothing after
/// its `format` is known.
enum Envelope {
  /// What this program writes, and the newest it reads.
  static let version = StoredVersion(format: 1, schema: 1)

  /// What bytes turn out to hold.
  enum Content<Value> {
    case value(Value, savedAt: Date)
    case newer(StoredVersion)
    case undecodable(reason: String)
  }

  private struct Version: Decodable {
    let format: Int
    let schema: Int

    private enum CodingKeys: CodingKey {
      case format
      case schema
    }

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: CodingKeys.self)
      format = try container.decode(Int.self, forKey: .format)
      // In a newer format the schema may mean anything.
      schema =
        format > version.format ? version.schema : try container.decode(Int.self, forKey: .schema)
    }
  }

  private struct Header: Codable {
    let format: Int
    let schema: Int
    /// Seconds since the reference date; the shortest decimal that reads back as the very same number.
    let savedAt: Double
  }

  /// The bytes of a value.
  ///
  /// - Throws: What the value's `encode(to:)` throws, or `EncodingError` for what JSON cannot say, such as `Double.nan`.
  static func encode<Value: Encodable>(_ value: Value, savedAt: Date) throws -> Data {
    let encoder = JSONEncoder()
    // The same value gives the same bytes in every process.
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let header = Header(
      format: version.format, schema: version.schema, savedAt: savedAt.timeIntervalSinceReferenceDate)
    var bytes = try encoder.encode(header)
    bytes.append(newline)
    bytes.append(try encoder.encode(value))
    return bytes
  }

  /// What `bytes` hold.
  ///
  /// Any bytes have an answer.
  static func decode<Value: Decodable>(_ bytes: Data, as type: Value.Type) -> Content<Value> {
    let decoder = JSONDecoder()
    let (headerBytes, valueBytes) = split(bytes)
    do {
      let decoded = try decoder.decode(Version.self, from: headerBytes)
      let found = StoredVersion(format: decoded.format, schema: decoded.schema)
      if found.isNewer(than: version) { return .newer(found) }
      guard found == version else { return .undecodable(reason: "there was never a \(found)") }
      let header = try decoder.decode(Header.self, from: headerBytes)
      guard let valueBytes else { return .undecodable(reason: "the value is missing") }
      return .value(
        try decoder.decode(type, from: valueBytes),
        savedAt: Date(timeIntervalSinceReferenceDate: header.savedAt))
    } catch {
      return .undecodable(reason: String(describing: error))
    }
  }

  /// The version of a value that is newer than this program; nil for all other bytes.
  static func newerVersion(of bytes: Data) -> StoredVersion? {
    if case .newer(let version) = decode(bytes, as: Anything.self) { version } else { nil }
  }

  private struct Anything: Decodable {
    init(from decoder: any Decoder) {}
  }

  private static let newline = UInt8(ascii: "\n")

  private static func split(_ bytes: Data) -> (header: Data, value: Data?) {
    guard let end = bytes.firstIndex(of: newline) else { return (bytes, nil) }
    return (bytes[..<end], bytes[bytes.index(after: end)...])
  }
}

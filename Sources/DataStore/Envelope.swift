internal import Foundation

/// What a stored value looks like as bytes: one line of JSON about it, then the value as JSON.
///
/// ```
/// {"checksum":"0a1b2c3d","format":2,"savedAt":816932841.5499938,"schema":1}
/// {"moments":[],"userDetails":{"id":"0","name":"Jake Lin"}}
/// ```
///
/// The checksum is the CRC-32C of everything behind its closing quotation mark, as eight lower-case hexadecimal digits.
/// It stands first in format 2 and in all that will follow, so bytes that were spoiled are told from those of a newer
/// program.
///
/// The first line is read first and by itself, so the value of a newer program is recognised even where nothing after
/// its `format` is known.
///
/// | format | what it added |
/// | --- | --- |
/// | 1 | `format`, `savedAt`, `schema` |
/// | 2 | `checksum` |
enum Envelope {
  /// What this program writes, and the newest it reads.
  static let format = 2

  /// The newest version that this program reads for a type of values.
  static func supported<Value>(by type: Value.Type) -> StoredVersion {
    StoredVersion(format: format, schema: StoreSchema.of(type).version)
  }

  /// What bytes turn out to hold.
  enum Content<Value> {
    case value(Value, savedAt: Date)
    case newer(StoredVersion)
    case unmigratable(MigrationFailure)
    case undecodable(reason: String)
  }

  /// The bytes of a value.
  ///
  /// - Throws: What the value's `encode(to:)` throws, or `EncodingError` for what JSON cannot say, such as `Double.nan`.
  static func encode<Value: Encodable>(_ value: Value, savedAt: Date, schema: Int) throws -> Data {
    let encoder = JSONEncoder()
    // The same value gives the same bytes in every process.
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let header = Header(format: format, schema: schema, savedAt: savedAt.timeIntervalSinceReferenceDate)
    var bytes = Data(",".utf8)
    bytes += try encoder.encode(header).dropFirst()
    bytes.append(newline)
    bytes += try encoder.encode(value)
    return Checksum.prefix(for: bytes) + bytes
  }

  /// What `bytes` hold.
  ///
  /// Any bytes have an answer.
  static func decode<Value: Decodable>(_ bytes: Data, as type: Value.Type, schema: StoreSchema) -> Content<Value> {
    switch open(bytes, schema: schema) {
    case .newer(let version): return .newer(version)
    case .undecodable(let reason): return .undecodable(reason: reason)
    case .value(let header, let valueBytes):
      let savedAt = Date(timeIntervalSinceReferenceDate: header.savedAt)
      if header.schema < schema.version {
        return migrate(valueBytes, from: header.schema, by: schema.migrations, to: type, savedAt: savedAt)
      }
      do {
        return .value(try JSONDecoder().decode(type, from: valueBytes), savedAt: savedAt)
      } catch {
        return .undecodable(reason: String(describing: error))
      }
    }
  }

  /// The version of a value that is newer than this program; nil for all other bytes.
  static func newerVersion(of bytes: Data, schema: StoreSchema) -> StoredVersion? {
    if case .newer(let version) = open(bytes, schema: schema) { version } else { nil }
  }

  private static func migrate<Value: Decodable>(
    _ bytes: Data, from version: Int, by migrations: [StoreMigration], to type: Value.Type, savedAt: Date
  ) -> Content<Value> {
    var bytes = bytes
    var version = version
    do {
      for migration in migrations[(version - 1)...] {
        version = migration.version
        bytes = try migration.migrate(bytes)
      }
      return .value(try JSONDecoder().decode(type, from: bytes), savedAt: savedAt)
    } catch {
      // A result that is no value is the fault of the last step.
      return .unmigratable(MigrationFailure(version: version, reason: String(describing: error)))
    }
  }
}

extension Envelope {
  /// What stands before everything else in a format that has a checksum.
  private enum Checksum {
    case right, wrong, missing

    private static let opening = Data(#"{"checksum":""#.utf8)
    private static let closing = UInt8(ascii: "\"")
    private static let length = opening.count + 9

    static func prefix(for rest: Data) -> Data {
      let digits = String(CRC32C.checksum(of: rest), radix: 16)
      return opening + Data(String(repeating: "0", count: 8 - digits.count).utf8) + Data(digits.utf8) + [closing]
    }

    init(of bytes: Data) {
      guard bytes.starts(with: Self.opening) else {
        self = .missing
        return
      }
      let rest = bytes.dropFirst(Self.length)
      self = bytes.prefix(Self.length) == Self.prefix(for: rest) ? .right : .wrong
    }
  }

  private struct Version: Decodable {
    let format: Int
    /// Unknown in a newer format, where it may mean anything.
    let schema: Int?

    private enum CodingKeys: CodingKey {
      case format
      case schema
    }

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: CodingKeys.self)
      format = try container.decode(Int.self, forKey: .format)
      schema = format > Envelope.format ? nil : try container.decode(Int.self, forKey: .schema)
    }

    func known(to supported: StoredVersion) -> StoredVersion {
      StoredVersion(format: format, schema: schema ?? supported.schema)
    }
  }

  private struct Header: Codable {
    let format: Int
    let schema: Int
    /// Seconds since the reference date; the shortest decimal that reads back as the very same number.
    let savedAt: Double
  }

  /// What the first line says of bytes.
  private enum Opened {
    case value(Header, Data)
    case newer(StoredVersion)
    case undecodable(reason: String)
  }

  private static func open(_ bytes: Data, schema: StoreSchema) -> Opened {
    let checksum = Checksum(of: bytes)
    if checksum == .wrong { return .undecodable(reason: "the checksum is wrong: the bytes were changed or cut off") }
    let supported = StoredVersion(format: format, schema: schema.version)
    let (headerBytes, valueBytes) = split(bytes)
    do {
      let found = try JSONDecoder().decode(Version.self, from: headerBytes).known(to: supported)
      guard found.format == 1 || checksum == .right else { return .undecodable(reason: "the checksum is missing") }
      if found.isNewer(than: supported) { return .newer(found) }
      guard found.format >= 1, found.schema >= 1 else { return .undecodable(reason: "there was never a \(found)") }
      let header = try JSONDecoder().decode(Header.self, from: headerBytes)
      guard let valueBytes else { return .undecodable(reason: "the value is missing") }
      return .value(header, valueBytes)
    } catch {
      return .undecodable(reason: String(describing: error))
    }
  }

  private static let newline = UInt8(ascii: "\n")

  private static func split(_ bytes: Data) -> (header: Data, value: Data?) {
    guard let end = bytes.firstIndex(of: newline) else { return (bytes, nil) }
    return (bytes[..<end], bytes[bytes.index(after: end)...])
  }
}

internal import Foundation

/// The format of a stored value: a header line in JSON, then the value as JSON.
///
/// ```
/// {"checksum":"0a1b2c3d","format":3,"savedAt":816932841.5499938   ,"schema":1,"tag":"…"}
/// {"messages":[],"owner":{"id":"0","name":"Jake Lin"}}
/// ```
///
/// The checksum is the CRC-32C of all bytes after the quotation mark that closes it, as eight lower-case hexadecimal
/// digits. It comes first in all formats, so that corrupt bytes aren't mistaken for those of a future format.
///
/// The header is decoded before the value, so a value of a future format is recognized even if this program
/// understands nothing but the number of the format.
///
/// The header of a ``PartitionedValue`` also has `parts`: the ids of the value's parts, in order. The second line
/// then has only the value's head. The id of a part contains the checksum of the part; see ``PartID``.
///
/// If the id of the key is too long for the name of the value, the header also has `id`: the id in the form that it
/// would have in the name; see ``LongKeyName``. Future formats keep this key, so that their values can be listed.
enum Envelope {
  /// The format that is written, and the only one that can be read.
  ///
  /// Lower numbers were used before the first release.
  static let format = 3

  /// The contents of the header line.
  struct Header: Equatable {
    let schema: Int
    let savedAt: Date
    let tag: StoreTag
    /// The ids of the parts, in order; `nil` for a value that is stored whole.
    let partIDs: [String]?
    /// The id of the key in its encoded form, if it isn't in the name of the value; see ``LongKeyName``.
    var longID: String? = nil
  }

  /// The result of verifying the checksum and reading the header line.
  enum Opened {
    case value(Header, body: Data)
    case future(StoredVersion)
    /// The checksum is right, so the bytes are as a program has written them, but the header can't be decoded.
    case undecodable(reason: String)
    /// The checksum is wrong or missing.
    case corrupt(reason: String)
  }

  /// Returns the newest version that this program can read for values of a type.
  static func supported<Value>(by type: Value.Type) -> StoredVersion {
    StoredVersion(format: format, schema: StoreSchema.of(type).version)
  }

  /// Returns the bytes of a stored value.
  ///
  /// - Throws: `EncodingError` for a time that JSON can't represent.
  static func encode(_ header: Header, body: Data) throws -> Data {
    let savedAt = header.savedAt.timeIntervalSinceReferenceDate
    guard savedAt.isFinite else {
      throw EncodingError.invalidValue(
        savedAt, EncodingError.Context(codingPath: [], debugDescription: "The time of the save isn't finite."))
    }
    // The line is written by hand, because a `JSONEncoder` would take longer for the header than for a small value that
    // follows it. Nothing in the line needs escaping. The time is padded to a fixed width, because a database writes
    // less if a row keeps its size.
    let time = "\(savedAt)"
    let padding = String(repeating: " ", count: max(0, 20 - time.utf8.count))
    let id = header.longID.map { #"\#(idKey)\#($0)""# } ?? ""
    let parts = header.partIDs.map { #","parts":["# + $0.map { "\"\($0)\"" }.joined(separator: ",") + "]" } ?? ""
    let line = """
      ,"format":\(format)\(id)\(parts),"savedAt":\(time)\(padding),"schema":\(header.schema),"tag":"\(header.tag.text)"}

      """
    var bytes = Data((Checksum.placeholder + line).utf8)
    bytes.append(body)
    Checksum.write(into: &bytes)
    return bytes
  }

  /// Verifies the checksum of stored bytes, and reads the header line.
  ///
  /// - Parameters:
  ///   - bytes: The stored bytes.
  ///   - supportedSchema: The newest schema that this program supports for the type of the value.
  static func open(_ bytes: Data, schema supportedSchema: Int) -> Opened {
    switch Checksum(of: bytes) {
    case .wrong: return .corrupt(reason: "the checksum is wrong: the bytes were changed or cut off")
    case .missing: return .corrupt(reason: "the checksum is missing")
    case .right: break
    }
    let (headerBytes, body) = split(bytes)
    // The scanner is faster than a decoder, but recognizes a line only in the form that `encode(_:body:)` writes. If
    // this condition fails, the line is decoded below.
    if let body, let header = HeaderScanner.header(in: headerBytes.dropFirst(Checksum.prefixLength)),
      header.schema <= supportedSchema
    {
      return .value(header, body: body)
    }
    do {
      let found = try JSONDecoder().decode(Version.self, from: headerBytes).storedVersion(
        assumedSchema: supportedSchema)
      if found.isNewer(than: StoredVersion(format: format, schema: supportedSchema)) { return .future(found) }
      guard found.format == format, found.schema >= 1 else {
        return .undecodable(reason: "\(found) has never existed")
      }
      let line = try JSONDecoder().decode(HeaderLine.self, from: headerBytes)
      guard let body else { return .undecodable(reason: "the value is missing") }
      let savedAt = Date(timeIntervalSinceReferenceDate: line.savedAt)
      let header = Header(schema: line.schema, savedAt: savedAt, tag: line.tag, partIDs: line.parts, longID: line.id)
      return .value(header, body: body)
    } catch {
      return .undecodable(reason: String(describing: error))
    }
  }
}

extension Envelope {
  /// The text in the header line before an id, up to the quotation mark that opens it.
  private static let idKey = #","id":""#

  /// Returns the id in the header line, whatever the rest of the bytes is like.
  ///
  /// The bytes may be corrupt or of a future format, so the caller must verify the id; see ``LongKeyName``.
  static func longID(in bytes: Data) -> String? {
    let line = split(bytes).header
    guard let start = line.range(of: Data(idKey.utf8))?.upperBound,
      let end = line[start...].firstIndex(of: UInt8(ascii: "\""))
    else { return nil }
    return StoreKeyName.decodeComponent(String(decoding: line[start..<end], as: UTF8.self))
  }

  /// Whether the checksum at the start of the bytes is right.
  private enum Checksum {
    case right, wrong, missing

    private static let opening = #"{"checksum":""#
    private static let digits = opening.utf8.count..<opening.utf8.count + 8
    /// The start of the header line, with zeros in place of the digits.
    static let placeholder = opening + "00000000\""
    /// The length of the opening, eight digits and the closing quotation mark.
    static let prefixLength = placeholder.utf8.count

    /// Replaces the digits of the placeholder at the start of the bytes.
    static func write(into bytes: inout Data) {
      bytes.replaceSubrange(digits, with: CRC32C.checksum(of: bytes[prefixLength...]).hexadecimalDigits.utf8)
    }

    init(of bytes: Data) {
      guard bytes.starts(with: Self.opening.utf8) else {
        self = .missing
        return
      }
      let expected = Self.opening + CRC32C.checksum(of: bytes.dropFirst(Self.prefixLength)).hexadecimalDigits + "\""
      self = bytes.prefix(Self.prefixLength).elementsEqual(expected.utf8) ? .right : .wrong
    }
  }

  private struct Version: Decodable {
    let format: Int
    /// The schema; `nil` in a future format, where the key may have another meaning.
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

    /// Returns the version, with the assumed schema in place of an unknown one.
    func storedVersion(assumedSchema: Int) -> StoredVersion {
      StoredVersion(format: format, schema: schema ?? assumedSchema)
    }
  }

  private struct HeaderLine: Decodable {
    let id: String?
    let parts: [String]?
    /// The seconds since the reference date, as the shortest decimal number that is parsed to the same value.
    let savedAt: Double
    let schema: Int
    let tag: StoreTag
  }

  private static let newline = UInt8(ascii: "\n")

  private static func split(_ bytes: Data) -> (header: Data, body: Data?) {
    guard let end = bytes.firstIndex(of: newline) else { return (bytes, nil) }
    return (bytes[..<end], bytes[bytes.index(after: end)...])
  }
}

extension JSONEncoder {
  /// Creates an encoder of values that are stored whole.
  ///
  /// It doesn't sort the keys of objects, which would take a fifth longer.
  static var ofWholeValues: JSONEncoder {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .withoutEscapingSlashes
    return encoder
  }

  /// Creates an encoder that sorts the keys of objects, so that equal values have the same bytes in every process.
  static var withSortedKeys: JSONEncoder {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return encoder
  }
}

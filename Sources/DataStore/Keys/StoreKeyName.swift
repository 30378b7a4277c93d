internal import Foundation

/// The collection and id of a stored value, without its type.
///
/// Errors and events contain it, and a ``StoreBackend`` receives it as ``encoded()``. The encoding leaves `a`–`z`,
/// `0`–`9`, `_` and `-` unchanged, writes every other byte as `%` and two lower-case hexadecimal digits, and joins the
/// collection and the id with `.`. Two different names therefore have different encodings, even on a volume that
/// doesn't distinguish upper and lower case. No encoded name contains `/`, `..` or NUL.
///
/// ```swift
/// try StoreKeyName("inbox", id: "Jake/0").encoded()  // "inbox.%4aake%2f0"
/// ```
///
/// If that would be longer than ``maximumEncodedLength``, `~` and the SHA-256 of the id replace the id, as lower-case
/// hexadecimal digits, and the stored value contains the id itself. So an id may be a URL, a search phrase or any other
/// text of up to ``maximumIDLength`` bytes.
public struct StoreKeyName: Hashable, Sendable {
  /// The maximum length of an encoded name, in bytes.
  ///
  /// It also limits the encoded form of a collection. Beside an id that isn't a part of the encoded name itself, the
  /// encoded collection may have 134 bytes.
  public static let maximumEncodedLength = 200

  /// The maximum length of an id, in bytes of UTF-8 after normalization (NFC).
  public static let maximumIDLength = 4096

  /// The collection of the value.
  public let collection: String

  /// The id of the value within its collection; `nil` for the only value of a collection.
  public let id: String?

  /// Creates the name of a value.
  ///
  /// - Parameters:
  ///   - collection: The collection of the value.
  ///   - id: The id of the value within its collection; `nil` for the only value of a collection.
  public init(_ collection: String, id: String? = nil) {
    self.collection = collection
    self.id = id
  }

  /// Creates a name from its encoded form, or returns `nil` if no name has this encoded form.
  ///
  /// It also returns `nil` if the encoded form contains a digest in place of the id; see ``isEncoded(_:)``.
  public init?(encoded: String) {
    let components = encoded.utf8.split(separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
    guard let collection = Self.decode(components[0]) else { return nil }
    if components.count == 1 {
      self.init(collection)
    } else {
      guard let id = Self.decode(components[1]) else { return nil }
      self.init(collection, id: id)
    }
    // A name has exactly one encoded form, so any other text that decodes to it is rejected.
    do { guard try self.encoded() == encoded else { return nil } } catch { return nil }
  }

  /// Returns the name under which a ``StoreBackend`` keeps the value.
  ///
  /// - Throws: ``StoreError/invalidKey(_:)`` if the collection or the id is empty, if the id is longer than
  ///   ``maximumIDLength``, or if the result would be longer than ``maximumEncodedLength``.
  /// - Complexity: O(*n*) for *n* bytes of the collection and the id.
  public func encoded() throws(StoreError) -> String {
    if collection.isEmpty { throw .invalidKey(.emptyCollection) }
    if id?.isEmpty == true { throw .invalidKey(.emptyID) }
    var bytes: [UInt8] = []
    Self.encode(collection, into: &bytes)
    let collectionLength = bytes.count
    if let id {
      bytes.append(UInt8(ascii: "."))
      Self.encode(id, into: &bytes)
    }
    if bytes.count <= Self.maximumEncodedLength { return String(decoding: bytes, as: UTF8.self) }
    guard let id, collectionLength <= LongKeyName.maximumCollectionLength,
      Self.normalizedBytes(of: id).count <= Self.maximumIDLength
    else { throw .invalidKey(.tooLong(encodedLength: bytes.count)) }
    let encodedCollection = String(decoding: bytes.prefix(collectionLength), as: UTF8.self)
    return LongKeyName.encode(encodedCollection, id: Self.normalizedBytes(of: id))
  }

  /// Returns whether a text is the encoded form of a name, including one that contains a digest in place of an id.
  ///
  /// A ``StoreBackend`` uses this to tell the names of values from those of other things in its medium.
  public static func isEncoded(_ text: String) -> Bool {
    StoreKeyName(encoded: text) != nil || LongKeyName(text) != nil
  }

  /// The id in the form in which a stored value contains it; `nil` if the encoded name contains the id.
  ///
  /// - Parameter encodedName: The result of ``encoded()``.
  func longID(besides encodedName: String) -> String? {
    guard let id, LongKeyName.isLong(encodedName) else { return nil }
    var bytes: [UInt8] = []
    Self.encode(id, into: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Returns a collection or an id from its encoded form, or `nil` if none has this form.
  static func decodeComponent(_ text: some StringProtocol) -> String? {
    decode(Substring(text).utf8)
  }
}

extension StoreKeyName: CustomStringConvertible {
  /// The collection, and the id if there is one.
  public var description: String {
    id.map { "\"\(collection)\" with id \"\($0)\"" } ?? "\"\(collection)\""
  }
}

extension StoreKeyName {
  private static func encode(_ component: String, into bytes: inout [UInt8]) {
    for byte in normalizedBytes(of: component) {
      if isPlain(byte) {
        bytes.append(byte)
      } else {
        bytes += [UInt8(ascii: "%"), hexadecimalDigits[Int(byte >> 4)], hexadecimalDigits[Int(byte & 0xF)]]
      }
    }
  }

  /// Returns the bytes of a collection or an id, which are equal for equal strings.
  ///
  /// Swift compares strings by canonical equivalence, so the bytes of equal strings differ without the normalization.
  private static func normalizedBytes(of component: String) -> String.UTF8View {
    let isASCII = component.utf8.allSatisfy { $0 < 0x80 }
    return (isASCII ? component : component.precomposedStringWithCanonicalMapping).utf8
  }

  private static func decode(_ component: Substring.UTF8View) -> String? {
    var bytes: [UInt8] = []
    var rest = component
    while let byte = rest.popFirst() {
      if isPlain(byte) {
        bytes.append(byte)
        continue
      }
      guard byte == UInt8(ascii: "%"),
        let high = rest.popFirst().flatMap(hexadecimalDigits.firstIndex),
        let low = rest.popFirst().flatMap(hexadecimalDigits.firstIndex)
      else { return nil }
      bytes.append(UInt8(high << 4 | low))
    }
    return String(validating: bytes, as: UTF8.self)
  }

  private static let hexadecimalDigits = Array("0123456789abcdef".utf8)

  private static func isPlain(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"),
      UInt8(ascii: "-"):
      true
    default:
      false
    }
  }
}

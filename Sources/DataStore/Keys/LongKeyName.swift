internal import Foundation

/// The encoded name of a key whose id is too long for the name: `<collection>.~<SHA-256 of the id>`.
///
/// The id itself is in the header of the stored value, in the form that it would have in a name; see ``Envelope``. So a
/// call for a key needs only the digest, and only a list of the stored keys has to read the values for their ids. An id
/// that is found in bytes is compared with the digest, so corrupt bytes never lead to the key of another value.
///
/// No ``StoreKeyName`` that keeps its id in its name encodes to such a text, because `~` isn't a character of it.
struct LongKeyName: Equatable {
  /// The characters between an encoded collection and a digest.
  private static let separator = ".~"
  private static let digestLength = 64

  /// The maximum length of the encoded collection of such a name, in bytes.
  static let maximumCollectionLength = StoreKeyName.maximumEncodedLength - separator.utf8.count - digestLength

  let collection: String
  private let digest: String
  private let name: String

  /// Parses an encoded name, or returns `nil` for every other text, such as an encoded name that contains its id.
  init?(_ name: String) {
    guard Self.isLong(name), let end = name.range(of: Self.separator) else { return nil }
    let digest = name[end.upperBound...]
    guard digest.utf8.count == Self.digestLength, name.utf8.count <= StoreKeyName.maximumEncodedLength,
      digest.utf8.allSatisfy({ "0123456789abcdef".utf8.contains($0) }),
      let key = StoreKeyName(encoded: String(name[..<end.lowerBound])), key.id == nil
    else { return nil }
    (self.collection, self.digest, self.name) = (key.collection, String(digest), name)
  }

  /// Returns whether an encoded name contains a digest in place of an id.
  ///
  /// Only the mark is looked for, so the text must be an encoded name.
  static func isLong(_ encodedName: String) -> Bool {
    encodedName.utf8.contains(UInt8(ascii: "~"))
  }

  /// Returns the name of a key.
  ///
  /// - Parameters:
  ///   - encodedCollection: The collection, in its encoded form.
  ///   - id: The bytes of the normalized id.
  static func encode(_ encodedCollection: String, id: some Collection<UInt8>) -> String {
    encodedCollection + separator + SHA256.digest(of: id)
  }

  /// The key of bytes that have lost their id: the digest, after a `~`, takes the place of the id.
  ///
  /// Nothing can be stored under this key, because its own name is another one. It only names the bytes in events and
  /// errors, and for an erasure.
  private var placeholder: StoreKeyName { StoreKeyName(collection, id: "~\(digest)") }

  /// Returns the key of stored bytes, or the placeholder if they don't contain an id with this digest.
  func key(of bytes: Data) -> StoreKeyName {
    guard let id = Envelope.longID(in: bytes) else { return placeholder }
    let key = StoreKeyName(collection, id: id)
    do throws(StoreError) {
      return try key.encoded() == name ? key : placeholder
    } catch {
      return placeholder
    }
  }
}

internal import DataStore
internal import Foundation

/// Decides which stored items belong to a user.
struct UserData<Key: RepositoryKey>: Sendable {
  let user: UserDigest
  let valueCollection: String
  let mutationCollection: String

  /// Whether an item is erased when the user signs out.
  ///
  /// What may be the user's is erased, even if it can't be decoded.
  func mayOwn(_ item: StoredItem) -> Bool {
    // Without a key, the owner of the bytes can't be determined, so they may be the user's.
    guard let key = item.key else { return true }
    switch key.collection {
    case valueCollection: return key.id.map { user.owns(storeID: $0, as: Key.self) } ?? false
    case mutationCollection:
      let bytes = item.bytes
      return Self.owner(of: bytes).map { $0 == user } ?? isMentioned(in: bytes)
    default: return false
    }
  }

  /// Returns the id of a mutation of the user, or `nil` if an item is another one.
  func mutationID(of item: StoredItem) -> MutationID? {
    guard let key = item.key, key.collection == mutationCollection, let id = key.id,
      Self.owner(of: item.bytes) == user
    else { return nil }
    return MutationID(rawValue: id)
  }

  /// Returns the user of a mutation's record; `nil` if the bytes don't show the user.
  private static func owner(of bytes: Data) -> UserDigest? {
    guard let record = MutationRecord.decode(bytes) else { return nil }
    if let user = record.user { return UserDigest(text: user) }
    return record.keys.first.flatMap { Key(storeID: $0) }.map { UserDigest($0.userID) }
  }

  /// Returns whether bytes that can't be decoded contain, as a JSON string, the user's id or the id of one of the
  /// user's keys.
  private func isMentioned(in bytes: Data) -> Bool {
    var isEscaped = false
    // A quotation mark after a backslash doesn't end a string.
    let segments = bytes.split { byte in
      defer { isEscaped = !isEscaped && byte == UInt8(ascii: "\\") }
      return !isEscaped && byte == UInt8(ascii: "\"")
    }
    return segments.contains { segment in
      let text = Self.string(of: segment)
      return UserDigest(text) == user || user.owns(storeID: text, as: Key.self)
    }
  }

  /// Returns the string that bytes between quotation marks represent in JSON.
  private static func string(of bytes: Data) -> String {
    do {
      return try JSONDecoder().decode(String.self, from: Data("\"".utf8) + bytes + Data("\"".utf8))
    } catch {
      return String(decoding: bytes, as: UTF8.self)
    }
  }
}

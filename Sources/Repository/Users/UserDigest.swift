internal import DataStore
internal import Foundation

/// A digest that identifies a user in the store, where it remains after the user has signed out.
///
/// It is stored so that the id itself needn't be. It doesn't hide the id, which can be found by trying ids.
///
/// Computed by 64-bit FNV-1a, as described at <http://www.isthe.com/chongo/tech/comp/fnv/>. With 64 bits, it is
/// practically impossible that two users of one device have the same digest.
struct UserDigest: Hashable, Sendable {
  let text: String

  /// - Parameter userID: The id of the user, or `nil` if there is none. The digest of `nil` equals no user's.
  init(_ userID: String?) {
    guard let userID else {
      text = "none"
      return
    }
    let (offsetBasis, prime): (UInt64, UInt64) = (0xcbf2_9ce4_8422_2325, 0x0100_0000_01b3)
    var hash = offsetBasis
    // Swift compares strings by canonical equivalence, so the bytes of equal ids may differ until they are normalized.
    for byte in userID.precomposedStringWithCanonicalMapping.utf8 { hash = (hash ^ UInt64(byte)) &* prime }
    text = String(hash, radix: 16)
  }

  /// Returns whether a stored value belongs to the user.
  func owns<Value, Key: RepositoryKey>(_ key: StoreKey<Value>, as type: Key.Type) -> Bool {
    key.id.map { owns(storeID: $0, as: type) } ?? false
  }

  /// Returns whether the key of a value belongs to the user.
  ///
  /// A value without a user belongs to no digest, not even to that of `nil`.
  func owns<Key: RepositoryKey>(storeID: String, as type: Key.Type) -> Bool {
    Key(storeID: storeID)?.userID.map { UserDigest($0) == self } ?? false
  }

  /// - Parameter text: The ``text`` of another digest.
  init(text: String) {
    self.text = text
  }
}

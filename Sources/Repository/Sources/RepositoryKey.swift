public import Foundation

/// The key of a repository's value, which also identifies the value in the store.
///
/// `String`, `Int` and `UUID` conform. Define a conforming type if a key has more than one part, or if the value
/// belongs to a user:
///
/// ```swift
/// struct CommentsKey: RepositoryKey {
///   /// A user's id isn't empty and contains no slash.
///   let userID: String?
///   let postID: String
///
///   var storeID: String { "\(userID ?? "")/\(postID)" }
///
///   init(userID: String?, postID: String) {
///     (self.userID, self.postID) = (userID, postID)
///   }
///
///   init?(storeID: String) {
///     let parts = storeID.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
///     guard parts.count == 2 else { return nil }
///     self.init(userID: parts[0].isEmpty ? nil : String(parts[0]), postID: String(parts[1]))
///   }
/// }
/// ```
public protocol RepositoryKey: Hashable, Sendable {
  /// The id of the value in the store's collection.
  ///
  /// Different keys must have different ids. An id must not be empty or exceed the store's limit; see
  /// `StoreKey.validate()`.
  var storeID: String { get }

  /// Creates the key with a ``storeID``, or returns `nil` if no key has it.
  init?(storeID: String)

  /// The id of the user to whom the value belongs, or `nil` if it belongs to no user.
  ///
  /// The default implementation returns `nil`. If the server requires a user to sign in again, only the mutations of
  /// that user are paused. ``SyncedRepository/signOut(userID:unsent:)`` erases the values of a user.
  var userID: String? { get }
}

extension RepositoryKey {
  /// `nil`: the value belongs to no user.
  public var userID: String? { nil }
}

extension String: RepositoryKey {
  /// The string itself.
  public var storeID: String { self }

  /// Creates the string.
  public init?(storeID: String) {
    self = storeID
  }
}

extension Int: RepositoryKey {
  /// The number in base 10.
  public var storeID: String { String(self) }

  /// Creates the number, or returns `nil` if the id doesn't have the format of ``storeID``.
  public init?(storeID: String) {
    guard let number = Int(storeID), number.storeID == storeID else { return nil }
    self = number
  }
}

extension UUID: RepositoryKey {
  /// The UUID string in upper case.
  public var storeID: String { uuidString }

  /// Creates the UUID, or returns `nil` if the id doesn't have the format of ``storeID``.
  public init?(storeID: String) {
    guard let uuid = UUID(uuidString: storeID), uuid.storeID == storeID else { return nil }
    self = uuid
  }
}

internal import DataStore

/// The record of a user who has signed in or out, stored under the user's ``UserDigest``.
struct UserRecord: Codable, Equatable, Sendable {
  enum Phase: String, Codable, Sendable {
    case signedIn
    /// The user's data is being erased. Any process on the store may do that.
    case signingOut
    case signedOut
  }

  /// The phase; a user without a record counts as signed in.
  var phase = Phase.signedIn

  /// The number of times the user's credentials have changed, by which other repositories learn of a change.
  var signInCount: UInt64 = 0

  /// The number of sign-outs that have begun, including those of a user who was already signed out.
  ///
  /// It shows a sign-out even if the user has signed in again. Data requested before a sign-out isn't stored after it.
  var signOutCount: UInt64 = 0

  /// The collection of the records of a repository's users.
  static func collection(ofRepository name: String) -> String { "\(name).users" }
}

/// The precondition of a commit with data of a user: the user's record hasn't changed, so the user hasn't signed out.
struct UserRequirement: Sendable {
  let key: StoreKey<UserRecord>
  let tag: StoreTag?

  func add(to batch: inout StoreBatch) {
    batch.requireFound(tag, of: key)
  }
}

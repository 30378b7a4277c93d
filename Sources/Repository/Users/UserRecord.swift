internal import DataStore

/// What the store keeps of a user who has signed in or out, under a ``UserDigest``.
struct UserRecord: Codable, Equatable, Sendable {
  enum Phase: String, Codable, Sendable {
    case signedIn
    /// The user's data is being erased, which every process on the store may do.
    case signingOut
    case signedOut
  }

  var phase = Phase.signedIn

  /// How often the user's credentials have changed, so that the repository that sends learns of it.
  var signInCount: UInt64 = 0

  /// How often the user has signed out, so that what was requested before isn't stored after it.
  var signOutCount: UInt64 = 0

  /// Where the records of a repository's users are kept.
  static func collection(ofRepository name: String) -> String { "\(name).users" }
}

/// What a commit with data of a user requires: that the user hasn't signed out since.
struct UserRequirement: Sendable {
  let key: StoreKey<UserRecord>
  let tag: StoreTag?

  func add(to batch: inout StoreBatch) {
    batch.require(tag, of: key)
  }
}

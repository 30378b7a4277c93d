internal import DataStore

/// Which users may use a repository, as far as is known.
///
/// A pure state machine.
///
/// - Complexity: O(1) for each function. Remembers each user who has ever signed out, or whose credentials have changed.
struct UserAccess {
  /// What follows from a record.
  struct News: Equatable {
    /// Whether nothing of the user may be there any more that was known before.
    var isClosed = false
    /// Whether the user may use the repository again.
    var isReopened = false
    /// Whether the credentials have changed.
    var hasSignedIn = false
  }

  private struct Known {
    let record: UserRecord
    let tag: StoreTag
    let revision: UInt64
  }

  private var known: [UserDigest: Known] = [:]
  /// How often each user is being signed out by this repository.
  private var leavers: [UserDigest: Int] = [:]

  /// What the store has of a user.
  func record(of user: UserDigest) -> UserRecord { known[user]?.record ?? UserRecord() }

  /// The tag of what the store has of a user.
  func tag(of user: UserDigest) -> StoreTag? { known[user]?.tag }

  /// Whether data of a user may be there.
  func isOpen(_ user: UserDigest) -> Bool { record(of: user).phase == .signedIn }

  /// Whether a user may begin something.
  func mayBegin(_ user: UserDigest) -> Bool { isOpen(user) && leavers[user] == nil }

  /// Records that this repository is about to sign a user out.
  mutating func beginLeaving(_ user: UserDigest) {
    leavers[user, default: 0] += 1
  }

  mutating func endLeaving(_ user: UserDigest) {
    leavers[user]? -= 1
    if leavers[user] == 0 { leavers[user] = nil }
  }

  /// Records what the store has of a user.
  ///
  /// - Parameters:
  ///   - stored: The record.
  ///   - user: The user.
  ///   - revision: The revision of the commit that stored it. One that isn't newer than what is known changes nothing.
  mutating func receive(_ stored: UserRecord, of user: UserDigest, tag: StoreTag, revision: UInt64) -> News {
    if let old = known[user], revision <= old.revision { return News() }
    let (old, wasOpen) = (record(of: user), isOpen(user))
    known[user] = Known(record: stored, tag: tag, revision: revision)
    let isOpen = stored.phase == .signedIn
    let hasSignedOut = stored.signOutCount != old.signOutCount
    return News(
      isClosed: wasOpen && (hasSignedOut || !isOpen), isReopened: isOpen && (hasSignedOut || !wasOpen),
      hasSignedIn: isOpen && stored.signInCount != old.signInCount)
  }
}

internal import DataStore

/// The users who may use a repository, as far as this process knows.
///
/// A pure state machine.
///
/// - Complexity: O(1) for each function. Remembers each user who has ever signed out or whose credentials have changed.
struct UserAccess {
  /// The effects of a new record.
  struct Effects: Equatable {
    /// Whether the engine must discard its state of the user, because a sign-out has begun.
    var isClosed = false
    /// Whether the user may use the repository again.
    var isReopened = false
    /// Whether the user has signed in, for the first time or again, so that the credentials have changed.
    var hasSignedIn = false
  }

  private struct KnownRecord {
    let record: UserRecord
    /// The tag of the commit that stored the record; `nil` if the record isn't stored any more.
    let tag: StoreTag?
    let revision: UInt64
  }

  private var known: [UserDigest: KnownRecord] = [:]
  /// The number of unfinished calls of this repository that sign a user out, by user.
  private var signOutCallCounts: [UserDigest: Int] = [:]

  /// The last known record of a user; a user without one counts as signed in.
  func record(of user: UserDigest) -> UserRecord { known[user]?.record ?? UserRecord() }

  /// The tag of the stored record of a user, or `nil` if none is stored as far as this process knows.
  func tag(of user: UserDigest) -> StoreTag? { known[user]?.tag }

  /// Whether the repository may hold data of a user.
  func isOpen(_ user: UserDigest) -> Bool { record(of: user).phase == .signedIn }

  /// Whether new calls may begin for a user.
  func mayBegin(_ user: UserDigest) -> Bool { isOpen(user) && signOutCallCounts[user] == nil }

  /// Rejects new calls for a user, because a call that signs the user out has begun.
  mutating func beginRejectingCalls(of user: UserDigest) {
    signOutCallCounts[user, default: 0] += 1
  }

  /// Balances a call of ``beginRejectingCalls(of:)``.
  mutating func endRejectingCalls(of user: UserDigest) {
    signOutCallCounts[user]? -= 1
    if signOutCallCounts[user] == 0 { signOutCallCounts[user] = nil }
  }

  /// Records that the record of a user isn't stored any more, for example because the database was replaced.
  ///
  /// The record stays in force, so that a user who has signed out stays signed out. The next sign-in or sign-out
  /// stores a record again.
  ///
  /// - Parameters:
  ///   - user: The user.
  ///   - revision: The revision of the removal. A removal that isn't newer than the known record changes nothing.
  mutating func recordRemoval(of user: UserDigest, revision: UInt64) {
    guard let old = known[user], revision > old.revision else { return }
    known[user] = KnownRecord(record: old.record, tag: nil, revision: revision)
  }

  /// Records that the record of a user wasn't found.
  ///
  /// - Parameters:
  ///   - user: The user.
  ///   - tag: The tag that was known before the store was read. If another one is known now, nothing changes.
  mutating func recordAbsence(of user: UserDigest, tag: StoreTag?) {
    guard let old = known[user], old.tag == tag else { return }
    known[user] = KnownRecord(record: old.record, tag: nil, revision: old.revision)
  }

  /// Records the stored record of a user.
  ///
  /// - Parameters:
  ///   - stored: The record.
  ///   - user: The user.
  ///   - tag: The tag of the commit that stored it.
  ///   - revision: The revision of that commit. A record that isn't newer than the known one changes nothing.
  /// - Returns: The effects that the caller must bring about.
  mutating func receive(_ stored: UserRecord, of user: UserDigest, tag: StoreTag, revision: UInt64) -> Effects {
    if let old = known[user], revision <= old.revision { return Effects() }
    let (oldRecord, wasOpen) = (record(of: user), isOpen(user))
    known[user] = KnownRecord(record: stored, tag: tag, revision: revision)
    let isOpenNow = stored.phase == .signedIn
    // If the user has signed out and in again since the old record, only the count shows the sign-out. The user is then
    // closed and reopened.
    let hasSignedOut = stored.signOutCount != oldRecord.signOutCount
    return Effects(
      isClosed: wasOpen && (hasSignedOut || !isOpenNow), isReopened: isOpenNow && (hasSignedOut || !wasOpen),
      hasSignedIn: isOpenNow && stored.signInCount != oldRecord.signInCount)
  }
}

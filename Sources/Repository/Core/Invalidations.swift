internal import Foundation

/// The record of which stored values were marked as stale, including those of keys that aren't in use.
///
/// At most ``limit`` keys and users are remembered. One more marks all values that were saved until then.
///
/// - Complexity: O(1) amortized for each call.
struct Invalidations<Key: RepositoryKey> {
  /// The maximum number of keys and users that are remembered individually.
  static var limit: Int { 4_096 }

  private var markTimeOfAll: Date?
  private var markTimesByUser: [String: Date] = [:]
  private var markTimesByKey: [Key: Date] = [:]

  /// Marks as stale the selected values that were saved until `now`.
  mutating func add(_ selection: KeySelection<Key>, at now: Date) {
    switch selection {
    case .key(let key): markTimesByKey[key] = now
    case .user(let userID): markTimesByUser[userID] = now
    case .all: markTimeOfAll = now
    }
    if markTimesByKey.count + markTimesByUser.count > Self.limit { markTimeOfAll = now }
    if markTimeOfAll == now { (markTimesByKey, markTimesByUser) = ([:], [:]) }
  }

  /// Returns whether the value of a key was marked as stale after it was saved.
  func contains(_ key: Key, savedAt: Date) -> Bool {
    let markTimes = [markTimeOfAll, markTimesByKey[key], key.userID.flatMap { markTimesByUser[$0] }]
    return markTimes.contains { $0.map { savedAt <= $0 } ?? false }
  }
}

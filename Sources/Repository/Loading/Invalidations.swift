internal import Foundation

/// Which stored values were made stale, of keys that may not be in use.
///
/// - Complexity: O(1), and a bounded number of keys: of too many, all values are stale.
struct Invalidations<Key: RepositoryKey> {
  /// The number of keys that are remembered one by one.
  static var limit: Int { 4_096 }

  private var all: Date?
  private var users: [String: Date] = [:]
  private var keys: [Key: Date] = [:]

  /// Makes the values stale that are saved by now.
  mutating func add(_ selection: KeySelection<Key>, at now: Date) {
    switch selection {
    case .key(let key): keys[key] = now
    case .user(let userID): users[userID] = now
    case .all: all = now
    }
    if keys.count + users.count > Self.limit { all = now }
    if all == now { (keys, users) = ([:], [:]) }
  }

  /// Whether the value of a key was made stale after it was saved.
  func contains(_ key: Key, savedAt: Date) -> Bool {
    [all, keys[key], key.userID.flatMap { users[$0] }].contains { $0.map { savedAt <= $0 } ?? false }
  }
}

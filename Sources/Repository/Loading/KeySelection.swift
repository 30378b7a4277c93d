/// A selection of a repository's keys.
public enum KeySelection<Key: RepositoryKey>: Hashable, Sendable {
  case key(Key)
  /// The keys of a user; see ``RepositoryKey/userID``.
  case user(String)
  case all

  /// Returns whether a key is selected.
  func contains(_ key: Key) -> Bool {
    switch self {
    case .key(let selected): key == selected
    case .user(let userID): key.userID == userID
    case .all: true
    }
  }
}

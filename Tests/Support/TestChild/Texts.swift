internal import DataStore
internal import Multicast

/// Commands that use the texts of a store that another process uses as well.
extension TestChild {
  private static func key(_ userID: String) -> StoreKey<String> { StoreKey("text", id: userID) }

  /// Saves a text for a user.
  static func save(_ text: String, for userID: String, in store: any KeyValueStore) async throws {
    try await store.save(text, for: key(userID))
  }

  /// Removes a user's text.
  static func remove(_ userID: String, in store: any KeyValueStore) async throws {
    try await store.remove(key(userID))
  }

  /// Prints each change of a user's text, until standard input ends.
  static func follow(_ userID: String, in store: any KeyValueStore) async throws {
    let changes = try await store.changes(of: key(userID)).subscribe()
    let following = Task {
      say("ready")
      for await change in changes { say(change.stored.map { "saved \($0.value)" } ?? "removed") }
    }
    while readLine() != nil {}
    following.cancel()
  }
}

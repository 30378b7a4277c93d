internal import DataStore
internal import Multicast

/// Commands that use texts in a store, which another process uses at the same time.
extension TestChild {
  private static func key(_ id: String) -> StoreKey<String> { StoreKey("text", id: id) }

  /// Saves the text with an id.
  static func save(_ text: String, for id: String, in store: any KeyValueStore) async throws {
    try await store.save(text, for: key(id))
  }

  /// Removes the text with an id.
  static func remove(_ id: String, in store: any KeyValueStore) async throws {
    try await store.remove(key(id))
  }

  /// Prints `ready`, then the text with an id, if it is stored, and then its changes, until standard input ends.
  static func follow(_ id: String, in store: any KeyValueStore) async throws {
    let changes = try await store.changes(of: key(id)).subscribe()
    let printer = Task {
      say("ready")
      // If the text is stored, the first change contains it.
      for await change in changes { say(change.stored.map { "saved \($0.value)" } ?? "removed") }
    }
    while readLine() != nil {}
    printer.cancel()
  }
}

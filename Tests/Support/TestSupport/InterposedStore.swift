package import DataStore
package import Multicast

/// A store that runs a test's closures before it forwards calls to another store.
package struct InterposedStore: KeyValueStore {
  private let store: any KeyValueStore
  private let beforeSaving: @Sendable (StoreKeyName) async throws(StoreError) -> Void
  private let beforeObserving: @Sendable (String) async throws(StoreError) -> Void

  /// Creates a store that forwards to another store.
  ///
  /// - Parameters:
  ///   - store: The other store; a store in memory by default.
  ///   - beforeSaving: A closure that runs before each save, with its key, and before each commit, with each of its
  ///     keys. If it throws, nothing is saved.
  ///   - beforeObserving: A closure that runs before a collection is observed, with its name. If it throws, the
  ///     collection isn't observed.
  package init(
    _ store: any KeyValueStore = InMemoryStore(),
    beforeSaving: @escaping @Sendable (StoreKeyName) async throws(StoreError) -> Void = { _ in },
    beforeObserving: @escaping @Sendable (String) async throws(StoreError) -> Void = { _ in }
  ) {
    self.store = store
    self.beforeSaving = beforeSaving
    self.beforeObserving = beforeObserving
  }

  package var events: MulticastStream<StoreEvent, Never> { store.events }

  package func load<Value>(_ key: StoreKey<Value>) async throws(StoreError) -> StoredValue<Value>? {
    try await store.load(key)
  }

  package func save<Value>(
    _ value: Value, for key: StoreKey<Value>
  ) async throws(StoreError) -> StoredValue<Value> {
    try await beforeSaving(key.keyName)
    return try await store.save(value, for: key)
  }

  package func erase(where isErased: @escaping @Sendable (StoredItem) -> Bool) async throws(StoreError) {
    try await store.erase(where: isErased)
  }

  package func removeAll(in collection: String) async throws(StoreError) {
    try await store.removeAll(in: collection)
  }

  package func commit(_ batch: StoreBatch) async throws(StoreError) -> StoreCommit {
    for key in batch.keys { try await beforeSaving(key) }
    return try await store.commit(batch)
  }

  package func remove<Value>(_ key: StoreKey<Value>) async throws(StoreError) {
    try await store.remove(key)
  }

  package func changes<Value>(
    of key: StoreKey<Value>
  ) async throws(StoreError) -> MulticastStream<StoreChange<Value>, Never> {
    try await store.changes(of: key)
  }

  package func observe<Value>(
    collection: String, as type: Value.Type
  ) async throws(StoreError) -> StoreObservation<Value> where Value: Codable & Sendable {
    try await beforeObserving(collection)
    return try await store.observe(collection: collection, as: type)
  }
}

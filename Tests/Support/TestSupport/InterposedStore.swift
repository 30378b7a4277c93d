package import DataStore
internal import Multicast

/// A store that runs a test's closures before it forwards calls to another store.
package struct InterposedStore<Base: KeyValueStore>: ForwardingStore {
  package let base: Base
  private let beforeSaving: @Sendable (StoreKeyName) async throws(StoreError) -> Void
  private let beforeObserving: @Sendable (String) async throws(StoreError) -> Void

  /// Creates a store that forwards to another store.
  ///
  /// - Parameters:
  ///   - base: The other store.
  ///   - beforeSaving: A closure that receives the key before each save, and every key of the batch before each commit.
  ///     If it throws, nothing is saved.
  ///   - beforeObserving: A closure that receives the name of a collection before the collection is observed or
  ///     followed. If it throws, it isn't.
  package init(
    _ base: Base,
    beforeSaving: @escaping @Sendable (StoreKeyName) async throws(StoreError) -> Void = { _ in },
    beforeObserving: @escaping @Sendable (String) async throws(StoreError) -> Void = { _ in }
  ) {
    self.base = base
    self.beforeSaving = beforeSaving
    self.beforeObserving = beforeObserving
  }

  package func save<Value>(
    _ value: Value, for key: StoreKey<Value>
  ) async throws(StoreError) -> StoredValue<Value> {
    try await beforeSaving(key.keyName)
    return try await base.save(value, for: key)
  }

  package func commit(_ batch: StoreBatch) async throws(StoreError) -> StoreCommit {
    for key in batch.keys { try await beforeSaving(key) }
    return try await base.commit(batch)
  }

  package func observe<Value>(
    collection: String, as type: Value.Type
  ) async throws(StoreError) -> StoreObservation<Value> where Value: Codable & Sendable {
    try await beforeObserving(collection)
    return try await base.observe(collection: collection, as: type)
  }

  package func feed() async -> any StoreFeed { InterposedFeed(base: await base.feed(), beforeObserving) }

  /// Locks nothing, so each repository on the store has the role `LeadershipStatus.independent`.
  package func acquireLock(_ name: String) async throws(StoreError) -> StoreLockResult { .unsupported }
}

/// A feed that runs a test's closure before it follows a collection.
private struct InterposedFeed: StoreFeed {
  private let base: any StoreFeed
  private let beforeFollowing: @Sendable (String) async throws(StoreError) -> Void

  init(base: any StoreFeed, _ beforeFollowing: @escaping @Sendable (String) async throws(StoreError) -> Void) {
    (self.base, self.beforeFollowing) = (base, beforeFollowing)
  }

  var elements: MulticastSubscription<StoreFeedElement, Never> { base.elements }

  func follow<Value>(_ key: StoreKey<Value>) async throws(StoreError) { try await base.follow(key) }

  func follow<Value: Codable & Sendable>(collection: String, as type: Value.Type) async throws(StoreError) {
    try await beforeFollowing(collection)
    try await base.follow(collection: collection, as: type)
  }

  func endFollowing(_ part: StoreFeedPart) async { await base.endFollowing(part) }

  func catchUp() async throws(StoreError) { try await base.catchUp() }
}

extension InterposedStore where Base == InMemoryStore {
  /// Creates a store that forwards to a store in memory.
  package init(
    beforeSaving: @escaping @Sendable (StoreKeyName) async throws(StoreError) -> Void = { _ in },
    beforeObserving: @escaping @Sendable (String) async throws(StoreError) -> Void = { _ in }
  ) {
    self.init(InMemoryStore(), beforeSaving: beforeSaving, beforeObserving: beforeObserving)
  }
}

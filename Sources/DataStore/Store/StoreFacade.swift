package import Multicast

/// A store that is a ``BackedStore`` over a backend of its own, which its users need not know.
package protocol StoreFacade: KeyValueStore {
  associatedtype Backend: StoreBackend

  var base: BackedStore<Backend> { get }
}

extension StoreFacade {
  /// Returns the stored value of a key, or `nil`.
  public func load<Value>(_ key: StoreKey<Value>) async throws(StoreError) -> StoredValue<Value>? {
    try await base.load(key)
  }

  /// Stores a value, and sends it to every observer once it is durable.
  @discardableResult
  public func save<Value>(_ value: Value, for key: StoreKey<Value>) async throws(StoreError) -> StoredValue<Value> {
    try await base.save(value, for: key)
  }

  /// Removes the stored value of a key, and notifies every observer.
  public func remove<Value>(_ key: StoreKey<Value>) async throws(StoreError) {
    try await base.remove(key)
  }

  /// Removes all values of a collection in one commit, and notifies every observer.
  public func removeAll(in collection: String) async throws(StoreError) {
    try await base.removeAll(in: collection)
  }

  /// Makes several saves and removals as one: all or none, at any instant, in every process.
  @discardableResult
  public func commit(_ batch: StoreBatch) async throws(StoreError) -> StoreCommit {
    try await base.commit(batch)
  }

  /// The changes of one key: each subscriber gets the stored value first, if there is one, then every later change.
  public func changes<Value>(
    of key: StoreKey<Value>
  ) async throws(StoreError) -> MulticastStream<StoreChange<Value>, Never> {
    try await base.changes(of: key)
  }

  /// The values of a collection, and all their later changes.
  public func observe<Value>(
    collection: String, as type: Value.Type
  ) async throws(StoreError) -> StoreObservation<Value> where Value: Codable & Sendable {
    try await base.observe(collection: collection, as: type)
  }

  /// The last 16 events, then every later one.
  public var events: MulticastStream<StoreEvent, Never> { base.events }
}

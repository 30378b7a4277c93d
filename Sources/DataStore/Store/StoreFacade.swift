package import Multicast

/// A store that is a ``BackedStore`` over a backend of its own, which its users need not know.
package protocol StoreFacade: KeyValueStore {
  associatedtype Backend: StoreBackend

  var base: BackedStore<Backend> { get }
}

extension StoreFacade {
  public func load<Value>(_ key: StoreKey<Value>) async throws(StoreError) -> StoredValue<Value>? {
    try await base.load(key)
  }

  @discardableResult
  public func save<Value>(_ value: Value, for key: StoreKey<Value>) async throws(StoreError) -> StoredValue<Value> {
    try await base.save(value, for: key)
  }

  public func remove<Value>(_ key: StoreKey<Value>) async throws(StoreError) {
    try await base.remove(key)
  }

  public func removeAll(in collection: String) async throws(StoreError) {
    try await base.removeAll(in: collection)
  }

  @discardableResult
  public func commit(_ batch: StoreBatch) async throws(StoreError) -> StoreCommit {
    try await base.commit(batch)
  }

  public func changes<Value>(
    of key: StoreKey<Value>
  ) async throws(StoreError) -> MulticastStream<StoreChange<Value>, Never> {
    try await base.changes(of: key)
  }

  public func observe<Value>(
    collection: String, as type: Value.Type
  ) async throws(StoreError) -> StoreObservation<Value> where Value: Codable & Sendable {
    try await base.observe(collection: collection, as: type)
  }

  public var events: MulticastStream<StoreEvent, Never> { base.events }
}

import DataStore
import MomentsTesting
import Multicast

/// A store in memory that reads the queue of likes only when a gate is open.
struct SlowQueueStore: KeyValueStore {
  let gate = Gate()
  let store: InMemoryStore

  var events: MulticastStream<StoreEvent, Never> { store.events }

  func load<Value>(_ key: StoreKey<Value>) async throws(StoreError) -> StoredValue<Value>? {
    try await store.load(key)
  }

  func save<Value>(_ value: Value, for key: StoreKey<Value>) async throws(StoreError) -> StoredValue<Value> {
    try await store.save(value, for: key)
  }

  func remove<Value>(_ key: StoreKey<Value>) async throws(StoreError) {
    try await store.remove(key)
  }

  func changes<Value>(of key: StoreKey<Value>) async throws(StoreError) -> MulticastStream<StoreChange<Value>, Never> {
    try await store.changes(of: key)
  }

  func observe<Value>(
    everyUserOf name: String, as type: Value.Type
  ) async throws(StoreError) -> StoreObservation<Value> where Value: Codable & Sendable {
    if name == "moment-likes" { await gate.pass() }
    return try await store.observe(everyUserOf: name, as: type)
  }
}

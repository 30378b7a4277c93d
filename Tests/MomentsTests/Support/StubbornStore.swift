import DataStore
import Multicast
import Synchronization

/// A store in memory that cannot be observed before it is mended.
final class StubbornStore: KeyValueStore {
  static let failure = StoreError.readFailed(SystemError(code: 5, operation: "read", path: "/store"))

  private let store = InMemoryStore()
  private let isMended = Mutex(false)

  var events: MulticastStream<StoreEvent, Never> { store.events }

  func mend() { isMended.withLock { $0 = true } }

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
    guard isMended.withLock({ $0 }) else { throw Self.failure }
    return try await store.observe(everyUserOf: name, as: type)
  }
}

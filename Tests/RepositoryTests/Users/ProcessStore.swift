import DataStore
import DataStoreTesting
import Multicast
import Repository
import RepositoryTesting

/// The store of a simulated process that may be killed at any time.
protocol ProcessStore: KeyValueStore {
  /// Kills the process: every later call throws and changes nothing.
  func disconnect()

  /// Notices the commits of other processes, if the store doesn't do so by itself.
  func noticeExternalChanges() async
}

extension SimulatedStore: ProcessStore {}

/// The store of a simulated process in real files or a real database.
///
/// A call in flight when the process is killed may or may not take effect.
final class KillableStore: ProcessStore {
  /// The number of calls in flight in all stores of a ``RealPlace``.
  final class CallCount: Sendable {
    private let count = Lock(0)

    var value: Int { count.withLock { $0 } }

    fileprivate func add(_ number: Int) { count.withLock { $0 += number } }
  }

  private let store: any KeyValueStore
  private let hooks: SimulatedStore.Hooks
  private let callCount: CallCount
  private let isConnected = Lock(true)
  /// The locks that the process holds, by number; dropping a lock releases it.
  private let locks = Lock<(lastNumber: Int, held: [Int: StoreLock])>((0, [:]))

  init(_ store: any KeyValueStore, _ hooks: SimulatedStore.Hooks, _ callCount: CallCount) {
    (self.store, self.hooks, self.callCount) = (store, hooks, callCount)
  }

  func disconnect() {
    isConnected.withLock { $0 = false }
    locks.withLock { $0.held = [:] }
  }

  func noticeExternalChanges() {}

  var events: MulticastStream<StoreEvent, Never> { store.events }

  private func call<Result>(_ body: () async throws(StoreError) -> Result) async throws(StoreError) -> Result {
    callCount.add(1)
    defer { callCount.add(-1) }
    guard isConnected.withLock({ $0 }) else { throw SimulatedStore.disconnectedError }
    return try await body()
  }

  private func read<Result>(
    _ keys: [StoreKeyName], _ body: () async throws(StoreError) -> Result
  ) async throws(StoreError) -> Result {
    try await hooks.onRead(keys)
    return try await call(body)
  }

  private func write<Result>(
    _ keys: [StoreKeyName], _ body: () async throws(StoreError) -> Result
  ) async throws(StoreError) -> Result {
    try await hooks.onCommit(keys)
    let result = try await call(body)
    try await hooks.onCommitted(keys)
    return result
  }

  func load<Value>(_ key: StoreKey<Value>) async throws(StoreError) -> StoredValue<Value>? {
    try await read([key.keyName]) { () async throws(StoreError) in try await store.load(key) }
  }

  func save<Value>(_ value: Value, for key: StoreKey<Value>) async throws(StoreError) -> StoredValue<Value> {
    try await write([key.keyName]) { () async throws(StoreError) in try await store.save(value, for: key) }
  }

  func remove<Value>(_ key: StoreKey<Value>) async throws(StoreError) {
    try await write([key.keyName]) { () async throws(StoreError) in try await store.remove(key) }
  }

  func removeAll(in collection: String) async throws(StoreError) {
    try await write([]) { () async throws(StoreError) in try await store.removeAll(in: collection) }
  }

  func commit(_ batch: StoreBatch) async throws(StoreError) -> StoreCommit {
    try await write(batch.keys) { () async throws(StoreError) in try await store.commit(batch) }
  }

  func changes<Value>(of key: StoreKey<Value>) async throws(StoreError) -> MulticastStream<StoreChange<Value>, Never> {
    try await read([key.keyName]) { () async throws(StoreError) in try await store.changes(of: key) }
  }

  func observe<Value>(
    collection: String, as type: Value.Type
  ) async throws(StoreError) -> StoreObservation<Value> where Value: Codable & Sendable {
    try await read([StoreKeyName(collection)]) { () async throws(StoreError) in
      try await store.observe(collection: collection, as: type)
    }
  }

  func feed() async -> any StoreFeed { await store.feed() }

  var feedIsWhole: Bool { store.feedIsWhole }

  func erase(where isErased: @escaping @Sendable (StoredItem) -> Bool) async throws(StoreError) {
    try await write([]) { () async throws(StoreError) in try await store.erase(where: isErased) }
  }

  func acquireLock(_ name: String) async throws(StoreError) -> StoreLockResult {
    let result = try await call { () async throws(StoreError) in try await store.acquireLock(name) }
    guard case .acquired(let lock) = result else { return result }
    let number = locks.withLock { locks in
      locks.lastNumber += 1
      locks.held[locks.lastNumber] = lock
      return locks.lastNumber
    }
    // If the process was killed while the lock was being acquired, `disconnect()` may not have dropped it.
    if !isConnected.withLock({ $0 }) { locks.withLock { $0.held[number] = nil } }
    return .acquired(StoreLock { [self] in locks.withLock { $0.held[number] = nil } })
  }
}

internal import DataStore
internal import Multicast

/// A store that simulates that its process is killed after a number of commits.
///
/// The first write after these commits, and each call after that write, throws and changes nothing. Each save, removal,
/// batch and erasure counts as a commit, even if the underlying store refuses it. Existing subscriptions continue.
/// `acquireLock(_:)` isn't supported.
final class InterruptedStore: KeyValueStore {
  /// The error of each call after the process was killed; 5 is `EIO`.
  private static let error = StoreError.writeFailed(SystemError(code: 5, operation: "simulating", path: "memory"))

  private let base: any KeyValueStore
  private let state: Lock<(remainingCommits: Int, wasInterrupted: Bool)>

  init(_ base: any KeyValueStore, commitCount: Int) {
    self.base = base
    state = Lock((commitCount, false))
  }

  /// Whether a write was attempted after the last permitted commit.
  var wasInterrupted: Bool { state.withLock { $0.wasInterrupted } }

  /// Throws if the process was killed.
  private func throwIfInterrupted() throws(StoreError) {
    if state.withLock({ $0.wasInterrupted }) { throw Self.error }
  }

  /// Counts a write; throws if it comes after the last permitted commit.
  private func countWrite() throws(StoreError) {
    let wasInterrupted = state.withLock { state in
      if state.remainingCommits == 0 { state.wasInterrupted = true }
      state.remainingCommits -= 1
      return state.wasInterrupted
    }
    if wasInterrupted { throw Self.error }
  }

  func load<Value>(_ key: StoreKey<Value>) async throws(StoreError) -> StoredValue<Value>? {
    try throwIfInterrupted()
    return try await base.load(key)
  }

  func save<Value>(_ value: Value, for key: StoreKey<Value>) async throws(StoreError) -> StoredValue<Value> {
    try countWrite()
    return try await base.save(value, for: key)
  }

  func remove<Value>(_ key: StoreKey<Value>) async throws(StoreError) {
    try countWrite()
    try await base.remove(key)
  }

  func removeAll(in collection: String) async throws(StoreError) {
    try countWrite()
    try await base.removeAll(in: collection)
  }

  func commit(_ batch: StoreBatch) async throws(StoreError) -> StoreCommit {
    try countWrite()
    return try await base.commit(batch)
  }

  func changes<Value>(of key: StoreKey<Value>) async throws(StoreError) -> MulticastStream<StoreChange<Value>, Never> {
    try throwIfInterrupted()
    return try await base.changes(of: key)
  }

  func observe<Value>(
    collection: String, as type: Value.Type
  ) async throws(StoreError) -> StoreObservation<Value> where Value: Codable & Sendable {
    try throwIfInterrupted()
    return try await base.observe(collection: collection, as: type)
  }

  func erase(where isErased: @escaping @Sendable (StoredItem) -> Bool) async throws(StoreError) {
    try countWrite()
    try await base.erase(where: isErased)
  }

  func suspend() async { await base.suspend() }

  func resume() async { await base.resume() }

  var events: MulticastStream<StoreEvent, Never> { base.events }
}

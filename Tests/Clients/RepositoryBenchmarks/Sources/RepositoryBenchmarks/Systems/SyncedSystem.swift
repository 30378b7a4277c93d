internal import DataStore
internal import Repository

/// A `SyncedRepository` of counters.
struct SyncedSystem: RepositorySystem {
  static let label = "SyncedRepository"

  private let repository: SyncedRepository<CounterSource>

  init(_ server: Server<Raise>, _ store: any KeyValueStore) {
    self.init(server, store, EvictionPolicy())
  }

  init(_ server: Server<Raise>, _ store: any KeyValueStore, _ eviction: EvictionPolicy) {
    repository = SyncedRepository(
      CounterSource(server: server), store: store,
      configuration: RepositoryConfiguration(retryPolicy: .benchmarks, eviction: eviction))
  }

  /// Returns the total size of the stored values, in bytes.
  ///
  /// The size is known only if the eviction policy sets a limit.
  func storedByteCount() async throws -> Int {
    guard let stored = await repository.report().stored else {
      throw BenchmarkError.unknownStoredSize(system: Self.label)
    }
    return stored.byteCount
  }

  /// The number of queued changes.
  func listedCount() async throws -> Int { try await repository.mutations.list().count }

  /// Observes the list of changes until the calling task is cancelled.
  func observeList() async {
    for await list in repository.mutations.changes { _ = list.count }
  }

  func suspend() async { await repository.suspend() }

  func values(of key: String) -> ObservedValues<Counter> { repository.values(of: key) }

  func reload(_ key: String) async throws {
    try await repository.reload(key)
  }

  func perform(_ mutation: Raise, on key: String) async throws -> Bool {
    try await repository.perform(mutation, on: key) == .confirmed
  }

  func deliverAll() async throws {
    await repository.retryNow()
    try await repository.waitForPendingMutations()
  }

  func waitForFailedAttempt() async {
    await repository.events.waitUntilRetryIsScheduled()
  }
}

/// The source of a server's counters, whose changes the server acknowledges without a value.
struct CounterSource: MutableSource {
  let server: Server<Raise>
  let name = Counter.collection

  func fetch(_ key: String) async throws(ServerUnreachable) -> Counter {
    try server.fetch(key)
  }

  func send(
    _ mutation: Raise, to key: String, id: MutationID
  ) async throws(ServerUnreachable) -> MutationReply<Counter> {
    _ = try server.make(mutation, on: key)
    return .done
  }

  func disposition(of failure: ServerUnreachable) -> FailureDisposition { .retryLater() }
}

extension RetryPolicy {
  /// Delays of at most two seconds.
  ///
  /// An attempt that fails just before the server can be reached therefore prolongs a run by at most that time.
  static let benchmarks = RetryPolicy(base: .seconds(1), cap: .seconds(2))
}

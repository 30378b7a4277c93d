internal import DataStore
internal import Foundation
internal import Multicast
internal import MulticastTesting
internal import Repository

/// The building blocks of the checks.
extension RepositoryConformance {
  /// The reason why a check fails.
  ///
  /// ``Check/run(on:)`` throws it as a ``Failure``, which also names the law that the check verifies.
  struct Mismatch: Error {
    let explanation: String

    init(_ explanation: String) { self.explanation = explanation }
  }

  /// A server and a network for one or more repositories.
  struct Bench: Sendable {
    let harness: RepositoryHarness<Source>
    let server: RepositoryHarness<Source>.Server
    let network: SimulatedNetwork
    let seed: UInt64

    init(
      _ harness: RepositoryHarness<Source>, seed: UInt64 = 0, _ conditions: SimulatedNetwork.Conditions = .reliable
    ) {
      self.harness = harness
      self.seed = seed
      server = .init(empty: harness.initial)
      network = SimulatedNetwork(seed: seed, conditions: conditions)
    }

    /// Returns the configuration of a repository.
    ///
    /// - Parameter pausesRetries: Whether retries wait until the check calls `retryNow()`, because the repository's
    ///   clock stands still.
    func configuration(pausesRetries: Bool) -> RepositoryConfiguration {
      let random = SplitMix64(seed: seed)
      return pausesRetries
        ? RepositoryConfiguration(clock: ManualClock(), random: random)
        : RepositoryConfiguration(retryPolicy: RetryPolicy(base: .zero), random: random)
    }

    func makeRepository(_ store: any KeyValueStore, pausesRetries: Bool = false) -> SyncedRepository<Source> {
      SyncedRepository(
        harness.makeSource(server, network), store: store,
        configuration: configuration(pausesRetries: pausesRetries))
    }

    func whileNetworkRuns<Result: Sendable>(_ body: () async throws -> Result) async throws -> Result {
      let networkTask = Task { [network] in await network.run() }
      defer { networkTask.cancel() }
      return try await body()
    }

    /// Fetches the value, and retries after each failure of the network or the server.
    func load(_ repository: SyncedRepository<Source>) async throws {
      while true {
        do throws(RepositoryError<Source.Failure>) {
          return try await repository.reload(harness.key)
        } catch {
          guard case .server = error else { throw error }
          try Task.checkCancellation()
        }
      }
    }

    /// Makes the network reliable, waits until no mutation is waiting or in flight, and fetches the value.
    func settle(_ repository: SyncedRepository<Source>) async throws {
      network.conditions = .reliable
      try await repository.waitForPendingMutations()
      try await load(repository)
    }

    /// Makes mutations in a repository, and expects that each is queued.
    ///
    /// The repository is released when the call returns, unless the caller keeps a reference to it.
    ///
    /// - Precondition: The caller has made the network unreachable.
    func performOffline(
      _ mutations: ArraySlice<Source.Mutation>, on repository: SyncedRepository<Source>
    ) async throws {
      for mutation in mutations {
        let result = try await repository.perform(mutation, on: harness.key)
        try expect(result, is: .queued, "the result of \(mutation) without a network")
      }
    }

    func storedValue(in store: any KeyValueStore) async throws -> Source.Value? {
      let name = harness.makeSource(server, network).name
      return try await store.load(StoreKey<Source.Value>(name, id: harness.key.storeID))?.value
    }

    func expectAllAppliedOnce(_ situation: String) throws {
      let applied = try server.applied.map { try text($0.mutation) }.sorted()
      let expected = try harness.mutations.map(text).sorted()
      try expect(applied, is: expected, "the mutations applied by the server \(situation)")
    }
  }

  /// Returns a mutation as text, which is equal for equal mutations.
  static func text(_ mutation: Source.Mutation) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    return String(decoding: try encoder.encode(mutation), as: UTF8.self)
  }

  /// Returns whether a value already includes a mutation, so that applying the mutation doesn't change the value.
  static func isIncluded(_ mutation: Source.Mutation, in value: Source.Value) -> Bool {
    var changed = value
    do throws(MutationConflict) {
      try mutation.apply(to: &changed)
    } catch {
      return false
    }
    return changed == value
  }

  static func expect<Found: Equatable>(_ found: Found, is expected: Found, _ subject: String) throws {
    if found != expected { throw Mismatch("\(subject): expected \(expected), found \(found).") }
  }

  static func expectIncluded(_ mutations: [Source.Mutation], in value: Source.Value, _ situation: String) throws {
    for mutation in mutations where !isIncluded(mutation, in: value) {
      throw Mismatch("\(mutation) isn't visible \(situation) in \(value).")
    }
  }

  static func expectStoreFailure(_ error: RepositoryError<Source.Failure>) throws {
    if case .store = error { return }
    throw Mismatch("A call threw \(error) instead of the store's error.")
  }

  static func firstValue(
    of repository: SyncedRepository<Source>, _ harness: RepositoryHarness<Source>
  ) async throws -> Source.Value? {
    for await value in repository.values(of: harness.key) { return value }
    return nil
  }

  /// Waits until a repository shows a value, because a value that another repository stored may arrive with a delay.
  static func expectShown(
    _ expected: Source.Value, by repository: SyncedRepository<Source>, _ harness: RepositoryHarness<Source>,
    _ situation: String
  ) async throws {
    let newest = CurrentValueRelay<Source.Value?>(nil)
    let values = repository.values(of: harness.key).subscribe()
    do {
      // Less than the time limit of the check, so that the mismatch below is reported instead of the timeout.
      try await finish(within: harness.timeLimit / 4) {
        for await value in values {
          newest.send(value)
          if value == expected { return }
        }
      }
    } catch is Mismatch {
      throw Mismatch("A repository shows \(String(describing: newest.value)) \(situation), not \(expected).")
    }
  }

  /// Expects that the first state of a key has the given `isPending`, and says whether there is a value.
  static func expectFirstState(
    isPending: Bool, hasValue: Bool = true, of repository: SyncedRepository<Source>,
    _ harness: RepositoryHarness<Source>, _ situation: String
  ) async throws {
    for await state in repository.states(of: harness.key) {
      try expect(state.isPending, is: isPending, "`isPending` \(situation)")
      switch (state.presence, hasValue) {
      case (.value, true), (.nothing, false): return
      default: throw Mismatch("The presence is \(state.presence) \(situation).")
      }
    }
    throw Mismatch("A new observer received no state \(situation).")
  }

  /// Runs work that must finish within a time limit.
  static func finish(within limit: Duration, _ work: @escaping @Sendable () async throws -> Void) async throws {
    try await withThrowingTaskGroup(of: Bool.self) { group in
      group.addTask {
        try await work()
        return true
      }
      group.addTask {
        try await Task.sleep(for: limit)
        return false
      }
      defer { group.cancelAll() }
      let hasFinished = try await group.next() ?? false
      if !hasFinished { throw Mismatch("The check didn't finish within \(limit).") }
    }
  }
}

internal import DataStore
internal import Repository

extension RepositoryConformance {
  static func checkSignOut(_ harness: RepositoryHarness<Source>) async throws {
    guard let userID = harness.key.userID else { return }
    var count = 0
    while try await !checkSignOut(userID, commitCount: count, harness) { count += 1 }
  }

  /// Checks a sign-out whose process ends after a number of commits.
  ///
  /// - Returns: Whether the sign-out was completed before the process ended.
  private static func checkSignOut(
    _ userID: String, commitCount: Int, _ harness: RepositoryHarness<Source>
  ) async throws -> Bool {
    let bench = Bench(harness)
    let open = try await harness.makePlace()
    try await bench.whileNetworkRuns { try await bench.load(bench.makeRepository(try await open())) }
    bench.network.isReachable = false
    try await bench.perform(harness.mutations[...1], offline: bench.makeRepository(try await open(), isPaused: true))
    let store = InterruptedStore(try await open(), commitCount: commitCount)
    let repository = bench.makeRepository(store, isPaused: true)
    var failure: SignOutError?
    do throws(SignOutError) {
      try await repository.signOut(userID: userID, unsent: .discard)
    } catch {
      failure = error
    }
    if let failure, !store.wasInterrupted { throw failure }
    let situation = "after a second sign-out (the first was limited to \(counted(commitCount, "commit")))"
    try await expectSignedOut(userID, bench, try await open(), situation)
    return !store.wasInterrupted
  }

  /// Repeats a sign-out that may have been interrupted, and expects that no data of the user is left.
  private static func expectSignedOut(
    _ userID: String, _ bench: Bench, _ store: any KeyValueStore, _ situation: String
  ) async throws {
    let repository = bench.makeRepository(store, isPaused: true)
    try await repository.signOut(userID: userID, unsent: .discard)
    try expect(await bench.stored(in: store) == nil, is: true, "whether the value was erased \(situation)")
    try expect(await repository.mutations.list().count, is: 0, "the number of mutations \(situation)")
    var isRefused = false
    do throws(RepositoryError<Source.Failure>) {
      try await repository.perform(bench.harness.mutations[0], on: bench.harness.key)
    } catch {
      if case .signedOut = error { isRefused = true }
    }
    try expect(isRefused, is: true, "whether a mutation is refused with `signedOut` \(situation)")
    bench.network.isReachable = true
    try await bench.whileNetworkRuns {
      await repository.credentialsChanged(userID: userID)
      try await bench.load(repository)
    }
    let applied = try bench.server.applied.map { try text($0.mutation) }
    try expect(applied, is: [], "the mutations applied by the server \(situation)")
    try expect(await bench.stored(in: store), is: bench.harness.initial, "the value after a new sign-in \(situation)")
  }
}

internal import DataStore
internal import Repository

extension RepositoryConformance {
  static func checkSignOut(_ harness: RepositoryHarness<Source>) async throws {
    guard let userID = harness.key.userID else { return }
    for commitCount in 0... {
      let wasCompleted = try await checkSignOut(userID, commitCount: commitCount, harness)
      if wasCompleted { return }
    }
  }

  /// Checks a sign-out whose process ends after a number of commits.
  ///
  /// - Returns: Whether the sign-out was completed before the process ended.
  private static func checkSignOut(
    _ userID: String, commitCount: Int, _ harness: RepositoryHarness<Source>
  ) async throws -> Bool {
    let bench = Bench(harness)
    let openStore = try await harness.makePlace()
    try await bench.whileNetworkRuns { try await bench.load(bench.makeRepository(try await openStore())) }
    bench.network.isReachable = false
    try await bench.performOffline(
      harness.mutations[...1], on: bench.makeRepository(try await openStore(), pausesRetries: true))
    let store = InterruptedStore(try await openStore(), commitCount: commitCount)
    let repository = bench.makeRepository(store, pausesRetries: true)
    var failure: SignOutError?
    do throws(SignOutError) {
      try await repository.signOut(userID: userID, unsent: .discard)
    } catch {
      failure = error
    }
    if let failure, !store.wasInterrupted { throw failure }
    let situation = "after a second sign-out (the first was limited to \(counted(commitCount, "commit")))"
    try await signOutAgainAndExpectNoData(userID, bench, try await openStore(), situation)
    return !store.wasInterrupted
  }

  /// Repeats a sign-out that may have been interrupted, and expects that no data of the user is left.
  ///
  /// The repository must refuse mutations until the user signs in again. After this sign-in, the server's initial value
  /// must be stored, and the server must not have applied any mutation.
  private static func signOutAgainAndExpectNoData(
    _ userID: String, _ bench: Bench, _ store: any KeyValueStore, _ situation: String
  ) async throws {
    let repository = bench.makeRepository(store, pausesRetries: true)
    try await repository.signOut(userID: userID, unsent: .discard)
    try expect(await bench.storedValue(in: store) == nil, is: true, "whether the value was erased \(situation)")
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
      // The user signs in again.
      await repository.credentialsChanged(userID: userID)
      try await bench.load(repository)
    }
    let applied = try bench.server.applied.map { try text($0.mutation) }
    try expect(applied, is: [], "the mutations applied by the server \(situation)")
    try expect(
      await bench.storedValue(in: store), is: bench.harness.initial, "the value after a new sign-in \(situation)")
  }
}

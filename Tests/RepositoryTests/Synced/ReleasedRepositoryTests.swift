import DataStore
import DataStoreTesting
import Multicast
import MulticastTesting
import RepositoryTesting
import TestSupport
import Testing

@testable import Repository

/// Checks that nothing keeps the store of a released repository in memory, whatever the repository did before.
@Suite(.timeLimit(.minutes(15))) struct ReleasedRepositoryTests {
  /// What a repository does before it is released.
  enum Use: CaseIterable {
    case nothing, start, fetch, observe, observeAndFetch, observeEveryValue, observeMutations, confirm, backOff
    case waitForSignIn, queueWhileFollowing, signOut, refuseSignOut, evict, goOffline

    func run(on repository: UsersFixture.Repository, in test: ReleasedRepositoryTests) async throws {
      let key = test.jake
      switch self {
      case .nothing: break
      case .start: _ = await repository.report()
      case .fetch: try await repository.reload(key)
      case .observe: _ = await repository.states(of: key).first(1)
      case .observeAndFetch:
        let states = repository.states(of: key, loading: .whileObserved(every: .seconds(60))).subscribe()
        _ = await states.first(2)
      case .observeEveryValue:
        let values = repository.everyValue.subscribe()
        try await repository.reload(key)
        _ = await values.first(1)
      case .observeMutations: _ = await repository.mutations.changes.first(1)
      case .confirm: #expect(try await repository.perform(.add("1"), on: key) == .confirmed)
      case .backOff:
        test.sendFailure.value = .offline
        #expect(try await repository.perform(.add("1"), on: key) == .queued)
      case .waitForSignIn:
        test.sendFailure.value = .signedOut
        #expect(try await repository.perform(.add("1"), on: key) == .queued)
      case .queueWhileFollowing:
        // The repository can't lead while another store has the lock.
        let lock = try await test.otherStore.acquireLock("notes.mutations")
        let call = Task(executorPreference: test.executor) { try await repository.perform(.add("1"), on: key) }
        _ = await repository.mutations.changes.first { $0.count == 1 }
        call.cancel()
        _ = await call.result
        withExtendedLifetime(lock) {}
      case .signOut:
        try await repository.reload(key)
        try await repository.signOut(userID: "jake", unsent: .discard)
      case .refuseSignOut:
        test.sendFailure.value = .offline
        _ = try await repository.perform(.add("1"), on: key)
        await #expect(throws: SignOutError.unsent(1)) { try await repository.signOut(userID: "jake", unsent: .refuse) }
      case .evict:
        try await repository.reload(key)
        try await repository.evict(.all)
      case .goOffline:
        test.network.status = .offline
        #expect(try await repository.perform(.add("1"), on: key) == .queued)
      }
    }
  }

  private let executor = ManualTaskExecutor()
  private let network = ManualNetworkMonitor()
  private let storage = SimulatedStorage()
  private let otherStore: SimulatedStore
  private let server = InMemoryServer<UserKey, Notes, NotesMutation>(empty: Notes())
  /// The failure of all requests that send a mutation, or `nil` if they succeed.
  private let sendFailure = Setting<NotesFailure?>(nil)
  private let jake = UserKey("jake", "a")

  init() {
    otherStore = SimulatedStore(storage: storage)
  }

  @Test(arguments: Use.allCases) func `A released repository frees its store`(use: Use) {
    weak let store = useAndReleaseRepository(use)
    #expect(store == nil)
  }

  /// Uses a repository, releases it, and returns its store.
  private func useAndReleaseRepository(_ use: Use) -> SimulatedStore {
    let (store, isDone) = (SimulatedStore(storage: storage), Setting(false))
    var configuration = RepositoryConfiguration(
      clock: ManualClock(), network: network, eviction: EvictionPolicy(maximumCount: 100))
    configuration.taskExecutor = executor
    let source = UsersFixture.Source(
      "notes", fetch: { [server] (key) throws(NotesFailure) in server.value(of: key) },
      send: { [server, sendFailure] (mutation, key, id) throws(NotesFailure) in
        if let failure = sendFailure.value { throw failure }
        return .value(try server.take(mutation, key, id))
      }, disposition: { $0.disposition })
    _ = Task(executorPreference: executor) {
      [repository = UsersFixture.Repository(source, store: store, configuration: configuration)] in
      try await use.run(on: repository, in: self)
      isDone.value = true
    }
    executor.runUntilIdle()
    #expect(isDone.value)
    return store
  }
}

import DataStore
import DataStoreTesting
import Foundation
import Multicast
import MulticastTesting
import RepositoryTesting
import TestSupport
import Testing

@testable import Repository

/// Tests of what a repository says about a value before and after the store was read.
@Suite(.timeLimit(.minutes(15))) struct PresenceTests: NotesSuite {
  typealias State = RepositoryState<Notes, NotesError>

  static let policies = [LoadingPolicy.never, .whileObserved()]

  let fixture = NotesFixture()

  /// Makes the store wait at a gate before it reads the notes `a`.
  private func holdReads(at gate: Gate) {
    store.set { $0.onLoad = { (key) async in if key == StoreKey.notes("a").keyName { await gate.pass() } } }
  }

  /// Creates a repository that can't send mutations.
  private func makeOfflineRepository() -> NotesRepository {
    makeRepository(onSend: { (_) throws(NotesFailure) in throw .offline })
  }

  // MARK: - Calls

  @Test func `A call that comes while another one opens a key sees the stored value`() async throws {
    let executor = ManualTaskExecutor()
    var configuration = configuration
    configuration.taskExecutor = executor
    for jobCount in 0..<48 {
      let storage = SimulatedStorage()
      _ = Task(executorPreference: executor) {
        try await SimulatedStore(storage: storage).save(Notes("stored"), for: .notes("a"))
      }
      executor.runUntilIdle()
      let repository = NotesRepository(
        NotesSource(server), store: SimulatedStore(storage: storage), configuration: configuration)
      _ = Task(executorPreference: executor) { try await repository.value(of: "a") }
      var random = SplitMix64(seed: UInt64(jobCount))
      executor.run(atMost: jobCount, using: &random)
      let state = Task(executorPreference: executor) { await repository.state(of: "a") }
      executor.run(using: &random)
      #expect(await state.value.value == Notes("stored"), "after \(jobCount) jobs")
    }
  }

  // MARK: - Observers

  @Test(arguments: policies) func `No state is sent before the store was read, and the first one has the stored value`(
    policy: LoadingPolicy
  ) async throws {
    try await put(Notes("stored"))
    let gate = Gate()
    holdReads(at: gate)
    let repository = makeRepository()
    let states = repository.states(of: "a", loading: policy).subscribe()
    await gate.arrivals()
    gate.open()
    #expect(await states.first(1).map(\.presence) == [.value(Notes("stored"))])
  }

  @Test(arguments: policies) func `If nothing is stored, the first state says that there is nothing`(
    policy: LoadingPolicy
  ) async throws {
    let repository = makeRepository { (_) throws(NotesFailure) in throw .offline }
    let states = repository.states(of: "a", loading: policy).subscribe()
    #expect(await states.first(1).map(\.presence) == [.nothing])
  }

  @Test(arguments: policies) func `If the store can't be read, the state has the failure and doesn't say 'nothing'`(
    policy: LoadingPolicy
  ) async throws {
    try await put(Notes("stored"))
    let isUnreadable = Setting(true)
    store.set {
      $0.onLoad = { (key) throws(StoreError) in
        if isUnreadable.value, key.collection == "notes" { throw .readFailed(InterceptedStore.error) }
      }
    }
    let repository = makeRepository()
    let states = repository.states(of: "a", loading: policy).subscribe()
    let failed = State(failure: .store(.readFailed(InterceptedStore.error)))
    #expect(failed.presence == .notRead)
    #expect(await states.first(1) == [failed])
    isUnreadable.value = false
    #expect(try await repository.value(of: "a") == Notes("stored"))
    #expect(await states.first { $0 != failed }?.presence == .value(Notes("stored")))
  }

  @Test func `A mutation that is cancelled while the store is being read causes no state without the stored value`()
    async throws
  {
    try await put(Notes("stored"))
    _ = try await makeOfflineRepository().perform(.add("mine"), on: "a")
    let gate = Gate()
    holdReads(at: gate)
    let network = ManualNetworkMonitor()
    network.status = .offline
    var configuration = configuration
    configuration.network = network
    let repository = makeRepository(configuration: configuration)
    let states = repository.states(of: "a").subscribe()
    await gate.arrivals()
    for mutation in try await repository.mutations.list() { try await repository.mutations.cancel(mutation.id) }
    gate.open()
    #expect(await states.first(1).map(\.presence) == [.value(Notes("stored"))])
  }

  @Test func `A pending mutation is a value if there is one to apply it to, and nothing otherwise`() async throws {
    let repository = makeOfflineRepository()
    #expect(try await repository.perform(.add("1"), on: "a") == .queued)
    let state = await repository.state(of: "a")
    #expect(state.presence == .nothing)
    #expect(state.isPending)
    #expect(try await repository.value(of: "a") == nil)

    let source = UnfetchableNotesSource { () throws(NotesFailure) in throw .offline }
    let repositoryWithEmpty = SyncedRepository(source, store: InMemoryStore(), configuration: configuration)
    #expect(await repositoryWithEmpty.state(of: "a").presence == .nothing)
    #expect(try await repositoryWithEmpty.perform(.add("1"), on: "a") == .queued)
    #expect(await repositoryWithEmpty.state(of: "a").presence == .value(Notes("1")))
  }

  @Test func `A removed value becomes nothing`() async throws {
    try await put(Notes("stored"))
    let repository = makeRepository()
    let states = repository.states(of: "a").subscribe()
    _ = await states.first(1)
    try await memory.remove(.notes("a"))
    #expect(await states.first(1).map(\.presence) == [.nothing])
  }

  // MARK: - Calls

  @Test func `A call returns the stored value with the pending mutations, or says that there is nothing`()
    async throws
  {
    try await put(Notes("stored"))
    _ = try await makeOfflineRepository().perform(.add("mine"), on: "a")
    let repository = makeOfflineRepository()
    #expect(try await repository.value(of: "a") == Notes("stored", "mine"))
    #expect(try await repository.value(of: "b") == nil)
    let state = await makeOfflineRepository().state(of: "a")
    #expect(state.value == Notes("stored", "mine"))
    #expect(state.isPending)
    #expect(state.fetchedAt != nil)
    #expect(await repository.state(of: "b") == State(isRead: true))
  }

  @Test func `A call throws the failure of the store, and the next one reads it again`() async throws {
    try await put(Notes("stored"))
    let isUnreadable = Setting(true)
    store.set {
      $0.onLoad = { (key) throws(StoreError) in
        if isUnreadable.value, key.collection == "notes" { throw .readFailed(InterceptedStore.error) }
      }
    }
    let repository = makeRepository()
    let error = NotesError.store(.readFailed(InterceptedStore.error))
    await #expect(throws: error) { try await repository.value(of: "a") }
    #expect(await repository.state(of: "a") == State(failure: error))
    isUnreadable.value = false
    #expect(await repository.state(of: "a").presence == .value(Notes("stored")))
    #expect(try await repository.value(of: "a") == Notes("stored"))
  }

  @Test func `A call reads the store even if its task is cancelled`() async throws {
    try await put(Notes("stored"))
    let repository = makeRepository()
    let call = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await repository.value(of: "a")
    }
    #expect(try await call.value == Notes("stored"))
  }

  @Test func `A key is in use only during the call`() async throws {
    try await put(Notes("stored"))
    let gate = Gate()
    holdReads(at: gate)
    let repository = makeRepository()
    let call = Task { await repository.state(of: "a") }
    await gate.arrivals()
    #expect(await repository.engine.isInUse("a"))
    gate.open()
    #expect(await call.value.value == Notes("stored"))
    #expect(await !repository.engine.isInUse("a"))
    try await repository.evict(.key("a"))
    #expect(try await repository.value(of: "a") == nil)
  }

  // MARK: - The value

  @Test func `The presence follows the value`() {
    var state = State()
    #expect(state.presence == .notRead)
    state.value = Notes("1")
    #expect(state.presence == .value(Notes("1")))
    #expect(state == State(value: Notes("1"), isRead: true))
    state.value = nil
    #expect(state.presence == .nothing)
    #expect(state == State(isRead: true))
    #expect(state != State())
  }
}

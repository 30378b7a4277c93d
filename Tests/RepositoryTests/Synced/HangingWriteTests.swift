import DataStore
import DataStoreTesting
import Multicast
import MulticastTesting
import RepositoryTesting
import TestSupport
import Testing

@testable import Repository

/// Changes of other processes are shown while the store doesn't answer a write of the repository.
@Suite(.timeLimit(.minutes(15))) struct HangingWriteTests: NotesSuite {
  let fixture = NotesFixture()

  /// Makes the next commit of the notes `a` wait at a gate: before it is made, or afterwards before its call returns.
  private func holdWrite(at gate: Gate, isMade: Bool = false, of collection: String = "notes") {
    let isHeld = Setting(true)
    let hold: @Sendable ([StoreKeyName]) async -> Void = { keys in
      guard isHeld.value, keys.contains(StoreKeyName(collection, id: "a")) else { return }
      isHeld.value = false
      await gate.pass()
    }
    store.set {
      if isMade { $0.onCommitted = hold } else { $0.onCommit = { (keys) async in await hold(keys) } }
    }
  }

  @Test func `Values of another process are shown while a write hangs, and its reply is judged again`() async throws {
    try await put(Notes("stored"))
    let repository = makeRepository()
    let values = repository.values(of: "a").subscribe()
    #expect(await values.first(1) == [Notes("stored")])
    server.edit("a") { $0 = Notes("fetched") }
    let gate = Gate()
    holdWrite(at: gate)
    let call = Task { try await repository.reload("a") }
    await gate.arrivals()
    for text in ["1", "2"] {
      try await memory.save(Notes(text), for: .notes("a"))
      #expect(await values.first(1) == [Notes(text)])
    }
    try await memory.remove(.notes("a"))
    try await memory.save(Notes("3"), for: .notes("a"))
    await values.reaches { $0 == Notes("3") }
    server.edit("a") { $0 = Notes("newer") }
    gate.open()
    try await call.value
    #expect(await values.first(1) == [Notes("newer")])
    try await #expect(memory.load(.notes("a"))?.value == Notes("newer"))
  }

  @Test func `A mutation that another process has confirmed ends while a write of its key hangs`() async throws {
    try await put(Notes("stored"))
    let repository = makeRepository(onSend: { (_) throws(NotesFailure) in throw .offline })
    #expect(try await repository.perform(.add("mine"), on: "a") == .queued)
    let id = try #require(try await repository.mutations.list().first?.id)
    try await waitUntilUnmarked(id)
    let values = repository.values(of: "a").subscribe()
    #expect(await values.first(1) == [Notes("stored", "mine")])
    server.edit("a") { $0 = Notes("fetched") }
    let gate = Gate()
    holdWrite(at: gate)
    let call = Task { try await repository.reload("a") }
    await gate.arrivals()
    server.edit("a") { $0 = Notes("mine", "theirs") }
    var batch = StoreBatch()
    batch.save(Notes("mine", "theirs"), for: .notes("a"))
    batch.remove(MutationKeys(repository: "notes").record(id))
    try await memory.commit(batch)
    for await list in repository.mutations.changes where list.isEmpty { break }
    #expect(await values.first(1) == [Notes("mine", "theirs")])
    gate.open()
    try await call.value
    try await #expect(repository.value(of: "a") == Notes("mine", "theirs"))
  }

  @Test func `A mutation ends with the commit that confirms it, even if the call of the commit doesn't return`()
    async throws
  {
    let executor = ManualTaskExecutor()
    var configuration = configuration
    configuration.taskExecutor = executor
    let (storage, gate, isHeld) = (SimulatedStorage(), Gate(), Setting(true))
    let hooks = SimulatedStore.Hooks(onCommitted: { keys in
      if isHeld.value, keys.contains(StoreKeyName("tally", id: "a")) { await gate.pass() }
    })
    let (own, other) = (SimulatedStore(storage: storage, hooks: hooks), SimulatedStore(storage: storage))
    func save(_ count: Int) async throws {
      try await other.save(Sum(count: count), for: StoreKey<Sum>("tally", id: "a"))
      await own.noticeExternalChanges()
      executor.runUntilIdle()
    }
    try await save(0)
    let repository = SyncedRepository(
      SumSource(SumServer(empty: Sum())), store: own, configuration: configuration)
    let received = Setting<[Int]>([])
    let observer = Task(executorPreference: executor) {
      for await value in repository.values(of: "a") { received.value.append(value.count) }
    }
    executor.runUntilIdle()
    let call = Task(executorPreference: executor) { try await repository.perform(.increment, on: "a") }
    executor.runUntilIdle()
    // The commit that confirms the mutation is made, but its call doesn't return.
    try await #expect(other.load(StoreKey<Sum>("tally", id: "a"))?.value == Sum(count: 1))
    try await save(2)
    #expect(received.value == [0, 1, 2])
    isHeld.value = false
    gate.open()
    executor.runUntilIdle()
    #expect(received.value == [0, 1, 2])
    try await #expect(call.value == .confirmed)
    observer.cancel()
    executor.runUntilIdle()
  }
}

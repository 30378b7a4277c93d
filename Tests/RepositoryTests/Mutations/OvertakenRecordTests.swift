import DataStore
import DataStoreTesting
import Foundation
import MulticastTesting
import RepositoryTesting
import Testing

@testable import Repository

/// Mutation records that another process or operation changes while, or just before, a repository writes them.
@Suite(.timeLimit(.minutes(15))) struct OvertakenRecordTests {
  private let executor = ManualTaskExecutor()
  private let storage = SimulatedStorage()
  private let server = NotesServer(empty: Notes())

  enum Write: CaseIterable, Sendable {
    case addition, replacement
  }

  @Test(arguments: Write.allCases)
  func `A mutation is forgotten if another process removes its record before a write of the record returns`(
    write: Write
  ) {
    // The hook uses the repository's store, which is created after the hook.
    let repositoryStore = Setting<SimulatedStore?>(nil)
    let (externalStore, hasBegunRemoval) = (SimulatedStore(storage: storage), Setting(false))
    let store = SimulatedStore(
      storage: storage,
      hooks: .init(onCommitted: { (keys) async in
        guard !hasBegunRemoval.value, keys.hasNotesMutation, keys.addsNotesMutation == (write == .addition),
          let keyName = keys.first(where: { $0.collection == "notes.mutations" })
        else { return }
        hasBegunRemoval.value = true
        try? await externalStore.remove(StoreKey<MutationRecord>(keyName))
        await repositoryStore.value?.noticeExternalChanges()
        // Lets the repository receive the change before its own write returns.
        for _ in 0..<100 { await Task.yield() }
      }))
    repositoryStore.value = store
    // For an addition, the repository must not lead: a leader would write the record again, and then notice the
    // removal.
    var configuration = RepositoryConfiguration(
      clock: ManualClock(), leadership: write == .addition ? NeverLeading() : StoreLeadership())
    configuration.taskExecutor = executor
    let repository = NotesRepository(
      NotesSource(
        fetch: { [server] in server.value(of: $0) }, send: { (_, _, _) throws(NotesFailure) in throw .offline }),
      store: store, configuration: configuration)
    let list = Setting<[PendingMutation<String, NotesMutation>]?>(nil)
    _ = Task(executorPreference: executor) { _ = try? await repository.perform(.add("1"), on: "a") }
    executor.runUntilIdle()
    #expect(hasBegunRemoval.value)
    _ = Task(executorPreference: executor) { list.value = try? await repository.mutations.list() }
    executor.runUntilIdle()
    #expect(list.value == [])
  }

  enum Decision: CaseIterable, Sendable {
    case discard, requeue, cancel
  }

  @Test(arguments: Decision.allCases)
  func `After a decision that another process has overtaken, the mutation has the standing that the other has stored`(
    decision: Decision
  ) async throws {
    let id = MutationID()
    let key = MutationKeys(repository: "notes").record(id)
    if decision == .cancel { _ = saveUnsentRecord(of: id) } else { _ = try saveRefusedRecord(of: id) }
    let (repositoryStore, isDeciding) = (Setting<SimulatedStore?>(nil), Setting(false))
    let store = SimulatedStore(
      storage: storage,
      hooks: .init(onCommit: { (_) async in
        guard isDeciding.value else { return }
        await repositoryStore.value?.noticeExternalChanges()
        // Lets the repository receive the other process's change while its own write is in progress.
        for _ in 0..<100 { await Task.yield() }
      }))
    repositoryStore.value = store
    let repository = makeRepository(store, leadership: NeverLeading())
    let values = Setting<[Notes]>([])
    let observer = Task(executorPreference: executor) {
      for await value in repository.values(of: "a") { values.value.append(value) }
    }
    _ = Task(executorPreference: executor) { [server] in
      server.edit("a") { $0 = Notes("0") }
      try await repository.reload("a")
    }
    executor.runUntilIdle()
    let (outcome, laterOutcome) = (Setting<String?>(nil), Setting<String?>(nil))
    let list = Setting<[PendingMutation<String, NotesMutation>]?>(nil)
    _ = Task(executorPreference: executor) { [storage] in
      let otherStore = SimulatedStore(storage: storage)
      var record = try #require(storage.value(of: key))
      // Another process sends the unsent mutation, or sends the refused one again.
      (record.isMarked, record.verdict) = (true, nil)
      try await otherStore.save(record, for: key)
      isDeciding.value = true
      do throws(PendingMutationError) {
        switch decision {
        case .discard: try await repository.mutations.discard(id)
        case .requeue: _ = try await repository.mutations.requeue(id)
        case .cancel: try await repository.mutations.cancel(id)
        }
      } catch { outcome.value = "\(error)" }
      list.value = try await repository.mutations.list()
      do throws(PendingMutationError) {
        _ = try await repository.mutations.requeue(id)
      } catch { laterOutcome.value = "\(error)" }
    }
    executor.runUntilIdle()
    observer.cancel()
    executor.runUntilIdle()
    let expectedError: PendingMutationError = decision == .cancel ? .alreadySent(id) : .unknown(id)
    #expect(outcome.value == expectedError.description)
    #expect(laterOutcome.value == PendingMutationError.notRefused(id).description)
    #expect(list.value?.map(\.id) == [id])
    #expect(list.value?.first?.standing == .inFlight)
    #expect(values.value.last == Notes("0", "1"))
    #expect(try #require(storage.value(of: key)).verdict == nil)
  }

  @Test func `Of a discard and a requeue of one mutation only the first takes effect`() async throws {
    let (id, gate) = (MutationID(), Gate())
    let key = try saveRefusedRecord(of: id)
    // Another commit waits at the gate. The next one would include both operations if the second didn't fail at once.
    let repository = makeRepository(
      SimulatedStore(storage: storage, hooks: .init(onCommit: { (_) async in await gate.pass() })))
    let outcomes = Setting<[String]>([])
    _ = Task(executorPreference: executor) { _ = try await repository.perform(.add("2"), on: "b") }
    executor.runUntilIdle()
    _ = Task(executorPreference: executor) {
      do {
        try await repository.mutations.discard(id)
        outcomes.value.append("discarded")
      } catch { outcomes.value.append("\(error)") }
    }
    executor.runUntilIdle()
    _ = Task(executorPreference: executor) {
      do {
        _ = try await repository.mutations.requeue(id)
        outcomes.value.append("requeued")
      } catch { outcomes.value.append("\(error)") }
    }
    executor.runUntilIdle()
    gate.open()
    executor.runUntilIdle()
    #expect(outcomes.value == [PendingMutationError.unknown(id).description, "discarded"])
    #expect(storage.value(of: key) == nil)
    let list = Setting<[PendingMutation<String, NotesMutation>]?>(nil)
    _ = Task(executorPreference: executor) { list.value = try await repository.mutations.list() }
    executor.runUntilIdle()
    #expect(list.value?.map(\.mutation) == [.add("2")])
  }

  @Test func `After another process has removed two records in one commit, neither mutation is sent`() async throws {
    let (isOffline, isReadingSlow, sent) = (Setting(true), Setting(false), Setting<[NotesMutation]>([]))
    let store = SimulatedStore(
      storage: storage,
      hooks: .init(onRead: { (keys) async in
        guard isReadingSlow.value, keys.contains(where: { $0.collection == "notes" }) else { return }
        // Gives a wrongly begun attempt the time to send its request before a removal is applied.
        for _ in 0..<100 { await Task.yield() }
      }))
    var configuration = RepositoryConfiguration(clock: ManualClock())
    configuration.taskExecutor = executor
    let repository = NotesRepository(
      NotesSource(
        fetch: { [server] in server.value(of: $0) },
        send: { [server] (mutation, key, id) throws(NotesFailure) in
          sent.value.append(mutation)
          if isOffline.value { throw .offline }
          return .value(try server.take(mutation, key, id))
        }), store: store, configuration: configuration)
    for text in ["1", "2"] {
      _ = Task(executorPreference: executor) { try await repository.perform(.add(text), on: "a") }
      executor.runUntilIdle()
    }
    // The first mutation is sent again and fails, and the lane backs off. Just before the request, the repository marks
    // both mutations; see `MutationRecord.isMarked`. An attempt for the second one therefore doesn't write its record.
    // Such a write would show that the record is gone.
    _ = Task(executorPreference: executor) { await repository.retryNow() }
    executor.runUntilIdle()
    #expect(sent.value == [.add("1"), .add("1")])
    (isOffline.value, isReadingSlow.value) = (false, true)
    _ = Task(executorPreference: executor) { [storage] in
      var batch = StoreBatch()
      let keys = MutationKeys(repository: "notes")
      for mutation in try await repository.mutations.list() { batch.remove(keys.record(mutation.id)) }
      _ = try await SimulatedStore(storage: storage).commit(batch)
      await store.noticeExternalChanges()
    }
    executor.runUntilIdle()
    let list = Setting<[PendingMutation<String, NotesMutation>]?>(nil)
    _ = Task(executorPreference: executor) { list.value = try await repository.mutations.list() }
    executor.runUntilIdle()
    #expect(list.value == [])
    #expect(sent.value == [.add("1"), .add("1")])
  }

  @Test func `A mutation whose commit has lost its answer is sent, and its call doesn't fail`() async throws {
    let (commits, result) = (Counter(), Setting<MutationResult?>(nil))
    let store = SimulatedStore(
      storage: storage,
      hooks: .init(onCommitted: { (keys) throws(StoreError) in
        if keys.addsNotesMutation, commits.next() == 1 { throw SimulatedStore.disconnectedError }
      }))
    var configuration = RepositoryConfiguration(clock: ManualClock())
    configuration.taskExecutor = executor
    let repository = NotesRepository(NotesSource(server), store: store, configuration: configuration)
    _ = Task(executorPreference: executor) { result.value = try await repository.perform(.add("1"), on: "a") }
    executor.runUntilIdle()
    #expect(commits.value == 1)
    #expect(result.value == .confirmed)
    #expect(server.applied.map(\.mutation) == [.add("1")])
    #expect(storage.values(in: "notes.mutations", as: MutationRecord.self).isEmpty)
  }

  /// The record of a mutation that was never sent.
  private static var unsentRecord: MutationRecord {
    get throws { try .sample(NotesMutation.add("1")) }
  }

  /// Stores the record of a mutation that was never sent, and returns its tag.
  private func saveUnsentRecord(of id: MutationID) -> StoreTag? {
    let tag = Setting<StoreTag?>(nil)
    _ = Task(executorPreference: executor) { [storage] in
      let key = MutationKeys(repository: "notes").record(id)
      tag.value = try await SimulatedStore(storage: storage).save(Self.unsentRecord, for: key).tag
    }
    executor.runUntilIdle()
    return tag.value
  }

  /// Stores the record of a mutation that was refused although the server may have applied it, and returns its key.
  private func saveRefusedRecord(of id: MutationID) throws -> StoreKey<MutationRecord> {
    let key = MutationKeys(repository: "notes").record(id)
    var record = try Self.unsentRecord
    (record.isOutcomeUnknown, record.verdict) = (true, .refused(reason: "a reason"))
    let stored = record
    _ = Task(executorPreference: executor) { [storage] in
      try await SimulatedStore(storage: storage).save(stored, for: key)
    }
    executor.runUntilIdle()
    return key
  }

  /// Creates a repository that can't send mutations.
  private func makeRepository(
    _ store: SimulatedStore? = nil, leadership: any Leadership = StoreLeadership()
  ) -> NotesRepository {
    var configuration = RepositoryConfiguration(clock: ManualClock(), leadership: leadership)
    configuration.taskExecutor = executor
    return NotesRepository(
      NotesSource(
        fetch: { [server] in server.value(of: $0) }, send: { (_, _, _) throws(NotesFailure) in throw .offline }),
      store: store ?? SimulatedStore(storage: storage), configuration: configuration)
  }
}

import DataStore
import DataStoreTesting
import Foundation
import MulticastTesting
import RepositoryTesting
import Testing

@testable import Repository

/// Records that another process changes, which the store reports before the repository's own write returns.
@Suite(.timeLimit(.minutes(15))) struct OvertakenRecordTests {
  private let executor = ManualTaskExecutor()
  private let storage = SimulatedStorage()
  private let server = NotesServer(empty: Notes())

  enum Write: CaseIterable, Sendable {
    case addition, replacement
  }

  @Test(arguments: Write.allCases)
  func `A mutation whose record another process removes before a write returns is forgotten`(write: Write) {
    let (held, other, isDone) = (Setting<SimulatedStore?>(nil), SimulatedStore(storage: storage), Setting(false))
    let store = SimulatedStore(
      storage: storage,
      hooks: .init(onCommitted: { (keys) async in
        guard !isDone.value, keys.hasNotesMutation, keys.addsNotesMutation == (write == .addition),
          let record = keys.first(where: { $0.collection == "notes.mutations" })
        else { return }
        isDone.value = true
        try? await other.remove(StoreKey<MutationRecord<NotesMutation>>(record))
        await held.value?.noticeExternalChanges()
        // Until the repository has received the change.
        for _ in 0..<100 { await Task.yield() }
      }))
    held.value = store
    // A leader would write the record of an added mutation again, and learn of the removal then.
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
    #expect(isDone.value)
    _ = Task(executorPreference: executor) { list.value = try? await repository.mutations.list() }
    executor.runUntilIdle()
    #expect(list.value == [])
  }

  @Test func `A mutation that another process sends again can be neither discarded nor requeued`() async throws {
    let id = MutationID()
    let key = MutationKeys<NotesMutation>(repository: "notes").record(id)
    var record = MutationRecord(
      key: "a", sequence: 1, madeAt: Date(timeIntervalSinceReferenceDate: 0), mutation: NotesMutation.add("1"),
      byteCount: 1)
    (record.isOutcomeUnknown, record.verdict) = (true, .refused(reason: "a reason"))
    let stored = record
    _ = Task(executorPreference: executor) { [storage] in
      try await SimulatedStore(storage: storage).save(stored, for: key)
    }
    executor.runUntilIdle()
    let (first, second) = (makeRepository(), makeRepository())
    let outcomes = Setting<[String]>([])
    for repository in [first, second] {
      _ = Task(executorPreference: executor) { _ = try await repository.mutations.list() }
      executor.runUntilIdle()
    }
    _ = Task(executorPreference: executor) {
      outcomes.value.append("\(try await first.mutations.requeue(id) == id)")
      do { try await second.mutations.discard(id) } catch { outcomes.value.append("\(error)") }
      do { _ = try await second.mutations.requeue(id) } catch { outcomes.value.append("\(error)") }
    }
    executor.runUntilIdle()
    let error = PendingMutationError.unknown(id).description
    #expect(outcomes.value == ["true", error, error])
    #expect(storage.value(of: key)?.verdict == nil)
  }

  private func makeRepository() -> NotesRepository {
    var configuration = RepositoryConfiguration(clock: ManualClock())
    configuration.taskExecutor = executor
    return NotesRepository(
      NotesSource(
        fetch: { [server] in server.value(of: $0) }, send: { (_, _, _) throws(NotesFailure) in throw .offline }),
      store: SimulatedStore(storage: storage), configuration: configuration)
  }
}

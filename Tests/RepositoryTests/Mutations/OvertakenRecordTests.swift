import DataStore
import DataStoreTesting
import MulticastTesting
import RepositoryTesting
import Testing

@testable import Repository

/// A record that another process removes, of which the store tells before this one learns that its own write is made.
@Suite(.timeLimit(.minutes(15))) struct OvertakenRecordTests {
  private let executor = ManualTaskExecutor()
  private let storage = SimulatedStorage()
  private let server = NotesServer(empty: Notes())

  enum Write: CaseIterable, Sendable {
    case addition, replacement
  }

  @Test(arguments: Write.allCases)
  func `A mutation whose record is removed while a write of it is on its way back is forgotten`(write: Write) async throws {
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
        // Until the repository has been told.
        for _ in 0..<100 { await Task.yield() }
      }))
    held.value = store
    var configuration = RepositoryConfiguration(clock: ManualClock())
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
}

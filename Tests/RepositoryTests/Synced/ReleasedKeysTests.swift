import DataStore
import DataStoreTesting
import Foundation
import MulticastTesting
import RepositoryTesting
import Testing

@testable import Repository

/// The release of the state of keys that nothing needs any longer.
@Suite(.timeLimit(.minutes(15))) struct ReleasedKeysTests {
  private let executor = ManualTaskExecutor()
  private let storage = SimulatedStorage()
  /// A server on which the notes of every key initially contain the text `old`.
  private let server = NotesServer(empty: Notes("old"))

  private let time = Setting(Date(timeIntervalSinceReferenceDate: 0))

  /// Creates a repository whose server can't be reached for mutations, and runs it as far as possible.
  private func makeRepository(_ hooks: SimulatedStore.Hooks = .init()) -> NotesRepository {
    var configuration = RepositoryConfiguration(clock: ManualClock(), now: { [time] in time.value })
    configuration.taskExecutor = executor
    defer { executor.runUntilIdle() }
    return NotesRepository(
      NotesSource(
        fetch: { [server] in server.value(of: $0) }, send: { (_, _, _) throws(NotesFailure) in throw .offline }),
      store: SimulatedStore(storage: storage, hooks: hooks), configuration: configuration)
  }

  /// Starts work and runs it as far as possible, but ignores its errors.
  private func run(_ body: @escaping @Sendable () async throws -> Void) {
    _ = Task(executorPreference: executor) { try await body() }
    executor.runUntilIdle()
  }

  @Test func `A key is released even if its mutation comes into conflict when the repository starts`() async throws {
    do {
      let earlierRepository = makeRepository()
      run { try await earlierRepository.reload("a") }
      run { _ = try await earlierRepository.perform(.replace("old", with: "new"), on: "a") }
    }
    // Lets the released repository stop. The delay after its failed attempt passes.
    executor.runUntilIdle()
    time.value += 60
    run { [storage] in try await SimulatedStore(storage: storage).save(Notes("other"), for: .notes("a")) }
    let repository = makeRepository()
    let standings = Setting<[PendingMutation<String, NotesMutation>.Standing]>([])
    run { standings.value = try await repository.mutations.list().map(\.standing) }
    #expect(standings.value == [.conflicted(MutationConflict("There is no old."))])
    // Only the most recently used keys stay open, so using other keys releases the key `a`.
    run { for number in 1...40 { try await repository.reload("\(number)") } }
    #expect(await !repository.report().keys.map(\.key).contains("a"))
  }

  @Test func `A key whose value can't be read isn't kept`() async throws {
    let isUnreadable = Setting(true)
    let repository = makeRepository(
      .init(onRead: { (keys) throws(StoreError) in
        if isUnreadable.value, keys.contains(StoreKey.notes("a").keyName) { throw SimulatedStore.disconnectedError }
      }))
    let errorDescriptions = Setting<[String]>([])
    run { do { try await repository.reload("a") } catch { errorDescriptions.value.append("\(error)") } }
    #expect(errorDescriptions.value == ["\(NotesError.store(SimulatedStore.disconnectedError))"])
    #expect(await repository.report().keys.map(\.key) == [])
    isUnreadable.value = false
    run { try await repository.reload("a") }
    #expect(await repository.report().keys.map(\.key) == ["a"])
  }
}

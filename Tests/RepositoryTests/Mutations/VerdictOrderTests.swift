import DataStore
import DataStoreTesting
import Foundation
import MulticastTesting
import RepositoryTesting
import Testing

@testable import Repository

/// Processes that end before they have stored that a mutation is no longer sent.
///
/// The server remembers only the changes that it has made. So a mutation that wasn't possible may be possible when the
/// next process sends it again, and must not arrive after a later mutation of its lane.
@Suite(.timeLimit(.minutes(15))) struct VerdictOrderTests {
  enum Verdict: CaseIterable, Sendable {
    case refused, conflictedOnServer, conflictedLocally
  }

  enum Write: CaseIterable, Sendable {
    case slow, failing
  }

  private let storage = SimulatedStorage()
  private let server = NotesServer(empty: Notes())
  private let sent = Setting<[NotesMutation]>([])
  /// Whether commits that only change records of mutations don't end, or fail.
  private let isHolding = Setting(false)
  /// What the server throws for the first mutation.
  private let failure = Setting<NotesFailure?>(.offline)
  private let first = NotesMutation.replace("old", with: "new")
  /// Makes the first mutation possible.
  private let second = NotesMutation.add("old")

  @Test(arguments: Verdict.allCases, Write.allCases)
  func `A mutation isn't sent before the verdict on an earlier one of its lane is stored`(
    verdict: Verdict, write: Write
  ) throws {
    let (executor, gate) = (ManualTaskExecutor(), Gate())
    let store = SimulatedStore(
      storage: storage,
      hooks: .init(onCommit: { [isHolding] (keys) async throws(StoreError) in
        // The commit that confirms a mutation has the key of the value, too.
        guard isHolding.value, keys.allSatisfy({ $0.collection == "notes.mutations" }) else { return }
        if write == .failing { throw SimulatedStore.disconnectedError }
        await gate.pass()
      }))
    let repository = makeRepository(store, executor)
    server.edit("a") { $0 = Notes("old") }
    run(executor) { try await repository.reload("a") }
    for mutation in [first, second] { run(executor) { try await repository.perform(mutation, on: "a") } }
    // Marks both mutations, so that the second one is sent without a write of its record.
    run(executor) { await repository.retryNow() }
    #expect(sent.value == [first, first])
    switch verdict {
    case .refused:
      failure.value = .refused
      run(executor) { await repository.retryNow() }
    case .conflictedOnServer:
      failure.value = .conflict
      run(executor) { await repository.retryNow() }
    case .conflictedLocally:
      isHolding.value = true
      server.edit("a") { $0 = Notes() }
      run(executor) { try await repository.reload("a") }
    }
    // The process ends here. The next one can send the first mutation.
    store.disconnect()
    failure.value = nil
    let nextExecutor = ManualTaskExecutor()
    let nextRepository = makeRepository(SimulatedStore(storage: storage), nextExecutor)
    run(nextExecutor) { try await nextRepository.mutations.list() }
    // Ends the delay after the last failed attempt.
    run(nextExecutor) { await nextRepository.retryNow() }
    // The next process finds the local conflict, too.
    #expect(server.applied.map(\.mutation) == (verdict == .conflictedLocally ? [second] : [first, second]))
  }

  @Test func `A mutation isn't sent before the verdict on one that conflicts while it is being stored`() {
    let (executor, gate, heldName) = (ManualTaskExecutor(), Gate(), Setting<StoreKeyName?>(nil))
    let store = SimulatedStore(
      storage: storage,
      hooks: .init(onCommit: { [isHolding] (keys) async throws(StoreError) in
        guard isHolding.value, let name = keys.first(where: { $0.collection == "notes.mutations" }) else { return }
        if heldName.value == nil {
          // The commit that adds the first mutation.
          heldName.value = name
          return await gate.pass()
        }
        if keys.contains(where: { $0 == heldName.value }) { throw SimulatedStore.disconnectedError }
      }))
    let repository = makeRepository(store, executor)
    server.edit("a") { $0 = Notes("old") }
    run(executor) { try await repository.reload("a") }
    isHolding.value = true
    run(executor) { [first] in try await repository.perform(first, on: "a") }
    server.edit("a") { $0 = Notes() }
    run(executor) { try await repository.reload("a") }
    run(executor) { [second] in try await repository.perform(second, on: "a") }
    gate.open()
    executor.runUntilIdle()
    #expect(sent.value == [])
  }

  private func run(_ executor: ManualTaskExecutor, _ work: @escaping @Sendable () async throws -> some Sendable) {
    _ = Task(executorPreference: executor) { _ = try await work() }
    executor.runUntilIdle()
  }

  private func makeRepository(_ store: SimulatedStore, _ executor: ManualTaskExecutor) -> NotesRepository {
    var configuration = RepositoryConfiguration(clock: ManualClock())
    configuration.taskExecutor = executor
    return NotesRepository(
      NotesSource(
        fetch: { [server] in server.value(of: $0) },
        send: { [first, server, sent, failure, isHolding] (mutation, key, id) throws(NotesFailure) in
          sent.value.append(mutation)
          if mutation == first, let failure = failure.value {
            if failure != .offline { isHolding.value = true }
            throw failure
          }
          return .value(try server.take(mutation, key, id))
        }), store: store, configuration: configuration)
  }
}

import DataStore
import DataStoreTesting
import Foundation
import Multicast
import MulticastTesting
import RepositoryTesting
import Testing

@testable import Repository

/// The stored list of mutations that were removed without being confirmed.
@Suite(.timeLimit(.minutes(15))) struct MutationWithdrawalsTests {
  private let executor = ManualTaskExecutor()
  private let storage = SimulatedStorage()
  private let server = NotesServer(empty: Notes())
  private let keys = MutationKeys(repository: "notes")

  /// The failure of all requests that send a mutation, or `nil` if they succeed.
  private let failure = Setting<NotesFailure?>(.offline)

  private func makeRepository(hooks: SimulatedStore.Hooks = .init()) -> NotesRepository {
    var configuration = RepositoryConfiguration(clock: ManualClock())
    configuration.taskExecutor = executor
    return NotesRepository(
      NotesSource(
        fetch: { [server] in server.value(of: $0) },
        send: { [server, failure] (mutation, key, id) throws(NotesFailure) in
          if let failure = failure.value { throw failure }
          return .value(try server.take(mutation, key, id))
        }), store: SimulatedStore(storage: storage, hooks: hooks), configuration: configuration)
  }

  private func run(_ body: @escaping @Sendable () async throws -> Void) {
    _ = Task(executorPreference: executor) { try await body() }
    executor.runUntilIdle()
  }

  /// Performs a mutation of each of `count` keys, and returns the ids of all mutations in the queue.
  private func performMutations(count: Int, in repository: NotesRepository) -> [MutationID] {
    let ids = Setting<[MutationID]>([])
    for number in 0..<count { run { _ = try await repository.perform(.add("1"), on: "\(number)") } }
    run { ids.value = try await repository.mutations.list().map(\.id) }
    return ids.value
  }

  private var withdrawals: MutationWithdrawals? { storage.value(of: keys.withdrawals) }

  @Test func `Cancelled, discarded and replaced mutations are withdrawn`() {
    let repository = makeRepository()
    failure.value = .conflict
    #expect(performMutations(count: 2, in: repository).count == 2)
    failure.value = .offline
    // The two mutations in conflict are still in the queue, before the new one.
    let ids = performMutations(count: 1, in: repository)
    #expect(withdrawals == nil)
    run { try await repository.mutations.discard(ids[0]) }
    run { _ = try await repository.mutations.resolve(ids[1], .replace(with: .add("2"))) }
    run { try await repository.mutations.cancel(ids[2]) }
    #expect(withdrawals.map { list in ids.map(list.contains) } == [true, true, true])
    #expect(withdrawals?.count == 3)
  }

  @Test func `Cancelling a mutation succeeds although the answer of the store is lost`() async throws {
    let error = StoreError.writeFailed(SystemError(code: 5, operation: "committing", path: "memory"))
    let withdrawals = keys.withdrawals.keyName
    let repository = makeRepository(
      hooks: .init(onCommitted: { (keys) throws(StoreError) in if keys.contains(withdrawals) { throw error } }))
    let id = try #require(performMutations(count: 1, in: repository).first)
    let result = Setting<Result<Void, any Error>?>(nil)
    run {
      do {
        result.value = .success(try await repository.mutations.cancel(id))
      } catch {
        result.value = .failure(error)
      }
    }
    try #require(result.value).get()
    #expect(storage.value(of: keys.record(id)) == nil)
    let ids = Setting<[MutationID]?>(nil)
    run { ids.value = try await repository.mutations.list().map(\.id) }
    #expect(ids.value == [])
  }

  @Test func `A mutation that is replaced as soon as it is in conflict isn't in the queue again after a relaunch`()
    async throws
  {
    failure.value = .offline
    let repository = makeRepository()
    let id = try #require(performMutations(count: 1, in: repository).first)
    failure.value = .conflict
    // The event `mutationConflicted` arrives before the conflict is stored.
    let events = repository.events.subscribe()
    let replacement = Setting<MutationID?>(nil)
    run {
      for await event in events {
        guard case .mutationConflicted(id, _) = event else { continue }
        replacement.value = try await repository.mutations.resolve(id, .replace(with: .add("2")))
        return
      }
    }
    run { await repository.retryNow() }
    let ids = Setting<[MutationID]>([])
    let nextRepository = makeRepository()
    run { ids.value = try await nextRepository.mutations.list().map(\.id) }
    #expect(ids.value == [try #require(replacement.value)])
  }

  @Test func `Confirmed mutations are not withdrawn`() {
    let repository = makeRepository()
    failure.value = nil
    #expect(performMutations(count: 2, in: repository) == [])
    #expect(server.applied.count == 2)
    #expect(withdrawals == nil)
  }

  @Test func `The list keeps the most recently withdrawn mutations of all repositories`() {
    let first = makeRepository()
    let ids = performMutations(count: MutationWithdrawals.limit + 2, in: first)
    let second = makeRepository()
    for (number, id) in ids.enumerated() {
      let repository = number.isMultiple(of: 2) ? first : second
      run { try await repository.mutations.cancel(id) }
    }
    #expect(withdrawals?.count == MutationWithdrawals.limit)
    #expect(ids.filter { withdrawals?.contains($0) ?? false } == Array(ids.dropFirst(2)))
  }
}

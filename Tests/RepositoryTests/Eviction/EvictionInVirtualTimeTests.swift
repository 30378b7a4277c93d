import DataStore
import DataStoreTesting
import MulticastTesting
import RepositoryTesting
import Testing

@testable import Repository

/// Evictions that follow a change by another repository or the passage of time.
@Suite(.timeLimit(.minutes(15))) struct EvictionInVirtualTimeTests {
  private let executor = ManualTaskExecutor()
  private let clock = ManualClock()
  private let storage: SimulatedStorage
  private let server = NotesServer(empty: Notes())

  init() {
    storage = SimulatedStorage { [clock] in clock.date }
  }

  private func makeRepository(_ policy: EvictionPolicy = EvictionPolicy()) -> (NotesRepository, SimulatedStore) {
    var configuration = RepositoryConfiguration(clock: clock, now: { [clock] in clock.date }, eviction: policy)
    configuration.taskExecutor = executor
    let store = SimulatedStore(storage: storage)
    defer { executor.runUntilIdle() }
    return (NotesRepository(NotesSource(server), store: store, configuration: configuration), store)
  }

  private func run(_ body: @escaping @Sendable () async throws -> Void) {
    _ = Task(executorPreference: executor) { try await body() }
    executor.runUntilIdle()
  }

  private func advance(by duration: Duration) {
    clock.advance(by: duration)
    executor.runUntilIdle()
  }

  private var storedIDs: [String] { storage.values(in: "notes", as: Notes.self).keys.compactMap(\.self).sorted() }

  @Test func `When the store reports values of another repository, the least recently used values are evicted`()
    async throws
  {
    let (repository, store) = makeRepository(EvictionPolicy(maximumCount: 2))
    let (other, _) = makeRepository()
    run { for key in ["a", "b"] { try await repository.refresh(key) } }
    run { for key in ["c", "d", "e"] { try await other.refresh(key) } }
    #expect(storedIDs == ["a", "b", "c", "d", "e"])
    run { await store.noticeExternalChanges() }
    #expect(storedIDs == ["d", "e"])
    #expect(await repository.report().stored?.count == 2)
  }

  @Test func `A value that another repository stores is evicted when its idle time has passed`() {
    let (repository, store) = makeRepository(EvictionPolicy(idleTime: .seconds(60)))
    let (other, _) = makeRepository()
    run { try await other.refresh("a") }
    run { await store.noticeExternalChanges() }
    advance(by: .seconds(59))
    #expect(storedIDs == ["a"])
    advance(by: .seconds(1))
    #expect(storedIDs == [])
    withExtendedLifetime(repository) {}
  }

  @Test func `An observed value is evicted only when its idle time has passed since its observer left`() {
    let (repository, _) = makeRepository(EvictionPolicy(idleTime: .seconds(60)))
    run { try await repository.refresh("a") }
    let values = repository.values(of: "a")
    let observer = Task(executorPreference: executor) { for await _ in values {} }
    advance(by: .seconds(100))
    #expect(storedIDs == ["a"])
    observer.cancel()
    executor.runUntilIdle()
    advance(by: .seconds(59))
    #expect(storedIDs == ["a"])
    advance(by: .seconds(1))
    #expect(storedIDs == [])
  }
}

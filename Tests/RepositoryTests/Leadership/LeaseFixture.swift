import DataStore
import DataStoreTesting
import Foundation
import MulticastTesting
import RepositoryTesting

@testable import Repository

/// Several repositories over one storage, which run on an executor of the test.
struct LeaseFixture: Sendable {
  let executor = ManualTaskExecutor()
  let clock = ManualClock()
  let storage = SimulatedStorage()
  let server = NotesServer(empty: Notes())
  let isOffline = Setting(false)
  /// The senders of the mutations, in order.
  let senders = Setting<[String]>([])

  var now: @Sendable () -> Date {
    { [clock] in Date(timeIntervalSinceReferenceDate: clock.now.offset / .seconds(1)) }
  }
}

/// A suite whose tests each have a ``LeaseFixture``.
protocol LeaseSuite: Sendable {
  var fixture: LeaseFixture { get }
}

extension LeaseSuite {
  /// The time without attempts after which a repository gives the lead up.
  var linger: Duration { .milliseconds(250) }

  var executor: ManualTaskExecutor { fixture.executor }
  var clock: ManualClock { fixture.clock }
  var storage: SimulatedStorage { fixture.storage }
  var server: NotesServer { fixture.server }
  var isOffline: Setting<Bool> { fixture.isOffline }
  var senders: Setting<[String]> { fixture.senders }

  /// Creates a repository that calls `onSend` before the server receives a mutation.
  func makeRepository(
    _ name: String, network: any NetworkMonitor = ManualNetworkMonitor(),
    activity: any ActivityMonitor = ManualActivityMonitor(), store: (any KeyValueStore)? = nil,
    onSend: @escaping @Sendable () async throws(NotesFailure) -> Void = {}
  ) -> NotesRepository {
    var configuration = RepositoryConfiguration(clock: clock, now: fixture.now, network: network, activity: activity)
    configuration.taskExecutor = executor
    let source = NotesSource(
      fetch: { [server] in server.value(of: $0) },
      send: { [server, senders, isOffline] (mutation, key, id) async throws(NotesFailure) in
        senders.value.append(name)
        if isOffline.value { throw .offline }
        try await onSend()
        return .value(try server.take(mutation, key, id))
      })
    defer { executor.runUntilIdle() }
    return NotesRepository(source, store: store ?? SimulatedStore(storage: storage), configuration: configuration)
  }

  /// Starts a call, and runs it as far as it comes without the passing of time.
  func start<Result: Sendable>(
    _ call: @escaping @Sendable () async throws -> Result
  ) -> Task<Result, any Error> {
    let task = Task(executorPreference: executor) { try await call() }
    executor.runUntilIdle()
    return task
  }

  func perform(
    _ text: String, on key: String = "a", in repository: NotesRepository
  ) async throws -> MutationResult {
    try await start { try await repository.perform(.add(text), on: key) }.value
  }

  func advance(by duration: Duration) {
    clock.advance(by: duration)
    executor.runUntilIdle()
  }

  /// Whether another repository could lead now.
  var isLockFree: Bool {
    get async throws {
      let store = SimulatedStore(storage: storage)
      if case .acquired = try await store.acquireLock("notes.mutations") { return true }
      return false
    }
  }

  var storedRecords: [MutationRecord] {
    storage.values(in: "notes.mutations", as: MutationRecord.self).values.sorted { $0.sequence < $1.sequence }
  }
}

import DataStore
import DataStoreTesting
import Multicast
import MulticastTesting
import RepositoryTesting
import Testing

@testable import Repository

/// An executor that runs its jobs on request, and can hold some of them back until ``release()``.
private final class HoldingExecutor: TaskExecutor {
  private struct State {
    var ready: [UnownedJob] = []
    var held: [UnownedJob] = []
    var isHolding = false
  }

  private let state = Lock(State())

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    state.withLock { if $0.isHolding { $0.held.append(job) } else { $0.ready.append(job) } }
  }

  /// Calls a closure, and holds the jobs that arrive meanwhile until ``release()``.
  func holdingJobs(_ body: () -> Void) {
    state.withLock { $0.isHolding = true }
    body()
    state.withLock { $0.isHolding = false }
  }

  func release() {
    state.withLock { state in
      state.ready += state.held
      state.held = []
    }
  }

  func runUntilIdle() {
    while true {
      let jobs = state.withLock { state in
        defer { state.ready = [] }
        return state.ready
      }
      if jobs.isEmpty { return }
      for job in jobs { job.runSynchronously(on: asUnownedTaskExecutor()) }
    }
  }
}

/// A write that is requested before a sign-out, and begins only after the user has signed in again.
@Suite(.timeLimit(.minutes(15))) struct WritesAcrossSignOutTests {
  private let executor = HoldingExecutor()
  private let key = UserKey("jake", "a")

  private func run(_ body: @escaping @Sendable () async throws -> Void) {
    _ = Task(executorPreference: executor) { try await body() }
    executor.runUntilIdle()
  }

  @Test func `A write requested before a sign-out doesn't affect a write in progress after the next sign-in`() {
    let (commit, isHeld) = (Gate(), Setting(false))
    let server = InMemoryServer<UserKey, Notes, NotesMutation>(empty: Notes("1"))
    var configuration = RepositoryConfiguration(clock: ManualClock())
    configuration.taskExecutor = executor
    let repository = UsersFixture.Repository(
      UsersFixture.Source(
        "notes", fetch: { (key) throws(NotesFailure) in server.value(of: key) },
        send: { (_, _, _) throws(NotesFailure) in throw .offline }, disposition: { $0.disposition }),
      store: SimulatedStore(
        storage: SimulatedStorage(),
        hooks: .init(onCommit: { (keys) async in
          if isHeld.value, keys.contains(where: { $0.collection == "notes" }) { await commit.pass() }
        })), configuration: configuration)
    let isWriting = Setting<[Bool?]>([])
    run { [key] in try await repository.reload(key) }
    run { [key, executor] in
      await repository.engine.write(key, holdingJobsOf: executor)
      try await repository.signOut(userID: "jake", unsent: .discard)
      await repository.credentialsChanged(userID: "jake")
      isHeld.value = true
      try await repository.reload(key)
    }
    run { [key] in isWriting.value.append(await repository.engine.isWriting(key)) }
    executor.release()
    executor.runUntilIdle()
    run { [key] in isWriting.value.append(await repository.engine.isWriting(key)) }
    commit.open()
    executor.runUntilIdle()
    run { [key] in isWriting.value.append(await repository.engine.isWriting(key)) }
    #expect(isWriting.value == [true, true, false])
  }
}

extension SyncEngine {
  /// Starts a write of a key, and holds the jobs of its task.
  fileprivate func write(_ key: Key, holdingJobsOf executor: HoldingExecutor) {
    guard let cell = cell(key) else { return }
    executor.holdingJobs { writes.write(cell, in: self) }
  }

  /// Whether a write of a key is in progress; `nil` if the key isn't in use.
  fileprivate func isWriting(_ key: Key) -> Bool? { cell(key)?.isWriting }
}

import DataStore
import DataStoreTesting
import Multicast
import MulticastTesting
import RepositoryTesting
import Testing

@testable import Repository

/// An executor that runs its jobs on request, and can hold some of them back until ``releaseHeldJobs()``.
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

  /// Calls a closure, and holds the jobs that arrive meanwhile until ``releaseHeldJobs()``.
  func holdJobs(enqueuedDuring body: () -> Void) {
    state.withLock { $0.isHolding = true }
    body()
    state.withLock { $0.isHolding = false }
  }

  func releaseHeldJobs() {
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

  /// Starts a task that calls a closure, and runs the executor until the task and all others have finished or wait.
  private func runUntilIdle(starting body: @escaping @Sendable () async throws -> Void) {
    _ = Task(executorPreference: executor) { try await body() }
    executor.runUntilIdle()
  }

  @Test func `A write requested before a sign-out doesn't affect a write in progress after the next sign-in`() {
    let (commitGate, holdsCommits) = (Gate(), Setting(false))
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
          if holdsCommits.value, keys.contains(where: { $0.collection == "notes" }) { await commitGate.pass() }
        })), configuration: configuration)
    let isWritingResults = Setting<[Bool?]>([])
    runUntilIdle { [key] in try await repository.reload(key) }
    runUntilIdle { [key, executor] in
      await repository.engine.startWrite(of: key, holdingJobsOn: executor)
      try await repository.signOut(userID: "jake", unsent: .discard)
      await repository.credentialsChanged(userID: "jake")
      holdsCommits.value = true
      try await repository.reload(key)
    }
    runUntilIdle { [key] in isWritingResults.value.append(await repository.engine.isWriting(key)) }
    // The write that was requested before the sign-out begins only now.
    executor.releaseHeldJobs()
    executor.runUntilIdle()
    runUntilIdle { [key] in isWritingResults.value.append(await repository.engine.isWriting(key)) }
    commitGate.open()
    executor.runUntilIdle()
    runUntilIdle { [key] in isWritingResults.value.append(await repository.engine.isWriting(key)) }
    #expect(isWritingResults.value == [true, true, false])
  }
}

extension SyncEngine {
  /// Starts a write of a key, and holds the jobs of its task.
  fileprivate func startWrite(of key: Key, holdingJobsOn executor: HoldingExecutor) {
    guard let id = core.keys[key]?.id else { return }
    executor.holdJobs { update { $0.write(id) } }
  }

  /// Whether a write of a key is in progress; `nil` if the key isn't in use.
  fileprivate func isWriting(_ key: Key) -> Bool? { core.keys[key]?.isWriting }
}

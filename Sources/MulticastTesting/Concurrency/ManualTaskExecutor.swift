internal import Multicast

/// A task executor that runs its tasks only when told to, on the thread that tells it.
///
/// With it a test of concurrent code needs no sleeping and no polling: after ``runUntilIdle()`` every task that prefers
/// this executor is finished or suspended, and what they did so far is exactly known.
///
/// ```swift
/// let executor = ManualTaskExecutor()
/// let reader = Task(executorPreference: executor) { for await value in stream { record(value) } }
/// executor.runUntilIdle()  // The reader is suspended in `next()` now.
/// ```
///
/// Jobs run in the order in which they became ready. Code on an actor or the main actor does not run here.
public final class ManualTaskExecutor: TaskExecutor {
  private let ready = Lock<[UnownedJob]>([])

  /// Creates an executor with nothing to run.
  public init() {}

  /// Keeps a job until ``runUntilIdle()`` runs it.
  ///
  /// Called by the runtime.
  public func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    ready.withLock { $0.append(job) }
  }

  /// Runs jobs, and those they make ready, until none is ready.
  ///
  /// Call it from one thread at a time.
  public func runUntilIdle() {
    while true {
      let jobs = ready.withLock { ready in
        defer { ready = [] }
        return ready
      }
      if jobs.isEmpty { return }
      for job in jobs { job.runSynchronously(on: asUnownedTaskExecutor()) }
    }
  }
}

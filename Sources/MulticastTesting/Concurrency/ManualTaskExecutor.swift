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

  /// Runs jobs, and those they make ready, in an order that a random number generator decides, until none is ready or so
  /// many were run.
  ///
  /// With a generator of a seed the order is the same each time. Call it from one thread at a time.
  ///
  /// - Returns: The number of jobs that were run.
  /// - Complexity: O(*n*) for each job, where *n* is the number of jobs that are ready.
  @discardableResult
  public func run(atMost limit: Int = .max, using random: inout some RandomNumberGenerator) -> Int {
    var count = 0
    while count < limit {
      let readyCount = ready.withLock { $0.count }
      if readyCount == 0 { break }
      let index = Int.random(in: 0..<readyCount, using: &random)
      let job = ready.withLock { $0.remove(at: index) }
      job.runSynchronously(on: asUnownedTaskExecutor())
      count += 1
    }
    return count
  }
}

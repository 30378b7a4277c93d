internal import Multicast

/// A task executor that runs its jobs only on request, on the requesting thread.
///
/// With this executor, a test of concurrent code needs neither sleeping nor polling. After ``runUntilIdle()``, every
/// task that prefers this executor has finished or is suspended, so the progress of the tasks is deterministic.
///
/// ```swift
/// let executor = ManualTaskExecutor()
/// let reader = Task(executorPreference: executor) { for await value in stream { record(value) } }
/// executor.runUntilIdle()  // The reader is suspended in `next()` now.
/// ```
///
/// ``runUntilIdle()`` runs jobs in the order in which they became ready. Code that is isolated to the main actor, or to
/// an actor with an executor of its own, doesn't run here.
public final class ManualTaskExecutor: TaskExecutor {
  private let readyJobs = Lock<[UnownedJob]>([])

  /// Creates an executor without any jobs.
  public init() {}

  /// Stores a job until it is run on request.
  ///
  /// The Swift runtime calls this method.
  public func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    readyJobs.withLock { $0.append(job) }
  }

  /// Runs the ready jobs, and the jobs that these make ready, until none is ready.
  ///
  /// Only one thread at a time may call this method or ``run(atMost:using:)``.
  public func runUntilIdle() {
    while true {
      let jobs = readyJobs.withLock { readyJobs in
        defer { readyJobs = [] }
        return readyJobs
      }
      if jobs.isEmpty { return }
      for job in jobs { job.runSynchronously(on: asUnownedTaskExecutor()) }
    }
  }

  /// Runs the ready jobs, and the jobs that these make ready, in a random order, until none is ready or a limit is
  /// reached.
  ///
  /// A seeded generator makes the order reproducible. Only one thread at a time may call this method or
  /// ``runUntilIdle()``.
  ///
  /// - Parameters:
  ///   - limit: The maximum number of jobs to run.
  ///   - random: The generator that determines the order.
  /// - Returns: The number of jobs that were run.
  /// - Complexity: O(*n*) for each job, where *n* is the number of ready jobs.
  @discardableResult
  public func run(atMost limit: Int = .max, using random: inout some RandomNumberGenerator) -> Int {
    var count = 0
    while count < limit {
      let readyCount = readyJobs.withLock { $0.count }
      if readyCount == 0 { break }
      let index = Int.random(in: 0..<readyCount, using: &random)
      let job = readyJobs.withLock { $0.remove(at: index) }
      job.runSynchronously(on: asUnownedTaskExecutor())
      count += 1
    }
    return count
  }
}

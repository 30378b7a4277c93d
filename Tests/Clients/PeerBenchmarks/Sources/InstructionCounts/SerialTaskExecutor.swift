internal import Synchronization

/// A task executor that runs its jobs on the thread that calls ``runUntilIdle()``, so that each run of the program
/// executes the same instructions.
final class SerialTaskExecutor: TaskExecutor {
  /// Two arrays that are swapped, so that their memory is reused.
  private struct Jobs {
    var ready: [UnownedJob] = []
    var running: [UnownedJob] = []
  }

  private let jobs = Mutex(Jobs())

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    jobs.withLock { $0.ready.append(job) }
  }

  /// Runs the ready jobs, and the jobs that these make ready, until none is ready.
  func runUntilIdle() {
    let executor = asUnownedTaskExecutor()
    while true {
      let count = jobs.withLock { jobs in
        jobs.running.removeAll(keepingCapacity: true)
        swap(&jobs.ready, &jobs.running)
        return jobs.running.count
      }
      if count == 0 { return }
      for index in 0..<count {
        jobs.withLock { $0.running[index] }.runSynchronously(on: executor)
      }
    }
  }
}

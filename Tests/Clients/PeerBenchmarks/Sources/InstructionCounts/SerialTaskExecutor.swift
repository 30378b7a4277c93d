internal import Synchronization

/// Runs tasks on the thread that calls ``runUntilIdle()``, so that a run has the same instructions every time.
final class SerialTaskExecutor: TaskExecutor {
  /// Two arrays that change places, so that running jobs allocates nothing.
  private struct Jobs {
    var ready: [UnownedJob] = []
    var running: [UnownedJob] = []
  }

  private let jobs = Mutex(Jobs())

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    jobs.withLock { $0.ready.append(job) }
  }

  /// Runs jobs, and those they make ready, until none is ready.
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

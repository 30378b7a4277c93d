package import Dispatch

/// Runs an actor's jobs on a dispatch queue, in the order they arrive.
///
/// It is for actors that use dispatch sources or block in system calls, such as ``FolderHub`` and `Terminal`. A
/// blocking call would otherwise occupy one of the few threads that all tasks share. The priority of a job is ignored.
package final class DispatchQueueExecutor: SerialExecutor {
  /// The queue that runs the jobs.
  ///
  /// A block on this queue, or the handler of a dispatch source on it, is isolated to the actor and may call
  /// `assumeIsolated`. Isolated code must not call `sync` on the queue, because that would deadlock.
  package let queue: DispatchQueue

  package init(label: String) {
    queue = DispatchQueue(label: label)
  }

  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    // Captures `self` strongly, because the executor must outlive its jobs, even if the actor was released.
    queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
  }

  /// Enqueues `work`, which then runs on the queue after the waiting jobs.
  func enqueue(_ work: @escaping @Sendable () -> Void) {
    queue.async(execute: work)
  }

  package func checkIsolated() {
    dispatchPrecondition(condition: .onQueue(queue))
  }
}

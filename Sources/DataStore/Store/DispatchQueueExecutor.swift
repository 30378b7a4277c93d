package import Dispatch

/// Runs an actor's jobs on a dispatch queue, in the order they arrive.
///
/// An actor that blocks, for example in `fsync`, would otherwise occupy one of the few threads that all tasks share.
package final class DispatchQueueExecutor: SerialExecutor {
  /// The queue that runs the jobs.
  package let queue: DispatchQueue

  package init(label: String) {
    queue = DispatchQueue(label: label)
  }

  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
  }

  /// Runs `work` on the queue, after the waiting jobs.
  func enqueue(_ work: @escaping @Sendable () -> Void) {
    queue.async(execute: work)
  }

  package func checkIsolated() {
    dispatchPrecondition(condition: .onQueue(queue))
  }
}

package import Dispatch

/// Runs an actor's jobs on a dispatch queue, in the order they arrive.
///
/// An actor that blocks, in `fsync` for example, would otherwise hold one of the few threads all tasks share.
package final class DispatchQueueExecutor: SerialExecutor {
  /// Where the jobs run.
  package let queue: DispatchQueue

  package init(label: String) {
    queue = DispatchQueue(label: label)
  }

  package func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
  }

  /// Runs `work` behind the jobs that are waiting.
  func enqueue(_ work: @escaping @Sendable () -> Void) {
    queue.async(execute: work)
  }

  package func checkIsolated() {
    dispatchPrecondition(condition: .onQueue(queue))
  }
}

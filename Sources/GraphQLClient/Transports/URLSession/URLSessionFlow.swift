internal import Dispatch
internal import Foundation

#if canImport(FoundationNetworking)
  internal import FoundationNetworking
#endif

/// The flow control of one session task, on behalf of the task's transfer.
struct URLSessionFlow: Sendable {
  private let task: URLSessionDataTask
  private let transfer: Transfer
  /// The queue on which to call the task, because such a call may wait for the session's own work.
  private let queue: DispatchQueue

  init(task: URLSessionDataTask, transfer: Transfer, queue: DispatchQueue) {
    self.task = task
    self.transfer = transfer
    self.queue = queue
  }

  /// The functions with which the transfer controls the task.
  var network: Transfer.Network {
    Transfer.Network(
      stop: { [task, queue] in queue.async { task.cancel() } },
      resume: { [task, queue] in
        // On Linux the task is never suspended.
        #if !canImport(FoundationNetworking)
          queue.async { if task.state == .suspended { task.resume() } }
        #endif
      })
  }

  #if canImport(FoundationNetworking)
    /// The maximum number of pending bytes.
    private static let maximumPendingByteCount = 64 * 1024 * 1024

    /// Ends the exchange if it has too many pending bytes.
    ///
    /// The task can't be paused instead: a suspended task closes its connection and later sends its request again, and
    /// a delegate that blocks stops all sessions of the process.
    func limitPendingBytes() {
      guard transfer.pendingByteCount > Self.maximumPendingByteCount else { return }
      transfer.end(error: URLError(.dataLengthExceedsMaximum))
      network.stop()
    }
  #else
    /// Suspends the task until the pending chunks are taken.
    ///
    /// If the transfer's caller takes them before the suspension runs on the queue, the task isn't suspended, because
    /// the call that resumes it may already have run.
    func limitPendingBytes() {
      queue.async { [task, transfer] in
        if transfer.pendingByteCount > 0, task.state == .running { task.suspend() }
      }
    }
  #endif

  /// Passes a chunk to the transfer, and limits the pending bytes if the transfer's caller doesn't take it at once.
  func receive(_ chunk: Data) {
    if transfer.receive(chunk: chunk) == .pause { limitPendingBytes() }
  }
}

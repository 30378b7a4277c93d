internal import Dispatch
internal import Foundation

#if canImport(FoundationNetworking)
  internal import FoundationNetworking
#endif

/// Steers one task of a session for its transfer.
struct URLSessionFlow: Sendable {
  private let task: URLSessionDataTask
  private let transfer: Transfer
  /// Where to call the task, which may wait for the session's own work.
  private let queue: DispatchQueue

  init(task: URLSessionDataTask, transfer: Transfer, queue: DispatchQueue) {
    self.task = task
    self.transfer = transfer
    self.queue = queue
  }

  var network: Transfer.Network {
    Transfer.Network(
      stop: { [task, queue] in queue.async { task.cancel() } },
      goOn: { [task, queue] in
        #if !canImport(FoundationNetworking)
          queue.async { if task.state == .suspended { task.resume() } }
        #endif
      })
  }

  #if canImport(FoundationNetworking)
    /// The most bytes that wait to be taken.
    private static let maximumWaitingByteCount = 64 * 1024 * 1024

    /// Ends the exchange when too much of it waits.
    ///
    /// Nothing gentler is possible: a suspended task closes its connection and later sends its request again, and a
    /// delegate that waits stops all sessions of the process.
    func holdUp() {
      guard transfer.waitingByteCount > Self.maximumWaitingByteCount else { return }
      transfer.end(error: URLError(.dataLengthExceedsMaximum))
      network.stop()
    }
  #else
    /// Suspends the task until what waits was taken, unless it was taken meanwhile: then the call to go on has run.
    func holdUp() {
      queue.async { [task, transfer] in
        if transfer.waitingByteCount > 0, task.state == .running { task.suspend() }
      }
    }
  #endif

  /// Passes a chunk on.
  func receive(_ chunk: Data) {
    if transfer.receive(chunk: chunk) == .holdUp { holdUp() }
  }
}

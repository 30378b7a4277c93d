internal import Dispatch
internal import Foundation
internal import Multicast

#if canImport(FoundationNetworking)
  internal import FoundationNetworking
#endif

/// One request and its reply: runs an ``HTTPExchangeState`` with a `URLSessionTask`.
///
/// The lock guards the state alone. The waiter is resumed and the task resumed or cancelled after it is released.
final class HTTPExchange: Sendable {
  typealias Outcome = Result<Data, APISessionError>
  private typealias State = HTTPExchangeState<CheckedContinuation<Outcome, Never>>

  private let task: URLSessionDataTask
  private let cancellationQueue: DispatchQueue
  private let state: Lock<State>

  /// Prepares the exchange; nothing is sent before ``run()``.
  ///
  /// - Parameters:
  ///   - task: The task that carries the exchange, not resumed yet.
  ///   - cancellationQueue: Where to cancel the task, which may take its time.
  ///   - maximumReplySize: The most bytes of a successful reply to read.
  init(task: URLSessionDataTask, cancellationQueue: DispatchQueue, maximumReplySize: Int) {
    self.task = task
    self.cancellationQueue = cancellationQueue
    state = Lock(State(maximumReplySize: maximumReplySize))
  }

  /// Sends the request and waits for the outcome.
  ///
  /// Call it once. Cancelling the calling task ends the wait at once with ``APISessionError/cancelled`` and closes the connection.
  func run() async -> Outcome {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        switch state.withLock({ $0.start(continuation) }) {
        case .send:
          task.resume()
        case .finish(let waiter, let outcome):
          waiter.resume(returning: outcome)
        }
      }
    } onCancel: {
      switch state.withLock({ $0.cancel() }) {
      case .giveUp:
        cancelTask()
      case .stop(let waiter, let outcome):
        waiter.resume(returning: outcome)
        cancelTask()
      case .ignore:
        break
      }
    }
  }

  private func cancelTask() {
    // On Linux `URLSessionTask.cancel()` waits for the session's queue. Waiting would dead-lock in a cancellation
    // handler, which runs under a lock of the concurrency runtime that the queue may be waiting for; it would let the
    // parts of a flood pile up in the delegate queue; and in a global queue it would take a thread from everybody.
    cancellationQueue.async { [task] in task.cancel() }
  }

  /// The session read a part of the reply's body.
  func receive(_ chunk: Data) {
    let response = task.response as? HTTPURLResponse
    let action = state.withLock {
      $0.receive(
        chunk,
        statusCode: response?.statusCode ?? 0,
        expectedLength: response?.expectedContentLength ?? -1)
    }
    switch action {
    case .proceed:
      break
    case .stop(let waiter, let outcome):
      waiter.resume(returning: outcome)
      cancelTask()
    case .ignore:
      break
    }
  }

  /// The session is done with the task.
  func complete(error: (any Error)?) {
    let statusCode = (task.response as? HTTPURLResponse)?.statusCode
    let error = error.map { $0 as? URLError ?? URLError(.unknown, userInfo: [NSUnderlyingErrorKey: $0]) }
    if case .finish(let waiter, let outcome) = state.withLock({ $0.complete(statusCode: statusCode, error: error) }) {
      waiter.resume(returning: outcome)
    }
  }
}

internal import Multicast

/// Runs pieces of asynchronous work one at a time, in the order of the calls.
///
/// Cancelling a caller doesn't remove its work from the queue. The work runs in the caller's task, so it can notice the
/// cancellation.
package final class AsyncSerialQueue: Sendable {
  private struct State {
    var isBusy = false
    var waiting = FIFO<CheckedContinuation<Void, Never>>()
  }

  private let state = Lock(State())

  package init() {}

  /// Runs work when all earlier work has finished.
  package func run<Result, Failure: Error>(
    isolation: isolated (any Actor)? = #isolation, _ work: () async throws(Failure) -> Result
  ) async throws(Failure) -> Result {
    await waitForTurn()
    defer { endTurn() }
    return try await work()
  }

  private func waitForTurn(isolation: isolated (any Actor)? = #isolation) async {
    await withCheckedContinuation { continuation in
      let isFree = state.withLock { state in
        defer { state.isBusy = true }
        if state.isBusy { state.waiting.append(continuation) }
        return !state.isBusy
      }
      if isFree { continuation.resume() }
    }
  }

  private func endTurn() {
    let next = state.withLock { state in
      let next = state.waiting.removeFirst()
      state.isBusy = next != nil
      return next
    }
    next?.resume()
  }
}

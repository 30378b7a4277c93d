internal import Multicast

/// Calls that wait for an outcome which other work brings.
///
/// Each gets one.
///
/// - Complexity: O(1) for each function.
final class PendingCalls<ID: Hashable & Sendable, Outcome: Sendable>: Sendable {
  private enum Call {
    /// The call doesn't wait yet.
    case open
    case waiting(CheckedContinuation<Outcome, Never>)
    /// The outcome came before the call waited.
    case ended(Outcome)
  }

  private let calls = Lock<[ID: Call]>([:])

  /// Whether no call waits for an outcome.
  var isEmpty: Bool { calls.withLock { $0.isEmpty } }

  /// Announces a call, whose outcome may come from here on.
  func open(_ id: ID) {
    calls.withLock { $0[id] = .open }
  }

  /// Forgets a call that will not wait.
  func close(_ id: ID) {
    _ = calls.withLock { $0.removeValue(forKey: id) }
  }

  /// Whether a call has no outcome yet.
  func isPending(_ id: ID) -> Bool {
    switch calls.withLock({ $0[id] }) {
    case .open, .waiting: true
    case .ended, nil: false
    }
  }

  /// Ends a call, unless it has its outcome.
  func end(_ id: ID, _ outcome: Outcome) {
    let waiting = calls.withLock { calls -> CheckedContinuation<Outcome, Never>? in
      switch calls[id] {
      case .open: calls[id] = .ended(outcome)
      case .waiting(let continuation):
        calls[id] = nil
        return continuation
      case .ended, nil: break
      }
      return nil
    }
    waiting?.resume(returning: outcome)
  }

  /// Waits for the outcome of a call that was announced.
  ///
  /// - Parameters:
  ///   - id: The call.
  ///   - outcomeIfCancelled: What ends the call if its task is cancelled first; `nil` if that doesn't end it.
  func outcome(
    of id: ID, ifCancelled outcomeIfCancelled: Outcome? = nil, isolation: isolated (any Actor)? = #isolation
  ) async -> Outcome {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let outcome = calls.withLock { calls -> Outcome? in
          guard case .ended(let outcome) = calls[id] else {
            calls[id] = .waiting(continuation)
            return nil
          }
          calls[id] = nil
          return outcome
        }
        if let outcome { continuation.resume(returning: outcome) }
      }
    } onCancel: {
      if let outcomeIfCancelled { end(id, outcomeIfCancelled) }
    }
  }
}

internal import Multicast

/// Calls that wait for an outcome that other work produces.
///
/// A call gets only the first outcome that is produced for it. A call that is closed before it waits gets none.
///
/// - Complexity: O(1) for each function.
final class PendingCalls<ID: Hashable & Sendable, Outcome: Sendable>: Sendable {
  private enum Call {
    /// The call doesn't wait yet.
    case announced
    case waiting(CheckedContinuation<Outcome, Never>)
    /// The outcome arrived before the call waited.
    case ended(Outcome)
  }

  private struct State {
    var calls: [ID: Call] = [:]
    /// The calls that have no outcome yet, and that cancellation no longer ends.
    var claimed: Set<ID> = []

    /// Ends a call.
    ///
    /// - Returns: The continuation to resume, or `nil` if the call doesn't wait or has an outcome already.
    mutating func end(_ id: ID, _ outcome: Outcome) -> CheckedContinuation<Outcome, Never>? {
      claimed.remove(id)
      switch calls[id] {
      case .announced: calls[id] = .ended(outcome)
      case .waiting(let continuation):
        calls[id] = nil
        return continuation
      case .ended, nil: break
      }
      return nil
    }
  }

  private let state = Lock(State())

  /// Whether there are no calls.
  var isEmpty: Bool { state.withLock { $0.calls.isEmpty } }

  /// Announces a call, whose outcome may arrive from now on.
  func open(_ id: ID) {
    state.withLock { $0.calls[id] = .announced }
  }

  /// Forgets a call that will not wait.
  func close(_ id: ID) {
    let call = state.withLock { state in
      state.claimed.remove(id)
      return state.calls.removeValue(forKey: id)
    }
    // Released here, outside the lock, because releasing an outcome may run arbitrary code.
    _ = consume call
  }

  /// Reserves a call for an outcome that is being prepared.
  ///
  /// From now on, only ``end(_:_:)`` ends the call, and cancellation doesn't.
  ///
  /// - Returns: Whether the call was reserved. It isn't if it has an outcome already, or if there is no such call.
  func claim(_ id: ID) -> Bool {
    state.withLock { state in
      switch state.calls[id] {
      case .announced, .waiting:
        state.claimed.insert(id)
        return true
      case .ended, nil: return false
      }
    }
  }

  /// Ends a call, unless it has an outcome already.
  func end(_ id: ID, _ outcome: Outcome) {
    state.withLock { $0.end(id, outcome) }?.resume(returning: outcome)
  }

  /// Ends a call whose task is cancelled, unless the call is claimed or has an outcome already.
  private func cancel(_ id: ID, _ outcome: Outcome) {
    state.withLock { $0.claimed.contains(id) ? nil : $0.end(id, outcome) }?.resume(returning: outcome)
  }

  /// Waits for the outcome of an announced call.
  ///
  /// - Parameters:
  ///   - id: The id of the call.
  ///   - outcomeIfCancelled: The outcome if the task is cancelled before another outcome arrives and the call isn't
  ///     claimed. With `nil`, cancellation doesn't end the call.
  func outcome(
    of id: ID, ifCancelled outcomeIfCancelled: Outcome? = nil, isolation: isolated (any Actor)? = #isolation
  ) async -> Outcome {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let outcome = state.withLock { state -> Outcome? in
          guard case .ended(let outcome) = state.calls[id] else {
            state.calls[id] = .waiting(continuation)
            return nil
          }
          state.calls[id] = nil
          return outcome
        }
        if let outcome { continuation.resume(returning: outcome) }
      }
    } onCancel: {
      if let outcomeIfCancelled { cancel(id, outcomeIfCancelled) }
    }
  }
}

internal import Synchronization

/// Passes the newest value from an observer to one waiting task.
final class HandOffSlot<Value: Sendable>: Sendable {
  private struct State {
    var taker: CheckedContinuation<Value, any Error>?
    var newest: Result<Value, any Error>?
  }

  private let state = Mutex(State())

  /// Returns the newest value unless it was already taken, and otherwise waits for the next one.
  ///
  /// - Throws: The error that was put instead of a value.
  func take() async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
      let newest = state.withLock { state -> Result<Value, any Error>? in
        defer { state.newest = nil }
        if state.newest == nil { state.taker = continuation }
        return state.newest
      }
      if let newest { continuation.resume(with: newest) }
    }
  }

  /// Passes a value or an error to the waiting task, or keeps it for the next call of `take()`.
  func put(_ result: Result<Value, any Error>) {
    let taker = state.withLock { state -> CheckedContinuation<Value, any Error>? in
      defer { state.taker = nil }
      if state.taker == nil { state.newest = result }
      return state.taker
    }
    taker?.resume(with: result)
  }
}

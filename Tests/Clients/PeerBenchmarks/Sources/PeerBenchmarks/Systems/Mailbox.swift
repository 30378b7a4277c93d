internal import Synchronization

/// Hands a value to one waiting task by a bare continuation: no buffer, no cancellation, one taker.
///
/// The least that the runtime needs for waking a task, so the limit of what a broadcast can do for a parked reader.
final class Mailbox<Value: Sendable>: Sendable {
  private struct State {
    var taker: UnsafeContinuation<Value, Never>?
    var value: Value?
  }

  private let state = Mutex(State())

  /// Returns the value that was put, waiting for it if need be.
  func take() async -> Value {
    await withUnsafeContinuation { continuation in
      let value = state.withLock { state -> Value? in
        if let value = state.value {
          state.value = nil
          return value
        }
        state.taker = continuation
        return nil
      }
      if let value { continuation.resume(returning: value) }
    }
  }

  /// Gives the value to the taker that waits, or keeps it for the one to come.
  func put(_ value: Value) {
    let taker = state.withLock { state -> UnsafeContinuation<Value, Never>? in
      if let taker = state.taker {
        state.taker = nil
        return taker
      }
      state.value = value
      return nil
    }
    taker?.resume(returning: value)
  }
}

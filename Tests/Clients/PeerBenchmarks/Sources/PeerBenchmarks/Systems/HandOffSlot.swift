internal import Synchronization

/// A slot that hands values to one task by a bare continuation, without a queue or cancellation.
///
/// Its cost is the runtime's minimum for waking a task, and so the lower limit for any broadcast.
final class HandOffSlot<Value: Sendable>: Sendable {
  private struct State {
    var taker: UnsafeContinuation<Value, Never>?
    var value: Value?
  }

  private let state = Mutex(State())

  /// Suspends until there is a value, and takes it.
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

  /// Hands a value to the suspended task, or stores it for the next call of ``take()``.
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

internal import Synchronization

/// Tasks that observe a key, and the instant at which the last of them receives the expected value.
final class Observers<Value: Sendable>: Sendable {
  private struct State {
    var expectedStep = 0
    /// The number of observers that haven't received the expected value yet.
    var remainingCount: Int
    var lastArrival: ContinuousClock.Instant?
    var waiter: CheckedContinuation<ContinuousClock.Instant, Never>?
  }

  private let state: Mutex<State>
  private let count: Int
  private let tasks = Mutex<[Task<Void, Never>]>([])

  /// Starts observing.
  ///
  /// Each change is a numbered step. At first, all observers expect step 0, which is the value before any change.
  ///
  /// - Parameters:
  ///   - values: The sequence that each task observes.
  ///   - count: The number of tasks.
  ///   - shows: Returns whether a value includes the change of a step.
  init<Values>(
    _ values: Values, count: Int, shows: @escaping @Sendable (_ value: Value, _ step: Int) -> Bool
  ) where Values: AsyncSequence & Sendable, Values.Element == Value, Values.Failure == Never {
    self.count = count
    state = Mutex(State(remainingCount: count))
    for _ in 0..<count {
      let task = Task { [self] in
        var lastStep = -1
        for await value in values {
          let step = state.withLock { $0.expectedStep }
          guard step > lastStep, shows(value, step) else { continue }
          lastStep = step
          recordArrival()
        }
      }
      tasks.withLock { $0.append(task) }
    }
  }

  /// Makes all observers expect the change of the next step.
  func expect(_ step: Int) {
    state.withLock { ($0.expectedStep, $0.remainingCount, $0.lastArrival) = (step, count, nil) }
  }

  /// Waits until all observers have received the expected value.
  ///
  /// - Returns: The instant at which the last of them received it.
  func waitForLastArrival() async -> ContinuousClock.Instant {
    await withCheckedContinuation { continuation in
      let instant = state.withLock { state in
        if state.lastArrival == nil { state.waiter = continuation }
        return state.lastArrival
      }
      if let instant { continuation.resume(returning: instant) }
    }
  }

  /// Cancels all tasks.
  func cancel() {
    for task in tasks.withLock({ $0 }) { task.cancel() }
  }

  private func recordArrival() {
    let now = ContinuousClock.now
    let waiter = state.withLock { state -> CheckedContinuation<ContinuousClock.Instant, Never>? in
      state.remainingCount -= 1
      guard state.remainingCount == 0 else { return nil }
      state.lastArrival = now
      defer { state.waiter = nil }
      return state.waiter
    }
    waiter?.resume(returning: now)
  }
}

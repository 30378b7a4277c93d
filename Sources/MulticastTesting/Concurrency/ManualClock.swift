internal import Multicast

/// A clock whose time changes only when a test advances it.
///
/// ``advance(by:)`` ends the sleeps whose deadline is reached, in the order of their deadlines. When it returns, the
/// tasks of these sleeps have been resumed. A test that awaits ``sleepers(_:)`` before it advances the clock knows that
/// the code under test is asleep.
///
/// Cancelling a sleeping task ends its sleep at once with a `CancellationError`.
public final class ManualClock: Clock {
  /// A point in time of a ``ManualClock``, measured from the creation of the clock.
  public struct Instant: InstantProtocol {
    /// The time since the creation of the clock.
    public let offset: Duration

    /// Creates the instant at an offset from the creation of the clock.
    public init(offset: Duration = .zero) {
      self.offset = offset
    }

    /// Returns the instant that is `duration` later.
    public func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }

    /// Returns the duration from this instant to `other`.
    public func duration(to other: Instant) -> Duration { other.offset - offset }

    /// Returns whether the first instant is before the second one.
    public static func < (earlier: Instant, later: Instant) -> Bool { earlier.offset < later.offset }
  }

  private struct Sleeper {
    let id: Int
    let deadline: Instant
    /// The suspended task's continuation, or `nil` until the task has suspended.
    ///
    /// It is resumed with `true` when the deadline is reached, and with `false` when the task is cancelled.
    var continuation: CheckedContinuation<Bool, Never>?
  }

  /// A task that waits for a number of sleepers.
  private struct Waiter {
    let id: Int
    let sleeperCount: Int
    let continuation: CheckedContinuation<Void, Never>
  }

  private struct State {
    var now = Instant(offset: .zero)
    var lastID = 0
    /// The sleepers, ordered by deadline and, for equal deadlines, by arrival.
    var sleepers: [Sleeper] = []
    var waiters: [Waiter] = []

    /// Registers a sleeper and returns its id, or returns `nil` if the deadline is already reached.
    mutating func registerSleeper(until deadline: Instant) -> Int? {
      if deadline <= now { return nil }
      let id = makeID()
      let index = sleepers.firstIndex { $0.deadline > deadline } ?? sleepers.endIndex
      sleepers.insert(Sleeper(id: id, deadline: deadline), at: index)
      return id
    }

    /// Stores the continuation of a registered sleeper, and returns `false` if its sleep has already ended.
    mutating func storeContinuation(_ continuation: CheckedContinuation<Bool, Never>, of id: Int) -> Bool {
      guard let index = sleepers.firstIndex(where: { $0.id == id }) else { return false }
      sleepers[index].continuation = continuation
      return true
    }

    /// Removes a cancelled sleeper and returns its continuation, if it has suspended.
    mutating func removeSleeper(_ id: Int) -> CheckedContinuation<Bool, Never>? {
      guard let index = sleepers.firstIndex(where: { $0.id == id }) else { return nil }
      return sleepers.remove(at: index).continuation
    }

    /// Removes the waiters whose `sleeperCount` has been reached, and returns their continuations.
    mutating func takeSatisfiedWaiters() -> [CheckedContinuation<Void, Never>] {
      let suspendedCount = suspendedCount
      let satisfied = waiters.filter { $0.sleeperCount <= suspendedCount }.map(\.continuation)
      waiters.removeAll { $0.sleeperCount <= suspendedCount }
      return satisfied
    }

    /// Returns an unused id for a sleeper or a waiter.
    mutating func makeID() -> Int {
      lastID += 1
      return lastID
    }

    /// Removes a cancelled waiter and returns its continuation, if it is still waiting.
    mutating func removeWaiter(_ id: Int) -> CheckedContinuation<Void, Never>? {
      guard let index = waiters.firstIndex(where: { $0.id == id }) else { return nil }
      return waiters.remove(at: index).continuation
    }

    var suspendedCount: Int { sleepers.count { $0.continuation != nil } }
  }

  private let state = Lock(State())

  /// Creates a clock whose time is zero.
  public init() {}

  /// The current instant, which is the sum of all advances.
  public var now: Instant { state.withLock { $0.now } }

  /// The clock's resolution: zero, because the clock can be advanced by any duration.
  public var minimumResolution: Duration { .zero }

  /// The remaining durations of the suspended sleepers, the shortest first.
  ///
  /// - Complexity: O(*n*), where *n* is the number of sleepers.
  public var pendingSleeps: [Duration] {
    state.withLock { state in
      state.sleepers.filter { $0.continuation != nil }.map { state.now.duration(to: $0.deadline) }
    }
  }

  /// Sleeps until the clock has been advanced to `deadline`.
  ///
  /// - Parameters:
  ///   - deadline: The instant at which the sleep ends. If it is already reached, the call returns at once.
  ///   - tolerance: Ignored: ``advance(by:)`` wakes the task as soon as the deadline is reached.
  /// - Throws: `CancellationError` if the calling task is cancelled before the sleep ends.
  public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
    try Task.checkCancellation()
    guard let id = state.withLock({ $0.registerSleeper(until: deadline) }) else { return }
    let hasReachedDeadline = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let (isStored, isDue, waiters) = state.withLock { state in
          (state.storeContinuation(continuation, of: id), deadline <= state.now, state.takeSatisfiedWaiters())
        }
        for waiter in waiters { waiter.resume() }
        // A sleeper that is no longer registered was woken or cancelled before it suspended.
        if !isStored { continuation.resume(returning: isDue) }
      }
    } onCancel: {
      state.withLock { $0.removeSleeper(id) }?.resume(returning: false)
    }
    if !hasReachedDeadline { throw CancellationError() }
  }

  /// Advances the time, and wakes the sleepers whose deadline is reached, the earliest first.
  public func advance(by duration: Duration) {
    let due = state.withLock { state in
      state.now = state.now.advanced(by: duration)
      let count = state.sleepers.prefix { $0.deadline <= state.now }.count
      defer { state.sleepers.removeFirst(count) }
      return Array(state.sleepers.prefix(count))
    }
    for sleeper in due { sleeper.continuation?.resume(returning: true) }
  }

  /// Suspends until at least `count` tasks sleep, or the calling task is cancelled.
  public func sleepers(_ count: Int = 1) async {
    let id = state.withLock { $0.makeID() }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isWaitOver = state.withLock { state in
          // If the task is cancelled after this check, the handler takes the lock after this section and finds the
          // waiter.
          if state.suspendedCount >= count || Task.isCancelled { return true }
          state.waiters.append(Waiter(id: id, sleeperCount: count, continuation: continuation))
          return false
        }
        if isWaitOver { continuation.resume() }
      }
    } onCancel: {
      state.withLock { $0.removeWaiter(id) }?.resume()
    }
  }
}

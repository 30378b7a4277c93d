internal import Multicast

/// A clock that stands still until a test advances it.
///
/// Whoever sleeps on it is woken by ``advance(by:)`` alone: at once when the call returns, and in the order of their
/// deadlines. A test that waits for ``sleepers(_:)`` first knows what the code under test is waiting for.
///
/// Cancelling a task that sleeps ends its sleep at once with `CancellationError`.
public final class ManualClock: Clock {
  /// A moment of a ``ManualClock``: how long after its creation.
  public struct Instant: InstantProtocol {
    /// How long after the creation of the clock.
    public let offset: Duration

    /// The moment of the creation, or one that is so much later.
    public init(offset: Duration = .zero) {
      self.offset = offset
    }

    /// The moment that is `duration` later.
    public func advanced(by duration: Duration) -> Instant { Instant(offset: offset + duration) }

    /// How long it is from here to `other`.
    public func duration(to other: Instant) -> Duration { other.offset - offset }

    /// Whether one moment is before another.
    public static func < (earlier: Instant, later: Instant) -> Bool { earlier.offset < later.offset }
  }

  private struct Sleeper {
    let number: Int
    let deadline: Instant
    /// Nil until the task is suspended.
    var continuation: CheckedContinuation<Bool, Never>?
  }

  private struct Watcher {
    let number: Int
    let count: Int
    let continuation: CheckedContinuation<Void, Never>
  }

  private struct State {
    var now = Instant(offset: .zero)
    var lastNumber = 0
    /// By deadline, and by arrival where that is the same.
    var sleepers: [Sleeper] = []
    /// Who waits for a number of sleepers.
    var watchers: [Watcher] = []

    /// Registers a sleeper; nil when its deadline has passed.
    mutating func register(until deadline: Instant) -> Int? {
      if deadline <= now { return nil }
      let number = drawNumber()
      let place = sleepers.firstIndex { $0.deadline > deadline } ?? sleepers.endIndex
      sleepers.insert(Sleeper(number: number, deadline: deadline), at: place)
      return number
    }

    /// Keeps the continuation of a registered sleeper; false when its sleep is over already.
    mutating func suspend(_ number: Int, _ continuation: CheckedContinuation<Bool, Never>) -> Bool {
      guard let index = sleepers.firstIndex(where: { $0.number == number }) else { return false }
      sleepers[index].continuation = continuation
      return true
    }

    /// Takes away a sleeper that is cancelled.
    mutating func remove(_ number: Int) -> CheckedContinuation<Bool, Never>? {
      guard let index = sleepers.firstIndex(where: { $0.number == number }) else { return nil }
      return sleepers.remove(at: index).continuation
    }

    /// Takes away the watchers who wait for no more sleepers than are suspended.
    mutating func satisfiedWatchers() -> [CheckedContinuation<Void, Never>] {
      let count = suspendedCount
      let satisfied = watchers.filter { $0.count <= count }.map(\.continuation)
      watchers.removeAll { $0.count <= count }
      return satisfied
    }

    /// Gives a watcher its number.
    mutating func drawNumber() -> Int {
      lastNumber += 1
      return lastNumber
    }

    /// Takes away a watcher that is cancelled.
    mutating func removeWatcher(_ number: Int) -> CheckedContinuation<Void, Never>? {
      guard let index = watchers.firstIndex(where: { $0.number == number }) else { return nil }
      return watchers.remove(at: index).continuation
    }

    var suspendedCount: Int { sleepers.count { $0.continuation != nil } }
  }

  private let state = Lock(State())

  /// Creates a clock whose time is zero.
  public init() {}

  /// The present moment: the sum of all advances.
  public var now: Instant { state.withLock { $0.now } }

  /// The smallest step there is: none, as the clock stands still.
  public var minimumResolution: Duration { .zero }

  /// How long those who sleep have yet to sleep, the shortest first.
  public var pendingSleeps: [Duration] {
    state.withLock { state in
      state.sleepers.filter { $0.continuation != nil }.map { state.now.duration(to: $0.deadline) }
    }
  }

  /// Sleeps until the clock has been advanced to `deadline`.
  ///
  /// - Throws: `CancellationError` when the calling task is cancelled first.
  public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
    try Task.checkCancellation()
    guard let number = state.withLock({ $0.register(until: deadline) }) else { return }
    let hasSlept = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let (isSuspended, isDue, watchers) = state.withLock { state in
          (state.suspend(number, continuation), deadline <= state.now, state.satisfiedWatchers())
        }
        for watcher in watchers { watcher.resume() }
        // Before it was suspended, the sleeper was either woken or cancelled.
        if !isSuspended { continuation.resume(returning: isDue) }
      }
    } onCancel: {
      state.withLock { $0.remove(number) }?.resume(returning: false)
    }
    if !hasSlept { throw CancellationError() }
  }

  /// Moves the time on, and wakes those whose deadline is reached, the earliest first.
  public func advance(by duration: Duration) {
    let due = state.withLock { state in
      state.now = state.now.advanced(by: duration)
      let count = state.sleepers.prefix { $0.deadline <= state.now }.count
      defer { state.sleepers.removeFirst(count) }
      return Array(state.sleepers.prefix(count))
    }
    for sleeper in due { sleeper.continuation?.resume(returning: true) }
  }

  /// Waits until at least `count` tasks sleep, or the calling task is cancelled.
  public func sleepers(_ count: Int = 1) async {
    let number = state.withLock { $0.drawNumber() }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isOver = state.withLock { state in
          // Who is cancelled from here on is found by the handler.
          if state.suspendedCount >= count || Task.isCancelled { return true }
          state.watchers.append(Watcher(number: number, count: count, continuation: continuation))
          return false
        }
        if isOver { continuation.resume() }
      }
    } onCancel: {
      state.withLock { $0.removeWatcher(number) }?.resume()
    }
  }
}

/// A mutable value that any number of `for await` subscribers observe.
///
/// A current-value channel is Rx's `BehaviorSubject`: it always has a value, and a subscriber receives the current
/// value first.
///
/// ```swift
/// let state = CurrentValueChannel<LoadState, Never>(.idle)
/// state.send(.loading)
/// state.update { $0 = .loaded }
/// ```
///
/// - **Ordering**: Any number of tasks may send or update. All subscribers and ``value`` observe the same order.
/// - **Buffering**: With the default policy, `.latest`, a slow subscriber skips values and always converges on the last
///   one.
/// - **After termination**: ``value`` stays available, and a late subscriber receives it before the completion or the
///   error. A late subscriber of Rx's subject receives only the completion or the error. Here, a screen that opens late
///   still shows the last state.
/// - **Lifetime**: Releasing the last reference to the channel finishes it.
public final class CurrentValueChannel<Value: Sendable, Failure: Error>: Sendable {
  private let core: ChannelCore<Value, Failure>
  private let buffering: BufferingPolicy<Failure>
  /// The token that counts this channel as live.
  private let live = MulticastDiagnostics.LiveChannel()

  /// Creates a channel with an initial value.
  ///
  /// - Parameters:
  ///   - initial: The current value until another one is sent.
  ///   - buffering: The policy of each subscriber's buffer. A subscriber can choose another policy with
  ///     ``MulticastStream/buffering(_:)``.
  public init(_ initial: Value, buffering: BufferingPolicy<Failure> = .latest) {
    core = ChannelCore(replay: 1)
    self.buffering = buffering
    _ = core.send(initial)
  }

  deinit {
    core.finish()
  }

  /// The last value sent, which stays available after termination.
  public var value: Value { versionedValue.value }

  private var versionedValue: (value: Value, version: Int) {
    let versioned = core.versioned
    // There always is a latest value: `init` sends one, and only `resetReplay`, which this type doesn't offer, would
    // remove it.
    return (versioned.latest!, versioned.version)
  }

  /// Makes `value` the current value and sends it to every subscriber, without waiting for any of them.
  ///
  /// Does nothing if the channel has terminated.
  ///
  /// Don't hold a lock of your own during the call if an `onCancel` handler takes the same lock: the runtime runs the
  /// handler while the cancelled task can't be resumed, so the two may wait for each other. Send after the lock
  /// instead; see C13 in <doc:Guarantees>.
  ///
  /// - Complexity: O(1) amortized, plus O(*s*), where *s* is the number of subscribers that are suspended in `next()`
  ///   or whose policy keeps the oldest elements. Every 16th call also checks in O(*n*) which values the *n* other
  ///   subscribers still need, unless the slowest of these is unbounded and hasn't read since the last check.
  ///
  /// - Returns: Whether the channel accepted the value.
  @discardableResult
  public func send(_ value: Value) -> SendResult {
    core.send(value)
  }

  /// Reads, changes and publishes the value as one atomic step.
  ///
  /// If another value is sent in the meantime, `body` runs again on that value. `body` can therefore run more than once
  /// and should have no side effects. It never runs under a lock and may read the channel. A `body` that sends to the
  /// channel runs again on the value it sent; if it sends each time it runs, the call never returns. If the channel has
  /// terminated, `body` still runs on the last value, and its change is discarded.
  ///
  /// - Parameter body: A closure that changes the current value in place.
  /// - Returns: The result of the run of `body` whose change was published or, after termination, discarded.
  /// - Throws: The error that `body` throws, in which case nothing is published.
  public func update<Result, E: Error>(_ body: (inout Value) throws(E) -> Result) throws(E) -> Result {
    while true {
      let current = versionedValue
      var value = current.value
      let result = try body(&value)
      if core.send(value, ifVersionIs: current.version) != nil { return result }
    }
  }

  /// Finishes the channel: every subscriber reads its backlog, then `nil`.
  ///
  /// Does nothing if the channel has already terminated.
  public func finish() {
    core.finish()
  }

  /// Fails the channel: every subscriber reads its backlog, then its `next()` throws `error` once.
  ///
  /// Does nothing if the channel has already terminated.
  public func finish(throwing error: Failure) {
    core.finish(error)
  }

  /// The receiving side, with the channel's buffering policy.
  public var stream: MulticastStream<Value, Failure> {
    MulticastStream(core: core, policy: buffering)
  }

  /// The number of registered subscribers: those that are neither cancelled, released nor failed by an overflow; 0
  /// after termination.
  public var subscriberCount: Int { core.subscriberCount }
}

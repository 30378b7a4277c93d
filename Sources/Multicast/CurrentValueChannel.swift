/// A value that changes, and any number of `for await` subscribers that observe it.
///
/// What Rx calls a `BehaviorSubject`: there is always a value, and a subscriber gets the current one first.
///
/// ```swift
/// let state = CurrentValueChannel<LoadState, Never>(.idle)
/// state.send(.loading)
/// state.update { $0 = .loaded }
/// ```
///
/// - **Ordering**: Any number of tasks may send or update; all subscribers and ``value`` see one order.
/// - **Buffering**: The default, `.latest`, lets a slow subscriber skip values and always converge on the last one.
/// - **After the end**: ``value`` stays, and a late subscriber gets it, then the end or the error. (Rx's gives only the
///   end; here a screen that opens late still shows the last state.)
/// - **Dropping** the channel finishes it.
public final class CurrentValueChannel<Value: Sendable, Failure: Error>: Sendable {
  private let core: ChannelCore<Value, Failure>
  private let buffering: BufferingPolicy<Failure>
  private let live = MulticastDiagnostics.LiveChannel()

  /// Creates a channel whose value is `initial`.
  ///
  /// - Parameters:
  ///   - initial: The value until another is sent.
  ///   - buffering: What a subscriber's buffer does while the subscriber is busy. A subscriber may choose otherwise by
  ///     ``MulticastStream/buffering(_:)``.
  public init(_ initial: Value, buffering: BufferingPolicy<Failure> = .latest) {
    core = ChannelCore(replay: 1)
    self.buffering = buffering
    _ = core.send(initial)
  }

  deinit {
    core.finish()
  }

  /// The current value: the last one sent, also after the end.
  public var value: Value { current.value }

  private var current: (value: Value, version: Int) {
    let current = core.versioned
    // The initial value is sent before any call can ask, and only `resetReplay`, which isn't offered here, empties it.
    return (current.latest!, current.version)
  }

  /// Makes `value` the current one and sends it to every subscriber, without waiting for any of them.
  ///
  /// After the end it changes nothing.
  ///
  /// Takes constant time, amortised, and time for each subscriber that waits and for each whose policy keeps the start
  /// of its backlog. Where subscribers lag and the slowest is not an unbounded one, every 16th send also looks at each
  /// subscriber's place.
  ///
  /// - Returns: Whether the channel took the value.
  @discardableResult
  public func send(_ value: Value) -> SendResult {
    core.send(value)
  }

  /// Reads, changes and publishes the value as one atomic step.
  ///
  /// Where another value is sent meanwhile, the step is tried again on that one: `body` may run more than once, so let
  /// it do nothing but compute. It never runs under a lock and may read the channel. If it sends to the channel, it runs
  /// again on what it sent, and would do so for ever if it sends each time. After the end `body` still runs on the last
  /// value, and its change is discarded.
  ///
  /// - Returns: What the `body` returned whose change was published.
  /// - Throws: What `body` throws; then nothing is published.
  public func update<Result, E: Error>(_ body: (inout Value) throws(E) -> Result) throws(E) -> Result {
    while true {
      let current = current
      var value = current.value
      let result = try body(&value)
      if core.send(value, ifVersionIs: current.version) != nil { return result }
    }
  }

  /// Ends the channel: every subscriber reads what it had, then nil.
  ///
  /// Does nothing after the end.
  public func finish() {
    core.finish()
  }

  /// Fails the channel: every subscriber reads what it had, then its `next()` throws `error` once.
  ///
  /// Does nothing after the end.
  public func finish(throwing error: Failure) {
    core.finish(error)
  }

  /// The receiving side, with the channel's buffering.
  public var stream: MulticastStream<Value, Failure> {
    MulticastStream(core: core, policy: buffering)
  }

  /// How many subscribers are registered: subscribed, and not cancelled, dropped, overflowed or ended.
  public var subscriberCount: Int { core.subscriberCount }
}

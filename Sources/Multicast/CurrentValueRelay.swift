/// A ``CurrentValueChannel`` that can neither finish nor fail.
///
/// A current-value relay is Rx's `BehaviorRelay`. Its subscribers' loops end when the relay is released.
public final class CurrentValueRelay<Value: Sendable>: Sendable {
  private let channel: CurrentValueChannel<Value, Never>

  /// Creates a relay with an initial value.
  ///
  /// - Parameters:
  ///   - initial: The current value until another one is sent.
  ///   - buffering: The policy of each subscriber's buffer. A subscriber can choose another policy with
  ///     ``MulticastStream/buffering(_:)``.
  public init(_ initial: Value, buffering: BufferingPolicy<Never> = .latest) {
    channel = CurrentValueChannel(initial, buffering: buffering)
  }

  /// The last value sent.
  public var value: Value { channel.value }

  /// Makes `value` the current value and sends it to every subscriber, without waiting for any of them.
  ///
  /// Don't hold a lock of your own during the call if an `onCancel` handler takes the same lock: the runtime runs the
  /// handler while the cancelled task can't be resumed, so the two may wait for each other. Send after the lock
  /// instead; see C13 in <doc:Guarantees>.
  ///
  /// - Complexity: O(1) amortized, plus O(*s*), where *s* is the number of subscribers that are suspended in `next()`
  ///   or whose policy keeps the oldest elements. Every 16th call also checks in O(*n*) which values the *n* other
  ///   subscribers still need, unless the slowest of these is unbounded and hasn't read since the last check.
  public func send(_ value: Value) {
    channel.send(value)
  }

  /// Reads, changes and publishes the value as one atomic step.
  ///
  /// If another value is sent in the meantime, `body` runs again on that value. `body` can therefore run more than once
  /// and should have no side effects. It never runs under a lock and may read the relay. A `body` that sends to the
  /// relay runs again on the value it sent; if it sends each time it runs, the call never returns.
  ///
  /// - Parameter body: A closure that changes the current value in place.
  /// - Returns: The result of the run of `body` whose change was published.
  /// - Throws: The error that `body` throws, in which case nothing is published.
  public func update<Result, E: Error>(_ body: (inout Value) throws(E) -> Result) throws(E) -> Result {
    try channel.update(body)
  }

  /// The receiving side, with the relay's buffering policy.
  public var stream: MulticastStream<Value, Never> { channel.stream }

  /// The number of registered subscribers: those that are neither cancelled, released nor failed by an overflow.
  public var subscriberCount: Int { channel.subscriberCount }
}

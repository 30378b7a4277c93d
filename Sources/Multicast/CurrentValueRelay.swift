/// A ``CurrentValueChannel`` without an end: it has no `finish`, and no failure.
///
/// What Rx calls a `BehaviorRelay`. Its subscribers' loops end when the relay is dropped.
public final class CurrentValueRelay<Value: Sendable>: Sendable {
  private let channel: CurrentValueChannel<Value, Never>

  /// Creates a relay whose value is `initial`.
  ///
  /// - Parameters:
  ///   - initial: The value until another is sent.
  ///   - buffering: What a subscriber's buffer does while the subscriber is busy. A subscriber may choose otherwise by
  ///     ``MulticastStream/buffering(_:)``.
  public init(_ initial: Value, buffering: BufferingPolicy<Never> = .latest) {
    channel = CurrentValueChannel(initial, buffering: buffering)
  }

  /// The current value: the last one sent.
  public var value: Value { channel.value }

  /// Makes `value` the current one and sends it to every subscriber, without waiting for any of them.
  ///
  /// Takes constant time, amortised, and time for each subscriber that waits and for each whose policy keeps the start
  /// of its backlog. Where subscribers lag and the slowest is not an unbounded one, every 16th send also looks at each
  /// subscriber's place.
  public func send(_ value: Value) {
    channel.send(value)
  }

  /// Reads, changes and publishes the value as one atomic step.
  ///
  /// Where another value is sent meanwhile, the step is tried again on that one: `body` may run more than once, so let
  /// it do nothing but compute. It never runs under a lock and may read the relay. If it sends to the relay, it runs again
  /// on what it sent, and would do so for ever if it sends each time.
  ///
  /// - Returns: What the `body` returned whose change was published.
  /// - Throws: What `body` throws; then nothing is published.
  public func update<Result, E: Error>(_ body: (inout Value) throws(E) -> Result) throws(E) -> Result {
    try channel.update(body)
  }

  /// The receiving side, with the relay's buffering.
  public var stream: MulticastStream<Value, Never> { channel.stream }

  /// How many subscribers are registered: subscribed, and not cancelled or dropped.
  public var subscriberCount: Int { channel.subscriberCount }
}

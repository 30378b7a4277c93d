/// A ``MulticastChannel`` without an end: it has no `finish`, and no failure.
///
/// What Rx calls a `PublishRelay` (`replay: 0`) or `ReplayRelay`. Its subscribers' loops end when the relay is dropped.
public final class MulticastRelay<Element: Sendable>: Sendable {
  private let channel: MulticastChannel<Element, Never>

  /// Creates a relay.
  ///
  /// - Parameters:
  ///   - replay: How many of the newest elements a new subscriber gets first. At least 0, or the program stops with a
  ///     message.
  ///   - buffering: What a subscriber's buffer does while the subscriber is busy. There is no default: to drop or to
  ///     grow is a choice. A subscriber may choose otherwise by ``MulticastStream/buffering(_:)``.
  public init(replay: Int = 0, buffering: BufferingPolicy<Never>) {
    channel = MulticastChannel(replay: replay, buffering: buffering)
  }

  /// Sends an element to every subscriber, without waiting for any of them.
  ///
  /// Takes constant time, amortised, and time for each subscriber that waits and for each whose policy keeps the start
  /// of its backlog. Where subscribers lag and the slowest is not an unbounded one, every 16th send also looks at each
  /// subscriber's place.
  public func send(_ element: Element) {
    channel.send(element)
  }

  /// The receiving side, with the relay's buffering.
  public var stream: MulticastStream<Element, Never> { channel.stream }

  /// The newest element that a new subscriber would get; nil when nothing is replayed.
  public var latest: Element? { channel.latest }

  /// How many subscribers are registered: subscribed, and not cancelled or dropped.
  public var subscriberCount: Int { channel.subscriberCount }

  /// Empties the replay, for example when a user logs out.
  ///
  /// What subscribers already have waiting stays theirs.
  public func resetReplay() {
    channel.resetReplay()
  }
}

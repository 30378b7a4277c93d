/// A ``MulticastChannel`` that nobody can end: it has no `finish`, and no failure.
///
/// What Rx calls a `PublishRelay` (`replay: 0`) or `ReplayRelay`. Its readers' loops end when the relay is dropped.
public final class MulticastRelay<Element: Sendable>: Sendable {
  private let channel: MulticastChannel<Element, Never>

  /// Creates a relay.
  ///
  /// - Parameters:
  ///   - replay: How many of the newest elements a new reader gets first. At least 0, or the program stops with a
  ///     message.
  ///   - buffering: What a reader's buffer does while the reader is busy. There is no default: to drop or to grow is a
  ///     choice. A reader may choose otherwise by ``MulticastStream/buffering(_:)``.
  public init(replay: Int = 0, buffering: BufferingPolicy<Never>) {
    channel = MulticastChannel(replay: replay, buffering: buffering)
  }

  /// Sends an element to every reader, without waiting for any of them.
  ///
  /// Takes constant time, amortised, and time for each reader that waits and for each whose policy keeps the start of its
  /// backlog. Where readers lag and the slowest is not an unbounded one, every 16th send also looks at each reader's place.
  public func send(_ element: Element) {
    channel.send(element)
  }

  /// The reader side, with the relay's buffering.
  public var stream: MulticastStream<Element, Never> { channel.stream }

  /// The newest element that a new reader would get; nil when nothing is replayed.
  public var latest: Element? { channel.latest }

  /// How many readers are registered: subscribed, and not cancelled or dropped.
  public var subscriberCount: Int { channel.subscriberCount }

  /// Empties the replay, for example when a user logs out.
  ///
  /// What readers already have waiting stays theirs.
  public func resetReplay() {
    channel.resetReplay()
  }
}

/// Broadcasts elements to any number of `for await` subscribers, with replay.
///
/// The sending side. Hand out ``stream``, which can't send, to code that only receives.
///
/// ```swift
/// let events = MulticastChannel<String, Never>(buffering: .unbounded)
/// let reader = Task { for await event in events.stream { print(event) } }
/// events.send("opened")
/// ```
///
/// With `replay: 0` it is what Rx calls a `PublishSubject`: a subscriber sees what is sent after it subscribed. With
/// `replay: n` it is a `ReplaySubject`: a subscriber first gets the newest `n` elements. For state that always has a
/// value use ``CurrentValueChannel``; where nothing may ever end the broadcast use ``MulticastRelay``.
///
/// - **Ordering**: Any number of tasks may send; all subscribers, the replay and ``latest`` see one order.
/// - **Isolation**: Every method is synchronous, never waits for a subscriber, and may be called from any isolation, so
///   an actor changes its state and publishes it in one step.
/// - **After the end**: The first of ``finish()`` and ``finish(throwing:)`` counts. Subscribers read what they had,
///   then the end. Late subscribers get the replay, then the end.
/// - **Dropping** the channel finishes it.
public final class MulticastChannel<Element: Sendable, Failure: Error>: Sendable {
  private let core: ChannelCore<Element, Failure>
  private let buffering: BufferingPolicy<Failure>
  private let live = MulticastDiagnostics.LiveChannel()

  /// Creates a channel.
  ///
  /// - Parameters:
  ///   - replay: How many of the newest elements a new subscriber gets first. At least 0, or the program stops with a
  ///     message.
  ///   - buffering: What a subscriber's buffer does while the subscriber is busy. There is no default: to drop, to fail
  ///     or to grow is a choice. A subscriber may choose otherwise by ``MulticastStream/buffering(_:)``.
  public init(replay: Int = 0, buffering: BufferingPolicy<Failure>) {
    core = ChannelCore(replay: replay)
    self.buffering = buffering
  }

  deinit {
    core.finish()
  }

  /// Sends an element to every subscriber, without waiting for any of them.
  ///
  /// After the end it changes nothing.
  ///
  /// Takes constant time, amortised, and time for each subscriber that waits and for each whose policy keeps the start
  /// of its backlog. Where subscribers lag and the slowest is not an unbounded one, every 16th send also looks at each
  /// subscriber's place.
  ///
  /// - Returns: Whether the channel took the element.
  @discardableResult
  public func send(_ element: Element) -> SendResult {
    core.send(element)
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
  public var stream: MulticastStream<Element, Failure> {
    MulticastStream(core: core, policy: buffering)
  }

  /// The newest element that a new subscriber would get; nil when nothing is replayed.
  public var latest: Element? { core.latest }

  /// How many subscribers are registered: subscribed, and not cancelled, dropped, overflowed or ended.
  public var subscriberCount: Int { core.subscriberCount }

  /// Empties the replay, for example when a user logs out.
  ///
  /// What subscribers already have waiting stays theirs.
  public func resetReplay() {
    core.resetReplay()
  }
}

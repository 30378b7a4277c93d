/// A channel that broadcasts elements to any number of `for await` subscribers, with replay.
///
/// The channel is the sending side. Code that only receives gets the channel's ``stream``, which can't send.
///
/// ```swift
/// let events = MulticastChannel<String, Never>(buffering: .unbounded)
/// let subscription = events.stream.subscribe()
/// let task = Task { for await event in subscription { print(event) } }
/// events.send("opened")
/// ```
///
/// With `replay: 0` the channel is Rx's `PublishSubject`: a subscriber receives the elements sent after it subscribed.
/// With `replay: n` it is Rx's `ReplaySubject`: a subscriber first receives the newest `n` elements. For state that
/// always has a value, use ``CurrentValueChannel``. For a channel that can neither finish nor fail, use
/// ``MulticastRelay``.
///
/// - **Ordering**: Any number of tasks may send. All subscribers, the replay and ``latest`` observe the same order.
/// - **Isolation**: Every method is synchronous, never waits for a subscriber, and may be called from any isolation, so
///   an actor can change its state and publish it in one step.
/// - **Termination**: Only the first call of ``finish()`` or ``finish(throwing:)`` takes effect. Subscribers read their
///   backlog, then the completion or the error. Subscribers that register after that call receive the replay, then the
///   completion or the error.
/// - **Lifetime**: Releasing the last reference to the channel finishes it.
public final class MulticastChannel<Element: Sendable, Failure: Error>: Sendable {
  private let core: ChannelCore<Element, Failure>
  private let buffering: BufferingPolicy<Failure>
  /// The token that counts this channel as live, or `nil` for a channel that lasts as long as the process.
  private let live: MulticastDiagnostics.LiveChannel?

  /// Creates a channel.
  ///
  /// - Parameters:
  ///   - replay: The number of newest elements that a new subscriber receives first, which must be at least 0.
  ///   - buffering: The policy of each subscriber's buffer. It has no default, because the use of the elements decides
  ///     whether a full buffer should drop them, fail its subscriber, or grow. A subscriber can choose another policy
  ///     with ``MulticastStream/buffering(_:)``.
  public convenience init(replay: Int = 0, buffering: BufferingPolicy<Failure>) {
    self.init(replay: replay, buffering: buffering, isCounted: true)
  }

  /// Creates a channel.
  ///
  /// - Parameter isCounted: Whether ``MulticastDiagnostics/liveChannels`` counts the channel.
  init(replay: Int, buffering: BufferingPolicy<Failure>, isCounted: Bool) {
    core = ChannelCore(replay: replay)
    live = isCounted ? MulticastDiagnostics.LiveChannel() : nil
    self.buffering = buffering
  }

  deinit {
    core.finish()
  }

  /// Sends an element to every subscriber, without waiting for any of them.
  ///
  /// Does nothing if the channel has terminated.
  ///
  /// Don't hold a lock of your own during the call if an `onCancel` handler takes the same lock: the runtime runs the
  /// handler while the cancelled task can't be resumed, so the two may wait for each other. Send after the lock
  /// instead; see C13 in <doc:Guarantees>.
  ///
  /// - Complexity: O(1) amortized, plus O(*s*), where *s* is the number of subscribers that are suspended in `next()`
  ///   or whose policy keeps the oldest elements. Every 16th call also checks in O(*n*) which elements the *n* other
  ///   subscribers still need, unless the slowest of these is unbounded and hasn't read since the last check.
  ///
  /// - Returns: Whether the channel accepted the element.
  @discardableResult
  public func send(_ element: Element) -> SendResult {
    core.send(element)
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
  public var stream: MulticastStream<Element, Failure> {
    MulticastStream(core: core, policy: buffering)
  }

  /// The newest element of the replay, or `nil` if the replay is empty.
  public var latest: Element? { core.latest }

  /// The number of registered subscribers: those that are neither cancelled, released nor failed by an overflow; 0
  /// after termination.
  public var subscriberCount: Int { core.subscriberCount }

  /// Empties the replay, for example when a user signs out.
  ///
  /// Elements that are already buffered for a subscriber are still delivered to it.
  public func resetReplay() {
    core.resetReplay()
  }
}

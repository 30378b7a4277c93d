/// A ``MulticastChannel`` that can neither finish nor fail.
///
/// A multicast relay is Rx's `PublishRelay` (with `replay: 0`) or `ReplayRelay`. Its subscribers' loops end when the
/// relay is released.
public final class MulticastRelay<Element: Sendable>: Sendable {
  private let channel: MulticastChannel<Element, Never>

  /// Creates a relay.
  ///
  /// - Parameters:
  ///   - replay: The number of newest elements that a new subscriber receives first, which must be at least 0.
  ///   - buffering: The policy of each subscriber's buffer. It has no default, because the use of the elements decides
  ///     whether a full buffer should drop them or grow. A subscriber can choose another policy with
  ///     ``MulticastStream/buffering(_:)``.
  public init(replay: Int = 0, buffering: BufferingPolicy<Never>) {
    channel = MulticastChannel(replay: replay, buffering: buffering)
  }

  private init(_ channel: MulticastChannel<Element, Never>) {
    self.channel = channel
  }

  /// Creates a relay that is never released, and that ``MulticastDiagnostics/liveChannels`` therefore doesn't count.
  ///
  /// If it were counted, the count would stay one higher after the first use of such a relay, which looks like a leak.
  package static func ofProcess(buffering: BufferingPolicy<Never>) -> MulticastRelay {
    MulticastRelay(MulticastChannel(replay: 0, buffering: buffering, isCounted: false))
  }

  /// Sends an element to every subscriber, without waiting for any of them.
  ///
  /// Don't hold a lock of your own during the call if an `onCancel` handler takes the same lock: the runtime runs the
  /// handler while the cancelled task can't be resumed, so the two may wait for each other. Send after the lock
  /// instead; see C13 in <doc:Guarantees>.
  ///
  /// - Complexity: O(1) amortized, plus O(*s*), where *s* is the number of subscribers that are suspended in `next()`
  ///   or whose policy keeps the oldest elements. Every 16th call also checks in O(*n*) which elements the *n* other
  ///   subscribers still need, unless the slowest of these is unbounded and hasn't read since the last check.
  public func send(_ element: Element) {
    channel.send(element)
  }

  /// The receiving side, with the relay's buffering policy.
  public var stream: MulticastStream<Element, Never> { channel.stream }

  /// The newest element of the replay, or `nil` if the replay is empty.
  public var latest: Element? { channel.latest }

  /// The number of registered subscribers: those that are neither cancelled, released nor failed by an overflow.
  public var subscriberCount: Int { channel.subscriberCount }

  /// Empties the replay, for example when a user signs out.
  ///
  /// Elements that are already buffered for a subscriber are still delivered to it.
  public func resetReplay() {
    channel.resetReplay()
  }
}

/// The sending side of a channel that lives as long as its streams and subscriptions do.
///
/// For an owner of very many channels, such as a store with one for each key: a channel that no stream, subscription or
/// iterator refers to is released, although its owner remains. A stream that is kept and iterated later still works,
/// because the stream keeps the channel. The owner calls ``finish()`` before it goes.
package struct UnownedChannel<Element: Sendable> {
  private weak var core: ChannelCore<Element, Never>?

  /// Creates a channel with its first stream, which keeps the channel alive.
  ///
  /// - Parameters:
  ///   - replay: How many of the newest elements a new subscriber gets first.
  ///   - onRelease: Called when nothing refers to the channel any more, on the thread that released it, which may hold
  ///     any lock. So it should only start a task.
  package static func makeStream(
    replay: Int, onRelease: (@Sendable () -> Void)? = nil
  ) -> (channel: UnownedChannel, stream: MulticastStream<Element, Never>) {
    let core = ChannelCore<Element, Never>(replay: replay, isCounted: true, onRelease: onRelease)
    return (UnownedChannel(core: core), MulticastStream(core: core, policy: .unbounded))
  }

  private init(core: ChannelCore<Element, Never>) {
    self.core = core
  }

  /// Whether a stream, subscription or iterator refers to the channel.
  package var isReferenced: Bool { core != nil }

  /// How many subscriptions and iterators read the channel.
  package var subscriberCount: Int { core?.subscriberCount ?? 0 }

  /// Another stream of the channel; `nil` once the channel is released.
  package var stream: MulticastStream<Element, Never>? {
    core.map { MulticastStream(core: $0, policy: .unbounded) }
  }

  /// Sends an element to every subscriber.
  package func send(_ element: Element) {
    core?.send(element)
  }

  /// Empties the replay.
  package func resetReplay() {
    core?.resetReplay()
  }

  /// Ends the channel: every subscriber reads what it has, then the end.
  package func finish() {
    core?.finish()
  }
}

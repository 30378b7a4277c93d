/// The sending side of a channel that lives as long as its streams and subscriptions do.
///
/// It serves an owner of very many channels, such as a store with one channel for each key: a channel is released as
/// soon as no stream, subscription or iterator refers to it, even though its owner remains. Unlike a stream of a
/// ``MulticastChannel``, a stream of this channel keeps it alive, so a stored stream doesn't finish before the owner
/// finishes the channel. The owner must call ``finish()`` in its `deinit` at the latest, because releasing this value
/// doesn't finish the channel.
package struct UnownedChannel<Element: Sendable> {
  private weak var core: ChannelCore<Element, Never>?

  /// Creates a channel and its first stream, which keeps the channel alive.
  ///
  /// - Parameters:
  ///   - replay: The number of newest elements that a new subscriber receives first.
  ///   - onRelease: A closure that runs when the last reference to the channel is released. It should do no more than
  ///     start a task, because it runs on the releasing thread, which may hold any lock.
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

  /// The number of registered subscribers, or 0 once the channel has been released.
  package var subscriberCount: Int { core?.subscriberCount ?? 0 }

  /// Another stream of the channel, or `nil` once the channel has been released.
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

  /// Finishes the channel: every subscriber reads its backlog, then `nil`.
  package func finish() {
    core?.finish()
  }
}

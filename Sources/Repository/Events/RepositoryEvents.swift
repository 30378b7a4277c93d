public import Multicast

/// The channel on which the parts of a repository report events.
///
/// All parts of a repository share one channel. Reporting an event never waits for a subscriber. A subscriber that
/// falls behind by more than the capacity loses the oldest events, and its subscription counts the lost ones.
public final class RepositoryEvents: Sendable {
  private let relay: MulticastRelay<RepositoryEvent>

  /// Creates a channel.
  ///
  /// - Parameters:
  ///   - replay: The number of the newest events that a new subscriber receives first; at least 0.
  ///   - capacity: The maximum number of buffered events of a slow subscriber; at least 1.
  public init(replay: Int = 64, capacity: Int = 1024) {
    relay = MulticastRelay(replay: replay, buffering: .dropOldest(capacity))
  }

  /// The newest events, then every later one in the order in which they were reported.
  ///
  /// The stream finishes when this object is released.
  public var stream: MulticastStream<RepositoryEvent, Never> { relay.stream }

  /// Discards the replayed events, so that new subscribers receive only later ones.
  func forget() {
    relay.resetReplay()
  }

  /// Reports an event to every subscriber.
  ///
  /// - Complexity: That of `MulticastRelay.send(_:)`.
  public func emit(_ event: RepositoryEvent) {
    relay.send(event)
  }
}

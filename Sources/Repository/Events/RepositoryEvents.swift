public import Multicast

/// The channel on which the parts of a repository report what happens.
///
/// Share one among all parts of a repository. Reporting takes constant time and never waits for a subscriber.
/// A subscriber that lags more than the capacity loses the oldest events, which its subscription counts.
public final class RepositoryEvents: Sendable {
  private let relay: MulticastRelay<RepositoryEvent>

  /// Creates a channel.
  ///
  /// - Parameters:
  ///   - replay: How many of the newest events a new subscriber gets first; at least 0.
  ///   - capacity: How many events wait for a subscriber that is busy; at least 1.
  public init(replay: Int = 64, capacity: Int = 1024) {
    relay = MulticastRelay(replay: replay, buffering: .dropOldest(capacity))
  }

  /// The newest events, then every later one in the order they were reported.
  ///
  /// Finishes when this object is released.
  public var stream: MulticastStream<RepositoryEvent, Never> { relay.stream }

  /// Forgets the newest events, so that a new subscriber gets later ones only.
  func forget() {
    relay.resetReplay()
  }

  /// Reports an event to every subscriber.
  public func emit(_ event: RepositoryEvent) {
    relay.send(event)
  }
}

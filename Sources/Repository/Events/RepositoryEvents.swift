public import Multicast

/// Where the parts of a repository tell what happens, and an app listens.
///
/// Hand one to all parts of a repository. Telling takes constant time and never waits for a listener: one that lags
/// more than the capacity loses the oldest events, which its subscription counts.
public final class RepositoryEvents: Sendable {
  private let relay: MulticastRelay<RepositoryEvent>

  /// Creates a place for events.
  ///
  /// - Parameters:
  ///   - replay: How many of the newest events a new listener gets first; at least 0.
  ///   - capacity: How many events wait for a listener that is busy; at least 1.
  public init(replay: Int = 64, capacity: Int = 1024) {
    relay = MulticastRelay(replay: replay, buffering: .dropOldest(capacity))
  }

  /// The newest events, then every later one in the order they were told.
  ///
  /// Finishes when this object is released.
  public var stream: MulticastStream<RepositoryEvent, Never> { relay.stream }

  /// Tells an event to every listener.
  public func emit(_ event: RepositoryEvent) {
    relay.send(event)
  }
}

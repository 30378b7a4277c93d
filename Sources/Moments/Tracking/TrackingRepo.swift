internal import Multicast

/// Takes events to all registered providers.
///
/// - **Ordering**: Every provider gets every event once, in the order of the calls, which is the same for all. Where
///   two threads track at the same time, one of them delivers for both: the other call may return before its event is
///   there. So it is with an event that a provider tracks itself: it comes after the one being delivered.
/// - **Registration**: A provider gets the events that are tracked after it was registered, and none of before, however
///   late those are delivered.
/// - **Lifetime**: Providers are kept until the repository is released.
public final class TrackingRepo: TrackingRepoType {
  private struct Delivery: Sendable {
    let event: TrackingEvent
    let providers: [any TrackingProvider]
  }

  private struct State: Sendable {
    var providers: [any TrackingProvider] = []
    var waiting: [Delivery] = []
    var isDelivering = false

    /// Whether the caller must deliver, because no other one does.
    mutating func add(_ event: TrackingEvent) -> Bool {
      if providers.isEmpty { return false }
      waiting.append(Delivery(event: event, providers: providers))
      defer { isDelivering = true }
      return !isDelivering
    }

    /// What waits; `nil` if no caller delivers, so that the next one does.
    mutating func takeWaiting() -> [Delivery]? {
      if waiting.isEmpty {
        isDelivering = false
        return nil
      }
      defer { waiting = [] }
      return waiting
    }
  }

  private let state = Lock(State())

  /// Creates a repository without providers: events go nowhere.
  public init() {}

  /// Adds a provider, which gets every event that is tracked from now on.
  ///
  /// One that is registered already is not added again.
  public func register(_ provider: any TrackingProvider) {
    state.withLock { state in
      if !state.providers.contains(where: { $0 === provider }) { state.providers.append(provider) }
    }
  }

  /// Takes an event to every provider that is registered now, once.
  public func track(_ event: TrackingEvent) {
    guard state.withLock({ $0.add(event) }) else { return }
    // Outside the lock: a provider may track, or register another.
    while let deliveries = state.withLock({ $0.takeWaiting() }) {
      for delivery in deliveries {
        for provider in delivery.providers { provider.track(delivery.event) }
      }
    }
  }
}

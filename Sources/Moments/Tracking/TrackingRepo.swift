internal import Multicast

/// A tracking repository that delivers events to all registered providers.
///
/// - **Ordering**: Every provider receives every event once, in the order of the calls, which is the same for all
///   providers. If two threads track at the same time, one call may deliver both events, and the other may return
///   before its event is delivered. If a provider tracks an event while it receives another one, the new event is
///   delivered after all providers have received the other one.
/// - **Registration**: A provider receives only events that are tracked after its registration, even if earlier events
///   are delivered later.
/// - **Lifetime**: The repository keeps its providers until it is released.
public final class TrackingRepo: TrackingRepoType {
  private struct Delivery: Sendable {
    let event: TrackingEvent
    let providers: [any TrackingProvider]
  }

  private struct State: Sendable {
    var providers: [any TrackingProvider] = []
    var pending: [Delivery] = []
    var isDelivering = false

    /// Adds an event if there are providers, and returns whether the caller must deliver.
    ///
    /// The caller must deliver if the event was added and no other call is delivering.
    mutating func add(_ event: TrackingEvent) -> Bool {
      if providers.isEmpty { return false }
      pending.append(Delivery(event: event, providers: providers))
      defer { isDelivering = true }
      return !isDelivering
    }

    /// Removes and returns the pending deliveries; `nil` if there are none.
    ///
    /// After `nil`, no call is delivering, so the call that adds the next event must deliver it.
    mutating func takePending() -> [Delivery]? {
      if pending.isEmpty {
        isDelivering = false
        return nil
      }
      defer { pending = [] }
      return pending
    }
  }

  private let state = Lock(State())

  /// Creates a repository without providers, which discards all events.
  public init() {}

  /// Adds a provider, which receives every event that is tracked from now on.
  public func register(_ provider: any TrackingProvider) {
    state.withLock { state in
      if !state.providers.contains(where: { $0 === provider }) { state.providers.append(provider) }
    }
  }

  /// Sends an event to every registered provider once.
  public func track(_ event: TrackingEvent) {
    let mustDeliver = state.withLock { $0.add(event) }
    guard mustDeliver else { return }
    // Outside the lock, because a provider may track an event or register another provider.
    while let deliveries = state.withLock({ $0.takePending() }) {
      for delivery in deliveries {
        for provider in delivery.providers { provider.track(delivery.event) }
      }
    }
  }
}

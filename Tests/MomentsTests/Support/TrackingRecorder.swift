import Moments
import Multicast

/// A provider that records its events.
final class TrackingRecorder: TrackingProvider {
  private let recorded = Lock<[TrackingEvent]>([])
  private let onEvent: @Sendable (TrackingEvent) -> Void

  init(onEvent: @escaping @Sendable (TrackingEvent) -> Void = { _ in }) {
    self.onEvent = onEvent
  }

  /// All events, in order.
  var events: [TrackingEvent] { recorded.withLock { $0 } }

  func track(_ event: TrackingEvent) {
    recorded.withLock { $0.append(event) }
    onEvent(event)
  }
}

/// Receives tracked events for an analytics service.
///
/// Only classes can conform, because a provider is identified by its instance: an instance that is registered twice
/// receives each event once.
public protocol TrackingProvider: AnyObject, Sendable {
  /// Receives an event.
  ///
  /// A ``TrackingRepo`` calls this method for one event at a time, in the order in which the events were tracked. The
  /// method runs in the isolation of a caller of ``TrackingRepoType/track(_:)``, so do long work in a separate task.
  func track(_ event: TrackingEvent)
}

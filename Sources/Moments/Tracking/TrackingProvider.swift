/// An adapter of an analytics service, which receives tracked events.
///
/// Only classes can conform, because a provider is identified by its instance: registered twice, it receives each event
/// once.
public protocol TrackingProvider: AnyObject, Sendable {
  /// Receives an event.
  ///
  /// A repository calls this method for one event at a time, in the order in which the events were tracked, in the
  /// isolation of a caller that tracks. Do long work in a task of the provider.
  func track(_ event: TrackingEvent)
}

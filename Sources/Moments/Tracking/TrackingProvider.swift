/// Takes events to where they are counted: an adapter of an analytics service.
///
/// Bound to classes, because a provider is one thing wherever it is named: registered twice, it still counts once.
public protocol TrackingProvider: AnyObject, Sendable {
  /// Takes an event.
  ///
  /// A repository calls it for one event at a time, in the order in which they were tracked, from the isolation of the
  /// caller that tracks. What takes long belongs in a task of the provider's own.
  func track(_ event: TrackingEvent)
}

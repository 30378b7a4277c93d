/// Where features report what happens, without knowing what counts it.
///
/// The functions are synchronous and may be called from any isolation.
public protocol TrackingRepoType: Sendable {
  /// Adds a provider, which gets every event that is tracked from now on.
  ///
  /// One that is registered already is not added again.
  func register(_ provider: any TrackingProvider)

  /// Takes an event to every provider that is registered now, once.
  func track(_ event: TrackingEvent)
}

extension TrackingRepoType {
  /// Tracks that a screen is shown.
  ///
  /// The event's screen class is the name of the type alone: without its module or the type it is nested in, with its
  /// generic arguments, and whatever `description` the instance has.
  ///
  /// - Parameters:
  ///   - name: The name of the screen.
  ///   - screen: The object behind the screen, or its type.
  public func trackScreenviews(name: String, of screen: Any) {
    let type = screen as? any Any.Type ?? type(of: screen)
    track(.screenview(name: name, screenClass: String(describing: type)))
  }

  /// Tracks that a person acted on something.
  ///
  /// - Parameters:
  ///   - name: What was done.
  ///   - itemID: To which item.
  public func trackAction(name: String, itemID: String) {
    track(.action(name: name, itemID: itemID))
  }

  /// Tracks anything else.
  ///
  /// - Parameters:
  ///   - name: What happened.
  ///   - parameters: What is to be known about it.
  public func trackEvent(name: String, parameters: [String: String] = [:]) {
    track(.event(name: name, parameters: parameters))
  }
}

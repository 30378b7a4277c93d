/// Receives the tracking events of features, and passes them on to analytics providers.
///
/// All methods are synchronous and may be called from any isolation.
public protocol TrackingRepoType: Sendable {
  /// Adds a provider, which receives every event that is tracked from now on.
  ///
  /// Registering a provider again has no effect.
  func register(_ provider: any TrackingProvider)

  /// Sends an event to every registered provider once.
  func track(_ event: TrackingEvent)
}

extension TrackingRepoType {
  /// Tracks that a screen is shown.
  ///
  /// The event's screen class is the plain name of the screen's type, including its generic arguments, but without its
  /// module or an enclosing type. The `description` of the screen's object has no influence on the screen class.
  ///
  /// - Parameters:
  ///   - name: The name of the screen.
  ///   - screen: The object that represents the screen, or its type.
  public func trackScreenviews(name: String, of screen: Any) {
    let type = screen as? any Any.Type ?? type(of: screen)
    track(.screenview(name: name, screenClass: String(describing: type)))
  }

  /// Tracks that the user acted on an item.
  ///
  /// - Parameters:
  ///   - name: The name of the action.
  ///   - itemID: The id of the item.
  public func trackAction(name: String, itemID: String) {
    track(.action(name: name, itemID: itemID))
  }

  /// Tracks any other event.
  ///
  /// - Parameters:
  ///   - name: The name of the event.
  ///   - parameters: The details of the event.
  public func trackEvent(name: String, parameters: [String: String] = [:]) {
    track(.event(name: name, parameters: parameters))
  }
}

/// An event for analytics: a screen view, an action, or another event.
public enum TrackingEvent: Hashable, Sendable {
  /// A screen was shown, with its name and the name of its type.
  case screenview(name: String, screenClass: String)
  /// The user acted on an item, with the name of the action and the id of the item.
  case action(name: String, itemID: String)
  /// Any other event, with its parameters.
  case event(name: String, parameters: [String: String])

  /// The action `moment-like`: a user likes a moment.
  public static func momentLike(momentID: String, userID: String) -> Self {
    .action(name: "moment-like", itemID: itemID(momentID: momentID, userID: userID))
  }

  /// The action `moment-unlike`: a user removes the like of a moment.
  public static func momentUnlike(momentID: String, userID: String) -> Self {
    .action(name: "moment-unlike", itemID: itemID(momentID: momentID, userID: userID))
  }

  private static func itemID(momentID: String, userID: String) -> String {
    "moment-id-\(momentID)-user-id-\(userID)"
  }
}

/// Something a person did or saw that an app wants to count.
public enum TrackingEvent: Hashable, Sendable {
  /// A screen was shown: its name, and the name of the type behind it.
  case screenview(name: String, screenClass: String)
  /// A person acted on something: what was done, and to which item.
  case action(name: String, itemID: String)
  /// Anything else, with what is to be known about it.
  case event(name: String, parameters: [String: String])

  /// A user taps the like of a moment: the action `moment-like`.
  public static func momentLike(momentID: String, userID: String) -> Self {
    .action(name: "moment-like", itemID: itemID(momentID: momentID, userID: userID))
  }

  /// A user takes the like of a moment back: the action `moment-unlike`.
  public static func momentUnlike(momentID: String, userID: String) -> Self {
    .action(name: "moment-unlike", itemID: itemID(momentID: momentID, userID: userID))
  }

  private static func itemID(momentID: String, userID: String) -> String {
    "moment-id-\(momentID)-user-id-\(userID)"
  }
}

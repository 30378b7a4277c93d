public import Foundation

/// The profile at the head of a timeline, ready to show.
public struct UserProfileListItemViewModel: Sendable, Hashable {
  /// The user's name.
  public let name: String
  /// The user's picture; nil when the server's text is no URL.
  public let avatarURL: URL?
  /// The picture behind the profile; nil when the server's text is no URL.
  public let backgroundImageURL: URL?

  /// Creates the row of a user.
  public init(userDetails: MomentsDetails.UserDetails) {
    name = userDetails.name
    avatarURL = URL(validating: userDetails.avatar)
    backgroundImageURL = URL(validating: userDetails.backgroundImage)
  }
}

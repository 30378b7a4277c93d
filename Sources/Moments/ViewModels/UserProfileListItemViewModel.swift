public import Foundation

/// The profile row at the top of a timeline.
public struct UserProfileListItemViewModel: Sendable, Hashable {
  /// The user's name.
  public let name: String
  /// The URL of the user's avatar; `nil` if the server's text isn't a URL.
  public let avatarURL: URL?
  /// The URL of the background picture; `nil` if the server's text isn't a URL.
  public let backgroundImageURL: URL?

  /// Creates the profile row of a user.
  public init(userDetails: MomentsDetails.UserDetails) {
    name = userDetails.name
    avatarURL = URL(validating: userDetails.avatar)
    backgroundImageURL = URL(validating: userDetails.backgroundImage)
  }
}

/// A user's public data.
public struct Profile: Codable, Equatable, Sendable {
  /// The name.
  public var name: String

  /// Creates a profile.
  public init(name: String) {
    self.name = name
  }
}

/// The error of a failed request for a profile.
public enum ProfileError: Error, Hashable, Sendable {
  /// The server couldn't be reached.
  case offline
}

/// Represents the REST client that an app already has.
public protocol ProfileClient: Sendable {
  /// Fetches the profile of a user.
  func profile(of userID: String) async throws(ProfileError) -> Profile
}

/// A user's public data.
public struct Profile: Codable, Equatable, Sendable {
  /// The name.
  public var name: String

  /// Creates a profile.
  public init(name: String) {
    self.name = name
  }
}

/// Why a request for a profile failed.
public enum ProfileError: Error, Hashable, Sendable {
  /// The server could not be reached.
  case offline
}

/// Stands for the REST client that an app has already.
public protocol ProfileClient: Sendable {
  /// Fetches the profile of a user.
  func profile(of userID: String) async throws(ProfileError) -> Profile
}

public import Foundation

/// A user of the account server.
public struct User: Sendable, Hashable {
  /// The server's identifier of the user.
  public let uid: String
  /// The name the user signs in with.
  public let username: String
  /// The time of the user's last sign-in.
  public let date: Date

  /// Creates a user.
  public init(uid: String, username: String, date: Date) {
    self.uid = uid
    self.username = username
    self.date = date
  }
}

/// The data of users on this device, such as the data that a repository stores.
///
/// A ``UserService`` opens the data for a user at a sign-in, erases the user's part at a sign-out, and opens the data
/// again if the sign-out fails.
public protocol UserDataType: Sendable {
  /// Makes the data usable for a user who has signed in.
  func open(uid: String) async

  /// Erases all data of a user, and makes it unusable for the user until ``open(uid:)``.
  ///
  /// - Parameters:
  ///   - uid: The id of the user.
  ///   - discardsUnsent: Whether to discard changes that the server doesn't have. If it is `false` and there are any,
  ///     nothing is erased.
  /// - Throws: A ``UserDataError``.
  func erase(uid: String, discardingUnsent discardsUnsent: Bool) async throws(UserDataError)
}

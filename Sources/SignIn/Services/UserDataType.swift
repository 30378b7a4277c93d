/// What is kept of users on this device, such as in a repository.
///
/// A ``UserService`` opens it for a user who signs in, and has it erase what is the user's at a sign-out.
public protocol UserDataType: Sendable {
  /// Lets a user who has signed in use the data.
  func open(uid: String) async

  /// Erases all that is kept of a user, and lets the user use nothing until ``open(uid:)``.
  ///
  /// - Parameters:
  ///   - uid: The user.
  ///   - discardsUnsent: Whether changes that the server doesn't have are lost. Otherwise nothing is erased as long as
  ///     there are any.
  /// - Throws: ``UserDataError``.
  func erase(uid: String, discardingUnsent discardsUnsent: Bool) async throws(UserDataError)
}

public import Foundation

/// A session with the account server.
///
/// If the calling task is cancelled, the request is cancelled, and the method throws ``SignInSessionError/cancelled``.
public protocol SignInSessionType: Sendable {
  /// Signs a user in.
  ///
  /// - Returns: The user, with the time of the sign-in.
  /// - Throws: A ``SignInSessionError``.
  func signIn(username: String, password: Password) async throws(SignInSessionError) -> User

  /// Signs a user out.
  ///
  /// - Throws: A ``SignInSessionError``. A ``UserService`` then treats the user as still signed in.
  func signOut(uid: String) async throws(SignInSessionError)

  /// Returns the server's current data of a user.
  ///
  /// - Throws: A ``SignInSessionError``.
  func user(uid: String) async throws(SignInSessionError) -> User

  /// Returns the times at which a user signed in, newest first.
  ///
  /// - Parameters:
  ///   - uid: The id of the user.
  ///   - before: The exclusive upper bound of the times; `nil` to begin with the newest.
  ///   - limit: The maximum number of times.
  /// - Throws: A ``SignInSessionError``.
  func signInDates(uid: String, before: Date?, limit: Int) async throws(SignInSessionError) -> [Date]
}

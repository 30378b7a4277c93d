public import Foundation

/// The server that knows the accounts.
///
/// Cancelling the calling task cancels the request and throws ``SignInSessionError/cancelled``.
public protocol SignInSessionType: Sendable {
  /// Signs a user in, and says who it is, and when it happened.
  ///
  /// - Throws: ``SignInSessionError``.
  func signIn(username: String, password: Password) async throws(SignInSessionError) -> User

  /// Signs a user out.
  ///
  /// - Throws: ``SignInSessionError``; then the user is still signed in, as far as is known.
  func signOut(uid: String) async throws(SignInSessionError)

  /// What the server knows of a user now.
  ///
  /// - Throws: ``SignInSessionError``.
  func user(uid: String) async throws(SignInSessionError) -> User

  /// When a user signed in, newest first.
  ///
  /// - Parameters:
  ///   - uid: The user.
  ///   - before: Only what is older than this; nil to begin with the newest.
  ///   - limit: How many at most.
  /// - Throws: ``SignInSessionError``.
  func signInDates(uid: String, before: Date?, limit: Int) async throws(SignInSessionError) -> [Date]
}

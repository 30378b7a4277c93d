/// An error thrown by a ``SignInSessionType``.
public enum SignInSessionError: Error, Sendable, Hashable {
  /// The username and the password don't belong together. The server doesn't say which one is wrong.
  case wrongUsernameOrPassword
  /// The server has no user with this id.
  case unknownUser(uid: String)
  /// The server couldn't be reached, or it didn't answer.
  case unreachable(reason: String)
  /// The calling task was cancelled. Whether the server processed the request is unknown.
  case cancelled
}

extension SignInSessionError: CustomStringConvertible {
  /// A message that says what happened and what to do.
  public var description: String {
    switch self {
    case .wrongUsernameOrPassword: "The username or the password is wrong. Check both, then try again."
    case .unknownUser(let uid): "No user has the id \"\(uid)\". Sign in again."
    case .unreachable(let reason): "The server could not be reached (\(reason)). Check the connection, then try again."
    case .cancelled: "The call was cancelled before it was completed. Call again if the result is still needed."
    }
  }
}

/// Why a server of accounts did not do what it was asked.
public enum SignInSessionError: Error, Sendable, Hashable {
  /// The two do not belong together. The server does not say which of them is wrong.
  case wrongUsernameOrPassword
  /// The server knows no such user.
  case unknownUser(uid: String)
  /// The server gave no answer.
  case unreachable(reason: String)
  /// The calling task was cancelled. The server may have done its part, but nothing says so.
  case cancelled
}

extension SignInSessionError: CustomStringConvertible {
  /// What happened, and what to do about it.
  public var description: String {
    switch self {
    case .wrongUsernameOrPassword: "The username or the password is wrong. Check both, then try again."
    case .unknownUser(let uid): "No user has the id \"\(uid)\". Sign in again."
    case .unreachable(let reason): "The server could not be reached (\(reason)). Check the connection, then try again."
    case .cancelled: "The call was cancelled before it was done. Call again if the result is still wanted."
    }
  }
}

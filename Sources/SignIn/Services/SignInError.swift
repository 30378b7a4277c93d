public import Foundation

/// An error thrown by a ``UserService``.
public enum SignInError: Error, Sendable, Hashable {
  /// The call isn't possible in the given state, or the user who was signed in at the call has signed out since.
  ///
  /// No request was sent, or its reply was discarded because it arrived after a sign-out had begun.
  case refused(SignState)
  /// The server couldn't be reached, or it refused the request.
  case session(SignInSessionError)
  /// The user's data on this device wasn't erased, or only in part, so the user is still signed in.
  ///
  /// The cause is that the server doesn't have some of the user's changes, or that the data couldn't be read or erased.
  case userData(UserDataError)
  /// The calling task was cancelled. Whether the server processed the request is unknown.
  case cancelled

  init(_ error: SignInSessionError) {
    self = error == .cancelled ? .cancelled : .session(error)
  }

  init(_ error: UserDataError) {
    self = error == .cancelled ? .cancelled : .userData(error)
  }
}

extension SignInError: CustomStringConvertible {
  /// A message that says what happened and what to do.
  public var description: String {
    switch self {
    case .refused(.unsigned): "No user is signed in: sign in first."
    case .refused(.signingIn): "A sign-in is in flight: wait until it ends."
    case .refused(.signed(let user)): "\(user.username) is signed in. Sign out before another user signs in."
    case .refused(.signingOut): "A sign-out is in flight: wait until it ends."
    case .session(let error): error.description
    case .userData(let error): error.description
    case .cancelled: SignInSessionError.cancelled.description
    }
  }
}

extension SignInError: LocalizedError {
  /// The same text as ``description``, for interfaces that show `localizedDescription`.
  public var errorDescription: String? { description }
}

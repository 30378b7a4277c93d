public import Foundation

/// Why a ``UserService`` could not do what it was asked.
public enum SignInError: Error, Sendable, Hashable {
  /// What was asked does not fit the state. Nothing was sent to the server, or its answer came too late to count.
  case refused(SignState)
  /// The server could not be reached, or refused.
  case session(SignInSessionError)
  /// What is kept of the user could not be erased, so the user is still signed in.
  case userData(UserDataError)
  /// The calling task was cancelled. The server may have done its part, but nothing says so.
  case cancelled

  init(_ error: SignInSessionError) {
    self = error == .cancelled ? .cancelled : .session(error)
  }

  init(_ error: UserDataError) {
    self = error == .cancelled ? .cancelled : .userData(error)
  }
}

extension SignInError: CustomStringConvertible {
  /// What happened, and what to do about it.
  public var description: String {
    switch self {
    case .refused(.unsigned): "No user is signed in: sign in first."
    case .refused(.signingIn): "A sign-in is in flight: wait until it ends."
    case .refused(.signed(let user)): "\(user.username) is signed in: sign out first."
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

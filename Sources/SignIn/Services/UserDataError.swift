/// Why what is kept of a user could not be erased.
public enum UserDataError: Error, Sendable, Hashable {
  /// The server doesn't have so many of the user's changes. Nothing was erased.
  case unsent(Int)
  /// The device could not read or erase the data. The reason says what to do.
  case notErased(reason: String)
  /// The calling task was cancelled. Nothing was erased.
  case cancelled
}

extension UserDataError: CustomStringConvertible {
  /// What happened, and what to do about it.
  public var description: String {
    switch self {
    case .unsent(1): "The server doesn't have 1 of your changes. Let it be sent, or sign out without it."
    case .unsent(let count):
      "The server doesn't have \(count) of your changes. Let them be sent, or sign out without them."
    case .notErased(let reason): "What is kept of you could not be erased: \(reason)"
    case .cancelled: SignInSessionError.cancelled.description
    }
  }
}

/// An error thrown by ``UserDataType/erase(uid:discardingUnsent:)``.
public enum UserDataError: Error, Sendable, Hashable {
  /// The server doesn't have some of the user's changes; their number is given. Nothing was erased.
  case unsent(Int)
  /// The data couldn't be read or erased. The reason says what to do.
  case notErased(reason: String)
  /// The calling task was cancelled. Nothing was erased.
  case cancelled
}

extension UserDataError: CustomStringConvertible {
  /// A message that says what happened and what to do.
  public var description: String {
    switch self {
    case .unsent(1): "The server doesn't have 1 of your changes. Let it be sent, or sign out without it."
    case .unsent(let count):
      "The server doesn't have \(count) of your changes. Let them be sent, or sign out without them."
    case .notErased(let reason): "Your data on this device could not be erased: \(reason)"
    case .cancelled: SignInSessionError.cancelled.description
    }
  }
}

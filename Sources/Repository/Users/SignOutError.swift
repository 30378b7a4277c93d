public import DataStore

/// Why a user could not be signed out.
public enum SignOutError: Error, Hashable, Sendable {
  /// The server doesn't have some of the user's mutations. The user is still signed in.
  case unsent(Int)

  /// The device could not read or erase the data.
  ///
  /// The user may be signed out although something is still there. It is erased as soon as the store works, also by the
  /// next launch.
  case store(StoreError)

  /// The calling task was cancelled before the user was signed out.
  case cancelled
}

extension SignOutError: CustomStringConvertible {
  /// What happened, and what to do about it.
  public var description: String {
    switch self {
    case .unsent(let count):
      "The server doesn't have \(count) of the user's changes. Let them be sent, or sign out without them."
    case .store(let error): error.description
    case .cancelled: "The call was cancelled before the user was signed out. Call again if it is still wanted."
    }
  }
}

public import DataStore

/// The reason why a sign-out failed.
public enum SignOutError: Error, Hashable, Sendable {
  /// The user has this number of unsent mutations, and is therefore still signed in; see ``UnsentPolicy``.
  case unsent(Int)

  /// The store could not be read, written or erased.
  ///
  /// The user may be signed out although some data remains. That data is then erased as soon as the store works, if
  /// necessary by the next launch.
  case store(StoreError)

  /// The calling task was cancelled, or the repository was released, before the user was signed out.
  case cancelled
}

extension SignOutError: CustomStringConvertible {
  /// What happened, and what to do about it.
  public var description: String {
    switch self {
    case .unsent(1): "The server doesn't have 1 of the user's changes. Let it be sent, or sign out without it."
    case .unsent(let count):
      "The server doesn't have \(count) of the user's changes. Let them be sent, or sign out without them."
    case .store(let error): error.description
    case .cancelled: "The call was cancelled before the user was signed out. Sign out again if that is still wanted."
    }
  }
}

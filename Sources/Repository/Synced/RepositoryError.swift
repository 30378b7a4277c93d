public import DataStore

/// Why a ``SyncedRepository`` could not do what it was asked.
///
/// What was stored before is intact.
public enum RepositoryError<Failure: Error & Sendable>: Error, Sendable {
  /// The server could not be reached, or refused.
  case server(Failure)

  /// The device could not read or keep the data.
  case store(StoreError)

  /// The mutation isn't possible on the present value. Nothing is stored of it.
  case conflict(MutationConflict)

  /// The queue of mutations has reached one of its ``QueueLimits``. Nothing is stored of the mutation.
  case queueFull

  /// The user has signed out, or is signing out. Nothing of the user is kept.
  case signedOut

  /// The calling task was cancelled. The server may have done its part, and a mutation goes on.
  case cancelled
}

extension RepositoryError: Equatable where Failure: Equatable {}
extension RepositoryError: Hashable where Failure: Hashable {}

extension RepositoryError: CustomStringConvertible {
  /// What happened, and what to do about it.
  public var description: String {
    switch self {
    case .server(let failure): String(describing: failure)
    case .store(let error): error.description
    case .conflict(let conflict): "The change isn't possible any more: \(conflict.reason)"
    case .queueFull: "Too many changes wait to be sent. Try again when the server has been reached."
    case .signedOut:
      "The user has signed out. Once the user has signed in again, call credentialsChanged(userID:), then try again."
    case .cancelled: "The call was cancelled. Call again if it is still wanted."
    }
  }
}

public import DataStore

/// An error thrown by a ``SyncedRepository``.
///
/// A call that fails discards no stored value.
public enum RepositoryError<Failure: Error & Sendable>: Error, Sendable {
  /// The request failed: the server couldn't be reached, refused it, or sent a reply that can't be used.
  case server(Failure)

  /// The store couldn't read or save the data.
  case store(StoreError)

  /// The mutation isn't possible on the current value, and wasn't stored.
  case conflict(MutationConflict)

  /// The queue of mutations has reached one of its ``QueueLimits``. The mutation wasn't stored.
  case queueFull

  /// The user has signed out, or is signing out. After the sign-out, no values and no mutations of the user are kept.
  case signedOut

  /// The calling task was cancelled, or the mutation was cancelled with ``PendingMutations/cancel(_:)``, in this or
  /// another process.
  ///
  /// The server may have handled the request already. Cancelling the task that made a mutation doesn't cancel the
  /// mutation.
  case cancelled
}

extension RepositoryError: Equatable where Failure: Equatable {}
extension RepositoryError: Hashable where Failure: Hashable {}

extension RepositoryError: CustomStringConvertible {
  /// A description of the error, with a suggested action if the repository knows one.
  public var description: String {
    switch self {
    case .server(let failure): String(describing: failure)
    case .store(let error): error.description
    case .conflict(let conflict): "The change isn't possible on the current value: \(conflict.reason)"
    case .queueFull:
      "The queue of changes is full, or its oldest change is too old. Try again once changes are sent or discarded."
    case .signedOut:
      "The user has signed out or is signing out. "
        + "After the next sign-in, call credentialsChanged(userID:) and try again."
    case .cancelled: "The call was cancelled. Fetch again if the value is still needed; a change may still be sent."
    }
  }
}

public import DataStore

/// The reason why an operation on a queued mutation failed.
///
/// An operation that throws it has changed nothing. The exception is a ``store(_:)`` error whose outcome is unknown, as
/// `StoreError` describes.
public enum PendingMutationError: Error, Hashable, Sendable {
  /// The mutation isn't in the queue, another process has decided about it, or another operation on it is in progress.
  ///
  /// It may have reached the server meanwhile.
  case unknown(MutationID)

  /// The mutation can't be cancelled, because it is in flight or being completed, was refused, isn't durable yet, or
  /// was completed or removed during the call.
  ///
  /// A mutation that isn't durable yet will be shortly, and may then be sent at once. Operations other than `cancel`
  /// throw this case only for a mutation that isn't durable yet.
  case alreadySent(MutationID)

  /// The mutation was not refused, so it can't be requeued, and can be discarded only if it is in conflict.
  case notRefused(MutationID)

  /// The mutation is not in conflict, so it can't be resolved.
  case notConflicted(MutationID)

  /// The mutation still isn't possible on the present value.
  case conflict(MutationConflict)

  /// The store could not be read or written.
  case store(StoreError)
}

extension PendingMutationError: CustomStringConvertible {
  /// A description of the error, with a suggested action if there is one.
  public var description: String {
    switch self {
    case .unknown(let id):
      "The mutation \(id) isn't in the queue, or another operation on it is in progress. The server may have it."
    case .alreadySent(let id):
      """
      The mutation \(id) isn't durable yet, or is no longer waiting. Discard it if it was refused, and undo it with a \
      new one if the server has it.
      """
    case .notRefused(let id):
      "The mutation \(id) was not refused, so it can't be requeued, and can be discarded only if it is in conflict."
    case .notConflicted(let id): "The mutation \(id) is not in conflict, so it can't be resolved."
    case .conflict(let conflict): "The change still isn't possible: \(conflict.reason)"
    case .store(let error): error.description
    }
  }
}

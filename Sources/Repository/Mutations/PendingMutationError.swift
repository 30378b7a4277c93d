public import DataStore

/// Why something could not be done with a mutation of the queue.
///
/// Nothing changed.
public enum PendingMutationError: Error, Hashable, Sendable {
  /// No mutation has the id. It may have reached the server meanwhile.
  case unknown(MutationID)

  /// The mutation was sent, or is not durable yet, so it can't be taken back.
  case alreadySent(MutationID)

  /// The mutation was not refused, so there is nothing to send again or to discard.
  case notRefused(MutationID)

  /// The mutation is not in conflict, so there is nothing to resolve.
  case notConflicted(MutationID)

  /// The mutation still isn't possible on the present value.
  case conflict(MutationConflict)

  /// The device could not read or keep the data.
  case store(StoreError)
}

extension PendingMutationError: CustomStringConvertible {
  /// What happened, and what to do about it.
  public var description: String {
    switch self {
    case .unknown(let id): "There is no mutation \(id) in the queue. It may have reached the server meanwhile."
    case .alreadySent(let id): "The mutation \(id) is on its way. Undo it by another mutation."
    case .notRefused(let id): "The mutation \(id) was not refused. Only a refused one is requeued or discarded."
    case .notConflicted(let id): "The mutation \(id) is not in conflict. Only one in conflict is resolved."
    case .conflict(let conflict): "The change still isn't possible: \(conflict.reason)"
    case .store(let error): error.description
    }
  }
}

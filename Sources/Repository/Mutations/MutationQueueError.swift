public import DataStore

/// Why a ``MutationQueue`` could not do what it was asked.
///
/// Whatever the case, the queue is as it was before.
public enum MutationQueueError: Error, Hashable, Sendable {
  /// The store failed.
  case store(StoreError)

  /// A mutation with this id is in the queue already.
  case alreadyQueued(MutationID)

  /// No mutation with this id is in the queue: it was delivered, cancelled or discarded, or never there.
  case unknown(MutationID)

  /// It is too late: the mutation is on its way to the server, or has been answered already and could not be taken out
  /// of the store yet. Its ticket tells what becomes of it.
  case alreadySending(MutationID)

  /// The mutation is a dead letter, which can be requeued or discarded, but not cancelled.
  case isDead(MutationID)

  /// The mutation is no dead letter, so it can be neither requeued nor discarded.
  case isNotDead(MutationID)

  /// Another call is changing the same entry at this moment.
  case busy(MutationID)
}

extension MutationQueueError: CustomStringConvertible {
  /// What happened, and what helps.
  public var description: String {
    switch self {
    case .store(let error): error.description
    case .alreadyQueued(let id):
      "The mutation \(id) is in the queue already. Enqueue each mutation once, with an id of its own."
    case .unknown(let id):
      "There is no mutation \(id) in the queue. It may have been delivered, cancelled or discarded meanwhile."
    case .alreadySending(let id):
      "The mutation \(id) is on its way to the server: too late to cancel it. Wait for its fate, then undo it."
    case .isDead(let id): "The mutation \(id) was refused before. Requeue it or discard it."
    case .isNotDead(let id): "The mutation \(id) has not been refused. Cancel it if it is no longer wanted."
    case .busy(let id): "The mutation \(id) is being changed by another call. Wait for that one."
    }
  }
}

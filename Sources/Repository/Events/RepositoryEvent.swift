public import DataStore

/// Something that happened in a repository, for a log or a chart.
///
/// Keys, and the errors of your source, are text, because events of all repositories have one type.
public enum RepositoryEvent: Hashable, Sendable {
  /// A request began for a caller.
  case requestStarted(key: String)

  /// A caller joined a request in flight; `callers` is how many wait for it now.
  case requestJoined(key: String, callers: Int)

  /// A request succeeded.
  case requestFinished(key: String)

  /// A request failed, for all its callers.
  case requestFailed(key: String, reason: String)

  /// A request lost its last caller and was cancelled.
  case requestCancelled(key: String)

  /// A reply was not shown, because it may be older than what is shown already.
  case replyDiscarded(key: String)

  /// A mutation is durable and will be sent.
  case mutationEnqueued(MutationID, orderingKey: String)

  /// A mutation is being sent; the first attempt is number 1.
  case mutationSending(MutationID, attempt: Int)

  /// The server has taken a mutation.
  case mutationDelivered(MutationID)

  /// A mutation was rolled back and isn't sent any more.
  case mutationRefused(MutationID, MutationRefusal)

  /// A mutation isn't possible on the present value. It has no effect and waits to be resolved.
  case mutationConflicted(MutationID, MutationConflict)

  /// A mutation was cancelled before it was sent.
  case mutationCancelled(MutationID)

  /// A dead letter was requeued.
  case mutationRequeued(MutationID)

  /// A dead letter was discarded.
  case mutationDiscarded(MutationID)

  /// An attempt failed, and another will be made.
  case retryScheduled(MutationID, attempt: Int, delay: Duration, reason: String)

  /// How many mutations are in the queue, the one being sent included, and how many dead letters beside them.
  case queueLength(waiting: Int, dead: Int)

  /// A stored mutation could not be decoded. It was quarantined and won't be sent.
  case mutationUnreadable(MutationID, movedTo: String, reason: String)

  /// A stored mutation names a value that this program doesn't know. It is left as it is and not sent.
  case mutationOfUnknownKey(MutationID, key: String)

  /// A stored mutation has a future schema. It is left as it is and not sent.
  case mutationOfNewerProgram(MutationID)

  /// A stored mutation has an older schema, and could not be migrated. It is left as it is and not sent.
  case mutationNotMigrated(MutationID, reason: String)

  /// The monitor of the network says that it comes or goes.
  case networkChanged(NetworkStatus)

  /// This repository sends the mutations of all repositories on the store from now on; see ``Leadership``.
  case leadershipGained

  /// This repository has lost what it led with, so it sends nothing until it leads again.
  case leadershipLost

  /// The stored value of a key was removed to make room, or by ``SyncedRepository/evict(_:)``.
  case valueEvicted(key: String)

  /// The store failed while no caller waited for it. The queue tries again.
  case storeFailed(StoreError)
}

/// Why a mutation isn't sent any more, as ``RepositoryEvent`` tells it.
public enum MutationRefusal: Hashable, Sendable {
  /// The server will never make it, for a reason that is the text of your error.
  case byServer(reason: String)

  /// The ``RetryPolicy`` allows no further attempt. The last one failed for a reason that is the text of your error.
  case attemptsUsedUp(reason: String)

  /// The process ended during each of the last attempts to send it, of which there were so many.
  case cutOff(attempts: Int)

  /// The server has it, and the value with it can never be stored.
  case unstorable(StoreError)
}

extension MutationRefusal: CustomStringConvertible {
  /// The reason, as ``PendingMutation/Standing/refused(reason:)`` has it.
  public var description: String {
    switch self {
    case .byServer(let reason), .attemptsUsedUp(let reason): reason
    case .cutOff(let count): "The process ended during each of the last \(count) attempts to send it."
    case .unstorable(let error): error.description
    }
  }
}

extension RepositoryEvent: CustomStringConvertible {
  /// One line for a log.
  public var description: String {
    switch self {
    case .requestStarted(let key): "request \(key) started"
    case .requestJoined(let key, let callers): "request \(key) joined, \(callers) callers"
    case .requestFinished(let key): "request \(key) finished"
    case .requestFailed(let key, let reason): "request \(key) failed: \(reason)"
    case .requestCancelled(let key): "request \(key) cancelled, because no caller waits for it any more"
    case .replyDiscarded(let key): "reply \(key) discarded, because it may be older than what is shown"
    case .mutationEnqueued(let id, let orderingKey): "mutation \(id) enqueued behind those of \(orderingKey)"
    case .mutationSending(let id, let attempt): "mutation \(id) is being sent, attempt \(attempt)"
    case .mutationDelivered(let id): "mutation \(id) delivered"
    case .mutationRefused(let id, .byServer(let reason)): "mutation \(id) refused: \(reason)"
    case .mutationRefused(let id, .attemptsUsedUp(let reason)):
      "mutation \(id) given up after the last attempt: \(reason)"
    case .mutationRefused(let id, .cutOff(let count)):
      "mutation \(id) given up, because the process ended during each of \(count) attempts"
    case .mutationRefused(let id, .unstorable(let error)):
      "mutation \(id) given up, because its value can't be stored: \(error)"
    case .mutationConflicted(let id, let conflict): "mutation \(id) is in conflict: \(conflict.reason)"
    case .mutationCancelled(let id): "mutation \(id) cancelled"
    case .mutationRequeued(let id): "mutation \(id) requeued"
    case .mutationDiscarded(let id): "mutation \(id) discarded"
    case .retryScheduled(let id, let attempt, let delay, let reason):
      "mutation \(id) failed at attempt \(attempt), next one in \(delay): \(reason)"
    case .queueLength(let waiting, let dead): "\(waiting) mutations in the queue, \(dead) dead letters"
    case .mutationUnreadable(let id, let movedTo, let reason):
      "mutation \(id) could not be decoded, its bytes are kept in \(movedTo): \(reason)"
    case .mutationOfUnknownKey(let id, let key): "mutation \(id) is of \(key), which this program doesn't know"
    case .mutationOfNewerProgram(let id): "mutation \(id) is of a newer program: update the app to have it sent"
    case .mutationNotMigrated(let id, let reason): "mutation \(id) could not be migrated and is not sent: \(reason)"
    case .networkChanged(let status): "the network is \(status)"
    case .leadershipGained: "this repository leads and sends the mutations of all"
    case .leadershipLost: "this repository leads no more, and another one may"
    case .valueEvicted(let key): "the value of \(key) evicted"
    case .storeFailed(let error): "the store failed and will be tried again: \(error)"
    }
  }
}

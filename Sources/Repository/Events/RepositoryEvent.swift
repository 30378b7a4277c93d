public import DataStore

/// An event of a repository, for logging and metrics.
///
/// Keys and the errors of the source are represented as text, because the events of all repositories have the same
/// type.
public enum RepositoryEvent: Hashable, Sendable {
  /// A request began for a caller.
  case requestStarted(key: String)

  /// A caller joined a request in flight; `callers` is the number of callers now waiting for it.
  case requestJoined(key: String, callers: Int)

  /// A request succeeded.
  case requestFinished(key: String)

  /// A request failed, for all its callers.
  case requestFailed(key: String, reason: String)

  /// A request was cancelled because its last caller was cancelled.
  case requestCancelled(key: String)

  /// A reply was discarded because it may be older than the stored value, or is a page that doesn't fit the stored
  /// ones.
  case replyDiscarded(key: String)

  /// The server returned pages without a new element: with cursors that lead back to them, so that the list was ended,
  /// or too many in a row.
  ///
  /// This is usually a fault of the server or of the source.
  case endlessPages(key: String)

  /// A mutation is durable and will be sent.
  case mutationEnqueued(MutationID, orderingKey: String)

  /// A mutation is being sent; the first attempt is number 1.
  case mutationSending(MutationID, attempt: Int)

  /// The server has applied a mutation, and the stored value, if there is one, includes it.
  case mutationDelivered(MutationID)

  /// A mutation was rolled back and is no longer sent.
  case mutationRefused(MutationID, MutationRefusal)

  /// A mutation isn't possible on the current value. It has no effect, and waits to be resolved.
  case mutationConflicted(MutationID, MutationConflict)

  /// A mutation was cancelled and rolled back.
  case mutationCancelled(MutationID)

  /// A dead letter, that is, a refused or conflicted mutation, was requeued or replaced by another mutation.
  case mutationRequeued(MutationID)

  /// A dead letter was discarded.
  case mutationDiscarded(MutationID)

  /// Attempt number `attempt` failed, and another will be made after `delay`.
  case retryScheduled(MutationID, attempt: Int, delay: Duration, reason: String)

  /// The server asked for a sign-in instead of accepting a mutation. The mutations of that user wait for new
  /// credentials.
  case signInRequired(MutationID, reason: String)

  /// The number of mutations that are waiting or in flight, or the number of dead letters, has changed.
  ///
  /// Mutations that another independent repository sends don't count; see ``LeadershipStatus/independent``.
  case queueLength(waiting: Int, dead: Int)

  /// A stored mutation couldn't be decoded, and isn't sent.
  ///
  /// `movedTo` is the place where its bytes were quarantined. It is `nil` if they are left unchanged, because another
  /// version of the program has written them, and may be able to decode them.
  case mutationUnreadable(MutationID, movedTo: String?, reason: String)

  /// A stored mutation belongs to a key that this program doesn't know. It is left unchanged and isn't sent.
  case mutationOfUnknownKey(MutationID, key: String)

  /// A stored mutation has a future format or schema. It is left unchanged and isn't sent.
  case mutationOfFutureSchema(MutationID)

  /// A stored mutation has an older schema and couldn't be migrated. It is left unchanged and isn't sent.
  case mutationNotMigrated(MutationID, reason: String)

  /// The network monitor reported a new status.
  case networkChanged(NetworkStatus)

  /// This repository now sends the mutations of all repositories of its source on the store; see ``Leadership``.
  case leadershipGained

  /// This repository has lost its leadership. It sends nothing until it leads again.
  case leadershipLost

  /// This repository no longer sends mutations, because none is due. It leads again when one is.
  case leadershipReleased

  /// The repository is suspended: it sends nothing, and holds no lock; see ``SyncedRepository/suspend()``.
  case suspended

  /// The repository runs again after a suspension.
  case resumed

  /// The stored value of a key was removed, because of the ``EvictionPolicy`` or by ``SyncedRepository/evict(_:)``.
  case valueEvicted(key: String)

  /// The store failed during work of the repository, such as storing a reply.
  ///
  /// The repository repeats the work later or with the next call, unless that is useless or no longer needed.
  case storeFailed(StoreError)
}

/// The reason why a mutation is no longer sent, as reported by ``RepositoryEvent``.
public enum MutationRefusal: Hashable, Sendable {
  /// The server refused the mutation permanently. The reason is the text of the source's error.
  case byServer(reason: String)

  /// The ``RetryPolicy`` allows no further attempt. The reason is the text of the last attempt's error.
  case attemptsUsedUp(reason: String)

  /// Each of the last `attempts` attempts to send the mutation was interrupted, because its process ended.
  case cutOff(attempts: Int)

  /// The server has applied the mutation, but the resulting value can never be stored.
  case unstorable(StoreError)
}

extension MutationRefusal: CustomStringConvertible {
  /// The reason, as reported by ``PendingMutation/Standing/refused(reason:)``.
  public var description: String {
    switch self {
    case .byServer(let reason), .attemptsUsedUp(let reason): reason
    case .cutOff(1): "The process ended during the last attempt to send it."
    case .cutOff(let count): "The process ended during each of the last \(count) attempts to send it."
    case .unstorable(let error): error.description
    }
  }
}

extension RepositoryEvent: CustomStringConvertible {
  /// A single-line description for a log.
  public var description: String {
    switch self {
    case .requestStarted(let key): "request \(key) started"
    case .requestJoined(let key, let callers): "request \(key) joined, \(counted(callers, "caller"))"
    case .requestFinished(let key): "request \(key) finished"
    case .requestFailed(let key, let reason): "request \(key) failed: \(reason)"
    case .requestCancelled(let key): "request \(key) cancelled, because its last caller was cancelled"
    case .replyDiscarded(let key):
      "reply to request \(key) discarded, because it may be older than the stored value or doesn't fit it"
    case .endlessPages(let key):
      "a fetch of list \(key) ended, because the server returned pages without new elements; check the source's cursors"
    case .mutationEnqueued(let id, let orderingKey): "mutation \(id) enqueued in lane \(orderingKey)"
    case .mutationSending(let id, let attempt): "mutation \(id) is being sent, attempt \(attempt)"
    case .mutationDelivered(let id): "mutation \(id) delivered"
    case .mutationRefused(let id, .byServer(let reason)): "mutation \(id) refused: \(reason)"
    case .mutationRefused(let id, .attemptsUsedUp(let reason)):
      "mutation \(id) given up after the last attempt: \(reason)"
    case .mutationRefused(let id, .cutOff(1)):
      "mutation \(id) given up, because the process ended during the last attempt"
    case .mutationRefused(let id, .cutOff(let count)):
      "mutation \(id) given up, because the process ended during each of the last \(count) attempts"
    case .mutationRefused(let id, .unstorable(let error)):
      "mutation \(id) given up, because its value can't be stored: \(error)"
    case .mutationConflicted(let id, let conflict): "mutation \(id) is in conflict: \(conflict.reason)"
    case .mutationCancelled(let id): "mutation \(id) cancelled"
    case .mutationRequeued(let id): "mutation \(id) requeued"
    case .mutationDiscarded(let id): "mutation \(id) discarded"
    case .retryScheduled(let id, let attempt, let delay, let reason):
      "mutation \(id) failed at attempt \(attempt), next attempt in \(delay): \(reason)"
    case .signInRequired(let id, let reason): "mutation \(id) waits until the user signs in again: \(reason)"
    case .queueLength(let waiting, let dead):
      "\(counted(waiting, "mutation")) in the queue, \(counted(dead, "dead letter"))"
    case .mutationUnreadable(let id, nil, let reason):
      "mutation \(id) couldn't be decoded and isn't sent, and its bytes are left unchanged: \(reason)"
    case .mutationUnreadable(let id, let movedTo?, let reason):
      "mutation \(id) couldn't be decoded, and its bytes were quarantined in \(movedTo): \(reason)"
    case .mutationOfUnknownKey(let id, let key): "mutation \(id) belongs to \(key), which this program doesn't know"
    case .mutationOfFutureSchema(let id): "mutation \(id) has a future schema: update the app to send it"
    case .mutationNotMigrated(let id, let reason): "mutation \(id) couldn't be migrated and isn't sent: \(reason)"
    case .networkChanged(let status): "the network is \(status)"
    case .leadershipGained: "this repository leads and sends the mutations of all repositories of its source"
    case .leadershipReleased: "this repository has nothing to send and no longer leads"
    case .suspended: "suspended"
    case .resumed: "resumed"
    case .leadershipLost: "this repository no longer leads, and another one may"
    case .valueEvicted(let key): "the value of \(key) evicted"
    case .storeFailed(let error): "the store failed: \(error)"
    }
  }
}

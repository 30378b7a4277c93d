public import Foundation

/// A mutation in the queue of a repository.
public struct PendingMutation<Key: RepositoryKey, Mutation: Sendable>: Sendable {
  /// The standing of a mutation: the reason why it is still in the queue.
  public enum Standing: Hashable, Sendable {
    /// It waits to be sent: for its turn, for the network, or for the end of the delay after a failed attempt.
    case waiting

    /// It is being sent, or the server has it and the value with the change isn't stored yet.
    ///
    /// A mutation that another process may be sending is in flight too.
    case inFlight

    /// The server requires the user to sign in again; see ``SyncedRepository/credentialsChanged(userID:)``.
    case needsSignIn

    /// It isn't possible on the present value, so it has no effect and waits for ``PendingMutations/resolve(_:_:)``.
    case conflicted(MutationConflict)

    /// It is no longer sent and was rolled back; see ``MutationRefusal``.
    ///
    /// It is listed until it is requeued or discarded.
    case refused(reason: String)
  }

  /// The idempotency key under which it is sent.
  public let id: MutationID

  /// The key of the value that it changes.
  public let key: Key

  /// The change.
  public let mutation: Mutation

  /// The standing of the mutation.
  public let standing: Standing

  /// The number of attempts that have begun, in all processes.
  ///
  /// An attempt after which the user has to sign in doesn't count. An attempt of another process counts once it has
  /// ended.
  public let attempts: Int

  /// The time at which it was made.
  public let madeAt: Date

  /// The text of the error of the last attempt, if that failed and another one will be made; otherwise `nil`.
  ///
  /// A mutation that can never succeed, but whose failures the source doesn't classify as
  /// ``FailureDisposition/refused``, is sent again and again, with pauses as long as ``RetryPolicy/cap``; see
  /// ``RetryPolicy/maximumAttempts``.
  public let failure: String?
}

extension PendingMutation: Equatable where Mutation: Equatable {}
extension PendingMutation: Hashable where Mutation: Hashable {}

/// A decision about a mutation that is in conflict; see ``PendingMutations/resolve(_:_:)``.
public enum Resolution<Mutation: Sendable>: Sendable {
  /// Applies the mutation to the present value and requeues it.
  case retry

  /// Makes another mutation in its place.
  case replace(with: Mutation)

  /// Discards the mutation.
  case discard
}

extension Resolution: Equatable where Mutation: Equatable {}
extension Resolution: Hashable where Mutation: Hashable {}

public import Foundation

/// A mutation in the queue of a repository.
public struct PendingMutation<Key: RepositoryKey, Mutation: Sendable>: Sendable {
  /// Where a mutation stands.
  public enum Standing: Hashable, Sendable {
    /// It will be sent when its turn comes.
    case waiting

    /// It is being sent, or the server has it and the value with it isn't stored yet.
    case inFlight

    /// The server wants the user to sign in again; see ``SyncedRepository/credentialsChanged(userID:)``.
    case needsSignIn

    /// It isn't possible on the present value and has no effect. It waits for ``PendingMutations/resolve(_:_:)``.
    case conflicted(MutationConflict)

    /// It was refused for good and was rolled back. It is listed until it is requeued or discarded.
    case refused(reason: String)
  }

  /// The idempotency key under which it is sent.
  public let id: MutationID

  /// The value that it changes.
  public let key: Key

  /// The change.
  public let mutation: Mutation

  /// Where it stands.
  public let standing: Standing

  /// How many attempts to send it have begun, in all processes.
  public let attempts: Int

  /// When it was made.
  public let madeAt: Date
}

extension PendingMutation: Equatable where Mutation: Equatable {}
extension PendingMutation: Hashable where Mutation: Hashable {}

/// What to do with a mutation that is in conflict; see ``PendingMutations/resolve(_:_:)``.
public enum Resolution<Mutation: Sendable>: Sendable {
  /// Makes it again on the present value.
  case retry

  /// Makes another one in its place.
  case replace(with: Mutation)

  /// Gives it up.
  case discard
}

extension Resolution: Equatable where Mutation: Equatable {}
extension Resolution: Hashable where Mutation: Hashable {}

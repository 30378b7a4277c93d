public import Foundation

/// A mutation in a ``MutationQueue``, and what has become of it so far.
public struct MutationEntry<Mutation: Sendable>: Sendable {
  /// Where a mutation stands.
  public enum State: Hashable, Sendable {
    /// It will be sent: as soon as its turn comes, or not before `nextTry`, by the wall clock, where one is given.
    case waiting(nextTry: Date?)

    /// It is on its way to the server.
    case sending

    /// It was refused, or its attempts are used up. It is kept until it is requeued or discarded.
    case dead(reason: String, since: Date)
  }

  /// Names the mutation for ever, and is its idempotency key.
  public let id: MutationID

  /// What it is sent in order with.
  public let orderingKey: String

  /// The mutation.
  public let mutation: Mutation

  /// When it was enqueued.
  public let enqueuedAt: Date

  /// Where it stands.
  public internal(set) var state: State

  /// How many attempts this process has begun.
  public internal(set) var attempts: Int

  /// Why the last attempt of this process failed; nil when none has.
  public internal(set) var lastFailure: String?

  init(
    id: MutationID, orderingKey: String, mutation: Mutation, enqueuedAt: Date, state: State = .waiting(nextTry: nil)
  ) {
    self.id = id
    self.orderingKey = orderingKey
    self.mutation = mutation
    self.enqueuedAt = enqueuedAt
    self.state = state
    attempts = 0
    lastFailure = nil
  }

  /// Whether it is a dead letter.
  public var isDead: Bool {
    if case .dead = state { true } else { false }
  }
}

extension MutationEntry: Equatable where Mutation: Equatable {}
extension MutationEntry: Hashable where Mutation: Hashable {}

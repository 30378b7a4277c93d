internal import Foundation

/// What the store keeps of a mutation.
///
/// How often it was attempted is not kept: that would be a write for each attempt, and nothing depends on it.
struct StoredMutation<Mutation: Codable & Sendable>: Codable, Sendable {
  struct DeadLetter: Codable, Hashable, Sendable {
    let reason: String
    let since: Date
  }

  /// The idempotency key.
  let id: MutationID
  let orderingKey: String
  /// Its place in the order of the queue.
  let sequence: UInt64
  let enqueuedAt: Date
  let mutation: Mutation
  /// Nil while it will be sent.
  let deadLetter: DeadLetter?

  init(_ entry: MutationEntry<Mutation>, sequence: UInt64, deadLetter: DeadLetter? = nil) {
    id = entry.id
    orderingKey = entry.orderingKey
    self.sequence = sequence
    enqueuedAt = entry.enqueuedAt
    mutation = entry.mutation
    self.deadLetter = deadLetter
  }

  /// The entry as it is after a relaunch.
  var entry: MutationEntry<Mutation> {
    MutationEntry(
      id: id, orderingKey: orderingKey, mutation: mutation, enqueuedAt: enqueuedAt,
      state: deadLetter.map { .dead(reason: $0.reason, since: $0.since) } ?? .waiting(nextTry: nil))
  }
}

public import Foundation

/// A mutation in the queue of a repository that this version of the program can't read; see
/// ``PendingMutations/unreadable()``.
public struct UnreadableMutation<Key: RepositoryKey>: Hashable, Sendable {
  /// The idempotency key under which it is sent.
  public let id: MutationID

  /// The key of the value that it changes; `nil` if this program doesn't know the key.
  public let key: Key?

  /// The schema of the mutation; `nil` if this program can't read it.
  public let schema: Int?

  /// A description of why this program can't read it, for a log or a bug report.
  public let reason: String

  /// The size of the encoded mutation.
  public let byteCount: Int

  /// The time at which it was made; `nil` if this program can't read it.
  public let madeAt: Date?
}

extension UnreadableMutation {
  init(_ held: HeldMutation<Key>) {
    (id, key, reason) = (held.id, held.key, "\(held.reason)")
    // A future format may use another name for it.
    schema = held.record.format > MutationRecord.newestFormat ? nil : held.record.schema
    (byteCount, madeAt) = (held.record.byteCount, held.record.madeAt)
  }
}

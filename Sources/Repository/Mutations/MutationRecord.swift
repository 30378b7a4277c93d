internal import DataStore
internal import Foundation

/// What the store keeps of a mutation.
struct MutationRecord<Mutation: Codable & Sendable>: Codable, Sendable {
  /// What becomes of a mutation that isn't sent any more.
  enum Verdict: Codable, Hashable, Sendable {
    case conflicted(MutationConflict)
    case refused(reason: String)
  }

  /// The `storeID` of the value that it changes.
  let key: String

  /// Its place in the order of all mutations of the repository, in every process.
  ///
  /// Last of all while it isn't durable.
  var sequence: UInt64

  /// When it was made.
  ///
  /// Only the queue's limit of age depends on it.
  let madeAt: Date

  let mutation: Mutation

  /// The size of the encoded mutation, which the queue's limits count.
  let byteCount: Int

  /// How many attempts to send it have begun.
  var attempts = 0

  /// How many attempts in a row the end of a process cut off, the present one included.
  var unfinishedAttempts = 0

  /// Whether the server may have made the change at an attempt whose outcome is unknown.
  var isOutcomeUnknown = false

  /// `nil` while it will be sent.
  var verdict: Verdict?

  /// Whether it will be sent.
  var isLive: Bool { verdict == nil }

  /// The record with its place in the order.
  func with(sequence: UInt64) -> Self {
    var record = self
    record.sequence = sequence
    return record
  }
}

/// Gives each mutation its place in the order: the number of those that were ever made.
///
/// Each commit that adds mutations saves the counter too, and requires the one it counted from. So the order is that of the
/// commits, in all processes, whatever their clocks say.
struct MutationCounter: Codable, Sendable {
  var last: UInt64 = 0
}

/// The keys under which the mutations of a repository are stored.
struct MutationKeys<Mutation: Codable & Sendable>: Sendable {
  let collection: String
  let counter: StoreKey<MutationCounter>

  init(repository name: String) {
    collection = "\(name).mutations"
    counter = StoreKey("\(name).mutation-counter")
  }

  func record(_ id: MutationID) -> StoreKey<MutationRecord<Mutation>> { StoreKey(collection, id: id.rawValue) }
}

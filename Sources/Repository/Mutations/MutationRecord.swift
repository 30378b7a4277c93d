internal import DataStore
internal import Foundation

/// The stored form of a mutation.
struct MutationRecord<Mutation: Codable & Sendable>: Codable, Sendable {
  /// The reason why a mutation is no longer sent.
  enum Verdict: Codable, Hashable, Sendable {
    case conflicted(MutationConflict)
    case refused(reason: String)
  }

  /// The `storeID` of the key whose value the mutation changes.
  let key: String

  /// The position in the order of all mutations of the repository, across processes.
  ///
  /// The greatest possible value while the mutation isn't durable.
  var sequence: UInt64

  /// The time at which the mutation was made.
  ///
  /// It is shown in lists of mutations and in reports. Otherwise only ``QueueLimits/maximumAge`` depends on it.
  let madeAt: Date

  let mutation: Mutation

  /// The size of the encoded mutation in bytes, for the limits of the queue.
  let byteCount: Int

  /// The number of attempts whose requests have begun, or may have begun before a process ended.
  ///
  /// An attempt after which the user has to sign in isn't counted. While the stored record is marked, it doesn't yet
  /// count the attempt that it is marked for; see ``isMarked``.
  var attempts = 0

  /// Whether it is *marked*: an attempt may begin soon or has begun, and its end isn't stored yet.
  ///
  /// A record is marked before the request of an attempt is sent, together with the next ones of its lane; see
  /// ``MutationWriter/mark(_:in:)``. When a repository takes over the sending and finds that the first mutation of a
  /// lane is marked, an earlier sender has ended, or lost its leadership (see ``Election``), before it stored the end
  /// of the attempt. The repository then counts an interrupted attempt; see
  /// ``MutationLedger/recordInterruption(of:wasFirstInLane:limit:)``.
  var isMarked = false

  /// The number of attempts in a row that were interrupted because their process ended, or because their repository
  /// lost its leadership.
  var interruptedAttempts = 0

  /// Whether an earlier attempt ended without a known outcome, so that the server may have made the change already.
  var isOutcomeUnknown = false

  /// The reason why the mutation is no longer sent, or `nil` while it is live.
  var verdict: Verdict?

  /// Whether the mutation is waiting, in flight, or answered but not confirmed yet.
  var isLive: Bool { verdict == nil }

  /// Returns the ``key`` in the stored bytes of a record, even if this program can't decode the mutation.
  ///
  /// The bytes are the record as JSON. Some stores put a header line in front of it.
  ///
  /// - Returns: `nil` if the bytes aren't those of a record.
  static func key(in bytes: Data) -> String? {
    let jsonStart = bytes.firstIndex(of: UInt8(ascii: "\n")).map { bytes.index(after: $0) } ?? bytes.startIndex
    do {
      return try JSONDecoder().decode(RecordKey.self, from: bytes[jsonStart...]).key
    } catch {
      return nil
    }
  }

  /// Returns a copy of the record with the given sequence number.
  func with(sequence: UInt64) -> Self {
    var record = self
    record.sequence = sequence
    return record
  }
}

/// A record without its mutation, so that a program that can't decode the mutation can read the key.
private struct RecordKey: Decodable {
  let key: String
}

/// The last sequence number of the repository's mutations.
///
/// Each commit that adds mutations saves the counter too, and requires that no other commit has changed the counter
/// since it was read. So the order of mutations is the order of these commits, whatever the clocks of the processes
/// say.
struct MutationCounter: Codable, Sendable {
  var last: UInt64 = 0
}

/// The last mutations that were *withdrawn*: cancelled, discarded or replaced, and therefore not confirmed.
///
/// A confirmation and a withdrawal both remove the record of a mutation. If another repository removes the record, a
/// call that waits for the mutation can't learn from the stored value which of the two happened. A newer value doesn't
/// prove a confirmation, because it may be newer for another reason. An unchanged value doesn't prove a withdrawal,
/// because a confirmation may store no value. So the commit that withdraws a mutation also adds its id to this list. A
/// confirmation saves nothing extra, but a repository loads this list once for each call whose mutation another
/// repository has removed.
struct MutationWithdrawals: Codable, Sendable {
  /// The greatest number of ids that are kept.
  ///
  /// Only recent ones matter, because a call waits for another repository for a limited time; see ``CallTimeouts``.
  static var limit: Int { 64 }

  private var ids: [String] = []

  /// The number of mutations.
  var count: Int { ids.count }

  func contains(_ id: MutationID) -> Bool { ids.contains(id.rawValue) }

  /// Adds mutations, and drops the oldest ones beyond the limit.
  mutating func add(_ withdrawn: [MutationID]) {
    ids = Array((ids + withdrawn.map(\.rawValue)).suffix(Self.limit))
  }
}

/// The store keys of a repository's mutations.
struct MutationKeys<Mutation: Codable & Sendable>: Sendable {
  let collection: String
  let counter: StoreKey<MutationCounter>
  let withdrawals: StoreKey<MutationWithdrawals>

  init(repository name: String) {
    collection = "\(name).mutations"
    counter = StoreKey("\(name).mutation-counter")
    withdrawals = StoreKey("\(name).mutation-withdrawals")
  }

  func record(_ id: MutationID) -> StoreKey<MutationRecord<Mutation>> { StoreKey(collection, id: id.rawValue) }
}

internal import DataStore
internal import Foundation

/// The stored form of a mutation.
///
/// Every version of the program can read all of it but the mutation itself, which is JSON as a text. The record is
/// therefore the same type for all mutations, and its decoding never fails; see ``problem``. A record that a program
/// can't use isn't damaged: another version of the program can use it. It is *held*; see ``HeldMutation``.
struct MutationRecord: Codable, Equatable, Sendable {
  /// The reason why a mutation is no longer sent.
  enum Verdict: Codable, Hashable, Sendable {
    case conflicted(MutationConflict)
    case refused(reason: String)
  }

  /// The wait of a lane after a failed attempt of its first mutation.
  ///
  /// It belongs to the lane, and not to the process that made the attempt: whichever process sends the mutation next
  /// waits until the delay has passed.
  struct BackOff: Codable, Hashable, Sendable {
    /// The time at which the attempt failed.
    let failedAt: Date
    let delay: Duration
    /// Whether the server named the delay.
    let isServerDelay: Bool
    /// The text of the attempt's error; `nil` if a program has stored none.
    let reason: String?
    /// The number of failed attempts in a row.
    let failures: Int

    /// Returns the rest of the delay.
    ///
    /// It is never longer than the delay, whatever the clocks of the two processes say.
    func remainder(at time: Date) -> Duration {
      min(max(delay - .seconds(time.timeIntervalSince(failedAt)), .zero), delay)
    }
  }

  /// The format that is written, which is the newest one that can be read.
  ///
  /// A record has the least format that a program must know to send its mutation.
  static var newestFormat: Int { 1 }

  /// The format of the record; 0 in records of version 0.1.0.
  private(set) var format = newestFormat

  /// The name of the repository; `nil` in records of version 0.1.0.
  let repository: String?

  /// The `storeID`s of the keys whose values the mutation changes.
  ///
  /// This version writes one key, and holds a record with several ones.
  let keys: [String]

  /// The digest of the user of the keys; `nil` in records of version 0.1.0.
  let user: String?

  /// The ordering key of the mutation, as it was when the mutation was made; `nil` in records of version 0.1.0.
  let lane: String?

  /// The position in the order of all mutations of the repository, across processes.
  ///
  /// The greatest possible value while the mutation isn't durable.
  var sequence: UInt64

  /// The time at which the mutation was made.
  ///
  /// It is shown in lists of mutations and in reports. Otherwise only ``QueueLimits/maximumAge`` depends on it.
  let madeAt: Date?

  /// The schema of the mutation; see `VersionedValue`.
  let schema: Int

  /// The mutation as JSON.
  let mutation: String

  /// The number of attempts whose requests have begun, or may have begun before a process ended.
  ///
  /// An attempt after which the user has to sign in isn't counted. While the stored record is marked, it doesn't yet
  /// count the attempt that it is marked for; see ``isMarked``.
  var attempts = 0

  /// Whether it is *marked*: an attempt may begin soon or has begun, and its end isn't stored yet.
  ///
  /// A record is marked before the request of an attempt is sent, together with the next ones of its lane; see
  /// ``SyncEngine/mark(_:)``. When a repository takes over the sending and finds that the first mutation of a lane is
  /// marked, an earlier sender has ended, or lost its leadership (see ``Lead``), before it stored the end of the
  /// attempt. The repository then counts an interrupted attempt; see
  /// ``MutationLedger/recordInterruption(of:wasFirstInLane:mayBeCause:limit:)``.
  var isMarked = false

  /// The number of attempts in a row that were interrupted because their process ended, or because their repository
  /// lost its leadership.
  var interruptedAttempts = 0

  /// Whether an earlier attempt ended without a known outcome, so that the server may have made the change already.
  var isOutcomeUnknown = false

  /// The reason why the mutation is no longer sent, or `nil` while it is live.
  var verdict: Verdict?

  /// The wait after the last attempt, if that failed.
  var backOff: BackOff?

  /// The reason why the record can't be read completely; `nil` for a record that can.
  private(set) var problem: String?

  /// The size of the encoded mutation in bytes, for the limits of the queue.
  var byteCount: Int { mutation.utf8.count }

  /// Whether the mutation is waiting, in flight, or answered but not confirmed yet.
  var isLive: Bool { verdict == nil }

  /// Creates the record of a mutation that isn't durable yet.
  init(
    repository: String, key: String, user: UserDigest, lane: String, madeAt: Date, schema: Int, mutation: String
  ) {
    (self.repository, keys, self.user, self.lane) = (repository, [key], user.text, lane)
    (sequence, self.madeAt, self.schema, self.mutation) = (.max, madeAt, schema, mutation)
  }

  /// Whether another record of the same format has the same mutation, so that what was decoded of that one applies to
  /// this one.
  func hasSameMutation(as other: MutationRecord) -> Bool {
    format == other.format && schema == other.schema && keys == other.keys && lane == other.lane
      && mutation == other.mutation
  }

  /// Returns a copy of the record with the given sequence number.
  func with(sequence: UInt64) -> Self {
    var record = self
    record.sequence = sequence
    return record
  }
}

// MARK: - Coding

extension MutationRecord {
  private enum CodingKeys: CodingKey {
    case format, repository, keys, user, lane, sequence, madeAt, schema, mutation
    case attempts, isMarked, interruptedAttempts, isOutcomeUnknown, verdict, backOff
  }

  /// The keys of records that version 0.1.0 wrote, as far as they have other names.
  private enum EarlierCodingKeys: CodingKey {
    case key, unfinishedAttempts
  }

  /// Decodes a record of any format, as far as possible.
  init(from decoder: any Decoder) throws {
    var reader = LenientReader()
    let container = reader.read { try decoder.container(keyedBy: CodingKeys.self) }
    let earlier = reader.read { try decoder.container(keyedBy: EarlierCodingKeys.self) }
    func value<Value: Decodable>(_ key: CodingKeys, _ reader: inout LenientReader) -> Value? {
      reader.read { try container?.decodeIfPresent(Value.self, forKey: key) } ?? nil
    }
    format = value(.format, &reader) ?? 0
    repository = value(.repository, &reader)
    user = value(.user, &reader)
    lane = value(.lane, &reader)
    // Without a place in the order, it comes before all others, because they may depend on it.
    sequence = value(.sequence, &reader) ?? 0
    madeAt = value(.madeAt, &reader)
    schema = value(.schema, &reader) ?? 1
    attempts = value(.attempts, &reader) ?? 0
    isOutcomeUnknown = value(.isOutcomeUnknown, &reader) ?? false
    verdict = value(.verdict, &reader)
    backOff = value(.backOff, &reader)
    if format == 0 {
      let key: String?? = reader.read { try earlier?.decodeIfPresent(String.self, forKey: .key) }
      keys = [key ?? nil].compactMap(\.self)
      let json: JSONValue? = value(.mutation, &reader)
      mutation = json.flatMap { json in reader.read { try json.text } } ?? ""
      // Counts the present attempt too.
      let count: Int?? = reader.read { try earlier?.decodeIfPresent(Int.self, forKey: .unfinishedAttempts) }
      let unfinishedAttempts = (count ?? nil) ?? 0
      isMarked = value(.isMarked, &reader) ?? (unfinishedAttempts > 0)
      interruptedAttempts = value(.interruptedAttempts, &reader) ?? max(unfinishedAttempts - 1, 0)
    } else {
      keys = value(.keys, &reader) ?? []
      mutation = value(.mutation, &reader) ?? ""
      isMarked = value(.isMarked, &reader) ?? false
      interruptedAttempts = value(.interruptedAttempts, &reader) ?? 0
    }
    problem = reader.problem
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(format, forKey: .format)
    try container.encodeIfPresent(repository, forKey: .repository)
    try container.encode(keys, forKey: .keys)
    try container.encodeIfPresent(user, forKey: .user)
    try container.encodeIfPresent(lane, forKey: .lane)
    try container.encode(sequence, forKey: .sequence)
    try container.encodeIfPresent(madeAt, forKey: .madeAt)
    try container.encode(schema, forKey: .schema)
    try container.encode(mutation, forKey: .mutation)
    try container.encode(attempts, forKey: .attempts)
    try container.encode(isMarked, forKey: .isMarked)
    try container.encode(interruptedAttempts, forKey: .interruptedAttempts)
    try container.encode(isOutcomeUnknown, forKey: .isOutcomeUnknown)
    try container.encodeIfPresent(verdict, forKey: .verdict)
    try container.encodeIfPresent(backOff, forKey: .backOff)
  }

  /// Returns the record in stored bytes, or `nil` if they aren't JSON.
  ///
  /// - Parameter bytes: The record as JSON. Some stores put a header line in front of it.
  static func decode(_ bytes: Data) -> MutationRecord? {
    let jsonStart = bytes.firstIndex(of: UInt8(ascii: "\n")).map { bytes.index(after: $0) } ?? bytes.startIndex
    do {
      return try JSONDecoder().decode(MutationRecord.self, from: bytes[jsonStart...])
    } catch {
      return nil
    }
  }
}

/// Reads what can be read, and remembers the first error.
private struct LenientReader {
  private(set) var problem: String?

  mutating func read<Result>(_ body: () throws -> Result) -> Result? {
    do {
      return try body()
    } catch {
      problem = problem ?? String(describing: error)
      return nil
    }
  }
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
struct MutationKeys: Sendable {
  let collection: String
  let counter: StoreKey<MutationCounter>
  let withdrawals: StoreKey<MutationWithdrawals>

  init(repository name: String) {
    collection = "\(name).mutations"
    counter = StoreKey("\(name).mutation-counter")
    withdrawals = StoreKey("\(name).mutation-withdrawals")
  }

  func record(_ id: MutationID) -> StoreKey<MutationRecord> { StoreKey(collection, id: id.rawValue) }
}

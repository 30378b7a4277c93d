internal import DataStore
internal import Foundation

/// All mutations of a repository that are not done with: what is stored of each, and where each stands.
///
/// A pure state machine. The order in which mutations are sent is that of ``MutationLanes``, and how they change values is
/// that of ``SyncState``.
///
/// - Complexity: O(1) amortised for each function that names one mutation, and for ``oldest``. O(*n* log *n*) for
///   ``list(signedOutUsers:)`` and ``liveMutations(of:)``, where *n* is the number of mutations, and of those of the key.
struct MutationLedger<Key: RepositoryKey, Mutation: Codable & Sendable> {
  typealias Record = MutationRecord<Mutation>
  typealias Standing = PendingMutation<Key, Mutation>.Standing

  struct Entry {
    let id: MutationID
    let key: Key
    let lane: String
    var record: Record
    /// The commit that wrote the record last; `nil` while it isn't durable.
    var tag: StoreTag?
    /// The revision of that commit; older changes of the record mean nothing.
    var revision: UInt64 = 0
    /// Whether it is durable that an attempt of this process may have begun.
    var isMarked = false
    fileprivate(set) var isInFlight = false
    /// Whether the server answered an attempt of this process with success.
    fileprivate(set) var isAnswered = false
    /// Whether the server has refused it, so that what is known of earlier attempts means nothing.
    fileprivate(set) var isRefusedByServer = false
    /// Whether it is being cancelled, resolved or requeued.
    fileprivate(set) var isBeingDecided = false
    /// Whether another repository made it, which sends it because none leads.
    var isExternal = false
    /// Counts the entries in the order in which they were added: the order of those that have no place in the store yet.
    fileprivate(set) var number: UInt64 = 0

    /// Whether it will be sent, or is.
    var isLive: Bool { record.isLive }
    fileprivate var isCounted: Bool { isLive && !isExternal }

    /// The place in the order in which mutations were made.
    fileprivate var order: (UInt64, UInt64) { (record.sequence, number) }

    /// Where it stands.
    ///
    /// - Parameter signedOutUsers: The users who have to sign in again.
    func standing(signedOutUsers: Set<String?>) -> Standing {
      switch record.verdict {
      case .conflicted(let conflict): .conflicted(conflict)
      case .refused(let reason): .refused(reason: reason)
      // Another process may send it, as this one has not marked it.
      case nil where isInFlight || isAnswered || (record.unfinishedAttempts > 0 && !isMarked): .inFlight
      case nil: signedOutUsers.contains(key.userID) ? .needsSignIn : .waiting
      }
    }
  }

  private var entries: [MutationID: Entry] = [:]
  private var lastNumber: UInt64 = 0
  private var idsOfKeys: [Key: Set<MutationID>] = [:]
  /// In the order in which they were added; may name mutations that aren't live.
  private var order = FIFO<MutationID>()
  private(set) var byteCount = 0
  /// The number of mutations that will be sent, or are; without those that others send because none leads.
  private(set) var liveCount = 0
  /// The number of mutations that aren't durable yet.
  private(set) var undurableCount = 0
  /// Counts changes of what ``list(signedOutUsers:)`` returns.
  private(set) var version: UInt64 = 0

  var count: Int { entries.count }

  subscript(id: MutationID) -> Entry? { entries[id] }

  /// The mutations of a key that will be sent, or are, in order.
  func liveMutations(of key: Key) -> [Entry] {
    let live = idsOfKeys[key]?.compactMap { entries[$0] }.filter(\.isLive) ?? []
    return live.sorted { $0.order < $1.order }
  }

  /// All mutations in order.
  ///
  /// - Parameter signedOutUsers: The users who have to sign in again.
  func list(signedOutUsers: Set<String?>) -> [PendingMutation<Key, Mutation>] {
    entries.values.sorted { $0.order < $1.order }.map {
      PendingMutation(
        id: $0.id, key: $0.key, mutation: $0.record.mutation, standing: $0.standing(signedOutUsers: signedOutUsers),
        attempts: $0.record.attempts, madeAt: $0.record.madeAt)
    }
  }

  /// The mutations of ``liveCount``: how many each lane has, and when the oldest one was made.
  ///
  /// - Complexity: O(*n*) for *n* mutations.
  var lanes: [String: (count: Int, oldest: Date)] {
    entries.values.filter(\.isCounted).reduce(into: [:]) { lanes, entry in
      let lane = lanes[entry.lane]
      lanes[entry.lane] = ((lane?.count ?? 0) + 1, min(lane?.oldest ?? entry.record.madeAt, entry.record.madeAt))
    }
  }

  /// All mutations that will be sent, or are, in order.
  ///
  /// - Complexity: O(*n* log *n*) for *n* mutations.
  var live: [Entry] { entries.values.filter(\.isLive).sorted { $0.order < $1.order } }

  /// All mutations in order, in whatever state.
  ///
  /// - Complexity: O(*n* log *n*) for *n* mutations.
  var all: [Entry] { entries.values.sorted { $0.order < $1.order } }

  /// All mutations that are durable, in order.
  ///
  /// - Complexity: O(*n* log *n*) for *n* mutations.
  var durableIDs: [MutationID] { entries.values.filter { $0.tag != nil }.sorted { $0.order < $1.order }.map(\.id) }

  /// Whether a mutation is sent behind another one.
  ///
  /// One that isn't durable yet may have been made before all that came since.
  func isBehind(_ id: MutationID, _ other: MutationID) -> Bool {
    guard let entry = entries[id], let other = entries[other] else { return false }
    return entry.tag == nil || other.tag == nil ? entry.number > other.number : entry.order > other.order
  }

  /// How many mutations of each key will be sent, or are, by any repository.
  ///
  /// - Complexity: O(*n*) for *n* mutations.
  var liveCounts: [Key: Int] {
    entries.values.filter(\.isLive).reduce(into: [:]) { $0[$1.key, default: 0] += 1 }
  }

  /// When the first mutation was made that will be sent; `nil` if none will.
  var oldest: Date? { order.first.flatMap { entries[$0]?.record.madeAt } }

  // MARK: - Coming and going

  mutating func add(_ entry: Entry) {
    guard entries[entry.id] == nil else { return }
    lastNumber += 1
    entries[entry.id] = entry
    entries[entry.id]?.number = lastNumber
    idsOfKeys[entry.key, default: []].insert(entry.id)
    order.append(entry.id)
    byteCount += entry.record.byteCount
    if entry.isCounted { liveCount += 1 }
    if entry.tag == nil { undurableCount += 1 }
    version += 1
    pruneOrder()
  }

  @discardableResult
  mutating func remove(_ id: MutationID) -> Entry? {
    guard let entry = entries.removeValue(forKey: id) else { return nil }
    idsOfKeys[entry.key]?.remove(id)
    if idsOfKeys[entry.key]?.isEmpty ?? false { idsOfKeys[entry.key] = nil }
    byteCount -= entry.record.byteCount
    if entry.isCounted { liveCount -= 1 }
    if entry.tag == nil { undurableCount -= 1 }
    version += 1
    pruneOrder()
    return entry
  }

  // MARK: - What is stored

  /// Records that the record of a new mutation is durable.
  mutating func recordAddition(of id: MutationID, sequence: UInt64, tag: StoreTag, revision: UInt64) {
    edit(id) { ($0.record.sequence, $0.tag, $0.revision) = (sequence, tag, revision) }
  }

  /// Records that a record is durable.
  mutating func recordWrite(_ record: Record, of id: MutationID, tag: StoreTag, revision: UInt64) {
    edit(id) {
      ($0.tag, $0.revision) = (tag, revision)
      if record.isOutcomeUnknown, !$0.isRefusedByServer { $0.record.isOutcomeUnknown = true }
    }
  }

  /// Records that another process has written the record.
  mutating func receive(_ record: Record, of id: MutationID, tag: StoreTag, revision: UInt64) {
    edit(id) {
      let isOutcomeUnknown = $0.record.isOutcomeUnknown
      ($0.record, $0.tag, $0.revision, $0.isMarked) = (record, tag, revision, false)
      // A reply to this process may repeat what the server answered to the other one.
      if isOutcomeUnknown || record.unfinishedAttempts > 0 { $0.record.isOutcomeUnknown = true }
    }
    pruneOrder()
  }

  /// Takes in how often the end of a process cut an attempt off, when this repository begins to send the mutation.
  ///
  /// - Parameters:
  ///   - id: The mutation.
  ///   - wasFirst: Whether it was the first of its lane, as only that one can have been sent last.
  ///   - limit: The number of attempts in a row after which it is refused.
  mutating func takeOver(_ id: MutationID, wasFirst: Bool, limit: Int) {
    edit(id) {
      let count = $0.record.unfinishedAttempts
      if count > 0 { $0.record.isOutcomeUnknown = true }
      guard wasFirst else {
        $0.record.unfinishedAttempts = 0
        return
      }
      if count > 0 { $0.record.attempts += 1 }
      guard count >= limit else { return }
      $0.record.verdict = .refused(reason: MutationRefusal.cutOff(attempts: count).description)
    }
    pruneOrder()
  }

  // MARK: - Attempts

  /// Counts the attempts that are about to begin, so that the next process knows of them if this one ends.
  mutating func mark(_ id: MutationID) {
    edit(id) {
      $0.isMarked = true
      $0.record.unfinishedAttempts += 1
    }
  }

  /// Takes a mark back that could not be made durable.
  mutating func unmark(_ id: MutationID) {
    edit(id) { ($0.isMarked, $0.record.unfinishedAttempts) = (false, 0) }
  }

  /// Records that an attempt begins.
  ///
  /// From here on the mutation can't be taken back.
  mutating func beginAttempt(_ id: MutationID) {
    edit(id) {
      $0.isInFlight = true
      $0.record.attempts += 1
    }
  }

  /// Records that an attempt broke off without counting: nothing was sent, or the user has to sign in.
  mutating func abandonAttempt(_ id: MutationID) {
    edit(id) {
      ($0.isInFlight, $0.isMarked) = (false, false)
      ($0.record.attempts, $0.record.unfinishedAttempts) = ($0.record.attempts - 1, 0)
    }
  }

  /// Records that the server answered with success.
  mutating func recordAnswer(to id: MutationID) {
    edit(id) { ($0.isInFlight, $0.isMarked, $0.isAnswered) = (false, false, true) }
  }

  /// Records that an attempt failed.
  ///
  /// - Parameters:
  ///   - id: The mutation.
  ///   - isOutcomeUnknown: Whether the server may have the mutation.
  mutating func recordFailure(of id: MutationID, isOutcomeUnknown: Bool) {
    edit(id) {
      ($0.isInFlight, $0.isMarked, $0.record.unfinishedAttempts) = (false, false, 0)
      if isOutcomeUnknown { $0.record.isOutcomeUnknown = true }
    }
  }

  /// Records that the server may have a mutation, although no reply says so that can be used.
  ///
  /// It is no attempt that the process ended.
  ///
  /// - Returns: Whether that is new.
  @discardableResult
  mutating func recordUnknownOutcome(of id: MutationID) -> Bool {
    guard let record = entries[id]?.record, record.unfinishedAttempts > 0 || !record.isOutcomeUnknown else {
      return false
    }
    edit(id) { ($0.record.unfinishedAttempts, $0.record.isOutcomeUnknown) = (0, true) }
    return true
  }

  /// Records that the server has refused a mutation, so that it never made it.
  mutating func recordRefusal(of id: MutationID) {
    edit(id) { ($0.record.isOutcomeUnknown, $0.isRefusedByServer) = (false, true) }
  }

  /// Records that a mutation is not sent any more.
  mutating func recordVerdict(_ verdict: Record.Verdict, on id: MutationID) {
    edit(id) {
      ($0.record.verdict, $0.record.unfinishedAttempts) = (verdict, 0)
      ($0.isInFlight, $0.isMarked, $0.isAnswered) = (false, false, false)
    }
    pruneOrder()
  }

  // MARK: - Decisions

  /// Keeps a mutation from being decided on twice at the same time.
  mutating func beginDecision(on id: MutationID) {
    edit(id) { $0.isBeingDecided = true }
  }

  mutating func endDecision(on id: MutationID) {
    edit(id) { $0.isBeingDecided = false }
  }

  /// Records that the list shows other standings, because users have signed in or out.
  mutating func recordChangeOfStandings() {
    version += 1
  }

  private mutating func edit(_ id: MutationID, _ body: (inout Entry) -> Void) {
    guard var entry = entries[id] else { return }
    let (wasLive, wasDurable) = (entry.isCounted, entry.tag != nil)
    body(&entry)
    entries[id] = entry
    if !wasDurable, entry.tag != nil { undurableCount -= 1 }
    liveCount += (entry.isCounted ? 1 : 0) - (wasLive ? 1 : 0)
    version += 1
  }

  /// Keeps a live mutation at the front, and forgets the others before they are many.
  private mutating func pruneOrder() {
    while let first = order.first, !(entries[first]?.isLive ?? false) { _ = order.removeFirst() }
    if order.count > 2 * entries.count + 32 { order.removeAll { [entries] in entries[$0] == nil } }
  }
}

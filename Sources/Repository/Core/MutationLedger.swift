internal import DataStore
internal import Foundation

/// The mutations in the queue of a repository, with the record and the standing of each.
///
/// A pure state machine. ``MutationLanes`` decides the order of sending, and ``SyncState`` applies mutations to values.
///
/// - Complexity: O(1) amortized for each function that takes a mutation or its id, and for ``oldestMadeAt``.
///   ``list(usersNeedingSignIn:)`` is O(*n* log *n*) for *n* mutations. ``liveMutations(of:)`` is O(*m* log *m*) for
///   the *m* mutations of the key.
struct MutationLedger<Key: RepositoryKey, Mutation: Codable & Sendable> {
  typealias Record = MutationRecord
  typealias Standing = PendingMutation<Key, Mutation>.Standing

  struct Entry {
    let id: MutationID
    let key: Key
    let lane: LaneID
    let mutation: Mutation
    var record: Record
    /// The tag of the commit that last wrote the record, or `nil` if the record isn't durable yet.
    var tag: StoreTag?
    /// The revision of that commit.
    ///
    /// A reported change of the record is ignored unless its revision is newer.
    var revision: UInt64 = 0
    /// Whether the record must be stored as it is, and no other repository has written it since.
    fileprivate(set) var needsSave = false
    /// The tag of the stored record that the first record will overwrite, if the mutation is being sent again under its
    /// id and no other process has decided about it meanwhile.
    var replacedTag: StoreTag?
    /// Whether this repository has marked the mutation for its present or next attempt; see
    /// ``MutationRecord/isMarked``.
    ///
    /// The mark in ``record`` is then this repository's own, and is stored or about to be.
    fileprivate(set) var ownsMark = false
    fileprivate(set) var isInFlight = false
    /// Whether another repository has written the record since this repository began an attempt.
    ///
    /// If the attempt fails, the mark and the counts in that record stay as they are: they may already include the
    /// attempt.
    fileprivate(set) var isTakenOver = false
    /// Whether the server answered an attempt of this repository with success.
    fileprivate(set) var isAnswered = false
    /// Whether the server has refused it or reported a conflict.
    ///
    /// Earlier attempts with an unknown outcome then no longer matter.
    fileprivate(set) var isRefusedByServer = false
    /// Whether it is being cancelled, resolved, requeued or discarded.
    fileprivate(set) var isBeingDecided = false
    /// Whether another repository made it and sends it, because the repositories are independent; see
    /// ``LeadershipStatus``.
    var isExternal = false
    /// The position in the order of addition.
    ///
    /// It orders the mutations that have no sequence number yet.
    fileprivate(set) var additionNumber: UInt64 = 0

    /// Whether it is *live*: waiting, in flight, or answered while the value with the change isn't stored yet.
    ///
    /// A refused or conflicted mutation isn't live.
    var isLive: Bool { record.isLive }

    /// The time at which it was made.
    ///
    /// A record without it isn't read; see ``MutationFormat/decode(_:)``.
    var madeAt: Date { record.madeAt ?? .distantPast }

    /// Whether ``MutationLedger/liveCount`` counts it.
    fileprivate var isCounted: Bool { isLive && !isExternal }

    fileprivate var isBusy: Bool { isLive && (isInFlight || isAnswered) }

    /// The position in the order of all mutations.
    ///
    /// The mutations with a sequence number come first, by that number. The others follow in the order of addition,
    /// because their ``MutationRecord/sequence`` is the greatest possible value.
    fileprivate var position: (UInt64, UInt64) { (record.sequence, additionNumber) }

    /// The standing of the mutation in the list.
    ///
    /// - Parameter usersNeedingSignIn: The users who have to sign in again.
    func standing(usersNeedingSignIn: Set<String?>) -> Standing {
      switch record.verdict {
      case .conflicted(let conflict): .conflicted(conflict)
      case .refused(let reason): .refused(reason: reason)
      // If another repository has marked it, that repository may be sending it.
      case nil where isInFlight || isAnswered || (record.isMarked && !ownsMark): .inFlight
      case nil: usersNeedingSignIn.contains(key.userID) ? .needsSignIn : .waiting
      }
    }
  }

  /// An addition of a mutation.
  ///
  /// A mutation that was removed and added again has two of them.
  private struct Addition {
    let id: MutationID
    let number: UInt64
  }

  private var entries: [MutationID: Entry] = [:]
  private var lastAdditionNumber: UInt64 = 0
  private var idsByKey: [Key: Set<MutationID>] = [:]
  /// The additions, in order.
  ///
  /// May contain those of mutations that were removed or aren't live, but the first one's mutation is live.
  private var additions = FIFO<Addition>()
  private(set) var byteCount = 0
  /// The number of live mutations, except those that another independent repository sends.
  private(set) var liveCount = 0

  /// The number of mutations that aren't live: the app has to decide about them.
  private(set) var undecidedCount = 0
  /// The number of mutations that aren't durable yet.
  private(set) var undurableCount = 0
  /// The live mutations that are in flight, or answered while the value with the change isn't stored yet.
  private var busyIDs: Set<MutationID> = []
  /// The mutations that are refused or in conflict, although their stored records don't say so yet.
  private var idsWithUnstoredVerdict: Set<MutationID> = []
  /// A number that grows with each change of ``list(usersNeedingSignIn:)``.
  private(set) var version: UInt64 = 0

  var count: Int { entries.count }

  subscript(id: MutationID) -> Entry? { entries[id] }

  /// The live mutations of a key, in order.
  func liveMutations(of key: Key) -> [Entry] {
    let live = idsByKey[key]?.compactMap { entries[$0] }.filter(\.isLive) ?? []
    return live.sorted { $0.position < $1.position }
  }

  /// All mutations, in order.
  ///
  /// - Parameter usersNeedingSignIn: The users who have to sign in again.
  func list(usersNeedingSignIn: Set<String?>) -> [PendingMutation<Key, Mutation>] {
    entries.values.sorted { $0.position < $1.position }.map {
      PendingMutation(
        id: $0.id, key: $0.key, mutation: $0.mutation,
        standing: $0.standing(usersNeedingSignIn: usersNeedingSignIn), attempts: $0.record.attempts,
        madeAt: $0.madeAt, failure: $0.isLive ? $0.record.backOff?.reason : nil)
    }
  }

  /// The mutations that ``liveCount`` counts, by lane: their number, and the time at which the oldest one was made.
  ///
  /// - Complexity: O(*n*) for *n* mutations.
  var laneSummaries: [LaneID: (count: Int, oldest: Date)] {
    entries.values.filter(\.isCounted).reduce(into: [:]) { summaries, entry in
      let (summary, madeAt) = (summaries[entry.lane], entry.madeAt)
      summaries[entry.lane] = ((summary?.count ?? 0) + 1, min(summary?.oldest ?? madeAt, madeAt))
    }
  }

  /// All live mutations, in order.
  ///
  /// - Complexity: O(*n* log *n*) for *n* mutations.
  var live: [Entry] { entries.values.filter(\.isLive).sorted { $0.position < $1.position } }

  /// All mutations in order, whether live or not.
  ///
  /// - Complexity: O(*n* log *n*) for *n* mutations.
  var all: [Entry] { entries.values.sorted { $0.position < $1.position } }

  /// The ids of all durable mutations, in order.
  ///
  /// - Complexity: O(*n* log *n*) for *n* mutations.
  var durableIDs: [MutationID] {
    entries.values.filter { $0.tag != nil }.sorted { $0.position < $1.position }.map(\.id)
  }

  /// Whether the mutation `id` must be sent after the mutation `other`, if both are in the same lane; `nil` if that
  /// isn't known.
  ///
  /// A mutation that isn't durable yet has no sequence number. Then it must follow those that were added before it. One
  /// that was added after it may have been stored by another repository, before or after it.
  func isMutation(_ id: MutationID, behind other: MutationID) -> Bool? {
    guard let entry = entries[id], let other = entries[other] else { return false }
    if entry.tag != nil, other.tag != nil { return entry.position > other.position }
    return entry.additionNumber > other.additionNumber ? true : nil
  }

  /// Whether no live mutation is in flight or answered.
  var isIdle: Bool { busyIDs.isEmpty }

  /// The live mutations that are in flight or answered, in order.
  ///
  /// - Complexity: O(*n* log *n*) for *n* such mutations.
  var busy: [Entry] { busyIDs.compactMap { entries[$0] }.sorted { $0.position < $1.position } }

  /// The mutations of a lane that are refused or in conflict, although their stored records don't say so yet, in order.
  ///
  /// - Complexity: O(*n* log *n*), where *n* is the number of such mutations in all lanes.
  func unstoredVerdicts(in lane: LaneID) -> [MutationID] {
    if idsWithUnstoredVerdict.isEmpty { return [] }
    let entries = idsWithUnstoredVerdict.compactMap { self.entries[$0] }.filter { $0.lane == lane }
    return entries.sorted { $0.position < $1.position }.map(\.id)
  }

  /// The mutations that are refused or in conflict, although their stored records don't say so yet, in order.
  ///
  /// - Complexity: O(*n* log *n*) for *n* such mutations.
  var unstoredVerdicts: [MutationID] {
    idsWithUnstoredVerdict.compactMap { entries[$0] }.sorted { $0.position < $1.position }.map(\.id)
  }

  /// Whether a mutation is refused or in conflict, although its stored record doesn't say so yet.
  func hasUnstoredVerdict(_ id: MutationID) -> Bool { idsWithUnstoredVerdict.contains(id) }

  /// The number of live mutations of each key, including those that another repository sends.
  ///
  /// - Complexity: O(*n*) for *n* mutations.
  var liveCountsByKey: [Key: Int] {
    entries.values.filter(\.isLive).reduce(into: [:]) { $0[$1.key, default: 0] += 1 }
  }

  /// The time at which the first live mutation in the order of addition was made, or `nil` if none is live.
  var oldestMadeAt: Date? { additions.first.flatMap { entries[$0.id]?.madeAt } }

  // MARK: - Adding and removing

  mutating func add(_ entry: Entry) {
    guard entries[entry.id] == nil else { return }
    lastAdditionNumber += 1
    entries[entry.id] = entry
    entries[entry.id]?.additionNumber = lastAdditionNumber
    idsByKey[entry.key, default: []].insert(entry.id)
    additions.append(Addition(id: entry.id, number: lastAdditionNumber))
    byteCount += entry.record.byteCount
    if entry.isCounted { liveCount += 1 }
    if !entry.isLive { undecidedCount += 1 }
    if entry.tag == nil { undurableCount += 1 }
    if entry.isBusy { busyIDs.insert(entry.id) }
    version += 1
    pruneAdditions()
  }

  @discardableResult
  mutating func remove(_ id: MutationID) -> Entry? {
    guard let entry = entries.removeValue(forKey: id) else { return nil }
    idsByKey[entry.key]?.remove(id)
    if idsByKey[entry.key]?.isEmpty ?? false { idsByKey[entry.key] = nil }
    byteCount -= entry.record.byteCount
    if entry.isCounted { liveCount -= 1 }
    if !entry.isLive { undecidedCount -= 1 }
    if entry.tag == nil { undurableCount -= 1 }
    busyIDs.remove(id)
    idsWithUnstoredVerdict.remove(id)
    version += 1
    pruneAdditions()
    return entry
  }

  // MARK: - Records

  /// Records which stored record the first record of a new mutation will overwrite; `nil` if it must not overwrite any.
  mutating func recordReplaced(by id: MutationID, tag: StoreTag?) {
    edit(id) { $0.replacedTag = tag }
  }

  /// Records that the record of a new mutation is durable.
  mutating func recordAddition(of id: MutationID, sequence: UInt64, tag: StoreTag, revision: UInt64) {
    edit(id) { ($0.record.sequence, $0.tag, $0.revision) = (sequence, tag, revision) }
  }

  /// Records that the record must be stored as it is.
  mutating func recordNeedForSave(of id: MutationID) {
    edit(id) { $0.needsSave = true }
  }

  /// Records that a changed record is durable.
  ///
  /// If another repository has marked the record or stored an unknown outcome, the record as written says that the
  /// outcome is unknown. The entry then also says so, unless the server has refused the mutation or reported a
  /// conflict.
  mutating func recordWrite(_ record: Record, of id: MutationID, tag: StoreTag, revision: UInt64) {
    edit(id) {
      ($0.tag, $0.revision) = (tag, revision)
      if $0.record == record { $0.needsSave = false }
      if record.isOutcomeUnknown, !$0.isRefusedByServer { $0.record.isOutcomeUnknown = true }
    }
    if !record.isLive { idsWithUnstoredVerdict.remove(id) }
  }

  /// Records that another repository, in this or another process, has written the record.
  mutating func receive(_ record: Record, of id: MutationID, tag: StoreTag, revision: UInt64) {
    edit(id) {
      let isOutcomeUnknown = $0.record.isOutcomeUnknown
      ($0.record, $0.tag, $0.revision) = (record, tag, revision)
      $0.ownsMark = false
      $0.isTakenOver = $0.isInFlight
      // An outcome that was unknown stays unknown. If the record is marked, the other repository may be sending the
      // mutation. The server's reply to this repository may then repeat its earlier reply to the other one, as after an
      // unknown outcome. So the outcome counts as unknown too.
      if isOutcomeUnknown || record.isMarked { $0.record.isOutcomeUnknown = true }
      $0.needsSave = $0.needsSave && isOutcomeUnknown && !record.isOutcomeUnknown
    }
    idsWithUnstoredVerdict.remove(id)
    pruneAdditions()
  }

  /// Counts an interrupted attempt if the mutation was the first of its lane and another repository marked it.
  ///
  /// Called when this repository places a stored mutation in a lane, in order to send it. The repository that marked
  /// the mutation has lost its lead, or its process has ended, so the mark is removed, and the outcome counts as
  /// unknown. If the mutation wasn't the first of its lane, its number of interrupted attempts in a row is reset.
  ///
  /// - Parameters:
  ///   - id: The id of the mutation.
  ///   - wasFirstInLane: Whether it was the first of its lane. A later one may have been marked before its turn,
  ///     because several mutations of a lane are marked together. It was in flight only if the first had been answered
  ///     and that answer wasn't stored yet. So an attempt of a later one isn't counted.
  ///   - mayBeCause: Whether the attempt may have ended its process, because no other attempt was in flight. Otherwise
  ///     the interruption doesn't count.
  ///   - limit: The mutation is refused once this many attempts in a row were interrupted.
  mutating func recordInterruption(of id: MutationID, wasFirstInLane: Bool, mayBeCause: Bool, limit: Int) {
    edit(id) {
      // Its own mark is for an attempt that this repository is about to make.
      if $0.ownsMark { return }
      let wasMarked = $0.record.isMarked
      $0.record.isMarked = false
      if wasMarked { $0.record.isOutcomeUnknown = true }
      guard wasFirstInLane else {
        $0.record.interruptedAttempts = 0
        return
      }
      guard wasMarked else { return }
      $0.record.attempts += 1
      guard mayBeCause else { return }
      $0.record.interruptedAttempts += 1
      guard $0.record.interruptedAttempts >= limit else { return }
      let refusal = MutationRefusal.cutOff(attempts: $0.record.interruptedAttempts)
      $0.record.verdict = .refused(reason: refusal.description)
    }
    pruneAdditions()
  }

  // MARK: - Attempts

  /// Marks a mutation whose attempt may begin soon, so that the next process learns of the attempt if this one ends.
  mutating func mark(_ id: MutationID) {
    edit(id) { ($0.ownsMark, $0.record.isMarked) = (true, true) }
  }

  /// Removes the mark of a mutation that has not been sent, unless another repository has written the record since.
  mutating func unmark(_ id: MutationID) {
    edit(id) {
      guard $0.ownsMark else { return }
      ($0.ownsMark, $0.record.isMarked) = (false, false)
    }
  }

  /// Records that an attempt begins.
  ///
  /// The mutation can't be cancelled until the attempt ends without success.
  mutating func beginAttempt(_ id: MutationID) {
    edit(id) { ($0.isInFlight, $0.isTakenOver) = (true, false) }
  }

  /// Records that the request of an attempt begins, so that the attempt counts.
  ///
  /// The stored record is marked but doesn't count the attempt. So the next process that finds the mark counts the
  /// attempt once.
  mutating func beginRequest(_ id: MutationID) {
    edit(id) { $0.record.attempts += 1 }
  }

  /// Records that an attempt ended before its request began.
  mutating func abandonAttempt(_ id: MutationID) {
    unmark(id)
    edit(id) { $0.isInFlight = false }
  }

  /// Records that an attempt doesn't count, because the server requires the user to sign in.
  ///
  /// Because the server answered, the number of interrupted attempts in a row is reset too.
  mutating func recordNeedForSignIn(of id: MutationID) {
    edit(id) {
      ($0.isInFlight, $0.ownsMark) = (false, false)
      guard $0.isLive, !$0.isTakenOver else { return }
      $0.record.attempts -= 1
      ($0.record.isMarked, $0.record.interruptedAttempts, $0.record.backOff) = (false, 0, nil)
    }
  }

  /// Records that the server answered with success.
  mutating func recordAnswer(to id: MutationID) {
    edit(id) { ($0.isInFlight, $0.ownsMark, $0.isAnswered) = (false, false, true) }
  }

  /// Records that a mutation waits again although the server has answered it, because the answer can't be stored.
  mutating func returnAnswered(_ id: MutationID) {
    edit(id) {
      ($0.isAnswered, $0.ownsMark) = (false, false)
      ($0.record.isMarked, $0.record.isOutcomeUnknown) = (false, true)
    }
  }

  /// Records that an attempt failed.
  ///
  /// - Parameters:
  ///   - id: The id of the mutation.
  ///   - isOutcomeUnknown: Whether the server may have the mutation.
  mutating func recordFailure(of id: MutationID, isOutcomeUnknown: Bool) {
    edit(id) {
      ($0.isInFlight, $0.ownsMark) = (false, false)
      if !$0.isTakenOver { ($0.record.isMarked, $0.record.interruptedAttempts) = (false, 0) }
      if isOutcomeUnknown { $0.record.isOutcomeUnknown = true }
    }
  }

  /// Records that the lane of a mutation waits after a failed attempt.
  mutating func recordBackOff(_ backOff: Record.BackOff, of id: MutationID) {
    edit(id) { $0.record.backOff = backOff }
  }

  /// Records that an attempt ended without a value that could be stored, so the outcome counts as unknown.
  ///
  /// The end of a process didn't interrupt the attempt, so the number of interrupted attempts in a row is reset. Unlike
  /// ``recordFailure(of:isOutcomeUnknown:)``, this function doesn't change whether the mutation is in flight.
  ///
  /// - Returns: Whether that changed the record.
  @discardableResult
  mutating func recordUnknownOutcome(of id: MutationID) -> Bool {
    guard let record = entries[id]?.record else { return false }
    if !record.isMarked, record.interruptedAttempts == 0, record.isOutcomeUnknown { return false }
    edit(id) {
      $0.ownsMark = false
      ($0.record.isMarked, $0.record.interruptedAttempts, $0.record.isOutcomeUnknown) = (false, 0, true)
    }
    return true
  }

  /// Records that the server has refused a mutation or reported a conflict, and so never made the change.
  mutating func recordRefusal(of id: MutationID) {
    edit(id) { ($0.record.isOutcomeUnknown, $0.isRefusedByServer) = (false, true) }
  }

  /// Records why a mutation is no longer sent.
  mutating func recordVerdict(_ verdict: Record.Verdict, on id: MutationID) {
    edit(id) {
      ($0.record.verdict, $0.record.isMarked, $0.record.interruptedAttempts) = (verdict, false, 0)
      $0.record.backOff = nil
      ($0.isInFlight, $0.ownsMark, $0.isAnswered) = (false, false, false)
    }
    if entries[id] != nil { idsWithUnstoredVerdict.insert(id) }
    pruneAdditions()
  }

  // MARK: - Decisions

  /// Records that a decision about a mutation begins, so that no second one begins before ``endDecision(on:)``.
  mutating func beginDecision(on id: MutationID) {
    edit(id) { $0.isBeingDecided = true }
  }

  /// Records that the decision about a mutation has ended.
  mutating func endDecision(on id: MutationID) {
    edit(id) { $0.isBeingDecided = false }
  }

  /// Records that what the queue reports has changed, because a user has signed in, or because of a mutation that this
  /// program can't read.
  mutating func recordChangeOfStandings() {
    version += 1
  }

  private mutating func edit(_ id: MutationID, _ body: (inout Entry) -> Void) {
    guard var entry = entries[id] else { return }
    let (wasCounted, wasLive, wasDurable) = (entry.isCounted, entry.isLive, entry.tag != nil)
    body(&entry)
    entries[id] = entry
    if !wasDurable, entry.tag != nil { undurableCount -= 1 }
    if entry.isBusy { busyIDs.insert(id) } else { busyIDs.remove(id) }
    liveCount += (entry.isCounted ? 1 : 0) - (wasCounted ? 1 : 0)
    undecidedCount += (wasLive ? 1 : 0) - (entry.isLive ? 1 : 0)
    version += 1
  }

  /// Returns the mutation of an addition, or `nil` if it was removed since, even if it was added again later.
  private static func entry(of addition: Addition, in entries: [MutationID: Entry]) -> Entry? {
    entries[addition.id].flatMap { $0.additionNumber == addition.number ? $0 : nil }
  }

  /// Keeps a live mutation at the front of ``additions``, and drops removed mutations before they dominate it.
  private mutating func pruneAdditions() {
    while let first = additions.first, !(Self.entry(of: first, in: entries)?.isLive ?? false) {
      _ = additions.removeFirst()
    }
    // Without the 32, a short queue would be pruned often.
    if additions.count > 2 * entries.count + 32 {
      additions.removeAll { [entries] in Self.entry(of: $0, in: entries) == nil }
    }
  }
}

internal import DataStore
internal import Foundation

/// The mutations of a repository, their order, and the next one to send.
///
/// A value that decides: ``SyncCore`` has it, and ``SyncEngine`` carries its decisions out. It keeps ``MutationLedger``
/// and ``MutationLanes`` consistent: each live mutation that this repository sends, or would send if it led, is in its
/// lane, in flight, or answered; see ``MutationLedger/Entry/isLive``. While this repository follows, the lanes only say
/// whether anything is due.
///
/// - Complexity: That of the ledger and of the lanes.
struct MutationQueue<Key: RepositoryKey, Mutation: Codable & Sendable> {
  typealias Ledger = MutationLedger<Key, Mutation>
  typealias Entry = Ledger.Entry
  typealias Record = Ledger.Record

  /// The next step of sending.
  enum Step {
    case send(Entry)
    /// This repository has to lead before it sends, because another repository leads or none does.
    case lead
    /// Nothing is sent before the deadline or the next event.
    case wait(until: Duration?)
  }

  /// The time after which a mutation in flight no longer counts towards the lanes that may send at the same time.
  ///
  /// Most servers answer sooner. While a server doesn't, a further lane begins to send each time that it has passed.
  private static var slotTimeout: Duration { .milliseconds(500) }

  /// The greatest number of mutations of a lane that are marked together before the first of them is sent.
  ///
  /// The record of a marked mutation says that an attempt may have begun; see ``MutationRecord/isMarked``. Because
  /// several are marked together, a long lane doesn't wait for a commit before each request.
  private static var maximumMarkedTogether: Int { 32 }

  private var ledger = Ledger()
  private var held = HeldMutations<Key>()
  private var lanes: MutationLanes
  /// The number of interrupted attempts in a row after which a mutation is refused; see
  /// ``RetryPolicy/maximumInterruptedAttempts``.
  private let maximumInterruptedAttempts: Int
  /// The role of this repository, which decides whether it sends.
  private(set) var leadership = LeadershipStatus.following
  /// Whether another repository led when this one tried to lead last.
  var isLedElsewhere = false
  /// The lanes in which a stored mutation has been placed since this repository began to send.
  ///
  /// A mark counts as an interrupted attempt only on the first such mutation of a lane; see
  /// ``MutationLedger/recordInterruption(of:wasFirstInLane:mayBeCause:limit:)``.
  private var startedLanes: Set<LaneID> = []
  /// The lanes whose mutations wait for something other than their turn, as another repository's writes show.
  private var lanesStalledElsewhere: Set<LaneID> = []
  /// The lanes that may be out of order: a mutation was inserted in them, rather than appended, while some mutation of
  /// the queue had no sequence number yet.
  private var unorderedLanes: Set<LaneID> = []
  /// The sequence number up to which all stored mutations are known.
  ///
  /// An independent repository ignores gaps between the numbers that it knows, so for such a repository this is the
  /// greatest of them.
  private(set) var knownSequence: UInt64 = 0
  /// The mutations that weren't sent because this program can't read the stored values of their keys.
  private var idsWithUnreadableValues: Set<MutationID> = []
  /// The durable mutations behind a gap: stored mutations before them may not be known yet.
  private var idsBehindGap: Set<MutationID> = []

  /// - Parameters:
  ///   - maximumInFlight: The number of lanes that may send at the same time.
  ///   - maximumInterruptedAttempts: The number of interrupted attempts in a row after which a mutation is refused;
  ///     `nil` for no limit.
  init(maximumInFlight: Int = 4, maximumInterruptedAttempts: Int? = 5) {
    lanes = MutationLanes(maximumInFlight: maximumInFlight, slotTimeout: Self.slotTimeout)
    self.maximumInterruptedAttempts = maximumInterruptedAttempts ?? .max
  }

  // MARK: - State

  subscript(id: MutationID) -> Entry? { ledger[id] }

  /// The number of live mutations, except those that another independent repository sends.
  var liveCount: Int { ledger.liveCount }

  /// The number of all mutations that this program can read.
  var count: Int { ledger.count }

  /// The number of refused and conflicted mutations, about which the app has to decide.
  var undecidedCount: Int { ledger.undecidedCount }

  /// Whether this repository sends mutations.
  var sends: Bool { leadership != .following }

  /// Whether this repository sends the given mutation, and therefore decides whether it is in conflict.
  func sends(_ entry: Entry) -> Bool { sends && !entry.isExternal }

  /// Whether a mutation is due, and this repository neither leads nor sends independently.
  mutating func needsLeader(at now: Duration) -> Bool { !sends && isDue(at: now) }

  /// Whether nothing of the queue is being sent or stored, and nothing is due.
  mutating func isIdle(at now: Duration) -> Bool { isSettled && !isDue(at: now) }

  /// Whether nothing of the queue is being sent or stored.
  var isSettled: Bool { isIdle && !hasUndurableMutations }

  /// All live mutations, in order.
  var live: [Entry] { ledger.live }

  /// All mutations in order, whether live or not.
  var all: [Entry] { ledger.all }

  /// The ids of all durable mutations, in order.
  var durableIDs: [MutationID] { ledger.durableIDs }

  /// A number that grows with each change of ``list``.
  var version: UInt64 { ledger.version }

  /// All mutations, in order.
  var list: [PendingMutation<Key, Mutation>] { ledger.list(usersNeedingSignIn: lanes.usersNeedingSignIn) }

  /// The users who have to sign in again.
  var usersNeedingSignIn: Set<String?> { lanes.usersNeedingSignIn }

  /// The number of live mutations of each key, including those that another repository sends.
  var liveCountsByKey: [Key: Int] { ledger.liveCountsByKey }

  /// The size of all encoded mutations in bytes.
  var byteCount: Int { ledger.byteCount + held.byteCount }

  /// The mutations that this program can't read, in order.
  var heldMutations: [HeldMutation<Key>] { held.all }

  /// The mutations that this program can't read, as the app sees them, in order.
  var unreadable: [UnreadableMutation<Key>] { heldMutations.map(UnreadableMutation.init) }

  /// The ids of all mutations, whether live or not, and whether this program can read them or not.
  var ids: Set<MutationID> { Set(all.map(\.id) + heldMutations.map(\.id)) }

  /// Whether a user has live mutations.
  func hasLiveMutations(of user: UserDigest) -> Bool {
    liveCountsByKey.keys.contains { UserDigest($0.userID) == user }
  }

  /// The number of a user's mutations that weren't refused; see ``UnsentPolicy``.
  ///
  /// A mutation whose user this program can't read may be any user's.
  func unsentCount(of user: UserDigest) -> Int {
    let count = all.count { entry in
      if case .refused = entry.record.verdict { return false }
      return UserDigest(entry.key.userID) == user
    }
    return count + heldMutations.count { $0.user == nil || $0.user == user }
  }

  /// Adds the state of the queue to a report.
  mutating func report(to report: inout RepositoryReport, at now: Duration) {
    report.lanes = laneReports(at: now)
    report.undecidedCount = undecidedCount
    report.unreadable = heldMutations.map { RepositoryReport.UnreadableReport(UnreadableMutation($0)) }
    report.queueByteCount = byteCount
  }

  /// Returns a mutation that this program can't read.
  func heldMutation(_ id: MutationID) -> HeldMutation<Key>? { held[id] }

  /// Whether a mutation of a key is one that this program can't read.
  func holdsMutation(of key: Key) -> Bool { held.contains(mutationOf: key) }

  /// The reports of the lanes that have mutations counted by ``liveCount``, sorted by the ids of the lanes.
  func laneReports(at now: Duration) -> [RepositoryReport.LaneReport] {
    let statuses = lanes.report(at: now, idsWithUnreadableValues)
    return ledger.laneSummaries.sorted { $0.key < $1.key }.map { laneID, summary in
      RepositoryReport.LaneReport(
        lane: "\(laneID)", count: summary.count, oldest: summary.oldest, failures: statuses[laneID]?.failures ?? 0,
        status: status(of: statuses[laneID]?.status ?? .waiting))
    }
  }

  /// The status of a lane in a report, given its status if this repository sent its mutations.
  private func status(of status: RepositoryReport.LaneReport.Status) -> RepositoryReport.LaneReport.Status {
    switch status {
    case .waiting, .inFlight: isLedElsewhere ? .sentElsewhere : status
    case .backingOff, .needsSignIn, .offline, .suspended, .held, .sentElsewhere: status
    }
  }

  /// The live mutations of a key, in order.
  func liveMutations(of key: Key) -> [Entry] { ledger.liveMutations(of: key) }

  /// The standing of a mutation in the list.
  func standing(of entry: Entry) -> Ledger.Standing { entry.standing(usersNeedingSignIn: lanes.usersNeedingSignIn) }

  /// Whether the limits allow another mutation.
  ///
  /// - Parameters:
  ///   - byteCount: The size of the encoded mutation.
  ///   - limits: The limits.
  ///   - now: The present time.
  func hasRoom(for byteCount: Int, limits: QueueLimits, now: Date) -> Bool {
    guard ledger.count + held.count < limits.maximumCount, self.byteCount + byteCount <= limits.maximumBytes else {
      return false
    }
    guard let maximumAge = limits.maximumAge, let oldest = ledger.oldestMadeAt else { return true }
    // The age isn't known if the clock was set back. That doesn't close the queue.
    return Freshness.age(savedAt: oldest, now: now).map { $0 < maximumAge } ?? true
  }

  // MARK: - Adding

  /// Records whether this repository sends, before the first mutation is added.
  mutating func begin(as status: LeadershipStatus) {
    leadership = status
  }

  /// Records that this repository sends from now on.
  ///
  /// - Returns: `refused`: the mutations that are now refused; their records must be written. `behindGap`: the
  ///   mutations behind a gap; the caller reads their predecessors and then calls ``recordPredecessors(of:)``.
  mutating func lead(as status: LeadershipStatus) -> (refused: [MutationID], behindGap: [MutationID]) {
    leadership = status
    (startedLanes, lanesStalledElsewhere) = ([], [])
    return takeOver()
  }

  /// Examines the mutations in the lanes, because this repository sends them from now on.
  private mutating func takeOver() -> (refused: [MutationID], behindGap: [MutationID]) {
    let entries = ledger.live.filter { !$0.isAnswered && !$0.isExternal }
    var (refused, behindGap): ([MutationID], [MutationID]) = ([], [])
    var knownLanes: Set<LaneID> = []
    let firsts = entries.filter { knownLanes.insert($0.lane).inserted }
    // If several attempts were in flight, none of them is the certain cause of the end of their process.
    let interrupted = firsts.filter { $0.tag != nil && $0.record.isMarked && !$0.ownsMark }
    for entry in entries {
      switch takeOver(entry, mayBeCause: interrupted.count <= 1) {
      case .nothing: break
      case .refused: refused.append(entry.id)
      case .behindGap: behindGap.append(entry.id)
      }
    }
    if interrupted.count > 1 { lanes.suspect(interrupted.map(\.lane)) }
    return (refused, behindGap)
  }

  /// Records that this repository no longer sends.
  ///
  /// The caller waits for the attempts in flight before it calls ``lead(as:)`` again.
  mutating func follow() {
    leadership = .following
    if !idsBehindGap.isEmpty {
      for entry in ledger.all where idsBehindGap.contains(entry.id) { lanes.unblock(entry.id, lane: entry.lane) }
      idsBehindGap = []
    }
    // A waiting mutation wasn't sent, so its mark is void.
    for entry in ledger.live where entry.ownsMark && !entry.isInFlight { ledger.unmark(entry.id) }
  }

  /// Ends an attempt that has ended since this repository no longer sends, unless it was answered.
  mutating func endAttemptAfterLoss(_ entry: Entry) {
    if let present = ledger[entry.id], present.isLive {
      if !present.isAnswered { lanes.release(entry.id, lane: entry.lane, needsSignIn: false) }
    } else {
      lanes.complete(lane: entry.lane)
    }
  }

  /// Records that all stored mutations up to a sequence number are known.
  mutating func recordReading(upTo sequence: UInt64) {
    knownSequence = max(knownSequence, sequence)
  }

  /// Adds a stored mutation that the first read of the queue has found.
  ///
  /// The caller adds these mutations in order, and then calls ``endRestoring(at:)``.
  mutating func restore(_ entry: Entry) {
    ledger.add(entry)
    let record = entry.record
    // The leader has tried to send the mutation and hasn't marked it again, so the mutation has to wait; see
    // ``receive(_:of:at:)``.
    if !sends, record.isLive, record.attempts > 0, !record.isMarked { lanesStalledElsewhere.insert(entry.lane) }
  }

  /// Places the mutations that the first read of the queue has found in their lanes.
  ///
  /// - Returns: The mutations that are now refused, so that their records must be written.
  mutating func endRestoring(at now: Moment) -> [MutationID] {
    for entry in ledger.live { place(entry, at: now) }
    return sends ? takeOver().refused : []
  }

  /// The action that follows when a mutation is added or placed in its lane.
  enum FollowUp: Equatable {
    case nothing
    /// The mutation is now refused, so its record must be written.
    case refused
    /// This repository leads, and stored mutations before this one may not be known yet.
    ///
    /// The caller reads them, and then calls ``recordPredecessors(of:)``.
    case behindGap
  }

  /// Adds a mutation that another repository has stored, and whose place in the order is therefore fixed.
  mutating func addExternal(_ entry: Entry, at now: Moment) -> FollowUp {
    var entry = entry
    entry.isExternal = leadership == .independent
    ledger.add(entry)
    place(entry, at: now)
    if leadership == .leading, entry.isLive { return takeOver(entry, mayBeCause: true) }
    // Another repository sends the mutation, so a gap makes no difference.
    recordSequence(entry.record.sequence)
    return .nothing
  }

  /// Examines a live mutation in its lane, because this repository sends it from now on.
  ///
  /// It waits if stored mutations before it may not be known yet. It is refused if too many of its attempts in a row
  /// were interrupted.
  ///
  /// - Parameters:
  ///   - entry: The mutation.
  ///   - mayBeCause: See ``MutationLedger/recordInterruption(of:wasFirstInLane:mayBeCause:limit:)``.
  private mutating func takeOver(_ entry: Entry, mayBeCause: Bool) -> FollowUp {
    // A mutation that isn't durable yet has no sequence number.
    guard entry.tag != nil else { return .nothing }
    let isBehindGap = recordSequence(entry.record.sequence)
    let wasFirstInLane = startedLanes.insert(entry.lane).inserted
    ledger.recordInterruption(
      of: entry.id, wasFirstInLane: wasFirstInLane, mayBeCause: mayBeCause, limit: maximumInterruptedAttempts)
    guard ledger[entry.id]?.isLive ?? false else {
      // The refused mutation no longer is in the lane, so the next one counts as the first.
      startedLanes.remove(entry.lane)
      lanes.remove(entry.id, lane: entry.lane)
      return .refused
    }
    guard isBehindGap else { return .nothing }
    idsBehindGap.insert(entry.id)
    lanes.block(entry.id)
    return .behindGap
  }

  /// Records that the mutation with the given sequence number is known, unless it is behind a gap.
  ///
  /// - Returns: Whether it is behind a gap: stored mutations before it may not be known yet. Always `false` for an
  ///   independent repository, because it doesn't send the mutations that other repositories add.
  @discardableResult
  private mutating func recordSequence(_ sequence: UInt64) -> Bool {
    if leadership != .independent, sequence > knownSequence + 1 { return true }
    recordReading(upTo: sequence)
    return false
  }

  /// Places a live mutation in its lane, where it waits for the rest of the delay after its last attempt, if that
  /// failed.
  private mutating func place(_ entry: Entry, at now: Moment) {
    guard entry.isLive, !entry.isExternal else { return }
    if entry.tag == nil { lanes.block(entry.id) }
    if ledger.undurableCount > 0 { unorderedLanes.insert(entry.lane) }
    lanes.insert(entry.id, lane: entry.lane, userID: entry.key.userID) { [ledger, held] in
      Self.isMutation($0, behind: entry.id, ledger, held)
    }
    resumeBackOff(of: entry.id, entry.record, in: entry.lane, at: now)
  }

  /// Makes a lane wait for the rest of the delay after the last attempt of its first mutation.
  private mutating func resumeBackOff(of id: MutationID, _ record: Record, in lane: LaneID, at now: Moment) {
    guard let backOff = record.backOff, lanes.upcoming(in: lane, count: 1) == [id] else { return }
    lanes.resumeBackOff(lane: lane, until: now.elapsed + backOff.remainder(at: now.time), backOff)
  }

  /// Whether the mutation `id` must be sent after the mutation `other`, if both are in the same lane; `nil` if that
  /// isn't known.
  private static func isMutation(
    _ id: MutationID, behind other: MutationID, _ ledger: Ledger, _ held: HeldMutations<Key>
  ) -> Bool? {
    // A mutation that isn't durable yet has the greatest sequence number.
    let sequence = { (id: MutationID) in held[id]?.record.sequence ?? ledger[id]?.record.sequence ?? 0 }
    if held[id] == nil, held[other] == nil { return ledger.isMutation(id, behind: other) }
    return sequence(id) > sequence(other)
  }

  // MARK: - Held mutations

  /// Adds a mutation that this program can't read, or replaces it if it is held already.
  ///
  /// The caller removes it from the queue first if it could be read before.
  mutating func hold(_ mutation: HeldMutation<Key>) {
    if let earlier = held.remove(mutation.id) { liftFence(of: earlier) }
    held.insert(mutation)
    recordSequence(mutation.record.sequence)
    fence(mutation)
    lanes.holdsAll = held.countWithoutLane > 0
    ledger.recordChangeOfStandings()
  }

  /// Forgets a mutation that this program can't read.
  @discardableResult
  mutating func removeHeld(_ id: MutationID) -> HeldMutation<Key>? {
    guard let mutation = held.remove(id) else { return nil }
    liftFence(of: mutation)
    lanes.holdsAll = held.countWithoutLane > 0
    ledger.recordChangeOfStandings()
    return mutation
  }

  /// Keeps the mutations behind one that this program can't read from being sent.
  private mutating func fence(_ mutation: HeldMutation<Key>) {
    guard let lane = mutation.lane else { return }
    if ledger.undurableCount > 0 { unorderedLanes.insert(lane) }
    lanes.hold(mutation.id, lane: lane) { [ledger, held] in Self.isMutation($0, behind: mutation.id, ledger, held) }
  }

  private mutating func liftFence(of mutation: HeldMutation<Key>) {
    if let lane = mutation.lane { lanes.remove(mutation.id, lane: lane) }
  }

  /// Moves a mutation that has become durable to its place in the order.
  private mutating func putInOrder(_ id: MutationID) {
    guard !unorderedLanes.isEmpty, let entry = ledger[id] else { return }
    if unorderedLanes.contains(entry.lane) {
      lanes.move(id, in: entry.lane) { [ledger, held] in Self.isMutation($0, behind: id, ledger, held) }
    }
    if ledger.undurableCount == 0 { unorderedLanes = [] }
  }

  /// Adds a mutation that is about to be written.
  ///
  /// The mutation takes the last place in its lane and blocks the lane there.
  ///
  /// If the mutation can probably be sent as soon as it is durable, its first record already has the mark of an
  /// attempt, which saves a second write. If this repository doesn't send yet, the caller attempts to lead. If a
  /// refused or conflicted mutation is sent again under its id, the new entry replaces the old one.
  mutating func add(_ id: MutationID, _ mutation: Mutation, key: Key, lane: LaneID, record: Record) {
    let replacedTag = remove(id)?.tag
    let isReadyOnceDurable = (sends || !isLedElsewhere) && lanes.isFree(lane)
    ledger.add(
      Entry(id: id, key: key, lane: lane, mutation: mutation, record: record, tag: nil, replacedTag: replacedTag))
    if isReadyOnceDurable { ledger.mark(id) }
    lanes.append(id, lane: lane, userID: key.userID, isDurable: false)
  }

  /// Records that the record of a new mutation is written.
  ///
  /// If the mutation is still live, the caller then calls ``release(_:)``.
  ///
  /// - Returns: Whether this repository leads and stored mutations before this one may not be known yet. If so, the
  ///   caller also reads them, and then calls ``recordPredecessors(of:)``.
  mutating func recordAddition(of id: MutationID, sequence: UInt64, tag: StoreTag, revision: UInt64) -> Bool {
    ledger.recordAddition(of: id, sequence: sequence, tag: tag, revision: revision)
    putInOrder(id)
    // It came into conflict while it was being written. Until now, its verdict couldn't be stored.
    if let entry = ledger[id], !entry.isLive { lanes.remove(id, lane: entry.lane) }
    let isBehindGap = recordSequence(sequence)
    guard isBehindGap, leadership == .leading else { return false }
    idsBehindGap.insert(id)
    return true
  }

  /// Records that all mutations before this one are known.
  mutating func recordPredecessors(of id: MutationID) {
    idsBehindGap.remove(id)
    if let entry = ledger[id], !entry.isBeingDecided { lanes.unblock(id, lane: entry.lane) }
  }

  /// Records that the stored record that a new one would have overwritten has changed.
  ///
  /// - Parameters:
  ///   - id: The id of the mutation that is being sent again.
  ///   - tag: The tag of the record that it may overwrite now; `nil` if it may overwrite none.
  mutating func recordReplaced(by id: MutationID, tag: StoreTag?) {
    ledger.recordReplaced(by: id, tag: tag)
  }

  /// Restores a refused or conflicted mutation that isn't sent again, because its new record could not be written.
  mutating func restoreRefused(_ entry: Entry) {
    var entry = entry
    entry.tag = remove(entry.id)?.replacedTag ?? entry.tag
    ledger.add(entry)
  }

  // MARK: - Sending

  /// Returns the next step of sending, and records that the mutation to send is in flight.
  mutating func next(at now: Duration) -> Step {
    if !sends { return lanes.isDue(at: now) ? .lead : .wait(until: lanes.nextDeadline) }
    while true {
      switch lanes.next(at: now) {
      case .wait(let deadline): return .wait(until: deadline)
      case .send(let id, let lane):
        ledger.beginAttempt(id)
        if let entry = ledger[id] { return .send(entry) }
        // It is no longer in the queue.
        lanes.complete(lane: lane)
      }
    }
  }

  /// Whether a mutation would be sent now if this repository led.
  mutating func isDue(at now: Duration) -> Bool { lanes.isDue(at: now) }

  /// Whether no attempt is in flight, and no reply waits to be stored.
  var isIdle: Bool { ledger.isIdle }

  /// The waiting mutations whose stored records have marks of this repository.
  ///
  /// - Complexity: O(*n* log *n*) for *n* mutations.
  var waitingWithMarks: [MutationID] { ledger.live.filter { $0.ownsMark && !$0.isInFlight }.map(\.id) }

  /// Whether a mutation or a value that this program can't read keeps mutations from being sent.
  var holdsMutations: Bool { held.count > 0 || !idsWithUnreadableValues.isEmpty }

  /// Records whether this program can read the stored value of a mutation's key.
  mutating func recordValue(of id: MutationID, isReadable: Bool) {
    if isReadable { idsWithUnreadableValues.remove(id) } else { idsWithUnreadableValues.insert(id) }
  }

  /// Marks a mutation whose request is about to be sent, and the next ones in its lane.
  ///
  /// Does nothing if this repository has already marked the mutation.
  ///
  /// - Returns: The mutations whose records must be written before the first one is sent.
  mutating func mark(_ id: MutationID) -> [MutationID] {
    guard let entry = ledger[id], !entry.ownsMark else { return [] }
    let ids = ([id] + lanes.upcoming(in: entry.lane, count: Self.maximumMarkedTogether - 1)).filter { id in
      ledger[id].map { $0.isLive && $0.tag != nil && !$0.ownsMark } ?? false
    }
    for id in ids { ledger.mark(id) }
    return ids
  }

  /// Removes the mark of a waiting mutation, because its attempt doesn't begin yet.
  ///
  /// Does nothing while the first record of the mutation is being written. If sending is paused when that write ends,
  /// ``SyncCore/endAddition(of:)`` removes the mark.
  ///
  /// - Returns: Whether its record must be written.
  mutating func removeMark(of id: MutationID) -> Bool {
    guard let entry = ledger[id], entry.ownsMark, !entry.isInFlight, entry.tag != nil else { return false }
    ledger.unmark(id)
    return true
  }

  /// Whether nothing is sent, because the network is offline or the repository is suspended.
  var isPaused: Bool { !lanes.pauses.isEmpty }

  /// Whether the repository is suspended.
  var isSuspended: Bool { lanes.pauses.contains(.suspended) }

  /// Whether any lane has a mutation, waiting or in flight, whose user doesn't have to sign in.
  var hasMutationsToSend: Bool { lanes.hasMutationsToSend }

  /// Whether a mutation must be marked before it is sent.
  func needsMark(_ id: MutationID) -> Bool { ledger[id].map { $0.isLive && !$0.ownsMark } ?? false }

  /// Removes marks that could not be written.
  mutating func unmark(_ ids: [MutationID]) {
    for id in ids { ledger.unmark(id) }
  }

  /// Records that the request of an attempt begins, and counts the attempt.
  ///
  /// - Returns: The mutation, or `nil` if it was removed, refused or found in conflict since the attempt began.
  mutating func beginRequest(_ id: MutationID) -> Entry? {
    guard ledger[id]?.isLive ?? false else { return nil }
    ledger.beginRequest(id)
    return ledger[id]
  }

  /// Records that an attempt ended before its request began.
  mutating func abandonAttempt(_ entry: Entry) {
    ledger.abandonAttempt(entry.id)
  }

  /// Records that the server answered with success, so the next mutation of the lane may be sent.
  mutating func recordAnswer(to entry: Entry) {
    ledger.recordAnswer(to: entry.id)
    lanes.complete(lane: entry.lane)
  }

  /// Returns an answered mutation to its place in its lane, which waits for a delay.
  mutating func returnAnswered(_ entry: Entry, after delay: Duration, at now: Moment) {
    guard ledger[entry.id]?.isAnswered ?? false else { return }
    ledger.returnAnswered(entry.id)
    lanes.insert(entry.id, lane: entry.lane, userID: entry.key.userID) { [ledger, held] in
      Self.isMutation($0, behind: entry.id, ledger, held)
    }
    let backOff = Record.BackOff(
      failedAt: now.time, delay: delay, isServerDelay: false,
      reason: "the answer can't be stored, because a newer version of the program has stored the value",
      failures: lanes.failures(in: entry.lane))
    lanes.resumeBackOff(lane: entry.lane, until: now.elapsed + delay, backOff)
  }

  /// Records that an attempt failed.
  mutating func recordFailure(of id: MutationID, isOutcomeUnknown: Bool) {
    ledger.recordFailure(of: id, isOutcomeUnknown: isOutcomeUnknown)
  }

  /// Records that an attempt ended without a value that could be stored, so the outcome counts as unknown.
  ///
  /// - Returns: Whether that changed the record.
  @discardableResult
  mutating func recordUnknownOutcome(of id: MutationID) -> Bool {
    ledger.recordUnknownOutcome(of: id)
  }

  /// Records that the server has refused a mutation or reported a conflict, and so never made the change.
  ///
  /// The mutation stays live until ``recordVerdict(_:on:)``.
  mutating func recordRefusal(of id: MutationID) {
    ledger.recordRefusal(of: id)
  }

  /// The number of consecutive failed attempts of a mutation's lane, counting the present attempt as failed.
  func failures(of entry: Entry) -> Int { lanes.failuresForDelay(in: entry.lane) }

  /// Makes a lane wait after a failed attempt.
  ///
  /// The caller writes the record.
  ///
  /// - Parameters:
  ///   - entry: The mutation whose attempt failed.
  ///   - delay: The time until the next attempt.
  ///   - isServerDelay: Whether the server named the delay.
  ///   - reason: The text of the error.
  ///   - hasRequested: Whether the request had begun. Otherwise only this process has to wait.
  ///   - now: The present time.
  /// - Returns: Whether the server probably can't be reached from now on; see ``Outage``.
  mutating func backOff(
    _ entry: Entry, for delay: Duration, isServerDelay: Bool, reason: String, hasRequested: Bool,
    at now: Moment
  ) -> Bool {
    let backOff = Record.BackOff(
      failedAt: now.time, delay: delay, isServerDelay: isServerDelay, reason: reason,
      failures: lanes.failures(in: entry.lane))
    if hasRequested, let present = ledger[entry.id], !present.isTakenOver {
      ledger.recordBackOff(backOff, of: entry.id)
    }
    return lanes.backOff(
      entry.id, lane: entry.lane, until: now.elapsed + delay, isServerDelay: isServerDelay, hasRequested: hasRequested)
  }

  /// Makes the lanes of a mutation's user wait for new credentials, unless the credentials have changed since the
  /// attempt began.
  ///
  /// - Returns: The mutations that have to wait.
  mutating func waitForSignIn(_ entry: Entry) -> [MutationID] {
    ledger.recordNeedForSignIn(of: entry.id)
    // The mutation returns to the front of its lane.
    lanes.release(entry.id, lane: entry.lane, needsSignIn: true)
    // If it was removed, refused or found in conflict meanwhile, it isn't sent again.
    if !(ledger[entry.id]?.isLive ?? false) { lanes.remove(entry.id, lane: entry.lane) }
    guard lanes.usersNeedingSignIn.contains(entry.key.userID) else {
      // The attempt used old credentials, so the mutation is sent again, unless sending is paused.
      return isPaused ? live(lanes.waiting(in: entry.lane)) : []
    }
    return live(lanes.lanes(of: entry.key.userID).flatMap { lanes.waiting(in: $0) })
  }

  /// The waiting mutations of a lane, in order.
  ///
  /// While this repository follows: all live mutations of the lane, because it isn't known which of them the leader is
  /// sending.
  func waiting(in lane: LaneID) -> [MutationID] {
    sends ? live(lanes.waiting(in: lane)) : ledger.live.filter { $0.lane == lane }.map(\.id)
  }

  /// Returns those of the given mutations that are live.
  private func live(_ ids: [MutationID]) -> [MutationID] { ids.filter { ledger[$0]?.isLive ?? false } }

  /// Whether the mutations of a lane wait for something other than their turn, such as a sign-in or the network.
  func isStalled(_ lane: LaneID) -> Bool {
    lanes.isStalled(lane) || (!sends && lanesStalledElsewhere.contains(lane))
  }

  /// Stops sending.
  ///
  /// - Returns: The mutations that have to wait.
  mutating func pause(_ pause: MutationLanes.Pause) -> [MutationID] {
    lanes.pause(pause)
    return sends ? live(lanes.allWaiting) : ledger.live.map(\.id)
  }

  mutating func resume(_ pause: MutationLanes.Pause) {
    lanes.resume(pause)
  }

  /// Returns a mutation whose attempt was cancelled to its lane, because the repository is suspended.
  mutating func interruptAttempt(_ entry: Entry) {
    ledger.recordFailure(of: entry.id, isOutcomeUnknown: true)
    lanes.release(entry.id, lane: entry.lane, needsSignIn: false)
    if !(ledger[entry.id]?.isLive ?? false) { lanes.remove(entry.id, lane: entry.lane) }
  }

  /// The live mutations that are in flight, or answered while the value with the change isn't stored yet, in order.
  var busy: [Entry] { ledger.busy }

  /// Whether the record of a new mutation is being written.
  var hasUndurableMutations: Bool { ledger.undurableCount > 0 }

  /// Whether a drain has reached its end: nothing is in flight, and nothing can be sent before a deadline.
  ///
  /// - Returns: The result of the drain, or `nil` if there is still something to wait for.
  mutating func drainResult(at now: Moment, within deadline: Duration) -> DrainResult? {
    if liveCount == 0 { return held.count == 0 ? .empty : .paused(.unreadable(held.count)) }
    if !isIdle { return nil }
    if lanes.pauses.contains(.offline) { return .paused(.offline) }
    if lanes.isDue(at: now.elapsed) { return nil }
    if let end = lanes.endOfFirstBackOff(except: idsWithUnreadableValues) {
      return end <= deadline ? nil : .paused(.backingOff(until: now.time + (end - now.elapsed) / .seconds(1)))
    }
    if !lanes.usersNeedingSignIn.isEmpty { return .paused(.needsSignIn) }
    let unreadableCount = held.count + idsWithUnreadableValues.count
    return unreadableCount == 0 ? nil : .paused(.unreadable(unreadableCount))
  }

  /// The result of a drain whose time is over.
  var unfinishedDrainResult: DrainResult {
    if liveCount == 0 { return .empty }
    return !sends && isLedElsewhere ? .paused(.sentElsewhere) : .remaining(liveCount)
  }

  /// Ends all backoffs, except those whose delay the server named, and resets the numbers of failures.
  mutating func retryNow() {
    lanes.retryNow()
  }

  /// Ends backoffs because a fetch has succeeded; see ``MutationLanes/resumeAfterFetch()``.
  mutating func resumeAfterFetch() {
    lanes.resumeAfterFetch()
  }

  /// Lets the mutations of a user be sent again, because the user's credentials have changed.
  mutating func signedIn(userID: String?) {
    lanes.signedIn(userID: userID)
    ledger.recordChangeOfStandings()
  }

  // MARK: - Removing

  /// Completes the attempt of a mutation, so that the next mutation of its lane may be sent.
  mutating func complete(_ entry: Entry) {
    lanes.complete(lane: entry.lane)
  }

  /// Forgets a mutation.
  ///
  /// A mutation in flight blocks its lane until ``complete(_:)``.
  @discardableResult
  mutating func remove(_ id: MutationID) -> Entry? {
    guard let entry = ledger.remove(id) else { return nil }
    idsWithUnreadableValues.remove(id)
    // The leader may have made progress in the lane.
    lanesStalledElsewhere.remove(entry.lane)
    if !entry.isInFlight, !entry.isAnswered { lanes.remove(id, lane: entry.lane) }
    return entry
  }

  /// Records why a mutation is no longer sent: it is refused or in conflict.
  ///
  /// A mutation in flight blocks its lane until ``complete(_:)``, and one that isn't durable yet until
  /// ``recordAddition(of:sequence:tag:revision:)``.
  mutating func recordVerdict(_ verdict: Record.Verdict, on id: MutationID) {
    guard let entry = ledger[id] else { return }
    idsWithUnreadableValues.remove(id)
    if !entry.isInFlight, !entry.isAnswered, entry.tag != nil { lanes.remove(id, lane: entry.lane) }
    ledger.recordVerdict(verdict, on: id)
  }

  // MARK: - Records

  /// The mutations of a lane that are refused or in conflict, although their stored records don't say so yet, in order.
  func unstoredVerdicts(in lane: LaneID) -> [MutationID] { ledger.unstoredVerdicts(in: lane) }

  /// The mutations that are refused or in conflict, although their stored records don't say so yet.
  var unstoredVerdicts: [MutationID] { ledger.unstoredVerdicts }

  /// Whether a mutation is refused or in conflict, although its stored record doesn't say so yet.
  func hasUnstoredVerdict(_ id: MutationID) -> Bool { ledger.hasUnstoredVerdict(id) }

  /// Records that the present record of a mutation must be stored.
  mutating func recordNeedForSave(of id: MutationID) {
    ledger.recordNeedForSave(of: id)
  }

  /// Records that a record is durable.
  mutating func recordWrite(_ record: Record, of id: MutationID, tag: StoreTag, revision: UInt64) {
    ledger.recordWrite(record, of: id, tag: tag, revision: revision)
  }

  /// Records that another repository, in this or another process, has written the record of a mutation.
  ///
  /// - Parameters:
  ///   - stored: The record.
  ///   - entry: The mutation.
  ///   - now: The present time.
  /// - Returns: The verdict, if it is new.
  mutating func receive(
    _ stored: StoredValue<Record>, of entry: Entry, at now: Moment
  ) -> Record.Verdict? {
    let verdict = entry.isLive ? stored.value.verdict : nil
    if verdict != nil, !entry.isInFlight, !entry.isAnswered { lanes.remove(entry.id, lane: entry.lane) }
    ledger.receive(stored.value, of: entry.id, tag: stored.tag, revision: stored.revision)
    if !sends, entry.isLive {
      // The leader marks a mutation before sending it, and writes a live record without a mark only if the mutation has
      // to wait.
      if stored.value.isLive, !stored.value.isMarked {
        lanesStalledElsewhere.insert(entry.lane)
      } else {
        lanesStalledElsewhere.remove(entry.lane)
      }
      if stored.value.isLive, stored.value.backOff != entry.record.backOff {
        resumeBackOff(of: entry.id, stored.value, in: entry.lane, at: now)
      }
    }
    return verdict
  }

  /// The tag of the stored record that a new mutation replaces; `nil` if it no longer may, because another process has
  /// decided about the replaced mutation.
  func replaceableTag(of id: MutationID, by entry: Entry) -> StoreTag? {
    if id == entry.id { return entry.replacedTag }
    return ledger[id].flatMap { $0.isLive ? nil : $0.tag }
  }

  /// The tag of a stored record that may be removed; `nil` if it may not.
  func removableTag(of id: MutationID, if condition: RecordWrite.RemovalCondition) -> StoreTag? {
    if case .held(let tag) = condition { return held[id]?.tag == tag ? tag : nil }
    guard let entry = ledger[id] else { return nil }
    switch condition {
    case .unsent: return entry.record.isMarked && !entry.ownsMark ? nil : entry.tag
    case .undecided: return entry.isLive ? nil : entry.tag
    case .refused, .held: return entry.tag
    }
  }

  // MARK: - Decisions

  /// Keeps a mutation from being sent, and from a second decision, while it is being cancelled, resolved, requeued or
  /// discarded.
  ///
  /// A waiting mutation keeps its place in its lane and blocks the lane.
  mutating func hold(_ id: MutationID) {
    lanes.block(id)
    ledger.beginDecision(on: id)
  }

  /// Allows a mutation that was held, or has become durable, to be sent, unless it is behind a gap.
  mutating func release(_ id: MutationID) {
    guard let entry = ledger[id] else { return }
    ledger.endDecision(on: id)
    if !idsBehindGap.contains(id) { lanes.unblock(id, lane: entry.lane) }
  }
}

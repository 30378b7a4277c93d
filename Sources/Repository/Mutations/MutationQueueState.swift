internal import DataStore
internal import Foundation

/// The decisions of a ``MutationQueue``: which mutations there are, and which one is sent next.
///
/// A pure state machine that keeps ``MutationLedger`` and ``MutationLanes`` in step: a mutation that is live in the ledger is
/// in its lane, or in flight.
///
/// - Complexity: That of the two parts.
struct MutationQueueState<Key: RepositoryKey, Mutation: Codable & Sendable> {
  typealias Ledger = MutationLedger<Key, Mutation>
  typealias Entry = Ledger.Entry
  typealias Record = Ledger.Record

  /// What there is to do for the sender.
  enum Step {
    case send(Entry)
    /// Another repository leads, or none does: this one has to lead before it sends.
    case lead
    /// Nothing is sent before this time, or before something else happens.
    case wait(until: Duration?)
  }

  /// The number of attempts that the end of a process may cut off before a mutation is refused.
  static var maximumUnfinishedAttempts: Int { 5 }

  /// The number of mutations that are sent at the same time, of different lanes.
  static var maximumInFlight: Int { 4 }

  /// How long a mutation that is being sent counts as one of ``maximumInFlight``.
  static var longestPlace: Duration { .seconds(5) }

  /// The number of mutations of a lane that are marked together, before the first of them is sent.
  private static var markedTogether: Int { 32 }

  private var ledger = Ledger()
  private var lanes = MutationLanes(
    maximumInFlight: MutationQueueState.maximumInFlight, longestPlace: MutationQueueState.longestPlace)
  /// Whether this repository sends.
  private(set) var leadership = LeadershipStatus.following
  /// The lanes that have had their first mutation of an earlier process.
  private var startedLanes: Set<String> = []
  /// The lanes of which another repository has reported that they wait.
  private var reportedLanes: Set<String> = []
  /// The lanes in which durable mutations stand behind others that may have been made later.
  private var mixedLanes: Set<String> = []
  /// The sequence up to which all mutations are known that are stored.
  private(set) var knownSequence: UInt64 = 0
  /// The mutations that are durable, and behind others that aren't known yet.
  private var behindUnknown: Set<MutationID> = []

  // MARK: - What there is

  subscript(id: MutationID) -> Entry? { ledger[id] }

  /// The number of mutations.
  var count: Int { ledger.count }

  /// The number of mutations that will be sent, or are; without those that others send because none leads.
  var liveCount: Int { ledger.liveCount }

  /// Whether this repository sends at all.
  var sends: Bool { leadership != .following }

  /// Whether this repository sends a mutation.
  func sends(_ entry: Entry) -> Bool { sends && !entry.isExternal }

  /// All mutations that will be sent, or are, in order.
  var live: [Entry] { ledger.live }

  /// All mutations in order, in whatever state.
  var all: [Entry] { ledger.all }

  /// All mutations that are durable, in order.
  var durableIDs: [MutationID] { ledger.durableIDs }

  /// Counts changes of what ``list`` returns.
  var version: UInt64 { ledger.version }

  /// All mutations in order.
  var list: [PendingMutation<Key, Mutation>] { ledger.list(signedOutUsers: lanes.signedOutUsers) }

  /// The users who have to sign in again.
  var signedOutUsers: Set<String?> { lanes.signedOutUsers }

  /// How many mutations of each key will be sent, or are, by any repository.
  var liveCounts: [Key: Int] { ledger.liveCounts }

  /// The size of all mutations.
  var byteCount: Int { ledger.byteCount }

  /// The lanes that have mutations, in the order of their names.
  func report(at now: Duration) -> [RepositoryReport.LaneReport] {
    let statuses = lanes.report(at: now)
    return ledger.lanes.sorted { $0.key < $1.key }.map { name, lane in
      RepositoryReport.LaneReport(
        lane: name, count: lane.count, oldest: lane.oldest, failures: statuses[name]?.failures ?? 0,
        status: sends ? statuses[name]?.status ?? .waiting : .sentElsewhere)
    }
  }

  /// The mutations of a key that will be sent, or are, in order.
  func liveMutations(of key: Key) -> [Entry] { ledger.liveMutations(of: key) }

  /// Where a mutation stands.
  func standing(of entry: Entry) -> Ledger.Standing { entry.standing(signedOutUsers: lanes.signedOutUsers) }

  /// Whether the limits allow a mutation.
  ///
  /// - Parameters:
  ///   - byteCount: The size of the mutation.
  ///   - limits: The limits.
  ///   - now: The present time.
  func hasRoom(for byteCount: Int, limits: QueueLimits, now: Date) -> Bool {
    guard ledger.count < limits.maximumCount, ledger.byteCount + byteCount <= limits.maximumBytes else { return false }
    guard let maximumAge = limits.maximumAge, let oldest = ledger.oldest else { return true }
    return Freshness.age(savedAt: oldest, now: now).map { $0 < maximumAge } ?? true
  }

  // MARK: - Coming

  /// Records whether this repository sends, before the first mutation comes.
  mutating func begin(as status: LeadershipStatus) {
    leadership = status
  }

  /// Records that this repository sends from now on.
  ///
  /// - Returns: The mutations whose records have to be written, because they are refused now.
  mutating func lead(as status: LeadershipStatus) -> [MutationID] {
    leadership = status
    (startedLanes, reportedLanes) = ([], [])
    return ledger.live.filter { !$0.isAnswered && takeOver($0) }.map(\.id)
  }

  /// Records that this repository sends nothing any more.
  ///
  /// What is in flight lands before ``lead(as:)`` follows.
  mutating func follow() {
    leadership = .following
    lanes.removeAll()
    // Nothing was sent of what only waited.
    for entry in ledger.live where entry.isMarked && !entry.isInFlight { ledger.unmark(entry.id) }
  }

  /// Records that all mutations up to a place in the order are known that are stored.
  mutating func recordReading(upTo sequence: UInt64) {
    knownSequence = max(knownSequence, sequence)
  }

  /// Adds a mutation that an earlier process left, in order.
  ///
  /// - Returns: Whether its record has to be written, because it is refused now.
  mutating func restore(_ entry: Entry) -> Bool {
    ledger.add(entry)
    if sends { return takeOver(entry) }
    let record = entry.record
    if record.isLive, record.attempts > 0, record.unfinishedAttempts == 0 { reportedLanes.insert(entry.lane) }
    return false
  }

  /// What there is to do for a mutation that was added.
  enum Added: Equatable {
    case nothing
    /// Its record has to be written, because it is refused now.
    case refused
    /// Other repositories may have added mutations before it of which this one, which sends them, doesn't know yet:
    /// ``recordPredecessors(of:)`` follows.
    case behindUnknown
  }

  /// Adds a mutation of another repository, which has its place in the order.
  mutating func addExternal(_ entry: Entry) -> Added {
    var entry = entry
    entry.isExternal = leadership == .independent
    ledger.add(entry)
    guard leadership == .leading else {
      recordReading(upTo: entry.record.sequence)
      return .nothing
    }
    guard entry.record.sequence <= knownSequence + 1 else {
      behindUnknown.insert(entry.id)
      lanes.hold(entry.id)
      guard takeOver(entry) else { return .behindUnknown }
      behindUnknown.remove(entry.id)
      return .refused
    }
    recordReading(upTo: entry.record.sequence)
    return takeOver(entry) ? .refused : .nothing
  }

  /// Gives a mutation its place in its lane, from which this repository sends it.
  ///
  /// - Returns: Whether it is refused, as the end of a process has cut it off too often.
  private mutating func takeOver(_ entry: Entry) -> Bool {
    guard entry.isLive else { return false }
    if entry.tag != nil {
      let wasFirst = startedLanes.insert(entry.lane).inserted
      ledger.takeOver(entry.id, wasFirst: wasFirst, limit: Self.maximumUnfinishedAttempts)
      guard ledger[entry.id]?.isLive ?? false else {
        startedLanes.remove(entry.lane)
        return true
      }
    } else {
      lanes.hold(entry.id)
    }
    if ledger.undurableCount > 0 { mixedLanes.insert(entry.lane) }
    lanes.insert(entry.id, lane: entry.lane, userID: entry.key.userID) { [ledger] in ledger.isBehind($0, entry.id) }
    return false
  }

  /// Gives a mutation its place that has become durable.
  private mutating func putInOrder(_ id: MutationID) {
    guard !mixedLanes.isEmpty, let entry = ledger[id] else { return }
    if mixedLanes.contains(entry.lane) {
      lanes.move(id, in: entry.lane) { [ledger] in ledger.isBehind($0, id) }
    }
    if ledger.undurableCount == 0 { mixedLanes = [] }
  }

  /// Adds a mutation that is about to be written.
  ///
  /// It has its place in its lane, and blocks it.
  ///
  /// If it will be sent as soon as it is durable, its record says already that an attempt begins. One that is sent again
  /// under its id comes in the place of the refused one.
  mutating func add(_ id: MutationID, key: Key, lane: String, record: Record) {
    remove(id)
    var record = record
    let isFirst = sends && lanes.isFree(lane)
    if isFirst { record.unfinishedAttempts = 1 }
    ledger.add(
      Entry(id: id, key: key, lane: lane, record: record, tag: nil, isMarked: isFirst))
    if sends { lanes.append(id, lane: lane, userID: key.userID, isDurable: false) }
  }

  /// Records that the record of a new mutation is written.
  ///
  /// ``release(_:)`` follows if the mutation is still live.
  ///
  /// - Returns: Whether other repositories may have added mutations before it of which this one, which sends them, doesn't
  ///   know yet. Then ``recordPredecessors(of:)`` follows too.
  mutating func recordAddition(of id: MutationID, sequence: UInt64, tag: StoreTag, revision: UInt64) -> Bool {
    ledger.recordAddition(of: id, sequence: sequence, tag: tag, revision: revision)
    putInOrder(id)
    guard leadership != .leading || sequence <= knownSequence + 1 else {
      behindUnknown.insert(id)
      return true
    }
    recordReading(upTo: sequence)
    return false
  }

  /// Records that all mutations are known that were made before one.
  mutating func recordPredecessors(of id: MutationID) {
    behindUnknown.remove(id)
    if let entry = ledger[id], !entry.isBeingDecided { lanes.makeDurable(id, lane: entry.lane) }
  }

  /// Brings a refused mutation back that could not be written again.
  mutating func restoreRefused(_ entry: Entry) {
    remove(entry.id)
    ledger.add(entry)
  }

  // MARK: - Sending

  /// Takes the next mutation that may be sent.
  mutating func next(at now: Duration) -> Step {
    if !sends { return liveCount > 0 ? .lead : .wait(until: nil) }
    while true {
      switch lanes.next(at: now) {
      case .wait(let deadline): return .wait(until: deadline)
      case .send(let id, let lane):
        ledger.beginAttempt(id)
        if let entry = ledger[id] { return .send(entry) }
        // Another process has finished with it.
        lanes.complete(lane: lane)
      }
    }
  }

  /// Counts the attempts that are about to begin: that of a mutation, and those that follow in its lane.
  ///
  /// - Returns: The mutations whose records have to be written before the first one is sent.
  mutating func mark(_ id: MutationID) -> [MutationID] {
    guard let entry = ledger[id], !entry.isMarked else { return [] }
    let ids = ([id] + lanes.upcoming(in: entry.lane, count: Self.markedTogether - 1)).filter { id in
      ledger[id].map { $0.isLive && $0.tag != nil && !$0.isMarked } ?? false
    }
    for id in ids { ledger.mark(id) }
    return ids
  }

  /// Takes the mark back of a mutation that waits although it was about to be sent.
  ///
  /// - Returns: Whether its record has to be written.
  mutating func takeMarkBack(of id: MutationID) -> Bool {
    guard let entry = ledger[id], entry.isMarked, !entry.isInFlight, entry.tag != nil else { return false }
    ledger.unmark(id)
    return true
  }

  /// Whether nothing is sent, because the network is away.
  var isPaused: Bool { lanes.isPaused }

  /// Whether something waits, or is in flight, that no user has to sign in for.
  var canSend: Bool { lanes.canSend }

  /// Takes marks back that could not be written.
  mutating func unmark(_ ids: [MutationID]) {
    for id in ids { ledger.unmark(id) }
  }

  /// Records that an attempt broke off before anything was sent.
  mutating func abandonAttempt(_ entry: Entry) {
    ledger.abandonAttempt(entry.id)
  }

  /// Records that the server answered with success: the next mutation of the lane may be sent.
  mutating func recordAnswer(to entry: Entry) {
    ledger.recordAnswer(to: entry.id)
    lanes.complete(lane: entry.lane)
  }

  /// Records that an attempt failed.
  mutating func recordFailure(of id: MutationID, isOutcomeUnknown: Bool) {
    ledger.recordFailure(of: id, isOutcomeUnknown: isOutcomeUnknown)
  }

  /// Records that the server may have a mutation, although no reply says so that can be used.
  ///
  /// - Returns: Whether that is new.
  @discardableResult
  mutating func recordUnknownOutcome(of id: MutationID) -> Bool {
    ledger.recordUnknownOutcome(of: id)
  }

  /// Records that the server has refused a mutation, so that it never made it.
  mutating func recordRefusal(of id: MutationID) {
    ledger.recordRefusal(of: id)
  }

  /// The number of failed attempts of a mutation's lane, the present one included.
  func failures(of entry: Entry) -> Int { lanes.failures(in: entry.lane) }

  /// Lets a lane wait after a failed attempt.
  ///
  /// - Parameters:
  ///   - entry: The mutation whose attempt failed.
  ///   - deadline: When to try again.
  ///   - isServerDelay: Whether the server named the time.
  mutating func backOff(_ entry: Entry, until deadline: Duration, isServerDelay: Bool) {
    lanes.backOff(entry.id, lane: entry.lane, until: deadline, isServerDelay: isServerDelay)
  }

  /// Lets the lanes of a mutation's user wait for new credentials, unless there are some already.
  ///
  /// - Returns: The mutations that wait.
  mutating func waitForSignIn(_ entry: Entry) -> [MutationID] {
    ledger.abandonAttempt(entry.id)
    lanes.release(entry.id, lane: entry.lane, needsSignIn: true)
    // Another process has finished with it meanwhile, or it is in conflict.
    if !(ledger[entry.id]?.isLive ?? false) { lanes.remove(entry.id, lane: entry.lane) }
    guard lanes.signedOutUsers.contains(entry.key.userID) else {
      // Made with old credentials, so it is sent again; unless the network is away.
      return lanes.isPaused ? lanes.waiting(in: entry.lane) : []
    }
    return lanes.lanes(of: entry.key.userID).flatMap { lanes.waiting(in: $0) }
  }

  /// The mutations of a lane that wait, in order; those that another repository sends may be in flight.
  func waiting(in lane: String) -> [MutationID] {
    sends ? lanes.waiting(in: lane) : ledger.live.filter { $0.lane == lane }.map(\.id)
  }

  /// Whether the lane of a mutation waits for something other than its turn.
  func isHeldUp(_ lane: String) -> Bool {
    sends ? lanes.isHeldUp(lane) : lanes.isPaused || reportedLanes.contains(lane)
  }

  /// Sends nothing until ``resume()``.
  ///
  /// - Returns: The mutations that wait.
  mutating func pause() -> [MutationID] {
    lanes.pause()
    return sends ? lanes.allWaiting : ledger.live.map(\.id)
  }

  mutating func resume() {
    lanes.resume()
  }

  /// Ends all backoffs, except those that a server named.
  mutating func retryNow() {
    lanes.retryNow()
  }

  /// Sends the mutations of a user again, whose credentials have changed.
  mutating func signedIn(userID: String?) {
    lanes.signedIn(userID: userID)
    ledger.recordChangeOfStandings()
  }

  // MARK: - Leaving

  /// Lets the next mutation of a lane be sent, because the one in flight is done with.
  mutating func complete(_ entry: Entry) {
    lanes.complete(lane: entry.lane)
  }

  /// Forgets a mutation.
  ///
  /// One that is in flight blocks its lane until ``complete(_:)``.
  @discardableResult
  mutating func remove(_ id: MutationID) -> Entry? {
    guard let entry = ledger.remove(id) else { return nil }
    reportedLanes.remove(entry.lane)
    if !entry.isInFlight, !entry.isAnswered { lanes.remove(id, lane: entry.lane) }
    return entry
  }

  /// Records that a mutation is not sent any more.
  ///
  /// One that is in flight blocks its lane until ``complete(_:)``.
  mutating func recordVerdict(_ verdict: Record.Verdict, on id: MutationID) {
    guard let entry = ledger[id] else { return }
    if !entry.isInFlight, !entry.isAnswered { lanes.remove(id, lane: entry.lane) }
    ledger.recordVerdict(verdict, on: id)
  }

  // MARK: - Records

  /// Records that the record of a mutation is durable.
  mutating func recordWrite(_ record: Record, of id: MutationID, _ commit: StoreCommit) {
    ledger.recordWrite(record, of: id, tag: commit.tag, revision: commit.revision)
  }

  /// Records that another process has written the record of a mutation.
  ///
  /// - Returns: The verdict that is new.
  mutating func receive(_ stored: StoredValue<Record>, of entry: Entry) -> Record.Verdict? {
    let verdict = entry.isLive ? stored.value.verdict : nil
    if verdict != nil, !entry.isInFlight, !entry.isAnswered { lanes.remove(entry.id, lane: entry.lane) }
    ledger.receive(stored.value, of: entry.id, tag: stored.tag, revision: stored.revision)
    if !sends, entry.isLive {
      // The repository that sends marks a mutation before it is sent, and writes it otherwise only if it has to wait.
      if stored.value.isLive, stored.value.unfinishedAttempts == 0 {
        reportedLanes.insert(entry.lane)
      } else {
        reportedLanes.remove(entry.lane)
      }
    }
    return verdict
  }

  // MARK: - Decisions

  /// Keeps a mutation from being sent, and from being decided on twice at the same time.
  ///
  /// It keeps its place in its lane, and blocks it.
  mutating func hold(_ id: MutationID) {
    lanes.hold(id)
    ledger.beginDecision(on: id)
  }

  /// Lets a mutation be sent that was held, or has become durable.
  mutating func release(_ id: MutationID) {
    guard let entry = ledger[id] else { return }
    ledger.endDecision(on: id)
    if !behindUnknown.contains(id) { lanes.makeDurable(id, lane: entry.lane) }
  }
}

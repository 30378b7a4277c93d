internal import DataStore
internal import Foundation
internal import Multicast

/// The queue of a repository's mutations: makes them durable, reports them, and ends the calls that wait for them.
///
/// ``MutationQueueState`` decides, ``MutationRecords`` writes, and ``MutationSender`` sends.
///
/// Belongs to one ``SyncEngine`` and is used in its isolation only. What a mutation does to a value is the engine's.
final class MutationQueue<Source: RepositorySource> {
  typealias Engine = SyncEngine<Source>
  typealias Mutation = Source.Mutation
  typealias Failure = RepositoryError<Source.Failure>
  typealias State = MutationQueueState<Source.Key, Mutation>
  typealias Entry = State.Entry
  typealias Record = MutationRecord<Mutation>
  typealias Listed = PendingMutation<Source.Key, Mutation>

  /// How a call of `perform` ends.
  typealias Outcome = Result<MutationResult, Failure>

  let records: MutationRecords<Mutation>

  private let capabilities: SourceCapabilities<Source>
  private let limits: QueueLimits
  private let now: @Sendable () -> Date
  private let events: RepositoryEvents
  private let reports: QueueReports<Source>
  private let calls = PendingCalls<MutationID, Outcome>()
  private let encoder = JSONEncoder()
  private var state = State()
  /// The mutations whose marks are being written.
  private var marking: Set<MutationID> = []
  private let reading = AsyncSerialQueue()
  /// Counts how often the records were read.
  private var readingCount = 0
  /// Ends the delivery of what changed since the records were read.
  private var endFollowing: (@Sendable () -> Void)?
  private let unanswered: UnansweredCalls

  /// - Parameters:
  ///   - capabilities: What the source can do.
  ///   - records: Where the mutations are kept.
  ///   - configuration: How the repository works.
  ///   - events: Where to report what happens.
  ///   - liveCounts: Where to report the number of mutations that will be sent, or are.
  ///   - lists: Where to report all mutations, under the name of their collection.
  ///   - unanswered: The calls that wait for another repository.
  init(
    _ capabilities: SourceCapabilities<Source>, _ records: MutationRecords<Mutation>,
    configuration: RepositoryConfiguration, events: RepositoryEvents, liveCounts: CurrentValueRelay<Int>,
    lists: KeyChannels<String, [Listed]>, unanswered: UnansweredCalls
  ) {
    self.unanswered = unanswered
    (self.capabilities, self.records, self.events) = (capabilities, records, events)
    reports = QueueReports(of: records.keys.collection, liveCounts: liveCounts, lists: lists, events: events)
    (limits, now) = (configuration.queueLimits, configuration.now)
  }

  // MARK: - Reading

  /// Records whether this repository sends, before the queue is read.
  func begin(as status: LeadershipStatus) {
    state.begin(as: status)
  }

  /// Reads what is stored, and follows it from there.
  ///
  /// - Returns: The tag of the counter of mutations from before, which every addition changes.
  @discardableResult
  func read(in engine: isolated Engine) async throws(StoreError) -> StoreTag? {
    guard capabilities.sending != nil else { return nil }
    records.reportEvents(to: events)
    return try await reading.run { () async throws(StoreError) -> StoreTag? in
      let reading = try await records.read()
      let isFirst = endFollowing == nil
      let found = reading.stored.sorted { $0.stored.value.sequence < $1.stored.value.sequence }
      state.recordReading(upTo: max(reading.lastSequence, found.last?.stored.value.sequence ?? 0))
      let added = found.compactMap { isFirst ? restore($0, in: engine) : take($0.key, $0.stored, in: engine) }
      follow(reading.changes, in: engine)
      reportChanges(in: engine)
      for entry in added where !isFirst { await engine.external.show(entry, in: engine) }
      let foundIDs = Set(found.map(\.key.id))
      let missing = state.durableIDs.filter { !foundIDs.contains($0.rawValue) }
      for id in try await externallyFinished(missing) {
        if let entry = state[id] { await engine.external.receiveRemoval(of: entry, in: engine) }
      }
      return reading.counterTag
    }
  }

  private func follow(
    _ changes: MulticastSubscription<[StoreChange<Record>], Never>, in engine: isolated Engine
  ) {
    endFollowing?()
    readingCount += 1
    endFollowing = engine.tasks.start { [weak engine, readingCount] in
      for await commit in changes { await engine?.receive(commit, ofReading: readingCount) }
    }
  }

  private func restore(_ found: StoreObservation<Record>.Entry, in engine: isolated Engine) -> Entry? {
    guard let entry = entry(found.key, found.stored, in: engine) else { return nil }
    if state.restore(entry) { save(refused: entry.id, in: engine) }
    return entry
  }

  /// Begins to send the mutations of all repositories on the store; see ``Election``.
  func lead(as status: LeadershipStatus, in engine: isolated Engine) {
    let refused = state.lead(as: status)
    unanswered.removeAll()
    for id in refused { save(refused: id, in: engine) }
    for entry in state.live where sends(entry) { engine.beginDeciding(entry) }
    reportChanges(in: engine)
    engine.sender.pump(in: engine)
  }

  /// Sends nothing any more, because another repository may lead.
  ///
  /// What is in flight lands.
  func follow(in engine: isolated Engine) {
    state.follow()
    for entry in state.live where !entry.isInFlight && !entry.isAnswered { leave(entry, in: engine) }
    reportChanges(in: engine)
    engine.sender.pump(in: engine)
  }

  /// Lets the repository that leads send a mutation whose attempt has landed, if this one doesn't lead any more.
  func leaveIfFollowing(_ id: MutationID, in engine: isolated Engine) {
    guard let entry = state[id], entry.isLive, !entry.isAnswered, !state.sends(entry) else { return }
    leave(entry, in: engine)
  }

  private func leave(_ entry: Entry, in engine: isolated Engine) {
    engine.endDeciding(entry)
    unanswered.add(entry.id, ring: endUnansweredCalls(of: engine))
  }

  private func save(refused id: MutationID, in engine: isolated Engine) {
    if let entry = state[id] {
      engine.removeFromOverlay([id], of: entry.key)
      events.emit(.mutationRefused(id, .cutOff(attempts: entry.record.unfinishedAttempts)))
    }
    calls.end(id, .success(.queued))
    engine.start { engine in await engine.queue.save(id, in: engine) }
  }

  private func entry(
    _ key: StoreKey<Record>, _ stored: StoredValue<Record>, in engine: isolated Engine
  ) -> Entry? {
    guard let id = key.id else { return nil }
    guard let valueKey = Source.Key(storeID: stored.value.key) else {
      events.emit(.mutationOfUnknownKey(MutationID(rawValue: id), key: stored.value.key))
      return nil
    }
    // It is being erased.
    guard engine.users.isOpen(valueKey.userID) else { return nil }
    let mutation = stored.value.mutation
    return Entry(
      id: MutationID(rawValue: id), key: valueKey, lane: laneName(mutation, valueKey), record: stored.value,
      tag: stored.tag, revision: stored.revision)
  }

  /// A lane belongs to one user: what one has to sign in for delays no other.
  private func laneName(_ mutation: Mutation, _ key: Source.Key) -> String {
    guard let sending = capabilities.sending else {
      preconditionFailure("Only the repository of a mutable source has mutations.")
    }
    let orderingKey = sending.lane(mutation, key)
    return key.userID.map { $0 == orderingKey ? orderingKey : "\($0)/\(orderingKey)" } ?? orderingKey
  }

  // MARK: - What there is

  subscript(id: MutationID) -> Entry? { state[id] }

  /// Whether this repository sends mutations.
  var sends: Bool { state.sends }

  /// Whether this repository sends a mutation, and decides whether it is in conflict.
  func sends(_ entry: Entry) -> Bool { state.sends(entry) }

  /// Whether there is something to send, and this repository doesn't lead.
  var needsLeader: Bool { !state.sends && state.liveCount > 0 }

  /// The mutations of a key that will be sent, or are, in order.
  func liveMutations(of key: Source.Key) -> [Entry] { state.liveMutations(of: key) }

  /// Adds to a report what the queue has.
  func report(to report: inout RepositoryReport, at now: Duration) {
    report.lanes = state.report(at: now)
    report.undecidedCount = state.count - state.liveCounts.values.reduce(0, +)
    report.queueByteCount = state.byteCount
    report.leadership = capabilities.sending == nil ? nil : state.leadership
  }

  /// How many mutations of each key will be sent, or are.
  var liveCountsOfKeys: [Source.Key: Int] { state.liveCounts }

  /// All mutations in order.
  var list: [Listed] { state.list }

  /// Whether mutations of a user will be sent, or are.
  func hasLiveMutations(of user: UserDigest) -> Bool {
    state.liveCounts.keys.contains { UserDigest($0.userID) == user }
  }

  /// The number of a user's mutations that the server doesn't have and has not refused.
  func unsentCount(of user: UserDigest) -> Int {
    state.all.count { entry in
      if case .refused = entry.record.verdict { return false }
      return UserDigest(entry.key.userID) == user
    }
  }

  /// The users whose mutations are stored, by the ids of the records.
  func owners(isolation: isolated (any Actor)? = #isolation) async throws(StoreError) -> [String: UserDigest] {
    capabilities.sending == nil ? [:] : try await records.owners(Source.Key.self)
  }

  /// The users who have to sign in again.
  var signedOutUsers: Set<String?> { state.signedOutUsers }

  /// Gives a new observer of the list what there is.
  func sendFirstList() {
    reports.sendFirstList(of: state)
  }

  /// Reports what is new of the queue.
  func reportChanges(in engine: isolated Engine) {
    reports.report(state, in: engine)
  }

  /// Sends the list to its observers.
  func sendList() {
    reports.sendList(of: state)
  }

  // MARK: - Adding

  /// Returns what to keep of a new mutation.
  func record(of mutation: Mutation, on key: Source.Key) -> Record {
    Record(key: key.storeID, sequence: .max, madeAt: now(), mutation: mutation, byteCount: byteCount(of: mutation))
  }

  private func byteCount(of mutation: Mutation) -> Int {
    do {
      return try encoder.encode(mutation).count
    } catch {
      // The store refuses a mutation that can't be encoded, with a better reason.
      return 0
    }
  }

  /// Whether the limits allow a mutation.
  func hasRoom(for record: Record) -> Bool {
    state.hasRoom(for: record.byteCount, limits: limits, now: record.madeAt)
  }

  /// Gives a new mutation its place in its lane, which it blocks until ``makeDurable(_:replacing:in:)``.
  ///
  /// ``reportChanges(in:)`` follows.
  ///
  /// - Parameters:
  ///   - id: The mutation's id.
  ///   - record: What to keep of it.
  ///   - key: The key of the value that it changes.
  ///   - hasCaller: Whether a call will wait for its outcome.
  func append(_ id: MutationID, _ record: Record, on key: Source.Key, hasCaller: Bool) {
    state.add(id, key: key, lane: laneName(record.mutation, key), record: record)
    if hasCaller { calls.open(id) }
  }

  /// Makes a mutation durable that was appended, and has it sent.
  ///
  /// - Parameters:
  ///   - id: The mutation.
  ///   - replaced: The mutation in whose place it comes, which may be itself as it was refused; `nil` if there is none.
  ///   - engine: The engine.
  /// - Returns: Whether it was added. It isn't if another process has dealt with the one it replaces.
  /// - Throws: Why it could not be written. Then it is forgotten, or refused as before.
  func makeDurable(
    _ id: MutationID, replacing replaced: Entry?, in engine: isolated Engine
  ) async throws(StoreError) -> Bool {
    guard let entry = state[id] else { return false }
    let added: (record: Record, commit: StoreCommit, isOvertaken: Bool)?
    do throws(StoreError) {
      added = try await add(entry, replacing: replaced, in: engine)
    } catch {
      forgetUnadded(id, in: engine)
      if let replaced, replaced.id == id {
        state.restoreRefused(replaced)
        reportChanges(in: engine)
      }
      throw error
    }
    guard let added else {
      forgetUnadded(id, in: engine)
      return false
    }
    let sequence = added.record.sequence
    let mayFollowUnknown = state.recordAddition(
      of: id, sequence: sequence, tag: added.commit.tag, revision: added.commit.revision)
    if let replaced, replaced.id != id { state.remove(replaced.id) }
    guard state[id]?.isLive ?? false else {
      // It came into conflict meanwhile.
      await save(id, in: engine)
      calls.end(id, .success(.conflicted(id)))
      return true
    }
    events.emit(.mutationEnqueued(id, orderingKey: entry.lane))
    state.release(id)
    if added.isOvertaken { engine.start { engine in await engine.queue.receiveUnreported(id, in: engine) } }
    if mayFollowUnknown {
      engine.start { engine in await engine.queue.readPredecessors(of: id, sequence, in: engine) }
    }
    reportChanges(in: engine)
    engine.sender.pump(in: engine)
    if state.isPaused { takeMarkBack(of: id, in: engine) }
    if state.isHeldUp(entry.lane) {
      calls.end(id, .success(.queued))
    } else if !state.sends {
      unanswered.add(id, ring: endUnansweredCalls(of: engine))
    }
    return true
  }

  /// Adds the record of a mutation, unless its user signs out meanwhile.
  private func add(
    _ entry: Entry, replacing replaced: Entry?, in engine: isolated Engine
  ) async throws(StoreError) -> (record: Record, commit: StoreCommit, isOvertaken: Bool)? {
    while true {
      let requirement = engine.users.requirement(of: entry.key.userID)
      do throws(StoreError) {
        return try await records.add(
          entry.id, entry.record, replacing: replaced.map { ($0.id, $0.tag) }, requiring: requirement)
      } catch {
        guard case .preconditionFailed(requirement?.key.keyName) = error, let userID = entry.key.userID else {
          throw error
        }
        try await engine.users.reload(UserDigest(userID), in: engine)
        if state[entry.id] == nil { return nil }
      }
    }
  }

  /// Lets a mutation be sent behind those that other repositories made before it.
  private func readPredecessors(of id: MutationID, _ sequence: UInt64, in engine: isolated Engine) async {
    var attempt = 0
    while state[id] != nil, state.knownSequence < sequence {
      do throws(StoreError) {
        try await read(in: engine)
        // The mutation was stored before, and so were those in front of it.
        state.recordReading(upTo: sequence)
      } catch {
        events.emit(.storeFailed(error))
        calls.end(id, .success(.queued))
        attempt += 1
        await engine.backoff.wait(afterAttempt: attempt)
      }
      if Task.isCancelled { return }
    }
    state.recordPredecessors(of: id)
    engine.sender.pump(in: engine)
  }

  private func endUnansweredCalls(of engine: isolated Engine) -> @Sendable (Duration) async -> Void {
    { [weak engine] deadline in await engine?.endUnansweredCalls(at: deadline) }
  }

  /// Ends the calls that have waited for another repository for long enough.
  func endUnansweredCalls(at deadline: Duration, in engine: isolated Engine) {
    endAll(unanswered.takeDue(at: deadline, ring: endUnansweredCalls(of: engine)), .queued)
  }

  /// Forgets a mutation that could not be made durable.
  private func forgetUnadded(_ id: MutationID, in engine: isolated Engine) {
    state.remove(id)
    calls.close(id)
    reportChanges(in: engine)
    engine.sender.pump(in: engine)
  }

  /// Waits for the outcome of a mutation, or until it is known that it has to wait.
  func outcome(
    of id: MutationID, isolation: isolated (any Actor)? = #isolation
  ) async throws(Failure) -> MutationResult {
    try await calls.outcome(of: id, ifCancelled: .failure(.cancelled)).get()
  }

  /// Ends the call that made a mutation, if it still waits.
  func end(_ id: MutationID, _ outcome: Outcome) {
    calls.end(id, outcome)
  }

  // MARK: - Sending

  /// Takes the next mutation that may be sent.
  func next(at now: Duration) -> State.Step { state.next(at: now) }

  /// Makes sure that an attempt that is about to begin is known to the next process, if this one ends during it.
  func mark(_ id: MutationID, in engine: isolated Engine) async throws(StoreError) {
    let ids = state.mark(id)
    marking.formUnion(ids)
    defer {
      marking.subtract(ids)
      if state.isPaused { for id in ids.dropFirst() { takeMarkBack(of: id, in: engine) } }
    }
    var failure: StoreError?
    await withTaskGroup(of: StoreError?.self) { group in
      for id in ids { group.addTask { await engine.writeRecord(id) } }
      for await error in group { failure = failure ?? error }
    }
    guard let failure else { return }
    state.unmark(ids)
    throw failure
  }

  /// Records that an attempt broke off before anything was sent.
  func abandonAttempt(_ entry: Entry) {
    state.abandonAttempt(entry)
  }

  /// Records that an attempt failed after which another repository decides what becomes of the mutation.
  func leaveAttempt(_ entry: Entry) {
    state.recordFailure(of: entry.id, isOutcomeUnknown: true)
  }

  /// Records that the server answered with success: the next mutation of the lane may be sent.
  func recordAnswer(to entry: Entry) {
    state.recordAnswer(to: entry)
  }

  /// Lets the next mutation of a lane be sent, because the one in flight is done with.
  func complete(_ entry: Entry) {
    state.complete(entry)
  }

  /// Records that an attempt failed.
  func recordFailure(of id: MutationID, isOutcomeUnknown: Bool, in engine: isolated Engine) {
    state.recordFailure(of: id, isOutcomeUnknown: isOutcomeUnknown)
    engine.start { engine in await engine.queue.save(id, in: engine) }
  }

  /// Records that the server may have a mutation, although no reply says so that can be used.
  ///
  /// ``save(_:in:)`` follows.
  ///
  /// - Returns: Whether that is new.
  @discardableResult
  func recordUnknownOutcome(of id: MutationID) -> Bool {
    state.recordUnknownOutcome(of: id)
  }

  /// The number of failed attempts of a mutation's lane, the present one included.
  func failures(of entry: Entry) -> Int { state.failures(of: entry) }

  /// Lets a lane wait after a failed attempt; see ``MutationQueueState/backOff(_:until:isServerDelay:)``.
  func backOff(_ entry: Entry, until deadline: Duration, isServerDelay: Bool) {
    state.backOff(entry, until: deadline, isServerDelay: isServerDelay)
    if !calls.isEmpty { endAll(state.waiting(in: entry.lane), .queued) }
  }

  /// Lets the lanes of a mutation's user wait for new credentials.
  func waitForSignIn(_ entry: Entry, in engine: isolated Engine) {
    endAll(state.waitForSignIn(entry), .queued)
    let id = entry.id
    engine.start { engine in
      await engine.queue.save(id, in: engine)
      // The user may sign in by another repository.
      await engine.keepTrying { (engine) async throws(StoreError) in try await engine.users.start(in: engine) }
    }
  }

  private func endAll(_ ids: [MutationID], _ result: MutationResult) {
    for id in ids { calls.end(id, .success(result)) }
  }

  /// Sends nothing until ``resume()``, because the network is away.
  func pause(in engine: isolated Engine) {
    let waiting = state.pause()
    if !calls.isEmpty { endAll(waiting, .queued) }
    for id in waiting where !marking.contains(id) { takeMarkBack(of: id, in: engine) }
  }

  /// Ends ``pause(in:)``.
  func resume() {
    state.resume()
  }

  /// Makes sure that a mutation that is sent much later isn't taken for one that the end of the process cut off.
  private func takeMarkBack(of id: MutationID, in engine: isolated Engine) {
    guard state.takeMarkBack(of: id) else { return }
    engine.start { engine in await engine.queue.save(id, in: engine) }
  }

  /// Whether something waits, or is in flight, that no user has to sign in for.
  var canSend: Bool { state.canSend }

  /// Ends all backoffs, except those that a server named.
  func retryNow() {
    state.retryNow()
  }

  /// Sends the mutations of a user again, whose credentials have changed.
  func signedIn(userID: String?, in engine: isolated Engine) {
    state.signedIn(userID: userID)
    reportChanges(in: engine)
  }

  // MARK: - Leaving

  /// Forgets mutations that the stored value has, whose records a commit removed.
  func confirm(_ ids: [MutationID], _ commit: StoreCommit?, in engine: isolated Engine) {
    for id in ids { state.remove(id) }
    if let commit { records.recordRemoval(of: ids, commit) }
    engine.sender.pump(in: engine)
  }

  /// Records that a mutation isn't sent any more: the server refused it, the policy allows no further attempt, or its value
  /// can't be stored.
  ///
  /// It stays listed unless its caller gets the error.
  ///
  /// - Parameters:
  ///   - id: The mutation.
  ///   - refusal: Why it isn't sent any more.
  ///   - failure: What its caller gets.
  ///   - isOutcomeUnknown: Whether the server may have it by the last attempt.
  ///   - engine: The engine.
  func refuse(
    _ id: MutationID, _ refusal: MutationRefusal, _ failure: Failure, isOutcomeUnknown: Bool,
    in engine: isolated Engine
  ) async {
    if case .byServer = refusal { state.recordRefusal(of: id) }
    if isOutcomeUnknown { state.recordUnknownOutcome(of: id) }
    if let entry = state[id] { engine.removeFromOverlay([id], of: entry.key) }
    events.emit(.mutationRefused(id, refusal))
    // The caller gets the error, also if it is cancelled while the record is removed.
    let hasCaller = calls.claim(id)
    state.recordVerdict(.refused(reason: refusal.description), on: id)
    if hasCaller {
      await removeRefused(id, in: engine)
    } else {
      await save(id, in: engine)
    }
    calls.end(id, .failure(failure))
    reportChanges(in: engine)
  }

  private func removeRefused(_ id: MutationID, in engine: isolated Engine) async {
    do throws(StoreError) {
      try await remove(id)
    } catch {
      // It stays listed, as refused.
      events.emit(.storeFailed(error))
      saveLater(id, in: engine)
    }
  }

  /// Records that a mutation isn't possible on the present value.
  ///
  /// - Parameters:
  ///   - id: The mutation.
  ///   - conflict: Why it isn't possible.
  ///   - isServers: Whether the server says so, and didn't make the mutation. Otherwise it may have, at an earlier attempt.
  ///   - engine: The engine.
  func recordConflict(
    _ id: MutationID, _ conflict: MutationConflict, isServers: Bool = false, in engine: isolated Engine
  ) {
    guard let entry = state[id] else { return }
    if isServers { state.recordRefusal(of: id) }
    state.recordVerdict(.conflicted(conflict), on: id)
    events.emit(.mutationConflicted(id, conflict))
    reportChanges(in: engine)
    engine.sender.pump(in: engine)
    // One that isn't durable yet is saved when it is.
    guard entry.tag != nil else { return }
    engine.start { engine in
      await engine.queue.save(id, in: engine)
      engine.queue.end(id, .success(.conflicted(id)))
    }
  }

  // MARK: - Decisions

  /// Returns a mutation on which the app may decide.
  func undecided(_ id: MutationID) throws(PendingMutationError) -> Entry {
    guard let entry = state[id], !entry.isBeingDecided else { throw .unknown(id) }
    // One that isn't durable yet will be in a moment.
    guard entry.tag != nil else { throw .alreadySent(id) }
    return entry
  }

  /// Where a mutation stands.
  func standing(of entry: Entry) -> Listed.Standing { state.standing(of: entry) }

  /// Keeps a mutation from being sent, and from being decided on twice at the same time.
  func hold(_ id: MutationID) {
    state.hold(id)
  }

  /// Ends ``hold(_:)``, if the mutation is still there.
  func release(_ id: MutationID, in engine: isolated Engine) {
    state.release(id)
    engine.sender.pump(in: engine)
  }

  /// Removes the record of a mutation that is held, unless another process sends it, or has finished with it.
  ///
  /// ``forget(_:)`` follows if it was removed.
  ///
  /// - Returns: Whether it was removed.
  func removeUnsent(_ id: MutationID, in engine: isolated Engine) async throws(StoreError) -> Bool {
    while let entry = state[id], let tag = entry.tag {
      switch try await records.remove(id, if: .unsent, tag: tag) {
      case .removed: return true
      case .gone:
        if let entry = state[id] { await engine.external.receiveRemoval(of: entry, in: engine) }
        return false
      case .sent:
        // Unless a write of this repository came first.
        guard let entry = state[id], entry.tag != tag, standing(of: entry) != .inFlight else { return false }
      }
    }
    return false
  }

  /// Removes a mutation that was refused or is in conflict, unless another process sends it again, or has finished with it.
  ///
  /// - Returns: Whether it was removed.
  func removeUndecided(_ id: MutationID, in engine: isolated Engine) async throws(StoreError) -> Bool {
    guard let tag = state[id]?.tag else { return false }
    switch try await records.remove(id, if: .undecided, tag: tag) {
    case .removed:
      state.remove(id)
      return true
    case .gone:
      if let entry = state[id] { await engine.external.receiveRemoval(of: entry, in: engine) }
      return false
    case .sent: return false
    }
  }

  /// Forgets a mutation whose record was removed.
  ///
  /// - Returns: Whether it was there.
  func forget(_ id: MutationID) -> Bool { state.remove(id) != nil }

  /// Forgets the mutations of a user who has signed out, and ends the calls that wait for them.
  func forget(_ user: UserDigest, in engine: isolated Engine) {
    for entry in state.all where UserDigest(entry.key.userID) == user {
      state.remove(entry.id)
      calls.end(entry.id, .failure(.signedOut))
    }
    reportChanges(in: engine)
    engine.sender.pump(in: engine)
  }

  /// Removes a mutation.
  func remove(_ id: MutationID, isolation: isolated (any Actor)? = #isolation) async throws(StoreError) {
    try await records.remove(id)
    state.remove(id)
  }

  // MARK: - Records

  /// Writes what is known of a mutation.
  ///
  /// - Returns: Why that failed.
  func write(_ id: MutationID, in engine: isolated Engine) async -> StoreError? {
    // One that isn't durable yet is being written.
    guard let entry = state[id], entry.tag != nil else { return nil }
    do throws(StoreError) {
      switch try await records.replace(id, by: entry.record, tag: entry.tag) {
      case .written(let record, let commit, let isOvertaken):
        state.recordWrite(record, of: id, commit)
        if isOvertaken { await receiveUnreported(id, in: engine) }
      case .gone: if let entry = state[id] { await engine.external.receiveRemoval(of: entry, in: engine) }
      case .superseded: break
      }
      return nil
    } catch {
      return error
    }
  }

  /// Writes what is known of a mutation, again and again until the store takes it.
  func save(_ id: MutationID, in engine: isolated Engine) async {
    guard let error = await write(id, in: engine) else { return }
    events.emit(.storeFailed(error))
    saveLater(id, in: engine)
  }

  private func saveLater(_ id: MutationID, in engine: isolated Engine) {
    engine.start { engine in
      var attempt = 1
      repeat {
        await engine.backoff.wait(afterAttempt: attempt)
        attempt += 1
        if Task.isCancelled { return }
      } while await engine.queue.write(id, in: engine) != nil
    }
  }

  // MARK: - External changes

  /// Takes in changes of records that the store reports together.
  ///
  /// The store may not know the order of commits, so all are taken in, in the order of the mutations, before one is sent.
  ///
  /// - Parameters:
  ///   - changes: The changes.
  ///   - reading: The number of the reading that they follow. After another one they are known.
  ///   - engine: The engine.
  func receive(_ changes: [StoreChange<Record>], ofReading reading: Int, in engine: isolated Engine) async {
    guard reading == readingCount else { return }
    let external = changes.filter { change in
      change.key.id.map { records.isExternal(change, of: MutationID(rawValue: $0)) } ?? false
    }
    let saved = external.compactMap { change in change.stored.map { (key: change.key, stored: $0) } }
    let added = saved.sorted { $0.stored.value.sequence < $1.stored.value.sequence }.compactMap {
      take($0.key, $0.stored, in: engine)
    }
    for entry in added { await engine.external.show(entry, in: engine) }
    for change in external {
      guard case .removed(let key, let revision) = change, let id = key.id.map(MutationID.init(rawValue:)),
        let entry = state[id], entry.tag != nil, revision > entry.revision
      else { continue }
      await engine.external.receiveRemoval(of: entry, in: engine)
    }
    reportChanges(in: engine)
    engine.sender.pump(in: engine)
  }

  /// Takes in what another process did to a record while a write of it was on its way back.
  private func receiveUnreported(_ id: MutationID, in engine: isolated Engine) async {
    do throws(StoreError) {
      let stored = try await records.load(id)
      guard let entry = state[id] else { return }
      guard let stored else { return await engine.external.receiveRemoval(of: entry, in: engine) }
      if let added = take(records.keys.record(id), stored, in: engine) { await engine.external.show(added, in: engine) }
      reportChanges(in: engine)
      engine.sender.pump(in: engine)
    } catch {
      // The next write of the record meets what is stored.
      events.emit(.storeFailed(error))
    }
  }

  /// Takes in a record that another process wrote.
  ///
  /// - Returns: The mutation, if it is new and has to be shown.
  private func take(
    _ key: StoreKey<Record>, _ stored: StoredValue<Record>, in engine: isolated Engine
  ) -> Entry? {
    guard let text = key.id else { return nil }
    let id = MutationID(rawValue: text)
    if let known = state[id] {
      guard known.tag != nil, stored.revision > known.revision else { return nil }
      if known.isLive || !stored.value.isLive {
        replace(known, with: stored, in: engine)
        return nil
      }
      // It is sent again.
      state.remove(id)
    } else if records.isRemoved(id) {
      return nil
    }
    guard let entry = entry(key, stored, in: engine) else { return nil }
    switch state.addExternal(entry) {
    case .nothing: break
    case .refused: save(refused: id, in: engine)
    case .behindUnknown:
      let sequence = entry.record.sequence
      engine.start { engine in await engine.queue.readPredecessors(of: id, sequence, in: engine) }
    }
    return state[id].flatMap { $0.isLive ? $0 : nil }
  }

  private func replace(_ entry: Entry, with stored: StoredValue<Record>, in engine: isolated Engine) {
    guard let verdict = state.receive(stored, of: entry) else {
      if !calls.isEmpty, !state.sends, state.isHeldUp(entry.lane) { endAll(state.waiting(in: entry.lane), .queued) }
      return
    }
    engine.removeFromOverlay([entry.id], of: entry.key)
    switch verdict {
    case .conflicted: calls.end(entry.id, .success(.conflicted(entry.id)))
    case .refused: calls.end(entry.id, .success(.queued))
    }
    engine.sender.pump(in: engine)
  }

  /// Returns those of some mutations that another repository or process has finished with.
  ///
  /// - Complexity: Loads the record of each one.
  func externallyFinished(
    _ ids: [MutationID], isolation: isolated (any Actor)? = #isolation
  ) async throws(StoreError) -> [MutationID] {
    let durable = ids.filter { state[$0]?.tag != nil }
    return try await records.externallyRemoved(durable).filter { state[$0] != nil }
  }

  /// Forgets mutations that another repository or process has finished with.
  ///
  /// - Parameters:
  ///   - ids: The mutations.
  ///   - isConfirmed: Whether the stored value changed with them. Otherwise they were taken back.
  ///   - engine: The engine.
  func finishExternally(_ ids: [MutationID], isConfirmed: Bool, in engine: isolated Engine) {
    for id in ids where state.remove(id) != nil {
      calls.end(id, isConfirmed ? .success(.confirmed) : .failure(.cancelled))
    }
    reportChanges(in: engine)
    engine.sender.pump(in: engine)
  }
}

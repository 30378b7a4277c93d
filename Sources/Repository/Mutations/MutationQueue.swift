internal import DataStore
internal import Foundation
internal import Multicast

/// The queue of a repository's mutations: makes them durable, reports them, and completes the calls that wait for them.
///
/// ``MutationQueueState`` decides, ``MutationRecords`` writes, and ``MutationSender`` sends. ``SyncState`` applies the
/// mutations to the value.
///
/// Belongs to one ``SyncEngine`` and is used in its isolation only.
///
/// ## The lifetime of an optimistic change
///
/// A user likes a post. The like must be visible at once and must not be lost, although the reply of the server may be
/// late, lost, or overtaken by a fetch.
///
/// The naive way changes the cached value, sends the request, and restores a snapshot if the request fails. The
/// snapshot holds more than the like, so restoring it undoes later changes too. A fetch that began earlier overwrites
/// the like. A request that failed may have reached the server. And the process may end between any two of these steps.
///
/// Here a change is a *mutation*: a record in the store, applied to the stored value for display and never written into
/// it before the server has answered. It passes through these steps:
/// 1. **Apply.** ``SyncEngine`` applies it to the visible value, and ``append(_:_:on:hasCaller:)`` reserves its place
///    in its lane, in one step. The lane is blocked there, because a mutation isn't sent before it is durable.
/// 2. **Persist.** ``makeDurable(_:replacing:in:)`` writes its record, which has the next sequence number of the store.
///    If that fails, the mutation is rolled back and the call throws.
/// 3. **Send.** ``next(at:)`` passes it to the sender when it is first in its lane. Before the request, ``mark(_:in:)``
///    stores that an attempt may have begun, so that a process that finds the mark treats the outcome as unknown. If
///    the attempt fails, the lane backs off, and the mutation stays visible.
/// 4. **Confirm.** ``SyncWrites`` stores a value that has the change and removes the record, in one commit.
///    ``confirm(_:_:in:)`` then forgets the mutation. For observers, the overlay ends in the same step in which the
///    value gains the change.
///
/// A mutation ends earlier if it is refused, conflicted or cancelled, or if its user signs out. Then it is rolled back:
/// it is no longer applied, and the other mutations still are. The article *How a change travels* gives the reasons for
/// each step.
final class MutationQueue<Source: RepositorySource> {
  typealias Engine = SyncEngine<Source>
  typealias Mutation = Source.Mutation
  typealias Failure = RepositoryError<Source.Failure>
  typealias State = MutationQueueState<Source.Key, Mutation>
  typealias Entry = State.Entry
  typealias Record = MutationRecord<Mutation>
  typealias Listed = PendingMutation<Source.Key, Mutation>

  /// The result of a call of `perform`.
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
  private var hasBegunReading = false
  /// The number of times the records were read.
  private var readingCount = 0
  /// The number of times a user has signed in whose records may have been ignored before.
  private var signInCount = 0
  /// Cancels the subscription to changes of the records since the last read.
  private var endSubscription: (@Sendable () -> Void)?
  private let callTimeouts: CallTimeouts

  /// - Parameters:
  ///   - capabilities: The capabilities of the source.
  ///   - records: The records of the mutations.
  ///   - configuration: The configuration of the repository.
  ///   - events: Receives the repository's events.
  ///   - liveCounts: Receives the number of live mutations; see ``MutationLedger/Entry/isLive``.
  ///   - lists: Receives the list of all mutations, under the name of their collection.
  ///   - callTimeouts: The timeouts of the calls whose mutations another repository sends.
  init(
    _ capabilities: SourceCapabilities<Source>, _ records: MutationRecords<Mutation>,
    configuration: RepositoryConfiguration, events: RepositoryEvents, liveCounts: CurrentValueRelay<Int>,
    lists: KeyChannels<String, [Listed]>, callTimeouts: CallTimeouts
  ) {
    self.callTimeouts = callTimeouts
    (self.capabilities, self.records, self.events) = (capabilities, records, events)
    reports = QueueReports(of: records.keys.collection, liveCounts: liveCounts, lists: lists, events: events)
    (limits, now) = (configuration.queueLimits, configuration.now)
  }

  // MARK: - Reading

  /// Records whether this repository sends, before the queue is read.
  func begin(as status: LeadershipStatus) {
    state.begin(as: status)
  }

  /// Reads the stored mutations and subscribes to their changes.
  ///
  /// - Returns: The tag that the mutation counter had before the read. Every addition changes the tag.
  @discardableResult
  func read(in engine: isolated Engine) async throws(StoreError) -> StoreTag? {
    guard capabilities.sending != nil else { return nil }
    hasBegunReading = true
    records.reportEvents(to: events)
    return try await reading.run { () async throws(StoreError) -> StoreTag? in
      let reading = try await records.read()
      let isFirst = endSubscription == nil
      let found = reading.stored.sorted { $0.stored.value.sequence < $1.stored.value.sequence }
      state.recordReading(upTo: max(reading.lastSequence, found.last?.stored.value.sequence ?? 0))
      let added = found.compactMap { isFirst ? restore($0, in: engine) : take($0.key, $0.stored, in: engine) }
      subscribe(to: reading.changes, in: engine)
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

  /// Reads the mutations again, because records of a user who has signed in may have been reported before the sign-in,
  /// and were ignored.
  func readForSignIn(in engine: isolated Engine) {
    guard hasBegunReading else { return }
    signInCount += 1
    state.forgetReading()
    engine.start { engine in
      await engine.keepTrying { (engine) async throws(StoreError) in try await engine.queue.read(in: engine) }
      engine.sender.pump(in: engine)
    }
  }

  private func subscribe(
    to changes: MulticastSubscription<[StoreChange<Record>], Never>, in engine: isolated Engine
  ) {
    endSubscription?()
    readingCount += 1
    endSubscription = engine.tasks.start { [weak engine, readingCount] in
      for await commit in changes { await engine?.receive(commit, ofReading: readingCount) }
    }
  }

  private func restore(_ found: StoreObservation<Record>.Entry, in engine: isolated Engine) -> Entry? {
    guard let entry = entry(found.key, found.stored, in: engine) else { return nil }
    if state.restore(entry) { refuseInterrupted(entry.id, in: engine) }
    return entry
  }

  /// Starts to send the mutations of all repositories on the store; see ``Election``.
  func lead(as status: LeadershipStatus, in engine: isolated Engine) {
    let refused = state.lead(as: status)
    callTimeouts.removeAll()
    for id in refused { refuseInterrupted(id, in: engine) }
    // Their timeouts are gone, and no answer of the server ends them.
    if !calls.isEmpty { endAll(state.live.filter { state.isStalled($0.lane) }.map(\.id), .queued) }
    for entry in state.live where sends(entry) { engine.beginDeciding(entry) }
    reportChanges(in: engine)
    engine.sender.pump(in: engine)
  }

  /// Stops sending, because another repository may lead.
  ///
  /// Attempts in flight run to completion.
  func follow(in engine: isolated Engine) {
    state.follow()
    for entry in state.live where !entry.isInFlight && !entry.isAnswered { handOff(entry, in: engine) }
    reportChanges(in: engine)
    engine.sender.pump(in: engine)
  }

  /// Leaves a mutation whose attempt has ended to the leader, if this repository no longer leads.
  func handOffIfFollowing(_ id: MutationID, in engine: isolated Engine) {
    guard let entry = state[id], entry.isLive, !entry.isAnswered, !state.sends(entry) else { return }
    handOff(entry, in: engine)
  }

  private func handOff(_ entry: Entry, in engine: isolated Engine) {
    engine.endDeciding(entry)
    callTimeouts.add(entry.id, ring: endExpiredCalls(of: engine))
  }

  private func refuseInterrupted(_ id: MutationID, in engine: isolated Engine) {
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
    // The user has signed out, and the record is being erased.
    guard engine.users.isOpen(valueKey.userID) else { return nil }
    let mutation = stored.value.mutation
    return Entry(
      id: MutationID(rawValue: id), key: valueKey, lane: laneName(mutation, valueKey), record: stored.value,
      tag: stored.tag, revision: stored.revision)
  }

  /// Returns the name of a mutation's lane, which belongs to one user so that a user who has to sign in delays no other
  /// user.
  private func laneName(_ mutation: Mutation, _ key: Source.Key) -> String {
    guard let sending = capabilities.sending else {
      preconditionFailure("Only the repository of a mutable source has mutations.")
    }
    let orderingKey = sending.lane(mutation, key)
    return key.userID.map { $0 == orderingKey ? orderingKey : "\($0)/\(orderingKey)" } ?? orderingKey
  }

  // MARK: - State

  subscript(id: MutationID) -> Entry? { state[id] }

  /// Whether this repository sends mutations.
  var sends: Bool { state.sends }

  /// Whether this repository sends a mutation, and therefore decides whether it is in conflict.
  func sends(_ entry: Entry) -> Bool { state.sends(entry) }

  /// Whether there are mutations to send, and this repository neither leads nor sends independently.
  var needsLeader: Bool { !state.sends && state.liveCount > 0 }

  /// The live mutations of a key, in order.
  func liveMutations(of key: Source.Key) -> [Entry] { state.liveMutations(of: key) }

  /// Adds the state of the queue to a report.
  func report(to report: inout RepositoryReport, at now: Duration) {
    report.lanes = state.report(at: now)
    report.undecidedCount = state.count - state.liveCounts.values.reduce(0, +)
    report.queueByteCount = state.byteCount
    report.leadership = capabilities.sending == nil ? nil : state.leadership
  }

  /// The number of live mutations of each key.
  var liveCountsOfKeys: [Source.Key: Int] { state.liveCounts }

  /// All mutations, in order.
  var list: [Listed] { state.list }

  /// Whether a user has live mutations.
  func hasLiveMutations(of user: UserDigest) -> Bool {
    state.liveCounts.keys.contains { UserDigest($0.userID) == user }
  }

  /// The number of a user's mutations that the server neither has nor has refused.
  func unsentCount(of user: UserDigest) -> Int {
    state.all.count { entry in
      if case .refused = entry.record.verdict { return false }
      return UserDigest(entry.key.userID) == user
    }
  }

  /// The users who have to sign in again.
  var signedOutUsers: Set<String?> { state.signedOutUsers }

  /// Sends the present list to a new observer.
  func sendFirstList() {
    reports.sendFirstList(of: state)
  }

  /// Reports what has changed in the queue.
  func reportChanges(in engine: isolated Engine) {
    reports.report(state, in: engine)
  }

  /// Sends the list to its observers.
  func sendList() {
    reports.sendList(of: state)
  }

  // MARK: - Adding

  /// Returns the record of a new mutation.
  func record(of mutation: Mutation, on key: Source.Key) -> Record {
    Record(key: key.storeID, sequence: .max, madeAt: now(), mutation: mutation, byteCount: byteCount(of: mutation))
  }

  private func byteCount(of mutation: Mutation) -> Int {
    do {
      return try encoder.encode(mutation).count
    } catch {
      // A mutation that can't be encoded fails in the store, with a better error.
      return 0
    }
  }

  /// Whether the limits allow another mutation.
  func hasRoom(for record: Record) -> Bool {
    state.hasRoom(for: record.byteCount, limits: limits, now: record.madeAt)
  }

  /// Appends a new mutation to its lane, which it blocks until ``makeDurable(_:replacing:in:)``.
  ///
  /// The caller then calls ``reportChanges(in:)``.
  ///
  /// - Parameters:
  ///   - id: The id of the mutation.
  ///   - record: The record of the mutation.
  ///   - key: The key of the value that it changes.
  ///   - hasCaller: Whether a call will wait for its outcome.
  func append(_ id: MutationID, _ record: Record, on key: Source.Key, hasCaller: Bool) {
    state.add(id, key: key, lane: laneName(record.mutation, key), record: record)
    if hasCaller { calls.open(id) }
  }

  /// Makes an appended mutation durable and lets it be sent.
  ///
  /// - Parameters:
  ///   - id: The id of the mutation.
  ///   - replaced: The mutation that it replaces, or `nil`. It is the refused mutation itself if that is sent again
  ///     under its id.
  ///   - engine: The engine.
  /// - Returns: Whether it was added. It isn't if another process has sent, resolved or discarded the mutation that it
  ///   replaces.
  /// - Throws: A `StoreError` if it could not be written. The mutation is then forgotten, or refused as before.
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
    let isBehindGap = state.recordAddition(
      of: id, sequence: sequence, tag: added.commit.tag, revision: added.commit.revision)
    if let replaced, replaced.id != id { state.remove(replaced.id) }
    guard state[id]?.isLive ?? false else {
      // It came into conflict while it was being written.
      await save(id, in: engine)
      calls.end(id, .success(.conflicted(id)))
      return true
    }
    events.emit(.mutationEnqueued(id, orderingKey: entry.lane))
    state.release(id)
    if added.isOvertaken { engine.start { engine in await engine.queue.reloadRecord(id, in: engine) } }
    if isBehindGap {
      engine.start { engine in await engine.queue.readPredecessors(of: id, sequence, in: engine) }
    }
    reportChanges(in: engine)
    engine.sender.pump(in: engine)
    if state.isPaused { removeMark(of: id, in: engine) }
    if state.isStalled(entry.lane) {
      calls.end(id, .success(.queued))
    } else if !state.sends {
      callTimeouts.add(id, ring: endExpiredCalls(of: engine))
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

  /// Reads the queue until every mutation before this one is known, and then lets this one be sent.
  private func readPredecessors(of id: MutationID, _ sequence: UInt64, in engine: isolated Engine) async {
    var attempt = 0
    while state[id] != nil, state.knownSequence < sequence {
      do throws(StoreError) {
        let signInCount = signInCount
        try await read(in: engine)
        // The record was stored before the queue was read, and so were the records before it. The read ignored those of
        // a user who has signed in since.
        if signInCount == self.signInCount { state.recordReading(upTo: sequence) }
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

  private func endExpiredCalls(of engine: isolated Engine) -> @Sendable (Duration) async -> Void {
    { [weak engine] deadline in await engine?.endExpiredCalls(at: deadline) }
  }

  /// Completes the calls whose timeout has passed.
  func endExpiredCalls(at deadline: Duration, in engine: isolated Engine) {
    endAll(callTimeouts.removeExpired(at: deadline, ring: endExpiredCalls(of: engine)), .queued)
  }

  /// Forgets a mutation that could not be made durable.
  private func forgetUnadded(_ id: MutationID, in engine: isolated Engine) {
    state.remove(id)
    calls.close(id)
    reportChanges(in: engine)
    engine.sender.pump(in: engine)
  }

  /// Waits until a mutation is confirmed, fails, or has to wait.
  func outcome(
    of id: MutationID, isolation: isolated (any Actor)? = #isolation
  ) async throws(Failure) -> MutationResult {
    try await calls.outcome(of: id, ifCancelled: .failure(.cancelled)).get()
  }

  /// Completes the call that made a mutation, if it still waits.
  func end(_ id: MutationID, _ outcome: Outcome) {
    calls.end(id, outcome)
  }

  // MARK: - Sending

  /// Takes the next mutation that may be sent.
  func next(at now: Duration) -> State.Step { state.next(at: now) }

  /// Stores that an attempt is about to begin, so that the next process learns of it if this process ends during the
  /// attempt.
  func mark(_ id: MutationID, in engine: isolated Engine) async throws(StoreError) {
    let ids = state.mark(id)
    marking.formUnion(ids)
    defer {
      marking.subtract(ids)
      if state.isPaused { for id in ids.dropFirst() { removeMark(of: id, in: engine) } }
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

  /// Records that an attempt was abandoned before anything was sent.
  func abandonAttempt(_ entry: Entry) {
    state.abandonAttempt(entry)
  }

  /// Records that an attempt failed after this repository had lost its lead: the leader decides about the mutation.
  func handOffAttempt(_ entry: Entry) {
    state.recordFailure(of: entry.id, isOutcomeUnknown: true)
  }

  /// Records that the server answered with success, so the next mutation of the lane may be sent.
  func recordAnswer(to entry: Entry) {
    state.recordAnswer(to: entry)
  }

  /// Completes the attempt of a lane, so that its next mutation may be sent.
  func complete(_ entry: Entry) {
    state.complete(entry)
  }

  /// Records that an attempt failed.
  func recordFailure(of id: MutationID, isOutcomeUnknown: Bool, in engine: isolated Engine) {
    state.recordFailure(of: id, isOutcomeUnknown: isOutcomeUnknown)
    engine.start { engine in await engine.queue.save(id, in: engine) }
  }

  /// Records that the server may have a mutation, although no usable reply says so.
  ///
  /// The caller then calls ``save(_:in:)``.
  ///
  /// - Returns: Whether that changed the record.
  @discardableResult
  func recordUnknownOutcome(of id: MutationID) -> Bool {
    state.recordUnknownOutcome(of: id)
  }

  /// The number of failed attempts in a row of a mutation's lane, the present one included.
  func failures(of entry: Entry) -> Int { state.failures(of: entry) }

  /// Makes a lane wait after a failed attempt; see ``MutationQueueState/backOff(_:until:isServerDelay:)``.
  func backOff(_ entry: Entry, until deadline: Duration, isServerDelay: Bool) {
    state.backOff(entry, until: deadline, isServerDelay: isServerDelay)
    if !calls.isEmpty { endAll(state.waiting(in: entry.lane), .queued) }
  }

  /// Makes the lanes of a mutation's user wait for new credentials.
  func waitForSignIn(_ entry: Entry, in engine: isolated Engine) {
    endAll(state.waitForSignIn(entry), .queued)
    let id = entry.id
    engine.start { engine in
      await engine.queue.save(id, in: engine)
      // The user may sign in through another repository, which stores that.
      await engine.keepTrying { (engine) async throws(StoreError) in try await engine.users.start(in: engine) }
    }
  }

  private func endAll(_ ids: [MutationID], _ result: MutationResult) {
    for id in ids { calls.end(id, .success(result)) }
  }

  /// Stops sending until ``resume()``, because the network is offline.
  func pause(in engine: isolated Engine) {
    let waiting = state.pause()
    if !calls.isEmpty { endAll(waiting, .queued) }
    for id in waiting where !marking.contains(id) { removeMark(of: id, in: engine) }
  }

  /// Ends ``pause(in:)``.
  func resume() {
    state.resume()
  }

  /// Removes the mark of a waiting mutation, so that a later process doesn't count an attempt that never began.
  private func removeMark(of id: MutationID, in engine: isolated Engine) {
    guard state.removeMark(of: id) else { return }
    engine.start { engine in await engine.queue.save(id, in: engine) }
  }

  /// Whether a mutation is waiting or in flight whose user doesn't have to sign in.
  var canSend: Bool { state.canSend }

  /// Ends all backoffs, except those whose delay the server named.
  func retryNow() {
    state.retryNow()
  }

  /// Lets the mutations of a user be sent again, because the user's credentials have changed.
  func signedIn(userID: String?, in engine: isolated Engine) {
    state.signedIn(userID: userID)
    reportChanges(in: engine)
  }

  // MARK: - Removing

  /// Forgets mutations that the stored value has, and whose records a commit removed.
  func confirm(_ ids: [MutationID], _ commit: StoreCommit?, in engine: isolated Engine) {
    for id in ids { state.remove(id) }
    if let commit { records.recordRemoval(of: ids, commit) }
    engine.sender.pump(in: engine)
  }

  /// Records that a mutation will not be sent again: the server refused it, the policy allows no further attempt, or
  /// its value can't be stored.
  ///
  /// The mutation stays listed as refused unless its caller gets the error.
  ///
  /// - Parameters:
  ///   - id: The id of the mutation.
  ///   - refusal: The reason.
  ///   - failure: The error for its caller.
  ///   - isOutcomeUnknown: Whether the server may have made the change at the last attempt.
  ///   - engine: The engine.
  func refuse(
    _ id: MutationID, _ refusal: MutationRefusal, _ failure: Failure, isOutcomeUnknown: Bool,
    in engine: isolated Engine
  ) async {
    if case .byServer = refusal { state.recordRefusal(of: id) }
    if isOutcomeUnknown { state.recordUnknownOutcome(of: id) }
    if let entry = state[id] { engine.removeFromOverlay([id], of: entry.key) }
    events.emit(.mutationRefused(id, refusal))
    // Claimed first, so that the caller gets the error even if it is cancelled while the record is removed.
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
      // It stays listed as refused.
      events.emit(.storeFailed(error))
      saveLater(id, in: engine)
    }
  }

  /// Records that a mutation isn't possible on the present value.
  ///
  /// - Parameters:
  ///   - id: The id of the mutation.
  ///   - conflict: The reason.
  ///   - isFromServer: Whether the server reported the conflict, and so didn't make the change. Otherwise it may have made
  ///     it at an earlier attempt.
  ///   - engine: The engine.
  func recordConflict(
    _ id: MutationID, _ conflict: MutationConflict, isFromServer: Bool = false, in engine: isolated Engine
  ) {
    guard let entry = state[id] else { return }
    if isFromServer { state.recordRefusal(of: id) }
    state.recordVerdict(.conflicted(conflict), on: id)
    events.emit(.mutationConflicted(id, conflict))
    reportChanges(in: engine)
    engine.sender.pump(in: engine)
    // A mutation that isn't durable yet is saved by `makeDurable`.
    guard entry.tag != nil else { return }
    engine.start { engine in
      await engine.queue.save(id, in: engine)
      engine.queue.end(id, .success(.conflicted(id)))
    }
  }

  // MARK: - Decisions

  /// Returns a mutation that the app may cancel, resolve, requeue or discard.
  func undecided(_ id: MutationID) throws(PendingMutationError) -> Entry {
    guard let entry = state[id], !entry.isBeingDecided else { throw .unknown(id) }
    // A mutation that isn't durable yet will be shortly.
    guard entry.tag != nil else { throw .alreadySent(id) }
    return entry
  }

  /// The standing of a mutation in the list.
  func standing(of entry: Entry) -> Listed.Standing { state.standing(of: entry) }

  /// Keeps a mutation from being sent, and from a second decision at the same time.
  func hold(_ id: MutationID) {
    state.hold(id)
  }

  /// Ends ``hold(_:)``, if the mutation still exists.
  func release(_ id: MutationID, in engine: isolated Engine) {
    state.release(id)
    engine.sender.pump(in: engine)
  }

  /// Removes the record of a held mutation, unless another process sends it or has completed it.
  ///
  /// If it was removed, the caller then calls ``forget(_:)``.
  ///
  /// - Returns: Whether it was removed.
  func removeUnsent(_ id: MutationID, in engine: isolated Engine) async throws(StoreError) -> Bool {
    while let entry = state[id], let tag = entry.tag {
      switch try await records.remove(id, if: .unsent, tag: tag) {
      case .removed: return true
      case .gone:
        if let entry = state[id] { await engine.external.receiveRemoval(of: entry, in: engine) }
        return false
      case .written, .unchanged, .decided:
        // Tries again if the record was changed by a write of this repository.
        guard let entry = state[id], entry.tag != tag, standing(of: entry) != .inFlight else { return false }
      }
    }
    return false
  }

  /// Removes a refused or conflicted mutation, unless another process sends it again or has completed it.
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
    case .written, .unchanged, .decided: return false
    }
  }

  /// Forgets a mutation whose record was removed.
  ///
  /// - Returns: Whether the mutation was known.
  func forget(_ id: MutationID) -> Bool { state.remove(id) != nil }

  /// Forgets the mutations of a user who has signed out, and fails the calls that wait for them.
  func forget(_ user: UserDigest, in engine: isolated Engine) {
    for entry in state.all where UserDigest(entry.key.userID) == user {
      state.remove(entry.id)
      calls.end(entry.id, .failure(.signedOut))
    }
    reportChanges(in: engine)
    engine.sender.pump(in: engine)
  }

  /// Removes a mutation and its record.
  func remove(_ id: MutationID, isolation: isolated (any Actor)? = #isolation) async throws(StoreError) {
    try await records.remove(id)
    state.remove(id)
  }

  // MARK: - Records

  /// Writes the present record of a mutation.
  ///
  /// - Returns: The error if that failed.
  func write(_ id: MutationID, in engine: isolated Engine) async -> StoreError? {
    // A mutation that isn't durable yet is being written.
    guard let entry = state[id], entry.tag != nil else { return nil }
    do throws(StoreError) {
      let (outcome, isOvertaken) = try await records.replace(id, by: entry.record, tag: entry.tag)
      switch outcome {
      case .written(let record, let commit):
        state.recordWrite(record, of: id, commit)
        if isOvertaken { await reloadRecord(id, in: engine) }
      case .decided: await reloadRecord(id, in: engine)
      case .gone: if let entry = state[id] { await engine.external.receiveRemoval(of: entry, in: engine) }
      case .removed, .unchanged: break
      }
      return nil
    } catch {
      return error
    }
  }

  /// Writes the present record of a mutation, and retries until the store accepts it.
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

  /// Handles changes of records that the store reports together.
  ///
  /// The store may not report the order of commits. So all changes are handled in the order of the mutations, before
  /// one of the mutations is sent.
  ///
  /// - Parameters:
  ///   - changes: The changes.
  ///   - reading: The number of the read that they follow. Changes that follow an earlier read are already known.
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

  /// Handles a change that another process made to a record during a write by this repository.
  private func reloadRecord(_ id: MutationID, in engine: isolated Engine) async {
    do throws(StoreError) {
      let stored = try await records.load(id)
      guard let entry = state[id] else { return }
      guard let stored else { return await engine.external.receiveRemoval(of: entry, in: engine) }
      if let added = take(records.keys.record(id), stored, in: engine) { await engine.external.show(added, in: engine) }
      reportChanges(in: engine)
      engine.sender.pump(in: engine)
    } catch {
      // The next write of the record fails its precondition and reads the stored record.
      events.emit(.storeFailed(error))
    }
  }

  /// Handles a record that another process wrote.
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
      // It was refused or in conflict, and is sent again.
      state.remove(id)
    } else if records.isRemoved(id) {
      return nil
    }
    guard let entry = entry(key, stored, in: engine) else { return nil }
    switch state.addExternal(entry) {
    case .nothing: break
    case .refused: refuseInterrupted(id, in: engine)
    case .behindGap:
      let sequence = entry.record.sequence
      engine.start { engine in await engine.queue.readPredecessors(of: id, sequence, in: engine) }
    }
    return state[id].flatMap { $0.isLive ? $0 : nil }
  }

  private func replace(_ entry: Entry, with stored: StoredValue<Record>, in engine: isolated Engine) {
    guard let verdict = state.receive(stored, of: entry) else {
      if !calls.isEmpty, !state.sends, state.isStalled(entry.lane) { endAll(state.waiting(in: entry.lane), .queued) }
      return
    }
    engine.removeFromOverlay([entry.id], of: entry.key)
    switch verdict {
    case .conflicted: calls.end(entry.id, .success(.conflicted(entry.id)))
    case .refused: calls.end(entry.id, .success(.queued))
    }
    engine.sender.pump(in: engine)
  }

  /// Returns those of the given mutations that another repository or process has completed.
  ///
  /// - Complexity: Loads the record of each mutation.
  func externallyFinished(
    _ ids: [MutationID], isolation: isolated (any Actor)? = #isolation
  ) async throws(StoreError) -> [MutationID] {
    let durable = ids.filter { state[$0]?.tag != nil }
    return try await records.externallyRemoved(durable).filter { state[$0] != nil }
  }

  /// Forgets mutations that another repository or process has completed.
  ///
  /// - Parameters:
  ///   - ids: The ids of the mutations.
  ///   - isConfirmed: Whether the stored value changed with them. Otherwise they were cancelled.
  ///   - engine: The engine.
  func finishExternally(_ ids: [MutationID], isConfirmed: Bool, in engine: isolated Engine) {
    for id in ids where state.remove(id) != nil {
      calls.end(id, isConfirmed ? .success(.confirmed) : .failure(.cancelled))
    }
    reportChanges(in: engine)
    engine.sender.pump(in: engine)
  }
}

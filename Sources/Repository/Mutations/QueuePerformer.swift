internal import DataStore
internal import Multicast

/// Acts on the results of attempts to send mutations, and reports what changes in the queue.
///
/// ``MutationQueue`` has the mutations, and decides what is sent next. ``MutationAdder`` adds
/// mutations, ``MutationReader`` reads the stored ones and observes their changes, and ``MutationWriter`` writes them.
/// ``MutationSender`` sends them, ``MutationCalls`` completes the calls that wait for them, and ``MutationDecisions``
/// acts on the app's decisions. ``SyncState`` applies the mutations to the value.
///
/// Belongs to one ``SyncEngine`` and is used in its isolation only.
///
/// ## The lifetime of an optimistic change
///
/// A user edits a comment. The edit must be visible at once and must not be lost, although the reply of the server may
/// be late, lost, or overtaken by a fetch.
///
/// The naive way changes the cached value, sends the request, and restores a snapshot if the request fails. The
/// snapshot holds more than the edit, so restoring it undoes later changes too. A fetch that began earlier overwrites
/// the edit. A request that failed may have reached the server. And the process may end between any two of these steps.
///
/// Here a change is a *mutation*: a record in the store, applied to the stored value for display and never written into
/// it before the server has answered. It passes through these steps:
/// 1. **Apply.** ``MutationAdder`` applies it to the visible value and reserves its place in its lane, in one step. The
///    mutation blocks its lane until it is durable.
/// 2. **Persist.** ``MutationAdder`` writes its record, which gets the repository's next sequence number. If that
///    fails, the mutation is rolled back and the call throws.
/// 3. **Send.** ``MutationQueue/next(at:)`` returns it when it is first in its lane. Before the request, its record is
///    *marked*; see ``MutationWriter/mark(_:in:)``. The mark says that an attempt may have begun, so a process that
///    finds the mark later treats the outcome as unknown. If the attempt fails but may be repeated, the lane backs off,
///    and the mutation stays visible.
/// 4. **Confirm.** In one commit, ``SyncWrites`` removes the record and, if the stored value must change, stores the
///    value with the change. ``confirm(_:in:)`` then forgets the mutation. For observers, the mutation stops being
///    applied in the same step in which the stored value gains the change.
///
/// A mutation ends earlier if it is refused, conflicted or cancelled, or if its user signs out. Then it is rolled back:
/// it is no longer applied, and the other mutations still are. The article *How a change travels* gives the reasons for
/// each step.
final class QueuePerformer<Source: RepositorySource> {
  typealias Engine = SyncEngine<Source>
  typealias Mutation = Source.Mutation
  typealias Failure = RepositoryError<Source.Failure>
  typealias State = MutationQueue<Source.Key, Mutation>
  typealias Entry = State.Entry
  typealias List = [PendingMutation<Source.Key, Mutation>]

  private let events: RepositoryEvents
  private let reports: QueueReports<Source>
  private let calls: MutationCalls<Source>

  /// - Parameters:
  ///   - collection: The collection of the mutations.
  ///   - calls: The calls that wait for the mutations.
  ///   - events: Receives the repository's events.
  ///   - liveCounts: Receives the number of live mutations; see ``MutationLedger/Entry/isLive``.
  ///   - version: Receives the version of the queue.
  ///   - lists: Receives the list of all mutations, under the name of their collection.
  init(
    of collection: String, _ calls: MutationCalls<Source>, events: RepositoryEvents,
    liveCounts: CurrentValueRelay<Int>, version: CurrentValueRelay<UInt64>, lists: KeyChannels<String, List>
  ) {
    (self.calls, self.events) = (calls, events)
    reports = QueueReports(
      of: collection, liveCounts: liveCounts, version: version, lists: lists, events: events)
  }

  // MARK: - Leading

  /// Starts to send mutations.
  ///
  /// A repository that leads sends the mutations of all repositories of its source on the store; see ``Election``.
  func lead(as status: LeadershipStatus, in engine: isolated Engine) {
    let (refused, behindGap) = engine.queue.lead(as: status)
    // A mutation that is no longer in the queue was completed by another repository. Its call keeps the timeout,
    // because it still waits for the outcome to be read from the store.
    calls.endTimeouts(in: engine) { engine.queue[$0] != nil }
    for id in refused { refuseInterrupted(id, in: engine) }
    // Stored mutations before one of these may not be known yet. It waits until they have been read.
    for entry in behindGap.compactMap({ engine.queue[$0] }) {
      engine.start { engine in
        await engine.reader.readPredecessors(of: entry.id, entry.record.sequence, in: engine)
      }
    }
    // Nothing would complete the calls of stalled lanes soon, because their timeouts have ended.
    calls.endQueued(engine.queue.live.filter { engine.queue.isStalled($0.lane) }.map(\.id))
    // From now on, this repository decides whether a mutation that it sends is in conflict.
    for entry in engine.queue.live where engine.queue.sends(entry) && !entry.isAnswered { engine.beginDeciding(entry) }
    reportChanges(in: engine)
    engine.sender.pump(in: engine)
  }

  /// Stops sending, because another repository may lead.
  ///
  /// Requests in flight run to completion. An attempt whose request hasn't begun is abandoned.
  func follow(in engine: isolated Engine) {
    engine.queue.follow()
    for entry in engine.queue.live where !entry.isInFlight && !entry.isAnswered { handOff(entry, in: engine) }
    reportChanges(in: engine)
    // Tries to lead again if there are live mutations, once no attempt is in flight.
    engine.sender.pump(in: engine)
  }

  /// Leaves a mutation to the leader after an attempt has ended, if this repository no longer leads.
  func handOffIfFollowing(_ attempted: Entry, in engine: isolated Engine) {
    if engine.queue.sends { return }
    engine.queue.endAttemptAfterLoss(attempted)
    guard let entry = engine.queue[attempted.id], entry.isLive, !entry.isAnswered else { return }
    handOff(entry, in: engine)
  }

  /// Lets the leader decide whether a mutation is in conflict, and limits the time for which its call waits.
  private func handOff(_ entry: Entry, in engine: isolated Engine) {
    engine.endDeciding(entry)
    calls.startTimeout(of: entry.id, in: engine)
  }

  /// Completes the refusal of a mutation after too many of its attempts in a row were interrupted.
  func refuseInterrupted(_ id: MutationID, in engine: isolated Engine) {
    if let entry = engine.queue[id] {
      engine.removeFromOverlay([id], of: entry.key)
      events.emit(.mutationRefused(id, .cutOff(attempts: entry.record.interruptedAttempts)))
    }
    // The call doesn't throw, because there is no error of the server; see ``MutationResult/queued``.
    calls.end(id, .success(.queued))
    engine.start { engine in await engine.writer.save(id, in: engine) }
  }

  // MARK: - Reporting

  /// Sends the present list to the observers, unless their channel replays one already.
  func sendFirstList(in engine: isolated Engine) {
    reports.sendFirstList(of: engine.queue)
  }

  /// Reports what has changed in the queue.
  func reportChanges(in engine: isolated Engine) {
    reports.report(engine.queue, in: engine)
    engine.suspension.recordStep()
  }

  /// Sends the list to its observers.
  func sendList(in engine: isolated Engine) {
    reports.sendList(of: engine.queue)
  }

  // MARK: - Sending

  /// Records that an attempt ended before its request began, because this repository has lost its lead.
  ///
  /// Removes the mark that this repository has stored, if any, so that the next leader doesn't count an attempt that
  /// never began. The next leader may have changed the record already. Then the leader's version stays.
  func abandonAttemptAfterLoss(_ entry: Entry, in engine: isolated Engine) {
    let ownsMark = engine.queue[entry.id]?.ownsMark ?? false
    engine.queue.abandonAttempt(entry)
    guard ownsMark else { return }
    engine.start { engine in
      if let error = await engine.writer.write(entry.id, in: engine) {
        engine.events.emit(.storeFailed(error))
      }
    }
  }

  /// Lets an answered mutation be sent again, because the value with its change can't be stored: a newer version of the
  /// program has stored the value.
  ///
  /// The newer program can send it, too, under the same id.
  func returnAnswered(_ id: MutationID, in engine: isolated Engine) async {
    guard let entry = engine.queue[id] else { return }
    let delay = engine.backoff.delay(forAttempt: engine.queue.failures(of: entry))
    engine.queue.returnAnswered(entry, after: delay, at: engine.moment)
    calls.end(id, .success(.queued))
    calls.endQueued(engine.queue.waiting(in: entry.lane))
    reportChanges(in: engine)
    await engine.writer.save(id, in: engine)
    engine.sender.pump(in: engine)
  }

  /// Records that an attempt failed, and starts to write the record.
  func recordFailure(of id: MutationID, isOutcomeUnknown: Bool, in engine: isolated Engine) {
    engine.queue.recordFailure(of: id, isOutcomeUnknown: isOutcomeUnknown)
    engine.start { engine in await engine.writer.save(id, in: engine) }
  }

  /// Makes a lane wait after a failed attempt; see
  /// ``MutationQueue/backOff(_:for:isServerDelay:reason:hasRequested:at:)``.
  func backOff(
    _ entry: Entry, for delay: Duration, isServerDelay: Bool, reason: String, hasRequested: Bool,
    in engine: isolated Engine
  ) {
    let beginsOutage = engine.queue.backOff(
      entry, for: delay, isServerDelay: isServerDelay, reason: reason, hasRequested: hasRequested,
      at: engine.moment)
    calls.endQueued(
      beginsOutage
        ? engine.queue.live.filter { engine.queue.isStalled($0.lane) }.map(\.id) : engine.queue.waiting(in: entry.lane))
  }

  /// Makes the lanes of a mutation's user wait for new credentials, unless the credentials have changed since the
  /// attempt began.
  func waitForSignIn(_ entry: Entry, in engine: isolated Engine) {
    let waiting = engine.queue.waitForSignIn(entry)
    calls.endQueued(waiting)
    let id = entry.id
    engine.start { engine in
      await engine.writer.save(id, in: engine)
      // The user may sign in through another repository. It stores the sign-in, and this repository observes that.
      await engine.keepTrying { (engine) async throws(StoreError) in try await engine.users.start(in: engine) }
    }
  }

  /// Stops sending until ``MutationQueue/resume(_:)``.
  func pause(_ pause: MutationLanes.Pause, in engine: isolated Engine) {
    let waiting = engine.queue.pause(pause)
    calls.endQueued(waiting)
    engine.writer.removeMarks(of: waiting, in: engine)
    // Gives the lead up.
    engine.sender.pump(in: engine)
  }

  /// Returns a mutation whose attempt was cancelled to its lane, because the repository is suspended.
  ///
  /// The caller writes the record.
  func interruptAttempt(_ entry: Entry, in engine: isolated Engine) {
    engine.queue.interruptAttempt(entry)
    calls.endQueued([entry.id])
  }

  /// Stores that the outcomes of attempts that go on while the repository is suspended are unknown.
  func leaveAttempts(in engine: isolated Engine) async {
    for entry in engine.queue.busy {
      calls.endQueued([entry.id])
      if entry.isInFlight, engine.queue.recordUnknownOutcome(of: entry.id) {
        await engine.writer.save(entry.id, in: engine)
      }
    }
  }

  /// Lets the mutations of a user be sent again, because the user's credentials have changed.
  func signedIn(userID: String?, in engine: isolated Engine) {
    engine.queue.signedIn(userID: userID)
    reportChanges(in: engine)
  }

  // MARK: - Removing

  /// Forgets confirmed mutations, whose records a commit removed.
  func confirm(_ ids: [MutationID], in engine: isolated Engine) {
    for id in ids { engine.queue.remove(id) }
    engine.sender.pump(in: engine)
  }

  /// Records that a mutation is no longer sent: the server refused it, the policy allows no further attempt, or its
  /// value can't be stored.
  ///
  /// The mutation stays listed as refused, unless its caller gets the error and its record can be removed.
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
    // A refusal by the server means that it made the change at no attempt.
    if case .byServer = refusal { engine.queue.recordRefusal(of: id) }
    if isOutcomeUnknown { engine.queue.recordUnknownOutcome(of: id) }
    if let entry = engine.queue[id] { engine.removeFromOverlay([id], of: entry.key) }
    events.emit(.mutationRefused(id, refusal))
    // The call is claimed first, so that it gets the error even if its task is cancelled during the removal.
    let hasCaller = calls.claim(id)
    engine.queue.recordVerdict(.refused(reason: refusal.description), on: id)
    if hasCaller {
      await removeRefused(id, in: engine)
    } else {
      await engine.writer.save(id, in: engine)
    }
    calls.end(id, .failure(failure))
    reportChanges(in: engine)
  }

  private func removeRefused(_ id: MutationID, in engine: isolated Engine) async {
    do throws(StoreError) {
      if try await engine.writer.perform(RecordWrite(id: id, change: .remove(.refused)), in: engine) {
        engine.queue.remove(id)
      }
    } catch {
      // It stays listed as refused.
      events.emit(.storeFailed(error))
      engine.writer.saveLater(id, in: engine)
    }
  }

  /// Records that a mutation isn't possible on the present value.
  ///
  /// - Parameters:
  ///   - id: The id of the mutation.
  ///   - conflict: The reason.
  ///   - isFromServer: Whether the server reported the conflict, and so didn't make the change. Otherwise the server
  ///     may have made the change at an earlier attempt.
  ///   - engine: The engine.
  func recordConflict(
    _ id: MutationID, _ conflict: MutationConflict, isFromServer: Bool = false, in engine: isolated Engine
  ) {
    guard let entry = engine.queue[id] else { return }
    if isFromServer { engine.queue.recordRefusal(of: id) }
    engine.queue.recordVerdict(.conflicted(conflict), on: id)
    events.emit(.mutationConflicted(id, conflict))
    reportChanges(in: engine)
    engine.sender.pump(in: engine)
    // ``MutationAdder`` saves a mutation that isn't durable yet.
    guard entry.tag != nil else { return }
    engine.start { engine in
      await engine.writer.save(id, in: engine)
      engine.calls.end(id, .success(.conflicted(id)))
    }
  }

  /// Forgets the mutations of a user who has signed out, and fails the calls that wait for them.
  func forget(_ user: UserDigest, in engine: isolated Engine) {
    for entry in engine.queue.all where UserDigest(entry.key.userID) == user {
      engine.queue.remove(entry.id)
      calls.end(entry.id, .failure(.signedOut))
    }
    for held in engine.queue.heldMutations where held.user == user { engine.queue.removeHeld(held.id) }
    reportChanges(in: engine)
    engine.sender.pump(in: engine)
  }
}

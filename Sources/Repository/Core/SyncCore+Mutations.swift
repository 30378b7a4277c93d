internal import DataStore
internal import Foundation

extension SyncCore {
  // MARK: - Adding

  /// Applies a mutation on top of all others of its key, and reserves its place in its lane.
  ///
  /// It isn't sent before its record is stored.
  ///
  /// - Parameters:
  ///   - mutation: The mutation.
  ///   - id: The id of the mutation. A mutation that the server may have applied keeps its id when it is sent again.
  ///   - keyID: The key of the value that it changes.
  ///   - replaced: The refused or conflicted entry that the mutation replaces, or `nil`.
  ///   - hasCaller: Whether a call will wait for its result.
  mutating func add(
    _ mutation: Mutation, as id: MutationID, on keyID: ID, replacing replaced: Entry?, hasCaller: Bool
  ) throws(Failure) {
    // Another process may have decided about the replaced mutation while the value was read.
    if let replaced, queue[replaced.id]?.isLive ?? true { throw .cancelled }
    let lane = capabilities.lane(of: mutation, on: keyID.key)
    var record = try makeRecord(of: mutation, as: id, on: keyID.key, lane)
    record.isOutcomeUnknown = replaced?.id == id
    guard replaced != nil || queue.hasRoom(for: record.byteCount, limits: settings.queueLimits, now: now.time) else {
      throw .queueFull
    }
    // Even if it throws, applying it may have shown that earlier mutations are in conflict.
    touch(keyID)
    do throws(MutationConflict) {
      try keys[keyID]?.state.add(id, mutation)
    } catch {
      throw .conflict(error)
    }
    queue.add(id, mutation, key: keyID.key, lane: lane, record: record)
    if hasCaller { calls.insert(id) }
    // If another repository sends the mutation, that repository decides whether the mutation is in conflict.
    if let entry = queue[id], !queue.sends(entry) { keys[keyID]?.deferDecision(on: id) }
  }

  private func makeRecord(
    of mutation: Mutation, as id: MutationID, on key: Key, _ lane: LaneID
  ) throws(Failure) -> MutationRecord {
    do {
      return try format.makeRecord(of: mutation, key: key, lane: lane, madeAt: now.time)
    } catch {
      throw .store(.encodingFailed(recordKeys.record(id).keyName, reason: String(describing: error)))
    }
  }

  /// Whether the repository attempts to lead beside the write of a new mutation, so that it can be sent at once.
  ///
  /// The order of the writes is that of the additions, so none of them may wait for the attempt.
  func wantsLead(for id: MutationID) -> Bool { !queue.sends && queue[id]?.ownsMark ?? false }

  /// Lets a mutation be sent that has become durable.
  mutating func endAddition(of id: MutationID) {
    guard let entry = queue[id] else { return }
    emit(.mutationEnqueued(id, orderingKey: "\(entry.lane)"))
    queue.release(id)
    pump()
    // If this repository sends and the lane was free, the record was stored with a mark; see
    // ``MutationRecord/isMarked``. If sending was paused during the write, the attempt that the mark announces doesn't
    // begin. A repository that is being suspended removes it before it gives the lead up.
    if queue.isPaused, !queue.isSuspended { removeMark(of: id) }
    // A waiting call ends at once if the lane is stalled, and after a timeout if another repository sends the mutation.
    if queue.isStalled(entry.lane) {
      end(id, .success(.queued))
    } else if !queue.sends {
      timeouts.add(id, at: now.elapsed)
    }
  }

  /// Forgets a mutation that could not be made durable.
  ///
  /// If it was to be sent again under its old id, it is instead refused or in conflict as before, or as another process
  /// has stored meanwhile.
  mutating func abandonAddition(of id: MutationID, on key: Key, replacing replaced: Entry?) {
    // If the user has signed out meanwhile, the mutation is no longer in the queue.
    if let replaced, replaced.id == id, queue[id] != nil { queue.restoreRefused(replaced) } else { queue.remove(id) }
    calls.remove(id)
    removeFromOverlay([id], of: key)
    applyChangeDuringAddition(of: id)
  }

  // MARK: - Overlay

  /// Stops applying mutations to the visible value, because they are rolled back or the base includes them.
  mutating func removeFromOverlay(_ ids: [MutationID], of key: Key) {
    guard let id = keys[key]?.id else { return }
    for mutationID in ids { keys[id]?.state.remove(mutationID) }
    touch(id)
    release(id)
  }

  // MARK: - Verdicts

  /// Records that a mutation isn't possible on the present value.
  ///
  /// - Parameters:
  ///   - id: The id of the mutation.
  ///   - conflict: The reason.
  ///   - isFromServer: Whether the server reported the conflict, and so didn't make the change. Otherwise the server
  ///     may have made the change at an earlier attempt.
  mutating func recordConflict(_ id: MutationID, _ conflict: MutationConflict, isFromServer: Bool = false) {
    guard let entry = queue[id] else { return }
    if isFromServer { queue.recordRefusal(of: id) }
    queue.recordVerdict(.conflicted(conflict), on: id)
    emit(.mutationConflicted(id, conflict))
    // The call of a mutation that isn't durable yet ends when that is stored.
    if entry.tag != nil { start(.saveConflict(id)) }
  }

  /// Records that a mutation is no longer sent: the server refused it, the policy allows no further attempt, or its
  /// value can't be stored.
  ///
  /// The caller stores that, and then ends the call.
  mutating func recordRefusal(_ id: MutationID, _ refusal: MutationRefusal, isOutcomeUnknown: Bool) {
    // A refusal by the server means that it made the change at no attempt.
    if case .byServer = refusal { queue.recordRefusal(of: id) }
    if isOutcomeUnknown { queue.recordUnknownOutcome(of: id) }
    if let entry = queue[id] { removeFromOverlay([id], of: entry.key) }
    emit(.mutationRefused(id, refusal))
    queue.recordVerdict(.refused(reason: refusal.description), on: id)
  }

  /// Completes the refusal of a mutation after too many of its attempts in a row were interrupted.
  mutating func refuseInterrupted(_ id: MutationID) {
    if let entry = queue[id] {
      removeFromOverlay([id], of: entry.key)
      emit(.mutationRefused(id, .cutOff(attempts: entry.record.interruptedAttempts)))
    }
    // The call doesn't throw, because there is no error of the server; see ``MutationResult/queued``.
    end(id, .success(.queued))
    start(.save(id))
  }

  // MARK: - Leading

  /// Starts to send mutations.
  ///
  /// A repository that leads sends the mutations of all repositories of its source on the store.
  mutating func beginSending(as status: LeadershipStatus) {
    queue.isLedElsewhere = false
    let (refused, behindGap) = queue.lead(as: status)
    // A mutation that is no longer in the queue was completed by another repository. Its call keeps the timeout,
    // because it still waits for the outcome to be read from the store.
    timeouts.removeAll { [queue] in queue[$0] != nil }
    for id in refused { refuseInterrupted(id) }
    // Stored mutations before one of these may not be known yet. It waits until they have been read.
    for entry in behindGap.compactMap({ queue[$0] }) {
      start(.readPredecessors(entry.id, sequence: entry.record.sequence))
    }
    // Nothing would complete the calls of stalled lanes soon, because their timeouts have ended.
    endQueuedOfStalledLanes()
    // From now on, this repository decides whether a mutation that it sends is in conflict.
    for entry in queue.live where queue.sends(entry) && !entry.isAnswered {
      guard let id = keys[entry.key]?.id, keys[id]?.isOpen ?? false else { continue }
      keys[id]?.beginDeciding(on: entry.id)
      touch(id)
    }
  }

  /// Records the result of an attempt to lead; `nil` if it failed.
  mutating func endTryingToLead(_ status: LeadershipStatus?) {
    lead.endTrying(status, at: now.elapsed)
    queue.isLedElsewhere = status == .following
  }

  /// Stops sending, because another repository may lead.
  ///
  /// Requests in flight run to completion. An attempt whose request hasn't begun is abandoned.
  mutating func endSending() {
    queue.follow()
    for entry in queue.live where !entry.isInFlight && !entry.isAnswered { handOff(entry) }
  }

  /// Leaves a mutation to the leader after an attempt has ended, if this repository no longer leads.
  mutating func handOffIfFollowing(_ attempted: Entry) {
    if queue.sends { return }
    queue.endAttemptAfterLoss(attempted)
    guard let entry = queue[attempted.id], entry.isLive, !entry.isAnswered else { return }
    handOff(entry)
  }

  /// Lets the leader decide whether a mutation is in conflict, and limits the time for which its call waits.
  private mutating func handOff(_ entry: Entry) {
    if keys[entry.key]?.isOpen ?? false { keys[entry.key]?.deferDecision(on: entry.id) }
    timeouts.add(entry.id, at: now.elapsed)
  }

  /// Gives the lead up.
  mutating func releaseLead(yields: Bool) {
    lead.release(yieldingFor: yields ? settings.leadInterval * 2 : nil, at: now.elapsed)
    emit(.leadershipReleased)
    queue.isLedElsewhere = false
    endSending()
  }

  /// Records that the lease is lost.
  mutating func loseLead() {
    lead.lose()
    emit(.leadershipLost)
    endSending()
  }

  /// Whether the lead may be given up that was taken with a lease.
  mutating func mayRest(_ lease: Int, yields: Bool) -> Bool {
    lead.isHeld && lead.leaseCount == lease && attempts.isEmpty && (yields || queue.isIdle(at: now.elapsed))
  }

  // MARK: - Pausing

  /// Stops sending until the pause ends.
  mutating func pause(_ pause: MutationLanes.Pause) {
    let waiting = queue.pause(pause)
    endQueued(waiting)
    for id in waiting where !idsBeingMarked.contains(id) { removeMark(of: id) }
  }

  /// Removes the mark of a waiting mutation, so that a later process doesn't count an attempt that never began.
  mutating func removeMark(of id: MutationID) {
    if queue.removeMark(of: id) { start(.save(id)) }
  }

  /// Records that marks have been written before the turns of their mutations.
  mutating func endMarking(_ ids: [MutationID]) {
    idsBeingMarked.subtract(ids)
    // If sending was paused during the writes, these marks were skipped.
    if queue.isPaused { for id in ids { removeMark(of: id) } }
  }

  /// Records that the outcomes of attempts that go on while the repository is suspended are unknown.
  ///
  /// - Returns: The mutations whose records must be stored.
  mutating func leaveAttempts() -> [MutationID] {
    hasLeftAttempts = true
    return queue.busy.filter { entry in
      end(entry.id, .success(.queued))
      return entry.isInFlight && queue.recordUnknownOutcome(of: entry.id)
    }.map(\.id)
  }

  /// Ends all backoff delays, except those that the server requested.
  mutating func endWaits() {
    effects.endsWaits = true
    queue.retryNow()
  }

  /// Ends backoff delays because a fetch has shown that the server is reachable; see
  /// ``MutationLanes/resumeAfterFetch()``.
  mutating func endWaitsAfterFetch() {
    effects.endsWaits = true
    queue.resumeAfterFetch()
  }

  // MARK: - Decisions

  /// Begins a decision of the app about a mutation, which may not be sent or decided about meanwhile.
  ///
  /// - Returns: The mutation, if it is durable and no other decision is in progress.
  func findUndecided(_ id: MutationID) throws(PendingMutationError) -> Entry {
    guard let entry = queue[id], !entry.isBeingDecided else { throw .unknown(id) }
    // A mutation that isn't durable yet will be shortly, and may then be sent at once.
    guard entry.tag != nil else { throw .alreadySent(id) }
    return entry
  }

  /// Checks that a mutation can be cancelled, and keeps it from being sent.
  ///
  /// It stays visible, and keeps its place in its lane, until its removal is certain.
  mutating func beginCancelling(_ id: MutationID) throws(PendingMutationError) {
    let entry = try findUndecided(id)
    switch queue.standing(of: entry) {
    case .inFlight, .refused: throw .alreadySent(id)
    case .waiting, .needsSignIn, .conflicted: break
    }
    // The outcome of an earlier attempt to send the mutation may be unknown. If a value received since has the change,
    // the write of that value confirms the mutation, which can't be cancelled during that write.
    if keys[entry.key]?.state.isBeingConfirmed(id) ?? false { throw .alreadySent(id) }
    queue.hold(id)
  }

  /// Ends the attempt to cancel a mutation.
  mutating func endCancelling(_ id: MutationID, isRemoved: Bool) {
    if isRemoved {
      emit(.mutationCancelled(id))
      return end(id, .failure(.cancelled))
    }
    // Another process has removed it, or may be sending it.
    if queue[id] == nil { endCallOfRemoved(id) }
    queue.release(id)
  }

  // MARK: - Held mutations

  /// Holds a mutation that this program can't read.
  mutating func hold(_ mutation: HeldMutation<Key>) {
    let earlier = queue.heldMutation(mutation.id)
    queue.hold(mutation)
    if earlier?.reason != mutation.reason { emit(RepositoryEvent(mutation)) }
    end(mutation.id, .success(.queued))
    endQueuedOfStalledLanes()
    if let key = mutation.key { touch(key) }
  }

  /// Forgets a held mutation, because its record was removed, or because this program can read it now.
  mutating func endHolding(_ id: MutationID) {
    guard let mutation = queue.removeHeld(id), let key = mutation.key else { return }
    touch(key)
  }
}

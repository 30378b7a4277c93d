extension SyncCore {
  /// Ends an attempt whose mutation is no longer sent, so that the next one of the lane may be.
  mutating func skip(_ entry: Entry, _ id: ID? = nil) {
    queue.complete(entry)
    if let id { release(id) }
  }

  /// Begins the request of an attempt.
  ///
  /// - Returns: The mutation, and when the request began; `nil` if the mutation was removed, refused or found in
  ///   conflict since the attempt began.
  mutating func beginRequest(
    of id: MutationID, _ keyID: ID
  ) -> (entry: Entry, requestedAt: SyncState<Value, Mutation>.Timestamp)? {
    guard let entry = queue.beginRequest(id), let requestedAt = keys[keyID]?.state.beginSending(id) else { return nil }
    emit(.mutationSending(id, attempt: entry.record.attempts))
    return (entry, requestedAt)
  }

  /// Receives the server's answer to a mutation.
  mutating func receive(
    _ reply: MutationReply<Value>, to entry: Entry, _ keyID: ID,
    requestedAt: SyncState<Value, Mutation>.Timestamp
  ) {
    queue.recordAnswer(to: entry)
    var reply = reply
    if case .value(let value) = reply { reply = .value(capabilities.complete(value, keys[keyID]?.state.base?.value)) }
    keys[keyID]?.state.receive(
      .mutation(entry.id, reply, isTrusted: !entry.record.isOutcomeUnknown), requestedAt: requestedAt)
    write(keyID)
  }

  /// What the engine does after a failed request, beside the effects.
  enum FollowUp {
    case nothing
    /// Stores the refusal and ends the call.
    case refuse(MutationRefusal, isOutcomeUnknown: Bool)
  }

  /// Receives the failure of a request.
  mutating func receive(
    _ disposition: FailureDisposition, reason: String, of entry: Entry, _ keyID: ID
  ) -> FollowUp {
    let isLastAttempt = !settings.retryPolicy.allows(attempt: entry.record.attempts + 1)
    switch disposition {
    case .refused: return .refuse(.byServer(reason: reason), isOutcomeUnknown: false)
    case .retryLater where isLastAttempt: return .refuse(.attemptsUsedUp(reason: reason), isOutcomeUnknown: false)
    case .unknownOutcome where isLastAttempt: return .refuse(.attemptsUsedUp(reason: reason), isOutcomeUnknown: true)
    case .retryLater(let delay): recordFailure(of: entry, keyID, isOutcomeUnknown: false, after: delay, reason)
    case .unknownOutcome(let delay): recordFailure(of: entry, keyID, isOutcomeUnknown: true, after: delay, reason)
    case .needsSignIn:
      keys[keyID]?.state.fail(entry.id)
      // Published first, because the mutation may be in conflict now. Its call then reports the conflict instead of
      // ``MutationResult/queued``.
      touch(keyID)
      publish()
      emit(.signInRequired(entry.id, reason: reason))
      endQueued(queue.waitForSignIn(entry))
      start(.awaitSignIn(entry.id))
    case .conflict:
      removeFromOverlay([entry.id], of: entry.key)
      recordConflict(entry.id, MutationConflict(reason), isFromServer: true)
      skip(entry, keyID)
    }
    return .nothing
  }

  private mutating func recordFailure(
    of entry: Entry, _ keyID: ID, isOutcomeUnknown: Bool, after delay: Duration?, _ reason: String
  ) {
    keys[keyID]?.state.fail(entry.id)
    queue.recordFailure(of: entry.id, isOutcomeUnknown: isOutcomeUnknown)
    start(.save(entry.id))
    // Publishing may find a conflict, because the mutation is no longer in flight: now the present value, not the
    // server, decides whether it is possible.
    touch(keyID)
    publish()
    backOff(entry, attempt: entry.record.attempts, after: delay, reason: reason)
  }

  /// Ends an attempt before its request begins, and makes its lane wait.
  mutating func abandonAttempt(_ entry: Entry, reason: String) {
    queue.abandonAttempt(entry)
    backOff(entry, attempt: entry.record.attempts + 1, after: nil, hasRequested: false, reason: reason)
  }

  /// Makes a lane wait after a failed attempt, unless the mutation of the attempt is no longer sent.
  ///
  /// - Parameters:
  ///   - entry: The mutation whose attempt failed.
  ///   - attempt: The number of the attempt, which the event reports. The backoff depends on the lane's failures in a
  ///     row.
  ///   - serverDelay: The delay that the server named, or `nil`.
  ///   - hasRequested: Whether the request had begun.
  ///   - reason: The text of the error.
  private mutating func backOff(
    _ entry: Entry, attempt: Int, after serverDelay: Duration?, hasRequested: Bool = true, reason: String
  ) {
    guard queue[entry.id]?.isLive ?? false else { return queue.complete(entry) }
    let delay = max(delay(forAttempt: queue.failures(of: entry)), serverDelay ?? .zero)
    emit(.retryScheduled(entry.id, attempt: attempt, delay: delay, reason: reason))
    let beginsOutage = queue.backOff(
      entry, for: delay, isServerDelay: serverDelay != nil, reason: reason, hasRequested: hasRequested, at: now)
    if beginsOutage { endQueuedOfStalledLanes() } else { endQueued { $0.waiting(in: entry.lane) } }
  }

  /// Records that an attempt ended before its request began, because this repository has lost its lead.
  ///
  /// Removes the mark that this repository has stored, if any, so that the next leader doesn't count an attempt that
  /// never began.
  mutating func abandonAttemptAfterLoss(_ entry: Entry) {
    let ownsMark = queue[entry.id]?.ownsMark ?? false
    queue.abandonAttempt(entry)
    if ownsMark { start(.save(entry.id)) }
  }

  /// Ends an attempt that was cancelled, because the repository was released or is suspended.
  ///
  /// The attempt doesn't count as one that the end of a process interrupted. This repository sends the mutation again
  /// when it is resumed, or the next one on the store does. The caller stores the record.
  mutating func endCancelledAttempt(_ entry: Entry, _ keyID: ID) {
    if isReleased {
      queue.recordUnknownOutcome(of: entry.id)
    } else {
      keys[keyID]?.state.fail(entry.id)
      touch(keyID)
      interruptAttempt(entry)
    }
  }

  /// Returns a mutation whose attempt was cancelled to its lane, because the repository is suspended.
  mutating func interruptAttempt(_ entry: Entry) {
    queue.interruptAttempt(entry)
    end(entry.id, .success(.queued))
  }

  /// Lets an answered mutation be sent again, because the value with its change can't be stored: a newer version of the
  /// program has stored the value.
  ///
  /// The newer program can send it, too, under the same id.
  mutating func returnAnswered(_ id: MutationID) {
    guard let entry = queue[id] else { return }
    queue.returnAnswered(entry, after: delay(forAttempt: queue.failures(of: entry)), at: now)
    end(id, .success(.queued))
    endQueued { $0.waiting(in: entry.lane) }
  }

  /// Lets the mutations of a user be sent again, because the user's credentials have changed.
  mutating func resumeMutations(of userID: String?) { queue.signedIn(userID: userID) }
}

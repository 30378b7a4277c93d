internal import DataStore

/// Sends the mutations of a repository, and acts on the result of each attempt.
///
/// Belongs to one ``SyncEngine`` and is used in its isolation only.
final class MutationSender<Source: RepositorySource> {
  typealias Engine = SyncEngine<Source>
  typealias Entry = MutationQueue<Source.Key, Source.Mutation>.Entry
  typealias SendResult = Result<MutationReply<Source.Value>, Source.Failure>

  /// The time without attempts after which a repository gives the lead up.
  ///
  /// Changes often come in series, and leading again takes some time. A system may end a process that holds a lock while
  /// it is suspended, so the time is short.
  private static var linger: Duration { .milliseconds(250) }

  private let capabilities: SourceCapabilities<Source>
  private let policy: RetryPolicy
  private let clock: ElapsedClock
  private let events: RepositoryEvents
  private let tasks: OwnedTasks
  /// Calls ``pump(at:in:)`` at the deadline that the queue named last.
  private let alarm: Alarm
  /// Calls ``SyncEngine/rest()`` when nothing was sent for the linger.
  private let lingerAlarm: Alarm
  /// The attempts in flight by their numbers, each with a function that cancels it.
  private var attempts: [UInt64: @Sendable () -> Void] = [:]
  private var lastAttempt: UInt64 = 0
  /// The number of batches of external changes that are being applied.
  private var batchCount = 0
  /// Whether ``pump(in:)`` was called while a batch was being applied.
  private var isPumpDue = false

  init(
    _ capabilities: SourceCapabilities<Source>, policy: RetryPolicy, clock: ElapsedClock, events: RepositoryEvents,
    tasks: OwnedTasks
  ) {
    (self.capabilities, self.policy, self.clock) = (capabilities, policy, clock)
    (self.events, self.tasks) = (events, tasks)
    alarm = Alarm(clock, tasks)
    lingerAlarm = Alarm(clock, tasks)
  }

  /// The number of attempts in flight, including their reads and writes of the store.
  var attemptsInFlight: Int { attempts.count }

  /// Keeps attempts from beginning until ``endBatch(in:)``, because a batch of external changes is being applied.
  ///
  /// One change of the batch may make a mutation ready to be sent, and a later change may remove that mutation.
  func beginBatch() {
    batchCount += 1
  }

  /// Ends ``beginBatch()``, and calls ``pump(in:)`` if that was postponed and no other batch is being applied.
  func endBatch(in engine: isolated Engine) {
    batchCount -= 1
    guard batchCount == 0, isPumpDue else { return }
    isPumpDue = false
    pump(in: engine)
  }

  /// Sends the mutations that may be sent, unless a batch of external changes is being applied.
  func pump(in engine: isolated Engine) {
    engine.suspension.recordStep()
    if batchCount > 0 {
      isPumpDue = true
      return
    }
    while !tasks.areCancelled {
      if engine.election.mustYield(in: engine) { return yield(in: engine) }
      switch engine.queue.next(at: clock.elapsed()) {
      case .send(let entry):
        lingerAlarm.set(nil) { _ in }
        lastAttempt += 1
        attempts[lastAttempt] = engine.start { [lastAttempt] engine in
          await engine.sender.send(entry, attempt: lastAttempt, in: engine)
        }
      case .lead:
        // Attempts that began before this repository became a follower must end first. Otherwise it might lead again
        // and send their mutations a second time.
        if attemptsInFlight == 0 { engine.election.campaign(in: engine) }
        return
      case .wait(let deadline):
        linger(in: engine)
        return alarm.set(deadline) { [weak engine] deadline in await engine?.pump(at: deadline) }
      }
    }
  }

  /// Gives the lead up after a while without attempts, or at once while the network is offline.
  private func linger(in engine: isolated Engine) {
    guard attemptsInFlight == 0, engine.election.leads else { return lingerAlarm.set(nil) { _ in } }
    if engine.queue.isPaused {
      // What is being sent or stored calls this function again.
      if engine.queue.isSettled { yield(in: engine) }
      return
    }
    if lingerAlarm.isSet { return }
    lingerAlarm.set(clock.elapsed() + Self.linger) { [weak engine] deadline in await engine?.rest(at: deadline) }
  }

  /// Gives the lead up as soon as no attempt is in flight.
  private func yield(in engine: isolated Engine) {
    lingerAlarm.set(nil) { _ in }
    if attemptsInFlight == 0 { engine.start { engine in await engine.election.rest(in: engine) } }
  }

  /// Gives the lead up when the linger has passed.
  func rest(at deadline: Duration, in engine: isolated Engine) async {
    lingerAlarm.clear(deadline)
    await engine.election.rest(in: engine)
  }

  /// Cancels the attempts in flight, because the repository is suspended.
  func cancelAttempts() {
    for (_, cancel) in attempts.sorted(by: { $0.key < $1.key }) { cancel() }
  }

  /// Clears the alarm's deadline, which has passed, and calls ``pump(in:)``.
  func pump(at deadline: Duration, in engine: isolated Engine) {
    alarm.clear(deadline)
    pump(in: engine)
  }

  private func send(_ entry: Entry, attempt number: UInt64, in engine: isolated Engine) async {
    await attempt(entry, in: engine)
    attempts[number] = nil
    engine.suspension.recordStep()
    engine.performer.handOffIfFollowing(entry, in: engine)
    // The reply may have been stored, and the queue pumped, while this attempt still counted as in flight.
    pump(in: engine)
  }

  /// Makes one attempt to send a mutation.
  private func attempt(_ dequeued: Entry, in engine: isolated Engine) async {
    let performer = engine.performer
    let cell: SyncCell<Source>
    do throws(StoreError) {
      guard let opened = try await engine.openUnlessSignedOut(dequeued.key) else {
        return advanceLane(after: dequeued, in: engine)
      }
      cell = opened
      // Without this read, each attempt would send the mutation again, and its reply couldn't be stored.
      if cell.hasFutureValue { _ = try await engine.feed.load(cell.storeKey) }
      cell.hasFutureValue = false
      engine.queue.recordValue(of: dequeued.id, isReadable: true)
      try await engine.writer.storeVerdicts(in: dequeued.lane, in: engine)
      // The stored mark lets a later process know of the attempt if this one ends during it. A repository that has lost
      // its lead must not mark mutations. The lead is confirmed again after the mark is stored.
      if engine.queue.needsMark(dequeued.id), await !engine.election.confirmLead(in: engine) {
        return performer.abandonAttemptAfterLoss(dequeued, in: engine)
      }
      try await engine.writer.mark(dequeued.id, in: engine)
    } catch {
      events.emit(.storeFailed(error))
      if case .newerFormat = error { engine.queue.recordValue(of: dequeued.id, isReadable: false) }
      return abandon(dequeued, reason: error.description, in: engine)
    }
    let isStillLeading = await engine.election.confirmLead(in: engine)
    guard isStillLeading else { return performer.abandonAttemptAfterLoss(dequeued, in: engine) }
    if Task.isCancelled { return await endCancelled(dequeued, cell, in: engine) }
    if engine.queue.needsMark(dequeued.id) {
      return abandon(dequeued, reason: "another process has changed the mutation's record", in: engine)
    }
    guard let sending = capabilities.sending, let entry = engine.queue.beginRequest(dequeued.id) else {
      // The mutation was removed, refused or found in conflict meanwhile.
      advanceLane(after: dequeued, in: engine)
      return engine.release(cell)
    }
    performer.reportChanges(in: engine)
    let requestedAt = cell.state.beginSending(entry.id)
    events.emit(.mutationSending(entry.id, attempt: entry.record.attempts))
    let result: SendResult
    do throws(Source.Failure) {
      result = .success(try await sending.send(entry.mutation, entry.key, entry.id))
    } catch {
      result = .failure(error)
    }
    if engine.suspension.hasLeftAttempts {
      cell.state.fail(entry.id)
      return performer.interruptAttempt(entry, in: engine)
    }
    // A failure matters only if this repository still leads. A new leader sends the mutation again, and gets an answer
    // of its own.
    var hasLostLead = false
    if case .failure = result { hasLostLead = await !engine.election.confirmLead(in: engine) }
    // The user has signed out, so the answer no longer matters.
    if cell.isClosed { return advanceLane(after: dequeued, in: engine) }
    if hasLostLead { return engine.queue.recordFailure(of: entry.id, isOutcomeUnknown: true) }
    switch result {
    case .success(let reply):
      engine.queue.recordAnswer(to: entry)
      cell.state.receive(
        .mutation(entry.id, completeValue(of: reply, cell), isTrusted: !entry.record.isOutcomeUnknown),
        requestedAt: requestedAt)
      engine.writes.write(cell, in: engine)
      pump(in: engine)
    case .failure(let failure): await receive(failure, of: entry, cell, in: engine)
    }
    performer.reportChanges(in: engine)
  }

  private func completeValue(
    of reply: MutationReply<Source.Value>, _ cell: SyncCell<Source>
  ) -> MutationReply<Source.Value> {
    guard case .value(let value) = reply else { return reply }
    return .value(capabilities.complete(value, cell.state.base?.value))
  }

  private func receive(
    _ failure: Source.Failure, of entry: Entry, _ cell: SyncCell<Source>, in engine: isolated Engine
  ) async {
    let (performer, reason) = (engine.performer, String(describing: failure))
    if Task.isCancelled { return await endCancelled(entry, cell, in: engine) }
    let isLastAttempt = !policy.allows(attempt: entry.record.attempts + 1)
    switch capabilities.source.disposition(of: failure) {
    case .refused: await refuse(entry, .byServer(reason: reason), failure, cell, in: engine)
    case .retryLater where isLastAttempt:
      await refuse(entry, .attemptsUsedUp(reason: reason), failure, cell, in: engine)
    case .unknownOutcome where isLastAttempt:
      await refuse(entry, .attemptsUsedUp(reason: reason), failure, isOutcomeUnknown: true, cell, in: engine)
    case .retryLater(let delay):
      recordFailure(of: entry, isOutcomeUnknown: false, cell, in: engine)
      backOff(entry, attempt: entry.record.attempts, after: delay, reason: reason, in: engine)
    case .unknownOutcome(let delay):
      recordFailure(of: entry, isOutcomeUnknown: true, cell, in: engine)
      backOff(entry, attempt: entry.record.attempts, after: delay, reason: reason, in: engine)
    case .needsSignIn:
      cell.state.fail(entry.id)
      // Published first, because the mutation may be in conflict now. Its call then reports the conflict instead of
      // ``MutationResult/queued``.
      engine.publish(cell)
      events.emit(.signInRequired(entry.id, reason: reason))
      performer.waitForSignIn(entry, in: engine)
      pump(in: engine)
    case .conflict:
      engine.removeFromOverlay([entry.id], of: entry.key)
      performer.recordConflict(entry.id, MutationConflict(reason), isFromServer: true, in: engine)
      advanceLane(after: entry, in: engine)
      engine.release(cell)
    }
  }

  /// Ends an attempt that was cancelled, because the repository was released or is suspended.
  ///
  /// The attempt doesn't count as one that the end of a process interrupted. This repository sends the mutation again
  /// when it is resumed, or the next one on the store does.
  private func endCancelled(_ entry: Entry, _ cell: SyncCell<Source>, in engine: isolated Engine) async {
    if tasks.areCancelled {
      engine.queue.recordUnknownOutcome(of: entry.id)
    } else {
      cell.state.fail(entry.id)
      engine.performer.interruptAttempt(entry, in: engine)
      engine.publish(cell)
      engine.performer.reportChanges(in: engine)
      // The repository may have been resumed meanwhile.
      pump(in: engine)
    }
    await engine.writer.save(entry.id, in: engine)
  }

  /// Lets the next mutation of a lane be sent.
  private func advanceLane(after entry: Entry, in engine: isolated Engine) {
    engine.queue.complete(entry)
    pump(in: engine)
  }

  private func refuse(
    _ entry: Entry, _ refusal: MutationRefusal, _ failure: Source.Failure, isOutcomeUnknown: Bool = false,
    _ cell: SyncCell<Source>, in engine: isolated Engine
  ) async {
    await engine.performer.refuse(
      entry.id, refusal, .server(failure), isOutcomeUnknown: isOutcomeUnknown, in: engine)
    advanceLane(after: entry, in: engine)
    engine.release(cell)
  }

  private func recordFailure(
    of entry: Entry, isOutcomeUnknown: Bool, _ cell: SyncCell<Source>, in engine: isolated Engine
  ) {
    cell.state.fail(entry.id)
    engine.performer.recordFailure(of: entry.id, isOutcomeUnknown: isOutcomeUnknown, in: engine)
    // Publishing may find a conflict, because the mutation is no longer in flight: now the present value, not the
    // server, decides whether it is possible.
    engine.publish(cell)
  }

  /// Ends an attempt before its request begins, and makes its lane wait.
  private func abandon(_ entry: Entry, reason: String, in engine: isolated Engine) {
    engine.queue.abandonAttempt(entry)
    backOff(entry, attempt: entry.record.attempts + 1, after: nil, hasRequested: false, reason: reason, in: engine)
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
  ///   - engine: The engine.
  private func backOff(
    _ entry: Entry, attempt: Int, after serverDelay: Duration?, hasRequested: Bool = true,
    reason: String, in engine: isolated Engine
  ) {
    if engine.queue[entry.id]?.isLive ?? false {
      let delay = max(engine.backoff.delay(forAttempt: engine.queue.failures(of: entry)), serverDelay ?? .zero)
      events.emit(.retryScheduled(entry.id, attempt: attempt, delay: delay, reason: reason))
      engine.performer.backOff(
        entry, for: delay, isServerDelay: serverDelay != nil, reason: reason,
        hasRequested: hasRequested, in: engine)
    } else {
      // The mutation was removed, refused or found in conflict meanwhile.
      engine.queue.complete(entry)
    }
    pump(in: engine)
  }
}

internal import DataStore

/// Sends the mutations of a repository, and decides what becomes of each attempt.
///
/// Belongs to one ``SyncEngine`` and is used in its isolation only.
final class MutationSender<Source: RepositorySource> {
  typealias Engine = SyncEngine<Source>
  typealias Entry = MutationQueue<Source>.Entry
  typealias Reply = Result<MutationReply<Source.Value>, Source.Failure>

  private let capabilities: SourceCapabilities<Source>
  private let policy: RetryPolicy
  private let clock: ElapsedClock
  private let events: RepositoryEvents
  private let tasks: OwnedTasks
  /// When ``pump(in:)`` is called again.
  private let alarm: Alarm
  /// The number of attempts that haven't landed.
  private var attemptCount = 0

  init(
    _ capabilities: SourceCapabilities<Source>, policy: RetryPolicy, clock: ElapsedClock, events: RepositoryEvents,
    tasks: OwnedTasks
  ) {
    (self.capabilities, self.policy, self.clock) = (capabilities, policy, clock)
    (self.events, self.tasks) = (events, tasks)
    alarm = Alarm(clock, tasks)
  }

  /// Sends what may be sent.
  func pump(in engine: isolated Engine) {
    while !tasks.areCancelled {
      switch engine.queue.next(at: clock.elapsed()) {
      case .send(let entry):
        attemptCount += 1
        engine.start { engine in await engine.sender.send(entry, in: engine) }
      case .lead:
        // An attempt from before this repository followed would be made a second time.
        if attemptCount == 0 { engine.election.campaign(in: engine) }
        return
      case .wait(let deadline):
        return alarm.set(deadline) { [weak engine] deadline in await engine?.pump(at: deadline) }
      }
    }
  }

  /// Sends what may be sent when an alarm rings.
  func pump(at deadline: Duration, in engine: isolated Engine) {
    alarm.silence(deadline)
    pump(in: engine)
  }

  private func send(_ entry: Entry, in engine: isolated Engine) async {
    await attempt(entry, in: engine)
    attemptCount -= 1
    if engine.queue.sends { return }
    engine.queue.leaveIfFollowing(entry.id, in: engine)
    pump(in: engine)
  }

  /// Makes one attempt to send a mutation.
  private func attempt(_ taken: Entry, in engine: isolated Engine) async {
    let queue = engine.queue
    let cell: SyncCell<Source>
    do throws(StoreError) {
      guard let opened = try await engine.openUnlessSignedOut(taken.key) else { return leaveLane(taken, in: engine) }
      cell = opened
      try await queue.mark(taken.id, in: engine)
    } catch {
      events.emit(.storeFailed(error))
      queue.abandonAttempt(taken)
      return backOff(taken, after: nil, reason: error.description, in: engine)
    }
    let leads = await engine.election.confirmLead(in: engine)
    if Task.isCancelled { return await endWithRepository(taken, in: engine) }
    guard leads else { return queue.abandonAttempt(taken) }
    guard let entry = queue[taken.id], entry.isLive, let sending = capabilities.sending else {
      // Another process has finished with it, or it is in conflict.
      return leaveLane(taken, in: engine)
    }
    queue.reportChanges(in: engine)
    let requestedAt = cell.state.beginSending(entry.id)
    events.emit(.mutationSending(entry.id, attempt: entry.record.attempts))
    let reply: Reply
    do throws(Source.Failure) {
      reply = .success(try await sending.send(entry.record.mutation, entry.key, entry.id))
    } catch {
      reply = .failure(error)
    }
    // Another repository may lead by now. It sends the mutation too, and gets an answer of its own.
    var isLeft = false
    if case .failure = reply { isLeft = await !engine.election.confirmLead(in: engine) }
    // Its user has signed out, so the answer means nothing.
    if cell.isClosed { return leaveLane(taken, in: engine) }
    if isLeft { return queue.leaveAttempt(entry) }
    switch reply {
    case .success(let reply):
      queue.recordAnswer(to: entry)
      cell.state.receive(
        .mutation(entry.id, complete(reply, cell), isTrusted: !entry.record.isOutcomeUnknown), requestedAt: requestedAt)
      engine.writes.write(cell, in: engine)
      pump(in: engine)
    case .failure(let failure): await receive(failure, of: entry, cell, in: engine)
    }
    queue.reportChanges(in: engine)
  }

  private func complete(_ reply: MutationReply<Source.Value>, _ cell: SyncCell<Source>) -> MutationReply<Source.Value> {
    guard case .value(let value) = reply else { return reply }
    return .value(capabilities.complete(value, cell.state.base?.value))
  }

  private func receive(
    _ failure: Source.Failure, of entry: Entry, _ cell: SyncCell<Source>, in engine: isolated Engine
  ) async {
    let (queue, reason) = (engine.queue, String(describing: failure))
    if Task.isCancelled { return await endWithRepository(entry, in: engine) }
    let isLast = !policy.allows(attempt: entry.record.attempts + 1)
    let disposition = capabilities.source.disposition(of: failure)
    switch disposition {
    case .refused: await refuse(entry, .byServer(reason: reason), failure, cell, in: engine)
    case .retryLater where isLast, .unknownOutcome where isLast:
      await refuse(
        entry, .attemptsUsedUp(reason: reason), failure, isOutcomeUnknown: disposition == .unknownOutcome, cell,
        in: engine)
    case .retryLater(let delay):
      recordFailure(of: entry, isOutcomeUnknown: false, cell, in: engine)
      backOff(entry, after: delay, reason: reason, in: engine)
    case .unknownOutcome:
      recordFailure(of: entry, isOutcomeUnknown: true, cell, in: engine)
      backOff(entry, after: nil, reason: reason, in: engine)
    case .needsSignIn:
      cell.state.fail(entry.id, isOutcomeUnknown: false)
      // Before the calls that have to wait end, because it may be in conflict now.
      engine.publish(cell)
      queue.waitForSignIn(entry, in: engine)
      pump(in: engine)
    case .conflict:
      engine.removeFromOverlay([entry.id], of: entry.key)
      queue.recordConflict(entry.id, MutationConflict(reason), isServers: true, in: engine)
      leaveLane(entry, in: engine)
      engine.release(cell)
    }
  }

  /// Records that an attempt ended with the repository, and not with the process.
  ///
  /// The next repository sends the mutation.
  private func endWithRepository(_ entry: Entry, in engine: isolated Engine) async {
    engine.queue.recordUnknownOutcome(of: entry.id)
    await engine.queue.save(entry.id, in: engine)
  }

  /// Lets the next mutation of a lane be sent.
  private func leaveLane(_ entry: Entry, in engine: isolated Engine) {
    engine.queue.complete(entry)
    pump(in: engine)
  }

  private func refuse(
    _ entry: Entry, _ refusal: MutationRefusal, _ failure: Source.Failure, isOutcomeUnknown: Bool = false,
    _ cell: SyncCell<Source>, in engine: isolated Engine
  ) async {
    await engine.queue.refuse(
      entry.id, refusal, .server(failure), isOutcomeUnknown: isOutcomeUnknown, in: engine)
    leaveLane(entry, in: engine)
    engine.release(cell)
  }

  private func recordFailure(
    of entry: Entry, isOutcomeUnknown: Bool, _ cell: SyncCell<Source>, in engine: isolated Engine
  ) {
    cell.state.fail(entry.id, isOutcomeUnknown: isOutcomeUnknown)
    engine.queue.recordFailure(of: entry.id, isOutcomeUnknown: isOutcomeUnknown, in: engine)
    // One that the server doesn't decide about any more is in conflict if it isn't possible.
    engine.publish(cell)
  }

  /// Lets a lane wait after a failed attempt, unless its mutation isn't sent any more.
  ///
  /// - Parameters:
  ///   - entry: The mutation.
  ///   - serverDelay: The wait that the server named.
  ///   - reason: Why the attempt failed.
  ///   - engine: The engine.
  private func backOff(
    _ entry: Entry, after serverDelay: Duration?, reason: String, in engine: isolated Engine
  ) {
    if engine.queue[entry.id]?.isLive ?? false {
      let delay = max(engine.backoff.delay(forAttempt: engine.queue.failures(of: entry)), serverDelay ?? .zero)
      events.emit(.retryScheduled(entry.id, attempt: entry.record.attempts, delay: delay, reason: reason))
      engine.queue.backOff(entry, until: clock.elapsed() + delay, isServerDelay: serverDelay != nil)
    } else {
      // Another process has finished with it meanwhile, or it is in conflict.
      engine.queue.complete(entry)
    }
    pump(in: engine)
  }
}

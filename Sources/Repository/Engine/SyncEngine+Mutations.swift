internal import DataStore

extension SyncEngine {
  // MARK: - Making

  /// Applies a mutation, makes it durable, and has it sent.
  ///
  /// - Returns: The result; ``MutationResult/queued`` as soon as the mutation has to wait.
  func perform(_ mutation: Mutation, on key: Key) async throws(Failure) -> MutationResult {
    if Task.isCancelled { throw .cancelled }
    try checkMayBegin(key)
    let id = try await add(mutation, on: key, hasCaller: true)
    return try await calls.outcome(of: id, ifCancelled: .failure(.cancelled)).get()
  }

  /// Applies a mutation on top of all others of its key, and makes it durable.
  ///
  /// - Parameters:
  ///   - mutation: The mutation.
  ///   - key: The key of the value that it changes.
  ///   - id: The id of the mutation.
  ///   - replaced: The refused or conflicted entry that the mutation replaces, or `nil`. Its id is `id` if the mutation
  ///     is sent again under its old id.
  ///   - hasCaller: Whether a call will wait for its result.
  private func add(
    _ mutation: Mutation, on key: Key, as id: MutationID = MutationID(), replacing replaced: Entry? = nil,
    hasCaller: Bool
  ) async throws(Failure) -> MutationID {
    let keyID = try await use(key)
    defer { endUse(keyID) }
    if hasCaller { calls.open(id) }
    do throws(Failure) {
      try update { (core) throws(Failure) in
        try core.add(mutation, as: id, on: keyID, replacing: replaced, hasCaller: hasCaller)
      }
      let acquiring =
        core.wantsLead(for: id) ? Task(executorPreference: tasks.executor) { await self.acquireLead() } : nil
      guard try await makeDurable(id, replacing: replaced) else {
        update { $0.abandonAddition(of: id, on: key, replacing: replaced) }
        // If the user hasn't signed out, another process has decided about the mutation that this one replaces.
        throw core.keys[keyID] == nil ? Failure.signedOut : .cancelled
      }
      guard core.queue[id]?.isLive ?? false else {
        // It came into conflict while it was being written. If its user signed out instead, after the record was
        // stored, these statements do nothing.
        await saveConflict(id)
        return id
      }
      update { $0.endAddition(of: id) }
      if let acquiring { start { engine in if await !acquiring.value { await engine.removeMark(of: id) } } }
      return id
    } catch {
      if hasCaller { calls.close(id) }
      throw error
    }
  }

  /// Stores the first record of a mutation.
  ///
  /// - Returns: Whether it was stored. It wasn't if its user signed out before that, or if another process has
  ///   requeued, resolved or discarded the mutation that it replaces.
  private func makeDurable(_ id: MutationID, replacing replaced: Entry?) async throws(Failure) -> Bool {
    do throws(StoreError) {
      return try await perform(RecordWrite(id: id, change: .add(replacing: replaced?.id)))
    } catch {
      // It is durable nevertheless if the feed has shown its record.
      if core.queue[id]?.tag != nil { return true }
      if let key = core.queue[id]?.key { update { $0.abandonAddition(of: id, on: key, replacing: replaced) } }
      throw .store(error)
    }
  }

  private func removeMark(of id: MutationID) { update { $0.removeMark(of: id) } }

  /// Stores a conflict, and then ends the call of the mutation.
  func saveConflict(_ id: MutationID) async {
    await save(id)
    update { $0.end(id, .success(.conflicted(id))) }
  }

  // MARK: - Sending

  /// Makes one attempt to send a mutation.
  func send(_ entry: Entry, attempt number: UInt64) async {
    await attempt(entry)
    attempts[number] = nil
    update { $0.endAttempt(number, entry) }
  }

  private func attempt(_ dequeued: Entry) async {
    let (id, keyID): (MutationID, ID)
    do throws(StoreError) {
      guard let opened = try await openUnlessSignedOut(dequeued.key) else { return update { $0.skip(dequeued) } }
      (id, keyID) = (dequeued.id, opened)
      // Without this read, each attempt would send the mutation again, and its reply couldn't be stored.
      if let state = core.keys[keyID], state.hasFutureValue { _ = try await load(state.storeKey) }
      core.keys[keyID]?.hasFutureValue = false
      core.queue.recordValue(of: id, isReadable: true)
      try await storeVerdicts(in: dequeued.lane)
      // The stored mark lets a later process know of the attempt if this one ends during it. A repository that has lost
      // its lead must not mark mutations. The lead is confirmed again after the mark is stored.
      if core.queue.needsMark(id), await !confirmLead() {
        return update { $0.abandonAttemptAfterLoss(dequeued) }
      }
      try await mark(id)
    } catch {
      events.emit(.storeFailed(error))
      return update { core in
        if case .newerFormat = error { core.queue.recordValue(of: dequeued.id, isReadable: false) }
        core.abandonAttempt(dequeued, reason: error.description)
      }
    }
    guard await confirmLead() else { return update { $0.abandonAttemptAfterLoss(dequeued) } }
    if Task.isCancelled { return await endCancelled(dequeued, keyID) }
    if core.queue.needsMark(id) {
      return update { $0.abandonAttempt(dequeued, reason: "another process has changed the mutation's record") }
    }
    guard let sending = core.capabilities.sending, let (entry, requestedAt) = update({ $0.beginRequest(of: id, keyID) })
    else { return update { $0.skip(dequeued, keyID) } }
    let result: Result<MutationReply<Value>, Source.Failure>
    do throws(Source.Failure) {
      result = .success(try await sending.send(entry.mutation, entry.key, entry.id))
    } catch {
      result = .failure(error)
    }
    if core.hasLeftAttempts {
      return update { core in
        core.keys[keyID]?.state.fail(id)
        core.interruptAttempt(entry)
      }
    }
    // A failure matters only if this repository still leads. A new leader sends the mutation again, and gets an answer
    // of its own.
    var hasLostLead = false
    if case .failure = result { hasLostLead = await !confirmLead() }
    // The user has signed out, so the answer no longer matters.
    if core.keys[keyID] == nil { return update { $0.skip(dequeued) } }
    if hasLostLead { return update { $0.queue.recordFailure(of: id, isOutcomeUnknown: true) } }
    switch result {
    case .success(let reply): update { $0.receive(reply, to: entry, keyID, requestedAt: requestedAt) }
    case .failure(let failure): await receive(failure, of: entry, keyID)
    }
  }

  private func receive(_ failure: Source.Failure, of entry: Entry, _ keyID: ID) async {
    if Task.isCancelled { return await endCancelled(entry, keyID) }
    let disposition = core.capabilities.source.disposition(of: failure)
    let followUp = update { $0.receive(disposition, reason: String(describing: failure), of: entry, keyID) }
    guard case .refuse(let refusal, let isOutcomeUnknown) = followUp else { return }
    await refuse(entry.id, refusal, .server(failure), isOutcomeUnknown: isOutcomeUnknown)
    update { $0.skip(entry, keyID) }
  }

  /// Ends an attempt that was cancelled, because the repository was released or is suspended.
  private func endCancelled(_ entry: Entry, _ keyID: ID) async {
    update { $0.endCancelledAttempt(entry, keyID) }
    await save(entry.id)
  }

  /// Stores that an attempt has ended, and learns of a sign-in through other repositories.
  func awaitSignIn(_ id: MutationID) async {
    await save(id)
    // The user may sign in through another repository. It stores the sign-in, and this repository follows that.
    await keepTrying { () async throws(StoreError) in try await readUsers() }
  }

  /// Records that a mutation is no longer sent.
  ///
  /// The mutation stays listed as refused, unless its caller gets the error and its record can be removed.
  ///
  /// - Parameters:
  ///   - id: The id of the mutation.
  ///   - refusal: The reason.
  ///   - failure: The error for its caller.
  ///   - isOutcomeUnknown: Whether the server may have made the change at the last attempt.
  func refuse(_ id: MutationID, _ refusal: MutationRefusal, _ failure: Failure, isOutcomeUnknown: Bool) async {
    // The call is claimed first, so that it gets the error even if its task is cancelled during the removal.
    let hasCaller = calls.claim(id)
    update { $0.recordRefusal(id, refusal, isOutcomeUnknown: isOutcomeUnknown) }
    if hasCaller { await removeRefused(id) } else { await save(id) }
    update { $0.end(id, .failure(failure)) }
  }

  private func removeRefused(_ id: MutationID) async {
    do throws(StoreError) {
      if try await perform(RecordWrite(id: id, change: .remove(.refused))) { update { _ = $0.queue.remove(id) } }
    } catch {
      // It stays listed as refused.
      events.emit(.storeFailed(error))
      start { engine in await engine.saveLater(id) }
    }
  }

  /// Stores the verdicts on mutations of a lane that aren't stored yet, before a later mutation of the lane is sent.
  ///
  /// A server may remember only the changes that it has made. If this process ended with a verdict that isn't stored,
  /// the next process would send the mutation again, and the server might make the change after the later one.
  ///
  /// - Throws: A `StoreError` if a verdict can't be written.
  private func storeVerdicts(in lane: LaneID) async throws(StoreError) {
    for id in core.queue.unstoredVerdicts(in: lane) where core.queue.hasUnstoredVerdict(id) {
      if let error = await write(id) { throw error }
    }
  }

  /// Stores what the next leader has to know before this repository gives the lead up: the verdicts on mutations, and
  /// that waiting mutations aren't being sent.
  ///
  /// A record that can't be written is written later.
  func storeStandings() async {
    for id in core.queue.unstoredVerdicts where core.queue[id]?.tag != nil { await save(id) }
    for id in core.queue.waitingWithMarks {
      await marking[id]?.value
      if core.queue.removeMark(of: id) { await save(id) }
    }
  }

  // MARK: - Marks

  /// Marks a mutation: stores that an attempt to send it will begin, in case this process ends during the attempt.
  ///
  /// The next mutations of the lane are marked too, without waiting for these marks to be stored. A record that another
  /// process has changed stays as it is. If its mutation is live, ``MutationQueue/needsMark(_:)`` stays `true`.
  ///
  /// - Throws: A `StoreError` if the mark can't be written. It then counts as not written.
  private func mark(_ id: MutationID) async throws(StoreError) {
    // The mark may be one of those that are being written beside an earlier attempt.
    await marking[id]?.value
    let ids = core.queue.mark(id)
    let next = ids.filter { $0 != id }
    if !next.isEmpty {
      core.idsBeingMarked.formUnion(next)
      let writing = Task(executorPreference: tasks.executor) { await self.writeMarks(of: next) }
      for nextID in next { marking[nextID] = writing }
    }
    guard ids.contains(id), let error = await write(id, .mark) else { return }
    core.queue.unmark([id])
    throw error
  }

  /// Writes the marks of mutations whose turn comes next.
  ///
  /// A mark that can't be written counts as not written, and is written again when it is the mutation's turn.
  private func writeMarks(of ids: [MutationID]) async {
    await withTaskGroup(of: Void.self) { group in
      for id in ids { group.addTask { await self.writeMark(of: id) } }
    }
    for id in ids { marking[id] = nil }
    update { $0.endMarking(ids) }
  }

  private func writeMark(of id: MutationID) async {
    guard let error = await write(id, .mark) else { return }
    events.emit(.storeFailed(error))
    core.queue.unmark([id])
  }

  // MARK: - Decisions

  /// Cancels a mutation that is waiting, needs a sign-in, or is in conflict.
  func cancel(_ id: MutationID) async throws(PendingMutationError) {
    try await startForDecision()
    try update { (core) throws(PendingMutationError) in try core.beginCancelling(id) }
    let isRemoved = try await remove(id, if: .unsent)
    update { $0.endCancelling(id, isRemoved: isRemoved) }
    if !isRemoved { throw .alreadySent(id) }
  }

  /// Requeues a refused mutation.
  func requeue(_ id: MutationID) async throws(PendingMutationError) -> MutationID {
    try await startForDecision()
    let entry = try core.findUndecided(id)
    guard case .refused = core.queue.standing(of: entry) else { throw .notRefused(id) }
    return try await requeue(entry)
  }

  /// Resolves a conflicted mutation.
  func resolve(
    _ id: MutationID, _ resolution: Resolution<Mutation>
  ) async throws(PendingMutationError) -> MutationID? {
    try await startForDecision()
    let entry = try core.findUndecided(id)
    guard case .conflicted = core.queue.standing(of: entry) else { throw .notConflicted(id) }
    switch resolution {
    case .retry: return try await requeue(entry)
    case .replace(let mutation): return try await replace(entry, by: mutation, as: MutationID())
    case .discard:
      try await discard(entry)
      return nil
    }
  }

  /// Discards a mutation that was refused or is in conflict, or that this program can't read.
  func discard(_ id: MutationID) async throws(PendingMutationError) {
    try await startForDecision()
    if core.queue.heldMutation(id) != nil { return try await discardHeld(id) }
    let entry = try core.findUndecided(id)
    switch core.queue.standing(of: entry) {
    case .refused, .conflicted: try await discard(entry)
    case .waiting, .inFlight, .needsSignIn: throw .notRefused(id)
    }
  }

  private func startForDecision() async throws(PendingMutationError) {
    do throws(StoreError) {
      try await start()
    } catch {
      throw .store(error)
    }
  }

  /// Sends a mutation again, at the end of its lane.
  ///
  /// A mutation that the server may have applied keeps its id, so that the server doesn't apply it twice.
  private func requeue(_ entry: Entry) async throws(PendingMutationError) -> MutationID {
    try await replace(entry, by: entry.mutation, as: entry.record.isOutcomeUnknown ? entry.id : MutationID())
  }

  private func replace(
    _ entry: Entry, by mutation: Mutation, as id: MutationID
  ) async throws(PendingMutationError) -> MutationID {
    core.queue.hold(entry.id)
    defer { update { $0.queue.release(entry.id) } }
    do throws(Failure) {
      _ = try await add(mutation, on: entry.key, as: id, replacing: entry, hasCaller: false)
      events.emit(.mutationRequeued(entry.id))
      return id
    } catch {
      switch error {
      case .conflict(let conflict): throw .conflict(conflict)
      case .store(let error): throw .store(error)
      // The user has signed out, or another process has decided about the mutation. The errors `server` and `queueFull`
      // don't occur here.
      case .server, .queueFull, .signedOut, .cancelled:
        await catchUpIfPossible()
        throw .unknown(entry.id)
      }
    }
  }

  private func discard(_ entry: Entry) async throws(PendingMutationError) {
    core.queue.hold(entry.id)
    // If the mutation isn't removed, another process has already decided about it, or its user has signed out.
    guard try await remove(entry.id, if: .undecided) else {
      update { $0.queue.release(entry.id) }
      throw .unknown(entry.id)
    }
    events.emit(.mutationDiscarded(entry.id))
  }

  /// Discards a mutation that this program can't read, unless a program that can read it may be sending it.
  private func discardHeld(_ id: MutationID) async throws(PendingMutationError) {
    guard let held = core.queue.heldMutation(id) else { throw .unknown(id) }
    // While this repository leads, no program that can read the mutation is sending it.
    if held.record.isMarked, !core.lead.isHeld {
      _ = await acquireLead()
      guard core.lead.isHeld else { throw .alreadySent(id) }
    }
    guard try await remove(id, if: .held(held.tag)) else {
      // If it still is held, a program that can read it has changed its record.
      throw core.queue.heldMutation(id) == nil ? .unknown(id) : .alreadySent(id)
    }
    update { core in
      core.end(id, .failure(.cancelled))
      core.emit(.mutationDiscarded(id))
    }
  }

  /// Removes the record of a mutation if a condition holds.
  ///
  /// - Returns: Whether it was removed.
  private func remove(
    _ id: MutationID, if condition: RecordWrite.RemovalCondition
  ) async throws(PendingMutationError) -> Bool {
    do throws(StoreError) {
      return try await perform(RecordWrite(id: id, change: .remove(condition)))
    } catch {
      update { $0.queue.release(id) }
      throw .store(error)
    }
  }
}

internal import DataStore
internal import Multicast

/// Reads the stored mutations, and handles what other repositories and processes add, change and remove.
///
/// Belongs to one ``SyncEngine`` and is used in its isolation only.
final class MutationReader<Source: RepositorySource> {
  typealias Engine = SyncEngine<Source>
  typealias Entry = MutationQueue<Source.Key, Source.Mutation>.Entry
  typealias Record = MutationRecord

  private let capabilities: SourceCapabilities<Source>
  private let records: MutationRecords
  private let calls: MutationCalls<Source>
  private let format: MutationFormat<Source.Mutation>
  private let events: RepositoryEvents
  private let readQueue = AsyncSerialQueue()
  private var hasBegunReading = false
  /// The number of times the records were read.
  private var readingCount = 0
  /// The number of sign-ins of users whose records may have been ignored before.
  private var signInCount = 0
  /// Cancels the subscription to the changes that the store reports after the last read; `nil` before the first read.
  private var endSubscription: (@Sendable () -> Void)?

  init(
    _ capabilities: SourceCapabilities<Source>, _ records: MutationRecords, _ calls: MutationCalls<Source>,
    events: RepositoryEvents
  ) {
    (self.capabilities, self.records, self.calls, self.events) = (capabilities, records, calls, events)
    format = MutationFormat(repository: capabilities.source.name)
  }

  // MARK: - Reading

  /// Reads the stored mutations and subscribes to their changes, unless the source is read-only.
  ///
  /// If they were read before, also handles what other repositories and processes have added, changed or removed since.
  func read(in engine: isolated Engine) async throws(StoreError) {
    guard capabilities.sending != nil else { return }
    hasBegunReading = true
    records.reportEvents(to: events) { [weak engine] id, error in await engine?.receiveQuarantine(of: id, error) }
    try await readQueue.run { () async throws(StoreError) in
      let reading = try await records.read()
      engine.sender.beginBatch()
      defer { engine.sender.endBatch(in: engine) }
      let isFirstRead = endSubscription == nil
      let found = reading.stored.sorted { $0.stored.value.sequence < $1.stored.value.sequence }
      engine.queue.recordReading(upTo: max(reading.lastSequence, found.last?.stored.value.sequence ?? 0))
      let added: [Entry] = found.compactMap {
        if isFirstRead { return restore($0, in: engine) }
        // A record that is being written may be this repository's own.
        guard records.recordReport(of: $0.key, revision: $0.stored.revision) else { return nil }
        return handleRecord($0.key, $0.stored, in: engine)
      }
      if isFirstRead {
        for id in engine.queue.endRestoring(at: engine.moment) { engine.performer.refuseInterrupted(id, in: engine) }
      }
      subscribe(to: reading.changes, in: engine)
      engine.performer.reportChanges(in: engine)
      // No cell is open during the first read. A cell that is opened later shows the mutations in the queue.
      for entry in added where !isFirstRead { await engine.external.show(entry, in: engine) }
      let foundIDs = Set(found.map(\.key.id))
      let missing = engine.queue.durableIDs.filter { !foundIDs.contains($0.rawValue) }
      for id in try await externallyFinished(missing, in: engine) {
        if let entry = engine.queue[id] { await engine.external.receiveRemoval(of: entry, in: engine) }
      }
      for held in engine.queue.heldMutations where !foundIDs.contains(held.id.rawValue) {
        endHolding(held.id, in: engine)
      }
    }
  }

  /// Reads the mutations again, because records of a user may have been ignored before that user signed in.
  func readForSignIn(in engine: isolated Engine) {
    guard hasBegunReading else { return }
    signInCount += 1
    engine.queue.forgetReading()
    engine.start { engine in
      await engine.keepTrying { (engine) async throws(StoreError) in try await engine.reader.read(in: engine) }
      engine.sender.pump(in: engine)
    }
  }

  private func subscribe(
    to changes: MulticastSubscription<[StoreChange<Record>], Never>, in engine: isolated Engine
  ) {
    endSubscription?()
    readingCount += 1
    endSubscription = engine.tasks.start { [weak engine, readingCount] in
      for await batch in changes { await engine?.receive(batch, ofReading: readingCount) }
    }
  }

  /// Adds a mutation that the first read has found, unless its record is ignored.
  private func restore(_ found: StoreObservation<Record>.Entry, in engine: isolated Engine) -> Entry? {
    guard let entry = findEntry(found.key, found.stored, in: engine) else { return nil }
    engine.queue.restore(entry)
    return entry
  }

  /// Reads the queue until every mutation before this one is known, and then lets this one be sent.
  func readPredecessors(of id: MutationID, _ sequence: UInt64, in engine: isolated Engine) async {
    var attempt = 0
    while engine.queue[id] != nil, engine.queue.knownSequence < sequence {
      do throws(StoreError) {
        let signInCountBefore = signInCount
        try await read(in: engine)
        // The record and those before it were stored before the read, so the read has found them. But it may have
        // ignored the records of a user who signed in during the read.
        if signInCount == signInCountBefore { engine.queue.recordReading(upTo: sequence) }
      } catch {
        events.emit(.storeFailed(error))
        // The mutation now waits for the store, and not only for its turn.
        calls.end(id, .success(.queued))
        attempt += 1
        await engine.backoff.wait(afterAttempt: attempt)
      }
      if Task.isCancelled { return }
    }
    engine.queue.recordPredecessors(of: id)
    engine.sender.pump(in: engine)
  }

  /// Returns the mutation of a record; `nil` if the record is ignored, or the mutation is held.
  private func findEntry(
    _ key: StoreKey<Record>, _ stored: StoredValue<Record>, in engine: isolated Engine
  ) -> Entry? {
    guard let id = key.id.map(MutationID.init(rawValue:)) else { return nil }
    let record = stored.value
    let valueKey = record.keys.count == 1 ? Source.Key(storeID: record.keys[0]) : nil
    // The record is ignored if its user has signed out, as far as this repository knows. If the user has signed in
    // again, ``readForSignIn(in:)`` finds the record.
    let user = valueKey.map { UserDigest($0.userID) } ?? record.user.map { UserDigest(text: $0) }
    if let user, !engine.users.isOpen(user) { return nil }
    do throws(UnreadableReason) {
      let mutation = try format.decode(record)
      guard let valueKey else { throw .unknownKey(record.keys[0]) }
      let lane = record.lane.map { LaneID(userID: valueKey.userID, orderingKey: $0) }
      return Entry(
        id: id, key: valueKey, lane: lane ?? capabilities.lane(of: mutation, on: valueKey), mutation: mutation,
        record: record, tag: stored.tag, revision: stored.revision)
    } catch {
      hold(
        HeldMutation(
          id: id, key: valueKey, record: record, tag: stored.tag, revision: stored.revision, reason: error), in: engine)
      return nil
    }
  }

  // MARK: - Held mutations

  /// Holds a mutation that this program can't read.
  private func hold(_ mutation: HeldMutation<Source.Key>, in engine: isolated Engine) {
    let earlier = engine.queue.heldMutation(mutation.id)
    engine.queue.hold(mutation)
    if earlier?.reason != mutation.reason { events.emit(RepositoryEvent(mutation)) }
    calls.end(mutation.id, .success(.queued))
    calls.endQueued(engine.queue.live.filter { engine.queue.isStalled($0.lane) }.map(\.id))
    if let key = mutation.key { engine.publish(key) }
  }

  /// Forgets a held mutation, because its record was removed, or because this program can read it now.
  func endHolding(_ id: MutationID, in engine: isolated Engine) {
    guard let mutation = engine.queue.removeHeld(id) else { return }
    if let key = mutation.key { engine.publish(key) }
    engine.performer.reportChanges(in: engine)
    engine.sender.pump(in: engine)
  }

  // MARK: - External changes

  /// Handles changes of records that the store reports together.
  ///
  /// The store can't always tell the order of commits. So the saved records are handled in the order of their
  /// mutations, and the removals after them.
  ///
  /// - Parameters:
  ///   - changes: The changes.
  ///   - number: The number of the read that they follow. Changes that follow an earlier read are already known.
  ///   - engine: The engine.
  func receive(_ changes: [StoreChange<Record>], ofReading number: Int, in engine: isolated Engine) async {
    guard number == readingCount else { return }
    engine.sender.beginBatch()
    defer { engine.sender.endBatch(in: engine) }
    let external = changes.filter { records.recordReport(of: $0.key, revision: $0.revision) }
    let saved = external.compactMap { change in change.stored.map { (key: change.key, stored: $0) } }
    let added = saved.sorted { $0.stored.value.sequence < $1.stored.value.sequence }.compactMap {
      handleRecord($0.key, $0.stored, in: engine)
    }
    for entry in added { await engine.external.show(entry, in: engine) }
    for change in external {
      guard case .removed(let key, let revision) = change, let id = key.id.map(MutationID.init(rawValue:)) else {
        continue
      }
      if let held = engine.queue.heldMutation(id), revision > held.revision { endHolding(id, in: engine) }
      guard let entry = engine.queue[id], entry.tag != nil, revision > entry.revision else { continue }
      await engine.external.receiveRemoval(of: entry, in: engine)
    }
    engine.performer.reportChanges(in: engine)
    engine.sender.pump(in: engine)
  }

  /// Reads a record again, because a write by this repository has shown that another process may have changed it.
  func reload(_ id: MutationID, in engine: isolated Engine) async {
    do throws(StoreError) {
      let stored = try await records.load(id)
      guard let entry = engine.queue[id] else { return }
      guard let stored else { return await engine.external.receiveRemoval(of: entry, in: engine) }
      if let added = handleRecord(records.keys.record(id), stored, in: engine) {
        await engine.external.show(added, in: engine)
      }
      engine.performer.reportChanges(in: engine)
      engine.sender.pump(in: engine)
    } catch {
      // The next write of the record, or the app's next decision about the mutation, fails its precondition and reads
      // the record again.
      events.emit(.storeFailed(error))
    }
  }

  /// Handles a record that another repository or process wrote.
  ///
  /// - Returns: The mutation, if it was added to the queue and has to be shown.
  private func handleRecord(
    _ key: StoreKey<Record>, _ stored: StoredValue<Record>, in engine: isolated Engine
  ) -> Entry? {
    guard let rawID = key.id else { return nil }
    let id = MutationID(rawValue: rawID)
    if let known = engine.queue[id] {
      guard known.tag != nil, stored.revision > known.revision else { return nil }
      let isReadable = stored.value.problem == nil && stored.value.hasSameMutation(as: known.record)
      if isReadable, known.isLive || !stored.value.isLive {
        update(known, with: stored, in: engine)
        return nil
      }
      // It was refused or in conflict, and another repository sends it again. Or another version of the program has
      // changed it.
      engine.queue.remove(id)
      engine.removeFromOverlay([id], of: known.key)
    } else if records.isRemoved(id) {
      return nil
    } else if let held = engine.queue.heldMutation(id), stored.revision <= held.revision {
      return nil
    }
    guard let entry = findEntry(key, stored, in: engine) else { return nil }
    endHolding(id, in: engine)
    switch engine.queue.addExternal(entry, at: engine.moment) {
    case .nothing: break
    case .refused: engine.performer.refuseInterrupted(id, in: engine)
    case .behindGap:
      let sequence = entry.record.sequence
      engine.start { engine in await engine.reader.readPredecessors(of: id, sequence, in: engine) }
    }
    return engine.queue[id].flatMap { $0.isLive ? $0 : nil }
  }

  private func update(_ entry: Entry, with stored: StoredValue<Record>, in engine: isolated Engine) {
    guard let verdict = engine.queue.receive(stored, of: entry, at: engine.moment) else {
      // The record may show that the leader, the repository that sends the mutations, makes the lane wait, for example
      // because an attempt failed. The calls of the lane's mutations then end with the result `queued`.
      if !engine.queue.sends, engine.queue.isStalled(entry.lane) {
        calls.endQueued(engine.queue.waiting(in: entry.lane))
      }
      return
    }
    engine.removeFromOverlay([entry.id], of: entry.key)
    switch verdict {
    case .conflicted: calls.end(entry.id, .success(.conflicted(entry.id)))
    // Only the repository that sent the mutation has the server's error; see ``MutationResult/queued``.
    case .refused: calls.end(entry.id, .success(.queued))
    }
    engine.sender.pump(in: engine)
  }

  /// Handles the quarantine of a record: its mutation is lost.
  ///
  /// The store reports no removal of the record to the observers of the records.
  func receiveQuarantine(of id: MutationID, _ error: StoreError, in engine: isolated Engine) async {
    if engine.queue.heldMutation(id) != nil { return endHolding(id, in: engine) }
    guard engine.queue[id] != nil || calls.isOpen(id) else { return }
    records.recordQuarantine(of: id, error) { engine.queue[$0] != nil || calls.isOpen($0) }
    // If the record is being written, the write finds that it is missing, or removes it because the mutation is
    // confirmed.
    if engine.queue[id]?.tag != nil, !records.isBeingWritten(id) { await reload(id, in: engine) }
  }

  /// Returns those of the given mutations whose records another repository or process has removed.
  ///
  /// - Complexity: Loads the record of each mutation.
  func externallyFinished(
    _ ids: [MutationID], in engine: isolated Engine
  ) async throws(StoreError) -> [MutationID] {
    let durable = ids.filter { engine.queue[$0]?.tag != nil }
    return try await records.externallyRemoved(durable).filter { engine.queue[$0] != nil }
  }

  /// Forgets mutations whose records another repository or process has removed, and completes the calls that wait for
  /// them.
  func finishExternally(_ ids: [MutationID], in engine: isolated Engine) {
    let finished = ids.compactMap { engine.queue.remove($0) }
    for entry in finished where calls.isOpen(entry.id) {
      let signOutCount = engine.users.signOutCount(of: entry.key.userID)
      engine.start { engine in await engine.reader.endCall(of: entry, signOutCount, in: engine) }
    }
    engine.performer.reportChanges(in: engine)
    engine.sender.pump(in: engine)
  }

  /// Completes the call of a mutation whose record another repository or process has removed, because the mutation was
  /// confirmed, withdrawn or erased, or whose record was quarantined.
  ///
  /// - Parameters:
  ///   - entry: The mutation.
  ///   - signOutCount: The number of sign-outs of the mutation's user that were known to have begun when the removal of
  ///     the record was found. A sign-out erases records too, and the store may report the removal before the sign-out.
  ///   - engine: The engine.
  private func endCall(of entry: Entry, _ signOutCount: UInt64, in engine: isolated Engine) async {
    // The timeout ends the call even if the store keeps failing.
    calls.startTimeout(of: entry.id, in: engine)
    await engine.keepTrying { (engine) async throws(StoreError) in
      let withdrawals = try await engine.reader.records.withdrawals()
      if let userID = entry.key.userID { try await engine.users.reload(UserDigest(userID), in: engine) }
      let hasSignedOut = engine.users.signOutCount(of: entry.key.userID) != signOutCount
      let quarantine = await engine.reader.records.quarantine(of: entry.id)
      let outcome: MutationCalls<Source>.Outcome =
        if withdrawals.contains(entry.id) {
          .failure(.cancelled)
        } else if hasSignedOut {
          .failure(.signedOut)
        } else if let quarantine {
          .failure(.store(quarantine))
        } else {
          .success(.confirmed)
        }
      engine.calls.end(entry.id, outcome)
    }
  }
}

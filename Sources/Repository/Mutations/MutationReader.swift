internal import DataStore
internal import Multicast

/// Reads the stored mutations, and handles what other repositories and processes add, change and remove.
///
/// Belongs to one ``SyncEngine`` and is used in its isolation only.
final class MutationReader<Source: RepositorySource> {
  typealias Engine = SyncEngine<Source>
  typealias Entry = MutationQueueState<Source.Key, Source.Mutation>.Entry
  typealias Record = MutationRecord<Source.Mutation>

  private let capabilities: SourceCapabilities<Source>
  private let state: MutationQueueState<Source.Key, Source.Mutation>
  private let records: MutationRecords<Source.Mutation>
  private let calls: MutationCalls<Source>
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
    _ capabilities: SourceCapabilities<Source>, _ state: MutationQueueState<Source.Key, Source.Mutation>,
    _ records: MutationRecords<Source.Mutation>, _ calls: MutationCalls<Source>, events: RepositoryEvents
  ) {
    (self.capabilities, self.state, self.records) = (capabilities, state, records)
    (self.calls, self.events) = (calls, events)
  }

  // MARK: - Reading

  /// Reads the stored mutations and subscribes to their changes, unless the source is read-only.
  ///
  /// If they were read before, also handles what other repositories and processes have added, changed or removed since.
  func read(in engine: isolated Engine) async throws(StoreError) {
    guard capabilities.sending != nil else { return }
    hasBegunReading = true
    records.reportEvents(to: events)
    try await readQueue.run { () async throws(StoreError) in
      let reading = try await records.read()
      engine.sender.beginBatch()
      defer { engine.sender.endBatch(in: engine) }
      let isFirstRead = endSubscription == nil
      let found = reading.stored.sorted { $0.stored.value.sequence < $1.stored.value.sequence }
      state.recordReading(upTo: max(reading.lastSequence, found.last?.stored.value.sequence ?? 0))
      let added = found.compactMap {
        isFirstRead ? restore($0, in: engine) : handleRecord($0.key, $0.stored, in: engine)
      }
      subscribe(to: reading.changes, in: engine)
      engine.queue.reportChanges(in: engine)
      // No cell is open during the first read. A cell that is opened later shows the mutations in the queue.
      for entry in added where !isFirstRead { await engine.external.show(entry, in: engine) }
      let foundIDs = Set(found.map(\.key.id))
      let missing = state.durableIDs.filter { !foundIDs.contains($0.rawValue) }
      for id in try await externallyFinished(missing) {
        if let entry = state[id] { await engine.external.receiveRemoval(of: entry, in: engine) }
      }
    }
  }

  /// Reads the mutations again, because records of a user may have been ignored before that user signed in.
  func readForSignIn(in engine: isolated Engine) {
    guard hasBegunReading else { return }
    signInCount += 1
    state.forgetReading()
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
  ///
  /// The mutation is refused if this repository sends it, and too many of its attempts in a row were interrupted.
  private func restore(_ found: StoreObservation<Record>.Entry, in engine: isolated Engine) -> Entry? {
    guard let entry = makeEntry(found.key, found.stored, in: engine) else { return nil }
    let isRefused = state.restore(entry)
    if isRefused { engine.queue.refuseInterrupted(entry.id, in: engine) }
    return entry
  }

  /// Reads the queue until every mutation before this one is known, and then lets this one be sent.
  func readPredecessors(of id: MutationID, _ sequence: UInt64, in engine: isolated Engine) async {
    var attempt = 0
    while state[id] != nil, state.knownSequence < sequence {
      do throws(StoreError) {
        let signInCountBefore = signInCount
        try await read(in: engine)
        // The record and those before it were stored before the read, so the read has found them. But it may have
        // ignored the records of a user who signed in during the read.
        if signInCount == signInCountBefore { state.recordReading(upTo: sequence) }
      } catch {
        events.emit(.storeFailed(error))
        // The mutation now waits for the store, and not only for its turn.
        calls.end(id, .success(.queued))
        attempt += 1
        await engine.backoff.wait(afterAttempt: attempt)
      }
      if Task.isCancelled { return }
    }
    state.recordPredecessors(of: id)
    engine.sender.pump(in: engine)
  }

  private func makeEntry(
    _ key: StoreKey<Record>, _ stored: StoredValue<Record>, in engine: isolated Engine
  ) -> Entry? {
    guard let id = key.id else { return nil }
    guard let valueKey = Source.Key(storeID: stored.value.key) else {
      events.emit(.mutationOfUnknownKey(MutationID(rawValue: id), key: stored.value.key))
      return nil
    }
    // The record is ignored if its user has signed out, as far as this repository knows. If the user has signed in
    // again, ``readForSignIn(in:)`` finds the record.
    guard engine.users.isOpen(valueKey.userID) else { return nil }
    let mutation = stored.value.mutation
    return Entry(
      id: MutationID(rawValue: id), key: valueKey, lane: capabilities.lane(of: mutation, on: valueKey),
      record: stored.value,
      tag: stored.tag, revision: stored.revision)
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
    let external = changes.filter { change in
      change.key.id.map { records.recordChange(change, of: MutationID(rawValue: $0)) } ?? false
    }
    let saved = external.compactMap { change in change.stored.map { (key: change.key, stored: $0) } }
    let added = saved.sorted { $0.stored.value.sequence < $1.stored.value.sequence }.compactMap {
      handleRecord($0.key, $0.stored, in: engine)
    }
    for entry in added { await engine.external.show(entry, in: engine) }
    for change in external {
      guard case .removed(let key, let revision) = change, let id = key.id.map(MutationID.init(rawValue:)),
        let entry = state[id], entry.tag != nil, revision > entry.revision
      else { continue }
      await engine.external.receiveRemoval(of: entry, in: engine)
    }
    engine.queue.reportChanges(in: engine)
    engine.sender.pump(in: engine)
  }

  /// Reads a record again, because a write by this repository has shown that another process may have changed it.
  func reload(_ id: MutationID, in engine: isolated Engine) async {
    do throws(StoreError) {
      let stored = try await records.load(id)
      guard let entry = state[id] else { return }
      guard let stored else { return await engine.external.receiveRemoval(of: entry, in: engine) }
      if let added = handleRecord(records.keys.record(id), stored, in: engine) {
        await engine.external.show(added, in: engine)
      }
      engine.queue.reportChanges(in: engine)
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
    if let known = state[id] {
      guard known.tag != nil, stored.revision > known.revision else { return nil }
      if known.isLive || !stored.value.isLive {
        update(known, with: stored, in: engine)
        return nil
      }
      // It was refused or in conflict, and another repository sends it again.
      state.remove(id)
    } else if records.isRemoved(id) {
      return nil
    }
    guard let entry = makeEntry(key, stored, in: engine) else { return nil }
    switch state.addExternal(entry) {
    case .nothing: break
    case .refused: engine.queue.refuseInterrupted(id, in: engine)
    case .behindGap:
      let sequence = entry.record.sequence
      engine.start { engine in await engine.reader.readPredecessors(of: id, sequence, in: engine) }
    }
    return state[id].flatMap { $0.isLive ? $0 : nil }
  }

  private func update(_ entry: Entry, with stored: StoredValue<Record>, in engine: isolated Engine) {
    guard let verdict = state.receive(stored, of: entry) else {
      // The record may show that the leader, the repository that sends the mutations, makes the lane wait, for example
      // because an attempt failed. The calls of the lane's mutations then end with the result `queued`.
      if !state.sends, state.isStalled(entry.lane) { calls.endQueued(state.waiting(in: entry.lane)) }
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

  /// Returns those of the given mutations whose records another repository or process has removed.
  ///
  /// - Complexity: Loads the record of each mutation.
  func externallyFinished(
    _ ids: [MutationID], isolation: isolated (any Actor)? = #isolation
  ) async throws(StoreError) -> [MutationID] {
    let durable = ids.filter { state[$0]?.tag != nil }
    return try await records.externallyRemoved(durable).filter { state[$0] != nil }
  }

  /// Forgets mutations whose records another repository or process has removed, and completes the calls that wait for
  /// them.
  func finishExternally(_ ids: [MutationID], in engine: isolated Engine) {
    let finished = ids.compactMap { state.remove($0) }
    for entry in finished where calls.isOpen(entry.id) {
      let signOutCount = engine.users.signOutCount(of: entry.key.userID)
      engine.start { engine in await engine.reader.endCall(of: entry, signOutCount, in: engine) }
    }
    engine.queue.reportChanges(in: engine)
    engine.sender.pump(in: engine)
  }

  /// Completes the call of a mutation that another repository or process has confirmed, withdrawn or erased.
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
      let outcome: MutationCalls<Source>.Outcome =
        if withdrawals.contains(entry.id) {
          .failure(.cancelled)
        } else if hasSignedOut {
          .failure(.signedOut)
        } else {
          .success(.confirmed)
        }
      engine.calls.end(entry.id, outcome)
    }
  }
}

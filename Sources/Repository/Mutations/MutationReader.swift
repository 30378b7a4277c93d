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
  private let keys: MutationKeys
  private let store: any KeyValueStore
  private let calls: MutationCalls<Source>
  private let format: MutationFormat<Source.Mutation>
  private let events: RepositoryEvents
  private let readQueue = AsyncSerialQueue()
  private var hasRead = false
  private var isReportingEvents = false
  var shared = SharedRecords()
  /// The last changes, by other processes, of the records of mutations that are being added again under their ids.
  private var changesDuringAddition: [MutationID: StoreFeedChange] = [:]

  init(
    _ capabilities: SourceCapabilities<Source>, _ store: any KeyValueStore, _ keys: MutationKeys,
    _ calls: MutationCalls<Source>, events: RepositoryEvents
  ) {
    (self.capabilities, self.store, self.keys) = (capabilities, store, keys)
    (self.calls, self.events) = (calls, events)
    format = MutationFormat(repository: capabilities.source.name)
  }

  // MARK: - Reading

  /// Reads the stored mutations and follows their changes, unless the source is read-only.
  ///
  /// If they were read before, waits until everything that was stored before this call is applied.
  func read(in engine: isolated Engine) async throws(StoreError) {
    guard capabilities.sending != nil else { return }
    try await readQueue.run { () async throws(StoreError) in
      if hasRead { return try await engine.feed.catchUp(in: engine) }
      reportStoreEvents(in: engine)
      try await engine.feed.follow(keys.withdrawals, in: engine) { changes, engine in
        engine.reader.receiveShared(changes)
      }
      // The mutations up to the counter's number were stored before the counter.
      try await engine.feed.follow(keys.counter, in: engine) { changes, engine in
        engine.reader.receiveShared(changes)
      }
      try await engine.feed.follow(collection: keys.collection, as: Record.self, in: engine) { changes, engine in
        engine.reader.restore(changes, in: engine)
      }
      hasRead = true
    }
  }

  /// Adds the mutations that are stored when the repository begins to follow them.
  private func restore(_ changes: [StoreFeedChange], in engine: isolated Engine) {
    let found = saves(in: changes)
    for (id, stored) in found {
      if let entry = findEntry(id, stored, in: engine) { engine.queue.restore(entry) }
    }
    shared.lastSequence = max(shared.lastSequence, found.last?.stored.value.sequence ?? 0)
    engine.queue.recordReading(upTo: shared.lastSequence)
    for id in engine.queue.endRestoring(at: engine.moment) { engine.performer.refuseInterrupted(id, in: engine) }
  }

  /// The saved records, in the order of their mutations.
  private func saves(in changes: [StoreFeedChange]) -> [(id: MutationID, stored: StoredValue<Record>)] {
    let saves = changes.compactMap { change -> (MutationID, StoredValue<Record>)? in
      guard change.key.collection == keys.collection, let id = change.key.id else { return nil }
      return change.stored(for: keys.record(MutationID(rawValue: id))).map { (MutationID(rawValue: id), $0) }
    }
    return saves.sorted { $0.1.value.sequence < $1.1.value.sequence }
  }

  private func receiveShared(_ changes: [StoreFeedChange]) {
    for change in changes { shared.receive(change, keys) }
  }

  /// Waits until every mutation before this one is known, and then lets this one be sent.
  ///
  /// A store that isn't watching its medium reports late what other processes have stored.
  func readPredecessors(of id: MutationID, _ sequence: UInt64, in engine: isolated Engine) async {
    await engine.keepTrying { (engine) async throws(StoreError) in
      guard engine.queue[id] != nil, engine.queue.knownSequence < sequence else { return }
      do throws(StoreError) {
        try await engine.feed.catchUp(in: engine)
      } catch {
        // The mutation now waits for the store, and not only for its turn.
        engine.calls.end(id, .success(.queued))
        throw error
      }
      engine.queue.recordReading(upTo: sequence)
    }
    if Task.isCancelled { return }
    engine.queue.recordPredecessors(of: id)
    engine.sender.pump(in: engine)
  }

  /// Returns the mutation of a record; `nil` if the record is ignored, or the mutation is held.
  private func findEntry(
    _ id: MutationID, _ stored: StoredValue<Record>, in engine: isolated Engine
  ) -> Entry? {
    let record = stored.value
    let valueKey = record.keys.count == 1 ? Source.Key(storeID: record.keys[0]) : nil
    // The record of a user who has signed out is about to be erased.
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

  // MARK: - Changes

  /// Who has made a change of a record.
  enum Origin {
    case external
    /// This repository, which knows what it has changed.
    case own
    /// This repository has added the mutation.
    case addition
  }

  /// Applies the changes of a commit.
  ///
  /// - Parameters:
  ///   - changes: The changes, including those of other collections.
  ///   - engine: The engine.
  ///   - origin: Returns who has made a change.
  func receive(_ changes: [StoreFeedChange], in engine: isolated Engine, origin: (StoreFeedChange) -> Origin) {
    receiveShared(changes)
    // Another process has stored the mutations up to its counter's number in this commit or in earlier ones. A counter
    // of this repository follows mutations of others that may not be reported yet.
    for change in changes {
      if let counter = change.stored(for: keys.counter), origin(change) == .external {
        engine.queue.recordReading(upTo: counter.value.last)
      }
    }
    var origins: [MutationID: Origin] = [:]
    for change in changes where change.key.collection == keys.collection {
      if let id = change.key.id { origins[MutationID(rawValue: id)] = origin(change) }
    }
    for (id, stored) in saves(in: changes) {
      shared.lastSequence = max(shared.lastSequence, stored.value.sequence)
      let origin = origins[id] ?? .external
      if origin != .external, let known = engine.queue[id] {
        receiveOwn(known, stored, isAddition: origin == .addition, in: engine)
      } else {
        receive(id, stored, in: engine)
      }
    }
    for change in changes where change.key.collection == keys.collection {
      guard let id = change.key.id.map(MutationID.init(rawValue:)) else { continue }
      switch change {
      case .saved: break
      case .removed(_, let revision):
        receiveRemoval(of: id, revision, isOwn: origins[id] != .external, in: engine)
      case .unusable: receiveUnusable(id, in: engine)
      }
    }
  }

  /// Applies a record that this repository has written.
  private func receiveOwn(
    _ entry: Entry, _ stored: StoredValue<Record>, isAddition: Bool, in engine: isolated Engine
  ) {
    let (id, sequence) = (entry.id, stored.value.sequence)
    guard isAddition else {
      // An earlier record of a mutation that is being added again under its id is about to be replaced.
      guard entry.tag != nil else { return engine.queue.recordReplaced(by: id, tag: stored.tag) }
      return engine.queue.recordWrite(stored.value, of: id, tag: stored.tag, revision: stored.revision)
    }
    changesDuringAddition[id] = nil
    let isBehindGap = engine.queue.recordAddition(
      of: id, sequence: sequence, tag: stored.tag, revision: stored.revision)
    guard isBehindGap else { return }
    engine.start { engine in await engine.reader.readPredecessors(of: id, sequence, in: engine) }
  }

  /// Applies a record that another repository or process has written.
  private func receive(_ id: MutationID, _ stored: StoredValue<Record>, in engine: isolated Engine) {
    if let known = engine.queue[id] {
      guard known.tag != nil else {
        changesDuringAddition[id] = .saved(keys.record(id).keyName, stored)
        return engine.queue.recordReplaced(by: id, tag: stored.value.isLive ? nil : stored.tag)
      }
      guard stored.revision > known.revision else { return }
      let isReadable = stored.value.problem == nil && stored.value.hasSameMutation(as: known.record)
      if isReadable, known.isLive || !stored.value.isLive {
        return update(known, with: stored, in: engine)
      }
      // It was refused or in conflict, and another repository sends it again. Or another version of the program has
      // changed it.
      engine.queue.remove(id)
      engine.removeFromOverlay([id], of: known.key)
    } else if let held = engine.queue.heldMutation(id), stored.revision <= held.revision {
      return
    }
    guard let entry = findEntry(id, stored, in: engine) else { return }
    endHolding(id, in: engine)
    switch engine.queue.addExternal(entry, at: engine.moment) {
    case .nothing: break
    case .refused: engine.performer.refuseInterrupted(id, in: engine)
    case .behindGap:
      let sequence = entry.record.sequence
      engine.start { engine in await engine.reader.readPredecessors(of: id, sequence, in: engine) }
    }
    if let added = engine.queue[id], added.isLive { engine.show(added) }
  }

  private func receiveRemoval(of id: MutationID, _ revision: UInt64, isOwn: Bool, in engine: isolated Engine) {
    if engine.queue.heldMutation(id) != nil { endHolding(id, in: engine) }
    guard let entry = engine.queue[id] else { return }
    guard entry.tag != nil else {
      changesDuringAddition[id] = .removed(keys.record(id).keyName, revision: revision)
      return engine.queue.recordReplaced(by: id, tag: nil)
    }
    guard revision > entry.revision || isOwn else { return }
    engine.removeFromOverlay([id], of: entry.key)
    engine.queue.remove(id)
    // The part that has removed the record ends the call.
    if !isOwn, !engine.writer.isBeingRemoved(id) { endCall(of: id) }
    engine.sender.pump(in: engine)
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

  /// Applies what another process has stored while a mutation was being added again, which has failed.
  func endAddition(of id: MutationID, in engine: isolated Engine) {
    switch changesDuringAddition.removeValue(forKey: id) {
    case .saved(_, let stored)?: if let stored = stored as? StoredValue<Record> { receive(id, stored, in: engine) }
    case .removed(_, let revision)?: receiveRemoval(of: id, revision, isOwn: false, in: engine)
    case .unusable, nil: break
    }
  }

  /// Ends a mutation whose record this program can't use anymore, unless the record is still stored.
  private func receiveUnusable(_ id: MutationID, in engine: isolated Engine) {
    guard let tag = engine.queue[id]?.tag ?? engine.queue.heldMutation(id)?.tag else { return }
    engine.start { engine in
      await engine.keepTrying { (engine) async throws(StoreError) in
        guard try await engine.reader.isMissing(id) else { return }
        if engine.queue.heldMutation(id)?.tag == tag { engine.reader.endHolding(id, in: engine) }
        guard let entry = engine.queue[id], entry.tag == tag else { return }
        engine.removeFromOverlay([id], of: entry.key)
        engine.queue.remove(id)
        let quarantine = await engine.reader.quarantine(of: id)
        if let quarantine { engine.calls.end(id, .failure(.store(quarantine))) }
        engine.reader.endCall(of: id)
        engine.performer.reportChanges(in: engine)
        engine.sender.pump(in: engine)
      }
    }
  }

  /// Starts to report the store's events about records that can't be read.
  private func reportStoreEvents(in engine: isolated Engine) {
    guard !isReportingEvents else { return }
    isReportingEvents = true
    engine.tasks.start { [collection = keys.collection, storeEvents = store.events.subscribe(), events] in
      for await storeEvent in storeEvents {
        if let event = RepositoryEvent(storeEvent, of: collection) { events.emit(event) }
      }
    }
  }

  /// Whether no record is stored, or one that this call quarantines.
  func isMissing(_ id: MutationID, isolation: isolated (any Actor)? = #isolation) async throws(StoreError) -> Bool {
    do throws(StoreError) {
      return try await store.load(keys.record(id)) == nil
    } catch {
      switch error {
      case .undecodable(_, let movedTo, _): return movedTo != nil
      // Another version of the program can read it.
      case .newerFormat, .migrationFailed: return false
      default: throw error
      }
    }
  }

  /// Returns the error of a missing record that the store has quarantined; `nil` if the record is missing for another
  /// reason, as far as the store's last events tell.
  func quarantine(of id: MutationID, isolation: isolated (any Actor)? = #isolation) async -> StoreError? {
    let recentEvents = store.events.buffering(.unbounded).subscribe()
    // A later subscription counts the replayed events, so that no further one is awaited.
    let counting = store.events.buffering(.unbounded).subscribe()
    counting.cancel()
    var iterator = recentEvents.makeAsyncIterator()
    for _ in 0..<counting.droppedCount {
      guard let (quarantined, error) = await iterator.next()?.quarantine(in: keys.collection) else { continue }
      if quarantined == id { return error }
    }
    return nil
  }

  /// Completes the call of a mutation whose record another repository or process has removed, because the mutation was
  /// confirmed or withdrawn.
  func endCall(of id: MutationID) {
    calls.end(id, shared.withdrawals.contains(id) ? .failure(.cancelled) : .success(.confirmed))
  }
}

extension RepositoryEvent {
  /// Creates the event for a mutation that is held.
  init<Key: RepositoryKey>(_ held: HeldMutation<Key>) {
    self =
      switch held.reason {
      case .futureFormat, .futureSchema: .mutationOfFutureSchema(held.id)
      case .unmigratable(_, let reason): .mutationNotMigrated(held.id, reason: reason)
      case .undecodable(let reason): .mutationUnreadable(held.id, movedTo: nil, reason: reason)
      case .unknownKey(let key): .mutationOfUnknownKey(held.id, key: key)
      }
  }

  /// Creates the event for an event of the store, or returns `nil` if the event doesn't concern the mutations.
  ///
  /// - Parameters:
  ///   - event: The event of the store.
  ///   - collection: The collection of the mutations.
  fileprivate init?(_ event: StoreEvent, of collection: String) {
    switch event {
    case .valueQuarantined(let key, let movedTo, let reason) where key.collection == collection:
      self = .mutationUnreadable(MutationID(rawValue: key.id ?? ""), movedTo: movedTo, reason: reason)
    case .undecodableValueLeftUntouched(let key, let reason) where key.collection == collection:
      self = .mutationUnreadable(MutationID(rawValue: key.id ?? ""), movedTo: nil, reason: reason)
    case .newerValueLeftUntouched(let key, _, _) where key.collection == collection:
      self = .mutationOfFutureSchema(MutationID(rawValue: key.id ?? ""))
    case .migrationFailed(let key, _, let reason) where key.collection == collection:
      self = .mutationNotMigrated(MutationID(rawValue: key.id ?? ""), reason: reason)
    default: return nil
    }
  }
}

extension StoreEvent {
  /// The mutation whose record was quarantined, and the error of a read of the record; `nil` if this is another event.
  fileprivate func quarantine(in collection: String) -> (MutationID, StoreError)? {
    guard case .valueQuarantined(let key, let movedTo, let reason) = self, key.collection == collection, let id = key.id
    else { return nil }
    return (MutationID(rawValue: id), .undecodable(key, movedTo: movedTo, reason: reason))
  }
}

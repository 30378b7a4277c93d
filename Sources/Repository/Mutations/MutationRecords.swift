internal import DataStore
internal import Multicast

/// The records of a repository's mutations in the store, and which of their changes are external.
///
/// Belongs to one ``SyncEngine`` and is used in its isolation only. While a record is being written, the store may
/// report a change of that record; ``RecordEchoes`` decides whose change it is.
final class MutationRecords {
  typealias Record = MutationRecord
  typealias Commit = StoreCommit
  typealias Outcome = MutationRecordStore.Outcome

  let keys: MutationKeys
  private let store: any KeyValueStore
  private let recordStore: MutationRecordStore
  private let tasks: OwnedTasks
  private var echoes = RecordEchoes()
  private var isReportingEvents = false
  /// The errors of the records that the store has quarantined.
  private var quarantines: [MutationID: StoreError] = [:]

  init(_ store: any KeyValueStore, repository name: String, _ tasks: OwnedTasks) {
    (self.store, self.tasks) = (store, tasks)
    keys = MutationKeys(repository: name)
    recordStore = MutationRecordStore(store, keys, tasks)
  }

  /// Starts to report the store's events about records that can't be read.
  ///
  /// - Parameters:
  ///   - events: Receives the events.
  ///   - onQuarantine: Called for each record that the store has quarantined, with the error of its read.
  func reportEvents(
    to events: RepositoryEvents, onQuarantine: @escaping @Sendable (MutationID, StoreError) async -> Void
  ) {
    guard !isReportingEvents else { return }
    isReportingEvents = true
    tasks.start { [collection = keys.collection, storeEvents = store.events.subscribe()] in
      for await storeEvent in storeEvents {
        if let event = RepositoryEvent(storeEvent, of: collection) { events.emit(event) }
        if let (id, error) = storeEvent.quarantine(in: collection) { await onQuarantine(id, error) }
      }
    }
  }

  /// The stored records, and their changes after the read.
  struct Reading {
    let stored: [StoreObservation<Record>.Entry]
    let changes: MulticastSubscription<[StoreChange<Record>], Never>
    /// The last sequence number before the read; 0 if it isn't known.
    ///
    /// The read has found all stored mutations up to this number.
    let lastSequence: UInt64
  }

  /// The tag of the stored counter, which every addition of a mutation changes.
  func counterTag(isolation: isolated (any Actor)? = #isolation) async throws(StoreError) -> StoreTag? {
    try await recordStore.storedCounter().tag
  }

  /// Reads all records and subscribes to their changes.
  ///
  /// From now on, the caller must ignore what the subscription of an earlier read receives.
  func read(
    isolation: isolated (any Actor)? = #isolation
  ) async throws(StoreError) -> Reading {
    let counter = try await recordStore.storedCounter()
    let observation = try await store.observe(collection: keys.collection, as: Record.self)
    echoes.recordReading(of: Set(observation.stored.compactMap { $0.key.id.map(MutationID.init(rawValue:)) }))
    return Reading(stored: observation.stored, changes: observation.changes, lastSequence: counter.last)
  }

  /// Whether this repository removed the record and the store hasn't reported that yet.
  func isRemoved(_ id: MutationID) -> Bool { echoes.isRemoved(id) }

  /// Adds a record with the next sequence number.
  ///
  /// The added record may replace the record of another mutation, or an older record of the same mutation.
  ///
  /// - Returns: The record with its sequence number, its commit, and whether another process has changed the record
  ///   since. `nil` if another process has requeued, resolved or discarded the mutation that is to be replaced.
  /// - Throws: A `StoreError`; `preconditionFailed` if the user has signed out or in; see ``UserRequirement``.
  func add(
    _ id: MutationID, _ record: Record, replacing replaced: (id: MutationID, tag: StoreTag?)?,
    requiring requirement: UserRequirement?, isolation: isolated (any Actor)? = #isolation
  ) async throws(StoreError) -> (record: Record, commit: Commit, isChangedSince: Bool)? {
    let removedIDs = replaced.map { $0.id == id ? [] : [$0.id] } ?? []
    beginWriting(removedIDs)
    defer { endWriting(removedIDs) }
    let (outcome, reportedRevision) = try await perform(
      .add({ sequence in record.with(sequence: sequence) }, replacing: replaced, requirement), id)
    guard case .written(let record, let commit) = outcome else { return nil }
    recordRemoval(of: removedIDs, commit)
    return (record, commit, reportedRevision > commit.revision)
  }

  /// Performs a write of one record.
  ///
  /// - Returns: The outcome, and the newest revision of the record that was reported during the write; 0 if none was.
  private func perform(
    _ write: MutationRecordStore.Write, _ id: MutationID,
    isolation: isolated (any Actor)? = #isolation
  ) async throws(StoreError) -> (outcome: Outcome, reportedRevision: UInt64) {
    beginWriting([id])
    do throws(StoreError) {
      var outcome = try await recordStore.perform(write, id)
      let reportedRevision = echoes.endWriting(id) ?? 0
      // A commit of this repository that confirms the mutation may have removed the record. The queue is notified of
      // that shortly.
      if case .gone = outcome, echoes.isBeingWritten(id) { outcome = .unchanged }
      return (outcome, reportedRevision)
    } catch {
      echoes.endWriting(id)
      throw error
    }
  }

  /// Replaces a record.
  ///
  /// - Parameters:
  ///   - id: The id of the mutation.
  ///   - record: The new record.
  ///   - tag: The last known tag of the stored record.
  ///   - unlessChanged: Whether to keep the stored record if it has another tag.
  /// - Returns: The outcome, and whether another process has changed the written record since. If another process had
  ///   stored that the server may have received the mutation, `isOutcomeUnknown` is `true` in the written record.
  func replace(
    _ id: MutationID, by record: Record, tag: StoreTag?, unlessChanged: Bool,
    isolation: isolated (any Actor)? = #isolation
  ) async throws(StoreError) -> (outcome: Outcome, isChangedSince: Bool) {
    let (outcome, reportedRevision) = try await perform(.replace(record, tag: tag, unlessChanged: unlessChanged), id)
    guard case .written(_, let commit) = outcome else { return (outcome, false) }
    return (outcome, reportedRevision > commit.revision)
  }

  /// Removes a record, unless another process has changed it and the changed record doesn't meet a condition.
  ///
  /// - Parameters:
  ///   - id: The id of the mutation.
  ///   - condition: The condition.
  ///   - tag: The last known tag of the stored record.
  func remove(
    _ id: MutationID, if condition: MutationRecordStore.RemovalCondition, tag: StoreTag,
    isolation: isolated (any Actor)? = #isolation
  ) async throws(StoreError) -> Outcome {
    let outcome = try await perform(.removeIf(condition, tag: tag), id).outcome
    if case .removed(let commit) = outcome { recordRemoval(of: [id], commit) }
    return outcome
  }

  /// Removes a record.
  func remove(_ id: MutationID, isolation: isolated (any Actor)? = #isolation) async throws(StoreError) {
    beginWriting([id])
    defer { endWriting([id]) }
    if case .removed(let commit) = try await recordStore.perform(.remove, id) { recordRemoval(of: [id], commit) }
  }

  /// Announces that records are being written or removed, by this type or in a commit of the caller.
  func beginWriting(_ ids: [MutationID]) {
    for id in ids { echoes.beginWriting(id) }
  }

  /// Ends ``beginWriting(_:)``, whether or not the write succeeded.
  func endWriting(_ ids: [MutationID]) {
    for id in ids { echoes.endWriting(id) }
  }

  /// Records that a commit removed records.
  func recordRemoval(of ids: [MutationID], _ commit: Commit) {
    for id in ids { echoes.recordRemoval(of: id, revision: commit.revision) }
  }

  /// Records a stored record, or the removal of one, that the store reports or that was read.
  ///
  /// - Returns: Whether another repository may have made the change; see ``RecordEchoes/receive(_:revision:)``.
  func recordReport(of key: StoreKey<Record>, revision: UInt64) -> Bool {
    key.id.map { echoes.receive(MutationID(rawValue: $0), revision: revision) } ?? false
  }

  /// Returns a stored record, or `nil` if it doesn't exist, or is quarantined by this call.
  func load(
    _ id: MutationID, isolation: isolated (any Actor)? = #isolation
  ) async throws(StoreError) -> StoredValue<Record>? {
    do throws(StoreError) {
      return try await store.load(keys.record(id))
    } catch {
      guard case .undecodable(_, movedTo: .some, _) = error else { throw error }
      quarantines[id] = error
      return nil
    }
  }

  /// Whether a record is being written or removed.
  func isBeingWritten(_ id: MutationID) -> Bool { echoes.isBeingWritten(id) }

  // MARK: - Quarantines

  /// Records that the store has quarantined a record.
  ///
  /// - Parameters:
  ///   - id: The mutation of the record.
  ///   - error: The error of a read of the record.
  ///   - isNeeded: Returns whether a mutation or its call is known, so that its earlier error must be kept.
  func recordQuarantine(of id: MutationID, _ error: StoreError, keepingWhere isNeeded: (MutationID) -> Bool) {
    quarantines = quarantines.filter { isNeeded($0.key) }
    quarantines[id] = error
  }

  /// Returns the error of a missing record that the store has quarantined; `nil` if the record is missing for another
  /// reason.
  ///
  /// The store's event may not have been received yet, so its last events are searched too.
  func quarantine(of id: MutationID, isolation: isolated (any Actor)? = #isolation) async -> StoreError? {
    if let error = quarantines.removeValue(forKey: id) { return error }
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

  /// Returns the mutations that were withdrawn last, by any process.
  func withdrawals(isolation: isolated (any Actor)? = #isolation) async throws(StoreError) -> MutationWithdrawals {
    try await recordStore.storedWithdrawals()
  }

  /// Returns those of the given mutations whose records another process has removed.
  ///
  /// - Complexity: Loads each record.
  func externallyRemoved(
    _ ids: [MutationID], isolation: isolated (any Actor)? = #isolation
  ) async throws(StoreError) -> [MutationID] {
    var removed: [MutationID] = []
    for id in ids where !echoes.isBeingWritten(id) {
      let isStored = try await isStored(id)
      if !isStored, !echoes.isBeingWritten(id) { removed.append(id) }
    }
    return removed
  }

  /// Returns whether all given records are stored.
  ///
  /// - Complexity: Loads each record.
  func areStored(
    _ ids: [MutationID], isolation: isolated (any Actor)? = #isolation
  ) async throws(StoreError) -> Bool {
    for id in ids where try await !isStored(id) { return false }
    return true
  }

  /// Returns whether a record is stored, even if another version of the program has written it so that this one can't
  /// decode it.
  private func isStored(
    _ id: MutationID, isolation: isolated (any Actor)? = #isolation
  ) async throws(StoreError) -> Bool {
    do throws(StoreError) {
      return try await load(id) != nil
    } catch {
      guard case .undecodable(_, movedTo: nil, _) = error else { throw error }
      return true
    }
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

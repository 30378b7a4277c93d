internal import DataStore
internal import Multicast

/// The records of a repository's mutations in the store, and which of their changes are external.
///
/// Belongs to one ``SyncEngine`` and is used in its isolation only. While a record is being written, the store may
/// report a change of that record; ``RecordEchoes`` decides whose change it is.
final class MutationRecords<Mutation: Codable & Sendable> {
  typealias Record = MutationRecord<Mutation>
  typealias Commit = StoreCommit
  typealias Outcome = MutationRecordStore<Mutation>.Outcome

  let keys: MutationKeys<Mutation>
  private let store: any KeyValueStore
  private let recordStore: MutationRecordStore<Mutation>
  private let tasks: OwnedTasks
  private var echoes = RecordEchoes()
  private var isReportingEvents = false

  init(_ store: any KeyValueStore, repository name: String, _ tasks: OwnedTasks) {
    (self.store, self.tasks) = (store, tasks)
    keys = MutationKeys(repository: name)
    recordStore = MutationRecordStore(store, keys, tasks)
  }

  /// Starts to report the store's events about records that can't be read.
  func reportEvents(to events: RepositoryEvents) {
    guard !isReportingEvents else { return }
    isReportingEvents = true
    tasks.start { [collection = keys.collection, storeEvents = store.events.subscribe()] in
      for await storeEvent in storeEvents {
        if let event = RepositoryEvent(storeEvent, of: collection) { events.emit(event) }
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
    _ write: MutationRecordStore<Mutation>.Write, _ id: MutationID,
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
    _ id: MutationID, if condition: MutationRecordStore<Mutation>.RemovalCondition, tag: StoreTag,
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

  /// Records a change that the store reports.
  ///
  /// - Returns: Whether the change may be external; see ``RecordEchoes/receive(_:revision:)``.
  func recordChange(_ change: StoreChange<Record>, of id: MutationID) -> Bool {
    echoes.receive(id, revision: change.revision)
  }

  /// Returns a stored record, or `nil` if it doesn't exist.
  func load(
    _ id: MutationID, isolation: isolated (any Actor)? = #isolation
  ) async throws(StoreError) -> StoredValue<Record>? {
    try await store.load(keys.record(id))
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
      let isStored = try await store.load(keys.record(id)) != nil
      if !isStored, !echoes.isBeingWritten(id) { removed.append(id) }
    }
    return removed
  }
}

extension RepositoryEvent {
  /// Creates the event for an event of the store, or returns `nil` if the event doesn't concern the mutations.
  ///
  /// - Parameters:
  ///   - event: The event of the store.
  ///   - collection: The collection of the mutations.
  fileprivate init?(_ event: StoreEvent, of collection: String) {
    switch event {
    case .valueQuarantined(let key, let movedTo, let reason) where key.collection == collection:
      self = .mutationUnreadable(MutationID(rawValue: key.id ?? ""), movedTo: movedTo, reason: reason)
    case .newerValueLeftUntouched(let key, _, _) where key.collection == collection:
      self = .mutationOfFutureSchema(MutationID(rawValue: key.id ?? ""))
    case .migrationFailed(let key, _, let reason) where key.collection == collection:
      self = .mutationNotMigrated(MutationID(rawValue: key.id ?? ""), reason: reason)
    default: return nil
    }
  }
}

internal import DataStore
internal import Multicast

/// The records of a repository's mutations in the store.
///
/// Belongs to one ``SyncEngine`` and is used in its isolation only.
final class MutationRecords {
  typealias Record = MutationRecord
  typealias Outcome = MutationRecordStore.Outcome

  let keys: MutationKeys
  private let store: any KeyValueStore
  private let recordStore: MutationRecordStore
  private let tasks: OwnedTasks
  private var isReportingEvents = false
  /// The records that this repository is removing.
  private var beingRemoved: Set<MutationID> = []

  init(_ store: any KeyValueStore, _ own: OwnCommits, repository name: String, _ tasks: OwnedTasks) {
    (self.store, self.tasks) = (store, tasks)
    keys = MutationKeys(repository: name)
    recordStore = MutationRecordStore(store, own, keys, tasks)
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

  /// The tag of the stored counter, which every addition of a mutation changes.
  func counterTag(isolation: isolated (any Actor)? = #isolation) async throws(StoreError) -> StoreTag? {
    try await recordStore.storedCounter().tag
  }

  /// Adds a record with the next sequence number.
  ///
  /// The added record may replace the record of another mutation, or an older record of the same mutation.
  ///
  /// - Returns: Whether it was added; `false` if another process has requeued, resolved or discarded the mutation that
  ///   is to be replaced.
  /// - Throws: A `StoreError`; `preconditionFailed` if the user has signed out or in; see ``UserRequirement``.
  func add(
    _ id: MutationID, _ record: Record, replacing replaced: (id: MutationID, tag: StoreTag?)?,
    requiring requirement: UserRequirement?, isolation: isolated (any Actor)? = #isolation
  ) async throws(StoreError) -> Bool {
    let addition = MutationRecordStore.Write.add(
      { sequence in record.with(sequence: sequence) }, replacing: replaced, requirement)
    guard case .written = try await recordStore.perform(addition, id) else { return false }
    return true
  }

  /// Replaces a record.
  ///
  /// - Parameters:
  ///   - id: The id of the mutation.
  ///   - record: The new record.
  ///   - tag: The last known tag of the stored record.
  ///   - unlessChanged: Whether to keep the stored record if it has another tag.
  /// - Returns: The outcome. If another process had stored that the server may have received the mutation,
  ///   `isOutcomeUnknown` is `true` in the written record.
  func replace(
    _ id: MutationID, by record: Record, tag: StoreTag?, unlessChanged: Bool,
    isolation: isolated (any Actor)? = #isolation
  ) async throws(StoreError) -> Outcome {
    try await recordStore.perform(.replace(record, tag: tag, unlessChanged: unlessChanged), id)
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
    beingRemoved.insert(id)
    defer { beingRemoved.remove(id) }
    return try await recordStore.perform(.removeIf(condition, tag: tag), id)
  }

  /// Removes a record.
  func remove(_ id: MutationID, isolation: isolated (any Actor)? = #isolation) async throws(StoreError) {
    beingRemoved.insert(id)
    defer { beingRemoved.remove(id) }
    _ = try await recordStore.perform(.remove, id)
  }

  /// Whether this repository is removing a record, so that the removal need not be another one's.
  func isBeingRemoved(_ id: MutationID) -> Bool { beingRemoved.contains(id) }

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

  /// Returns the mutations that were withdrawn last, by any process.
  func withdrawals(isolation: isolated (any Actor)? = #isolation) async throws(StoreError) -> MutationWithdrawals {
    try await recordStore.storedWithdrawals()
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

internal import DataStore
internal import Multicast

/// The records of a repository's mutations in the store, and which changes of them are external.
///
/// Belongs to one ``SyncEngine`` and is used in its isolation only. A change of a record may be received while a write of
/// it is on its way back; the echoes tell whose it is.
final class MutationRecords<Mutation: Codable & Sendable> {
  typealias Record = MutationRecord<Mutation>
  typealias Commit = StoreCommit

  let keys: MutationKeys<Mutation>
  private let store: any KeyValueStore
  private let records: MutationRecordStore<Mutation>
  private let tasks: OwnedTasks
  private var echoes = RecordEchoes()
  private var isReportingEvents = false

  init(_ store: any KeyValueStore, repository name: String, _ tasks: OwnedTasks) {
    (self.store, self.tasks) = (store, tasks)
    keys = MutationKeys(repository: name)
    records = MutationRecordStore(store, keys, tasks)
  }

  /// Reports from now on what the store has to say of records that can't be read.
  func reportEvents(to events: RepositoryEvents) {
    guard !isReportingEvents else { return }
    isReportingEvents = true
    tasks.start { [collection = keys.collection, storeEvents = store.events.subscribe()] in
      for await event in storeEvents {
        if let event = RepositoryEvent(event, of: collection) { events.emit(event) }
      }
    }
  }

  /// What is stored, and what follows.
  struct Reading {
    let stored: [StoreObservation<Record>.Entry]
    let changes: MulticastSubscription<[StoreChange<Record>], Never>
    /// A sequence up to which all mutations that are still stored were read.
    let lastSequence: UInt64
    /// The tag of the counter from before, which every addition changes.
    let counterTag: StoreTag?
  }

  /// Reads all records, and observes them from there: changes of an earlier reading are of no use any more.
  func read(
    isolation: isolated (any Actor)? = #isolation
  ) async throws(StoreError) -> Reading {
    let counter = try await records.storedCounter()
    let observation = try await store.observe(collection: keys.collection, as: Record.self)
    echoes.recordReading(of: Set(observation.stored.compactMap { $0.key.id.map(MutationID.init(rawValue:)) }))
    return Reading(
      stored: observation.stored, changes: observation.changes, lastSequence: counter.last, counterTag: counter.tag)
  }

  /// The users whose mutations are stored, by the ids of the records; without those of no user.
  ///
  /// - Complexity: Reads all records.
  func owners<Key: RepositoryKey>(
    _ type: Key.Type, isolation: isolated (any Actor)? = #isolation
  ) async throws(StoreError) -> [String: UserDigest] {
    let stored = try await store.observe(collection: keys.collection, as: Record.self).stored
    return stored.reduce(into: [:]) { owners, entry in
      guard let id = entry.key.id, let key = Key(storeID: entry.stored.value.key) else { return }
      owners[id] = UserDigest(key.userID)
    }
  }

  /// Whether this repository removed a record that the last reading found.
  func isRemoved(_ id: MutationID) -> Bool { echoes.isRemoved(id) }

  /// Adds a record behind all, in the place of another one or of an older one of the same mutation.
  ///
  /// - Returns: The record with its place, and whether another process has changed it since; `nil` if another process has
  ///   dealt with the one it replaces.
  /// - Throws: Also if the user has signed out or in; see ``UserRequirement``.
  func add(
    _ id: MutationID, _ record: Record, replacing replaced: (id: MutationID, tag: StoreTag?)?,
    requiring requirement: UserRequirement?, isolation: isolated (any Actor)? = #isolation
  ) async throws(StoreError) -> (record: Record, commit: Commit, isOvertaken: Bool)? {
    let others = replaced.map { $0.id == id ? [] : [$0.id] } ?? []
    beginWriting(others)
    defer { endWriting(others) }
    let (outcome, unseen) = try await perform(
      .add({ sequence in record.with(sequence: sequence) }, replacing: replaced, requirement), id)
    guard case .written(let record, let commit) = outcome else { return nil }
    recordRemoval(of: others, commit)
    return (record, commit, unseen > commit.revision)
  }

  /// Performs an operation on one record.
  ///
  /// - Returns: The outcome, and the newest revision of the record that was reported meanwhile.
  private func perform(
    _ operation: MutationRecordStore<Mutation>.Operation, _ id: MutationID,
    isolation: isolated (any Actor)? = #isolation
  ) async throws(StoreError) -> (outcome: MutationRecordStore<Mutation>.Outcome, unseen: UInt64) {
    beginWriting([id])
    do throws(StoreError) {
      let outcome = try await records.perform(operation, id)
      return (outcome, echoes.endWriting(id) ?? 0)
    } catch {
      echoes.endWriting(id)
      throw error
    }
  }

  /// How a record was replaced.
  enum Replacement {
    /// The record that was written, which says also what another process knew, and whether another process has changed it
    /// since.
    case written(Record, Commit, isOvertaken: Bool)
    /// Another process has removed the record, so nothing was written.
    case gone
    /// This repository removes the record, so nothing was written.
    case superseded
  }

  /// Replaces a record.
  ///
  /// - Parameters:
  ///   - id: The mutation.
  ///   - record: What is known of it.
  ///   - tag: The tag of the record that is known to be stored.
  func replace(
    _ id: MutationID, by record: Record, tag: StoreTag?, isolation: isolated (any Actor)? = #isolation
  ) async throws(StoreError) -> Replacement {
    let (outcome, unseen) = try await perform(.replace(record, tag: tag), id)
    switch outcome {
    case .written(let record, let commit): return .written(record, commit, isOvertaken: unseen > commit.revision)
    // A commit that confirms the mutation may have removed it, of which the queue learns in a moment.
    case .gone: return echoes.isBeingWritten(id) ? .superseded : .gone
    case .removed, .superseded, .sent: return .superseded
    }
  }

  /// What became of a record that was to be removed if its mutation stands as it should.
  enum Removal {
    case removed
    /// Another process has removed the record.
    case gone
    /// Another process sends the mutation, or a commit of this repository removes the record.
    case sent
  }

  /// Removes a record if its mutation still stands as it should.
  ///
  /// - Parameters:
  ///   - id: The mutation.
  ///   - standing: How it should stand.
  ///   - tag: The tag of the record that is known to be stored.
  func remove(
    _ id: MutationID, if standing: MutationRecordStore<Mutation>.Standing, tag: StoreTag,
    isolation: isolated (any Actor)? = #isolation
  ) async throws(StoreError) -> Removal {
    switch try await perform(.removeIf(standing, tag: tag), id).outcome {
    case .removed(let commit):
      recordRemoval(of: [id], commit)
      return .removed
    case .gone: return echoes.isBeingWritten(id) ? .sent : .gone
    case .written, .superseded, .sent: return .sent
    }
  }

  /// Removes a record.
  func remove(_ id: MutationID, isolation: isolated (any Actor)? = #isolation) async throws(StoreError) {
    beginWriting([id])
    defer { endWriting([id]) }
    if case .removed(let commit) = try await records.perform(.remove, id) { recordRemoval(of: [id], commit) }
  }

  /// Announces that records are being written or removed, by this type or in a commit of the caller's.
  func beginWriting(_ ids: [MutationID]) {
    for id in ids { echoes.beginWriting(id) }
  }

  /// Ends what ``beginWriting(_:)`` began, whether or not the write was made.
  func endWriting(_ ids: [MutationID]) {
    for id in ids { echoes.endWriting(id) }
  }

  /// Records that a commit removed records.
  func recordRemoval(of ids: [MutationID], _ commit: Commit) {
    for id in ids { echoes.recordRemoval(of: id, revision: commit.revision) }
  }

  /// Returns whether a change that the store reports is external.
  func isExternal(_ change: StoreChange<Record>, of id: MutationID) -> Bool {
    echoes.receive(id, revision: change.revision)
  }

  /// Returns what is stored of a record; `nil` if nothing is.
  func load(
    _ id: MutationID, isolation: isolated (any Actor)? = #isolation
  ) async throws(StoreError) -> StoredValue<Record>? {
    try await store.load(keys.record(id))
  }

  /// Returns those of some records that another process has removed.
  ///
  /// - Complexity: Loads each one.
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
  /// What an event of the store means for a queue of mutations; `nil` if nothing.
  ///
  /// - Parameters:
  ///   - event: The event.
  ///   - collection: The collection of the mutations.
  fileprivate init?(_ event: StoreEvent, of collection: String) {
    switch event {
    case .valueQuarantined(let key, let movedTo, let reason) where key.collection == collection:
      self = .mutationUnreadable(MutationID(rawValue: key.id ?? ""), movedTo: movedTo, reason: reason)
    case .newerValueLeftUntouched(let key, _, _) where key.collection == collection:
      self = .mutationOfNewerProgram(MutationID(rawValue: key.id ?? ""))
    case .migrationFailed(let key, _, let reason) where key.collection == collection:
      self = .mutationNotMigrated(MutationID(rawValue: key.id ?? ""), reason: reason)
    default: return nil
    }
  }
}

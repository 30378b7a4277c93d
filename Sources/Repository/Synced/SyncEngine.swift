internal import DataStore
internal import Foundation
internal import Multicast

/// Makes what a ``SyncedRepository`` promises: knows the values of the keys that are in use, and sends them to observers.
///
/// - ``SyncState`` decides what each key shows, and which reply is stored.
/// - ``SyncLoader`` fetches, and ``SyncWrites`` stores the replies.
/// - ``MutationQueue`` keeps the mutations, and ``MutationSender`` sends them.
///
/// One actor for all keys: what is known changes and is sent to observers in one step. The parts aren't actors of their own
/// for the same reason. Their functions take the engine as an isolated parameter, so they run in its isolation.
actor SyncEngine<Source: RepositorySource> {
  typealias Key = Source.Key
  typealias Value = Source.Value
  typealias Mutation = Source.Mutation
  typealias Failure = RepositoryError<Source.Failure>
  typealias Cell = SyncCell<Source>
  typealias State = RepositoryState<Value, Failure>

  /// The number of released keys of which the time of the last fetch is remembered.
  private static var residueLimit: Int { 4_096 }

  /// The number of keys that stay open although nothing needs them, so that an observer that comes soon gets all.
  private static var idleLimit: Int { 16 }

  nonisolated let values = KeyChannels<Key, Value>()
  nonisolated let states = KeyChannels<Key, State>()
  /// The pending mutations of each key, in the order in which they are applied.
  nonisolated let pendings = KeyChannels<Key, [Mutation]>()
  /// The values of all keys, under the name of the collection.
  nonisolated let everyValue = KeyChannels<String, Value>()
  /// All mutations, under the name of their collection.
  nonisolated let lists = KeyChannels<String, [PendingMutation<Key, Mutation>]>()
  nonisolated let events = RepositoryEvents()
  nonisolated let tasks: OwnedTasks
  /// The number of mutations that will be sent, or are.
  nonisolated let liveCounts = CurrentValueRelay(0)
  /// The collection of the values.
  nonisolated let name: String
  /// The key of the queue's observers.
  nonisolated let listKey: String

  let queue: MutationQueue<Source>
  let sender: MutationSender<Source>
  let loader: SyncLoader<Source>
  let writes: SyncWrites<Source>
  let newestValue: NewestValue<Source>
  let backoff: Backoff

  private let capabilities: SourceCapabilities<Source>
  private let store: any KeyValueStore
  private let starting = AsyncSerialQueue()
  private var hasStarted = false
  private var cells: [Key: Cell] = [:]
  /// The keys whose cells nothing needed when they were used last, the oldest first.
  private var idleKeys = FIFO<Key>()
  /// What is remembered of keys whose cells were released.
  private var residues: [Key: Cell.Residue] = [:]

  init(_ source: Source, store: any KeyValueStore, configuration: RepositoryConfiguration) {
    let clock = ElapsedClock(configuration.clock)
    let tasks = OwnedTasks(executor: configuration.taskExecutor)
    let records = MutationRecords<Mutation>(store, repository: source.name, tasks)
    self.store = store
    self.tasks = tasks
    (name, listKey) = (source.name, records.keys.collection)
    capabilities = SourceCapabilities(source)
    backoff = Backoff(configuration.retryPolicy, clock: clock, random: configuration.random)
    queue = MutationQueue(
      capabilities, records, configuration: configuration, events: events, liveCounts: liveCounts, lists: lists)
    sender = MutationSender(
      capabilities, policy: configuration.retryPolicy, clock: clock, events: events, tasks: tasks)
    loader = SyncLoader(capabilities, configuration: configuration, events: events)
    writes = SyncWrites(store, now: configuration.now, events: events)
    newestValue = NewestValue(source.name, store: store, events: events, channels: everyValue)
  }

  /// Ends everything: the repository is released.
  nonisolated func stop() {
    tasks.cancelAll()
    values.finish()
    states.finish()
    pendings.finish()
    everyValue.finish()
    lists.finish()
  }

  // MARK: - Tasks

  /// Starts a task in the engine's isolation, which is cancelled when the repository is released.
  nonisolated func start(_ work: @escaping @Sendable (isolated SyncEngine<Source>) async -> Void) {
    tasks.start { [weak self] in
      if let self { await work(self) }
    }
  }

  /// Starts a task in the engine's isolation that isn't cancelled: what the server has answered is stored.
  nonisolated func startToCompletion(_ work: @escaping @Sendable (isolated SyncEngine<Source>) async -> Void) {
    Task(executorPreference: tasks.executor) { await work(self) }
  }

  // MARK: - Starting

  /// Reads the queue of mutations, once.
  func start() async throws(StoreError) {
    if hasStarted { return }
    try await starting.run { () async throws(StoreError) in
      if hasStarted { return }
      try await queue.read(in: self)
      hasStarted = true
      sender.pump(in: self)
    }
  }

  /// Reads the queue of mutations, again and again until the store can be read.
  func startInBackground() async {
    var attempt = 0
    while !Task.isCancelled {
      do throws(StoreError) {
        return try await start()
      } catch {
        events.emit(.storeFailed(reason: error.description))
        attempt += 1
        await backoff.wait(afterAttempt: attempt)
      }
    }
  }

  // MARK: - Cells

  /// The cell of a key, if it is known.
  func cell(_ key: Key) -> Cell? { cells[key] }

  /// Opens a key: its base is known, and the pending mutations are over it.
  func open(_ key: Key) async throws(StoreError) -> Cell {
    if let cell = cells[key], cell.isOpen { return cell }
    let storeKey = StoreKey<Value>(name, id: key.storeID)
    try storeKey.validate()
    try await start()
    let cell = cells[key] ?? Cell(key: key, storeKey: storeKey, capabilities)
    cells[key] = cell
    cell.useCount += 1
    defer { cell.useCount -= 1 }
    try await cell.opening.run { () async throws(StoreError) in
      if cell.isOpen { return }
      // Registered first, so that no change is missed. What the change repeats has no newer revision.
      let changes = try await store.changes(of: storeKey).subscribe()
      var mutations: [MutationQueue<Source>.Entry]
      var stored: StoredValue<Value>?
      repeat {
        mutations = queue.liveMutations(of: key)
        stored = try await loadStored(storeKey)
        // A value that was stored behind a record may have its mutation, unless the record is still stored now.
        let revision = stored?.revision ?? 0
        let finished = await externallyFinished(mutations.filter { revision > $0.revision }.map(\.id))
        queue.finishExternally(finished, isConfirmed: true, in: self)
        // A mutation that came or went meanwhile may be in a newer value, or in the one that was read.
      } while mutations.map(\.id) != queue.liveMutations(of: key).map(\.id)
      cell.open(stored, residues.removeValue(forKey: key))
      for mutation in queue.liveMutations(of: key) { restore(mutation, in: cell) }
      cell.endWatching = tasks.start { [weak self] in
        for await change in changes { await self?.receive(change, key) }
      }
    }
    publish(cell)
    return cell
  }

  private func restore(_ entry: MutationQueue<Source>.Entry, in cell: Cell) {
    cell.state.restore(entry.id, entry.record.mutation)
    // The process that made it decides about conflicts, because this one may not know the value that it was made on.
    if entry.isExternal { _ = cell.state.beginSending(entry.id) }
  }

  /// Returns what is stored; corrupt bytes are in quarantine, so nothing is.
  func loadStored(_ key: StoreKey<Value>) async throws(StoreError) -> StoredValue<Value>? {
    do throws(StoreError) {
      return try await store.load(key)
    } catch {
      guard case .undecodable = error else { throw error }
      return nil
    }
  }

  /// Opens a key for a call, which ends with ``endUse(_:)``: the cell stays as long.
  func use(_ key: Key) async throws(Failure) -> Cell {
    do throws(StoreError) {
      let cell = try await open(key)
      cell.useCount += 1
      return cell
    } catch {
      throw .store(error)
    }
  }

  func endUse(_ cell: Cell) {
    cell.useCount -= 1
    release(cell)
  }

  /// Releases a cell that nothing needs, unless it is one of the last that were used.
  func release(_ cell: Cell) {
    guard cell.isIdle, cells[cell.key] === cell else { return }
    if !cell.isInIdleList {
      cell.isInIdleList = true
      idleKeys.append(cell.key)
    }
    while idleKeys.count > Self.idleLimit, let key = idleKeys.removeFirst() {
      guard let oldest = cells[key] else { continue }
      oldest.isInIdleList = false
      close(oldest)
    }
  }

  /// Closes a cell that nothing needs.
  private func close(_ cell: Cell) {
    guard cell.isIdle, cells[cell.key] === cell, !values.isObserved(cell.key), !states.isObserved(cell.key),
      !pendings.isObserved(cell.key)
    else { return }
    cell.endWatching?()
    cells[cell.key] = nil
    values.forgetCurrent(of: cell.key)
    states.forgetCurrent(of: cell.key)
    pendings.forgetCurrent(of: cell.key)
    if residues.count >= Self.residueLimit { residues = [:] }
    residues[cell.key] = cell.residue
  }

  // MARK: - Observing

  /// Gives a new observer what there is.
  func observe(_ key: Key) async {
    if cells[key] == nil, residues[key] == nil { states.sendFirst(State(), to: key) }
    do throws(StoreError) {
      let cell = try await open(key)
      if let visible = cell.state.visible { values.sendFirst(visible, to: key) }
      states.sendFirst(cell.currentState(nextCursor: capabilities.paging?.nextCursor), to: key)
      pendings.sendFirst(cell.state.pendingMutations, to: key)
      release(cell)
    } catch {
      // The next call of the repository for this key tries again.
      events.emit(.storeFailed(reason: error.description))
      states.send(State(failure: .store(error)), to: key)
      pendings.sendFirst([], to: key)
    }
  }

  /// Releases what was held for observers that are gone.
  func endObserving(_ key: Key) {
    values.forgetReleased(key)
    states.forgetReleased(key)
    pendings.forgetReleased(key)
    if let cell = cells[key] { release(cell) }
  }

  /// Gives a new observer of the queue what there is.
  func observeList() async {
    do throws(StoreError) {
      try await start()
      queue.sendFirstList()
    } catch {
      events.emit(.storeFailed(reason: error.description))
    }
  }

  func endObservingList() {
    lists.forgetReleased(listKey)
  }

  func observeEvery() async {
    await newestValue.observe(in: self)
  }

  func openForEvery(_ key: StoreKey<Value>) async {
    await newestValue.open(key, in: self)
  }

  func endObservingEveryValue() {
    newestValue.endObserving()
  }

  /// Sends what is new of a key to its observers.
  func publish(_ cell: Cell) {
    for conflict in cell.state.fold() { queue.recordConflict(conflict.id, conflict.conflict, in: self) }
    guard let state = cell.takeState(nextCursor: capabilities.paging?.nextCursor) else { return }
    if cell.sentVersion != cell.state.visibleVersion {
      cell.sentVersion = cell.state.visibleVersion
      if let visible = cell.state.visible {
        values.setCurrent(visible, of: cell.key)
        newestValue.send(visible, cell)
      } else {
        // Observers that come from now on don't see what was removed.
        values.resetReplay(of: cell.key)
        newestValue.forget(cell.key)
      }
    }
    if cell.sentPendingVersion != cell.state.pendingVersion {
      cell.sentPendingVersion = cell.state.pendingVersion
      // Made of all pending mutations, so only where it is observed.
      pendings.forgetCurrent(of: cell.key)
      if pendings.isObserved(cell.key) { pendings.setCurrent(cell.state.pendingMutations, of: cell.key) }
    }
    states.setCurrent(state, of: cell.key)
  }

  // MARK: - Loading

  /// Fetches a value unless the stored one is fresh; see ``SyncLoader``.
  func refresh(_ key: Key, _ part: Cell.Part? = nil) async throws(Failure) {
    try await loader.refresh(key, part, in: self)
  }

  /// Fetches a value, or joins a request for it that is in flight.
  func load(_ key: Key, _ part: Cell.Part? = nil) async throws(Failure) {
    try await loader.load(key, part, in: self)
  }

  /// Makes a request that callers share.
  func performLoad(_ key: Key, _ part: Cell.Part) async throws(Failure) -> Bool {
    try await loader.perform(key, part, in: self)
  }

  // MARK: - Mutations

  /// Makes a mutation: shows it, makes it durable, and has it sent.
  ///
  /// - Returns: The outcome, or that the mutation has to wait.
  func perform(_ mutation: Mutation, on key: Key) async throws(Failure) -> MutationResult {
    if Task.isCancelled { throw .cancelled }
    let id = try await add(mutation, on: key, replacing: nil, hasCaller: true)
    return try await queue.outcome(of: id)
  }

  /// Shows a mutation and makes it durable, behind all others.
  ///
  /// - Parameters:
  ///   - mutation: The change.
  ///   - key: The key of the value that it changes.
  ///   - id: Its id. One that the server may have made keeps its id when it is sent again.
  ///   - replaced: The mutation that it replaces, which may be itself as it was refused; `nil` if there is none.
  ///   - hasCaller: Whether a call will wait for its outcome.
  func add(
    _ mutation: Mutation, on key: Key, as id: MutationID = MutationID(),
    replacing replaced: MutationQueue<Source>.Entry?, hasCaller: Bool
  ) async throws(Failure) -> MutationID {
    let cell = try await use(key)
    defer { endUse(cell) }
    var record = queue.record(of: mutation, on: key)
    record.isOutcomeUnknown = replaced?.id == id
    guard replaced != nil || queue.hasRoom(for: record) else { throw .queueFull }
    do throws(MutationConflict) {
      try cell.state.add(id, mutation)
    } catch {
      // It may have found others that aren't possible.
      publish(cell)
      throw .conflict(error)
    }
    queue.append(id, record, on: key, hasCaller: hasCaller)
    // The user waits for the value, so it goes first.
    publish(cell)
    queue.reportChanges(in: self)
    let isAdded: Bool
    do throws(StoreError) {
      isAdded = try await queue.makeDurable(id, replacing: replaced, in: self)
    } catch {
      takeBack([id], of: key)
      throw .store(error)
    }
    guard isAdded else {
      takeBack([id], of: key)
      throw .cancelled
    }
    return id
  }

  /// Shows a mutation of another repository, if its key is in use and the value doesn't have it yet.
  func show(_ entry: MutationQueue<Source>.Entry) async {
    // A value that was stored behind the record may have the mutation, of which the report came late.
    var revision = entry.revision
    while let cell = cells[entry.key], cell.isOpen {
      guard let base = cell.state.base, base.revision > revision else {
        if queue[entry.id] == nil { return }
        restore(entry, in: cell)
        return publish(cell)
      }
      revision = base.revision
      if await !externallyFinished([entry.id]).isEmpty {
        return finishExternally([entry.id], of: entry.key, isConfirmed: true)
      }
    }
  }

  /// Returns those of some mutations whose records another process has removed, as far as they can be read.
  private func externallyFinished(_ ids: [MutationID]) async -> [MutationID] {
    do throws(StoreError) {
      return try await queue.externallyFinished(ids)
    } catch {
      // What can't be read is pending until it can.
      return []
    }
  }

  /// Shows mutations no more.
  func takeBack(_ ids: [MutationID], of key: Key) {
    guard let cell = cells[key] else { return }
    for id in ids { cell.state.remove(id) }
    publish(cell)
    release(cell)
  }

  /// Writes what is known of a mutation.
  func writeRecord(_ id: MutationID) async -> StoreError? {
    await queue.write(id, in: self)
  }

  /// Sends what may be sent when an alarm rings.
  func pump(at deadline: Duration) {
    sender.pump(at: deadline, in: self)
  }

  /// Ends all backoffs, except those that a server named.
  func retryNow() {
    backoff.endWaits()
    queue.retryNow()
    sender.pump(in: self)
  }

  /// Sends at once all that waits, also for the user to sign in.
  func resumeAll() {
    for userID in queue.signedOutUsers { credentialsChanged(userID: userID) }
    retryNow()
  }

  func credentialsChanged(userID: String?) {
    queue.signedIn(userID: userID, in: self)
    sender.pump(in: self)
  }

  // MARK: - External changes

  /// Takes in what is stored, if the store's report of it is still to come.
  func receiveUnreported(_ cell: Cell) async {
    do throws(StoreError) {
      guard let stored = try await loadStored(cell.storeKey) else { return }
      await receive(.saved(cell.storeKey, stored), cell.key)
    } catch {
      events.emit(.storeFailed(reason: error.description))
    }
  }

  /// Takes in a change of a value that the store reports.
  func receive(_ change: StoreChange<Value>, _ key: Key) async {
    guard let cell = cells[key], cell.isOpen else { return }
    if cell.state.isWriting {
      // It may be the write's own.
      cell.heldChanges.append(change)
      return
    }
    guard cell.state.isNew(change.revision) else { return }
    // What another process stored may have mutations of this one, which it has sent. They leave in the same step.
    let (finished, stored) = await externallyFinished(cell)
    guard !cell.state.isWriting else {
      cell.heldChanges.append(change)
      return
    }
    cell.receive(change)
    if let stored { cell.receive(.saved(cell.storeKey, stored)) }
    finishExternally(finished, of: key, isConfirmed: true)
  }

  /// Returns the pending mutations of a key whose records another process has removed, and the value that has them.
  ///
  /// The value is read after the records, because one that was read before may lack what was removed in between.
  func externallyFinished(_ cell: Cell) async -> (ids: [MutationID], stored: StoredValue<Value>?) {
    do throws(StoreError) {
      let ids = try await queue.externallyFinished(cell.state.pendingIDs)
      return ids.isEmpty ? ([], nil) : (ids, try await loadStored(cell.storeKey))
    } catch {
      // What can't be read is pending until it can.
      return ([], nil)
    }
  }

  /// Takes in a change of a mutation's record that the store reports.
  func receive(_ change: StoreChange<MutationRecord<Mutation>>) async {
    await queue.receive(change, in: self)
  }

  /// Takes in that another process has finished with a mutation: with the value that it stored in the same commit.
  ///
  /// The mutation stays until that value can be read.
  func receiveRemoval(of entry: MutationQueue<Source>.Entry, attempt: Int = 1) async {
    guard let cell = cells[entry.key], cell.isOpen else {
      return finishExternally([entry.id], of: entry.key, isConfirmed: false)
    }
    let stored: StoredValue<Value>?
    do throws(StoreError) {
      stored = try await loadStored(cell.storeKey)
    } catch {
      events.emit(.storeFailed(reason: error.description))
      start { engine in
        await engine.backoff.wait(afterAttempt: attempt)
        if Task.isCancelled { return }
        if let entry = engine.queue[entry.id] { await engine.receiveRemoval(of: entry, attempt: attempt + 1) }
      }
      return
    }
    guard queue[entry.id] != nil else { return }
    if cell.state.isWriting {
      // The base that has it can't be taken in now, and it must not vanish before.
      cell.heldRemovals.append(entry.id)
      return
    }
    let isConfirmed = stored.map { cell.state.isNew($0.revision) || $0.revision > entry.revision } ?? false
    if let stored, cell.state.isNew(stored.revision) {
      cell.receive(.saved(cell.storeKey, stored))
    }
    finishExternally([entry.id], of: entry.key, isConfirmed: isConfirmed)
  }

  /// Forgets mutations that another repository or process has finished with.
  ///
  /// - Parameters:
  ///   - ids: The mutations.
  ///   - key: The key of the value that they change.
  ///   - isConfirmed: Whether the stored value changed with them. Otherwise they were taken back.
  func finishExternally(_ ids: [MutationID], of key: Key, isConfirmed: Bool) {
    takeBack(ids, of: key)
    queue.finishExternally(ids, isConfirmed: isConfirmed, in: self)
  }
}

internal import DataStore
internal import Foundation
internal import Multicast

/// Makes what a ``SyncedRepository`` promises: performs what the pure parts decide.
///
/// - ``SyncState`` decides what each key shows, and which reply is stored.
/// - ``MutationLedger`` knows all mutations, and ``MutationLanes`` decides which one is sent next.
/// - ``MutationRecordStore`` makes mutations durable.
///
/// One actor for all keys: what is known changes and is sent to observers in one step.
actor SyncEngine<Source: RepositorySource> {
  typealias Key = Source.Key
  typealias Value = Source.Value
  typealias Mutation = Source.Mutation
  typealias Failure = RepositoryError<Source.Failure>
  typealias Cell = SyncCell<Source>
  typealias State = RepositoryState<Value, Failure>
  typealias Ledger = MutationLedger<Key, Mutation>

  /// How a call of `perform` ends.
  typealias Outcome = Result<MutationResult, Failure>

  /// The number of attempts that the end of a process may cut off before a mutation is refused.
  static var maximumUnfinishedAttempts: Int { 5 }

  /// The number of mutations that are sent at the same time, of different lanes.
  static var maximumInFlight: Int { 4 }

  /// The number of mutations of a lane that are marked together, before the first of them is sent.
  private static var markedTogether: Int { 32 }

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
  nonisolated let lists = KeyChannels<String, [PendingMutation<Key, Mutation>]>()
  nonisolated let events = RepositoryEvents()
  nonisolated let tasks: OwnedTasks
  /// The number of mutations that will be sent, or are.
  nonisolated let liveCounts = CurrentValueRelay(0)

  private let capabilities: SourceCapabilities<Source>
  private let store: any KeyValueStore
  private let configuration: RepositoryConfiguration
  private let mutationKeys: MutationKeys<Mutation>
  private let records: MutationRecordStore<Mutation>
  private let clock: ElapsedClock
  private let requests: SharedRequests<LoadKey, Bool, Failure>
  private let starting = AsyncSerialQueue()
  /// Ends the pauses before another attempt.
  private let retries = MulticastRelay<Void>(buffering: .unbounded)

  private var random: AnyRandomNumberGenerator
  private var hasStarted = false
  private var isFollowingStoreEvents = false
  private var cells: [Key: Cell] = [:]
  /// The keys whose cells nothing needed when they were used last, the oldest first.
  private var idleKeys = FIFO<Key>()
  /// What is remembered of keys whose cells were released.
  private var residues: [Key: Cell.Residue] = [:]
  private var ledger = Ledger()
  private var lanes = MutationLanes(maximumInFlight: SyncEngine.maximumInFlight)
  /// The records that are being written or removed, whose changes are the engine's own.
  private var ownRecords: [MutationID: Int] = [:]
  /// The mutations whose caller is still to be told the outcome.
  private var waitingCallers: Set<MutationID> = []
  /// The revisions in which the engine removed records, until the store's changes have come to them.
  private var removals: [MutationID: UInt64] = [:]
  /// The newest revision of a change of a record that was seen.
  private var seenRevision: UInt64 = 0
  private var callers: [MutationID: CheckedContinuation<Outcome, Never>] = [:]
  /// Outcomes whose caller doesn't wait yet.
  private var earlyOutcomes: [MutationID: Outcome] = [:]
  private var fetchers: [Int: CheckedContinuation<Result<Bool, Failure>, Never>] = [:]
  private var lastFetch = 0
  private var sentListVersion: UInt64 = 0
  /// The key whose value was sent last to the observers of all.
  private var newestKey: Key?
  private var newestOrder: SaveOrder?
  private var endObservingEvery: (@Sendable () -> Void)?
  private var isListScheduled = false
  private var alarm: (deadline: Duration, cancel: @Sendable () -> Void)?

  /// What a request asks for; equal keys share one.
  struct LoadKey: Hashable, Sendable, CustomStringConvertible {
    let key: Key
    let part: Cell.Part

    var description: String {
      switch part {
      case .whole: key.storeID
      case .newestPage: "\(key.storeID) (newest page)"
      case .nextPage: "\(key.storeID) (next page)"
      }
    }
  }

  init(_ source: Source, store: any KeyValueStore, configuration: RepositoryConfiguration) {
    self.store = store
    self.configuration = configuration
    capabilities = SourceCapabilities(source)
    mutationKeys = MutationKeys(repository: source.name)
    tasks = OwnedTasks(executor: configuration.taskExecutor)
    records = MutationRecordStore(store, mutationKeys, tasks)
    clock = ElapsedClock(configuration.clock)
    random = AnyRandomNumberGenerator(configuration.random)
    requests = SharedRequests(events: events, executor: configuration.taskExecutor)
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

  // MARK: - Starting

  /// Reads the queue of mutations, once.
  func start() async throws(StoreError) {
    if hasStarted { return }
    try await starting.run { () async throws(StoreError) in
      if hasStarted { return }
      try await readQueue()
      hasStarted = true
      pump()
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
        await pause(for: configuration.retryPolicy.delay(forAttempt: attempt, using: &random))
      }
    }
  }

  private func readQueue() async throws(StoreError) {
    guard capabilities.sending != nil else { return }
    followStoreEvents()
    let observation = try await store.observe(
      collection: mutationKeys.collection, as: MutationRecord<Mutation>.self)
    var firstOfLanes: Set<String> = []
    let stored = observation.stored.sorted { $0.stored.value.sequence < $1.stored.value.sequence }
    for entry in stored {
      guard var new = ledgerEntry(entry.key, entry.stored) else { continue }
      if new.isLive {
        // Only the first of a lane can have been sent last.
        let isFirst = firstOfLanes.insert(new.lane).inserted
        if isFirst, new.record.unfinishedAttempts >= Self.maximumUnfinishedAttempts {
          new.record.verdict = .refused(
            reason: "The process ended during each of the last \(new.record.unfinishedAttempts) attempts to send it.")
          firstOfLanes.remove(new.lane)
        }
        if new.record.unfinishedAttempts > 0 { new.record.isOutcomeUnknown = true }
        if isFirst, new.record.unfinishedAttempts > 0 { new.record.attempts += 1 }
        if !isFirst { new.record.unfinishedAttempts = 0 }
      }
      ledger.add(new)
      let id = new.id
      if new.isLive {
        lanes.append(id, lane: new.lane, userID: new.key.userID)
      } else if entry.stored.value.verdict == nil {
        tasks.start { [weak self] in await self?.saveRecord(id) }
      }
    }
    ledgerChanged()
    let changes = observation.changes
    tasks.start { [weak self] in
      for await commit in changes {
        for change in commit { await self?.receive(change) }
      }
    }
  }

  /// Reports what the store has to say of mutations that can't be read.
  private func followStoreEvents() {
    guard !isFollowingStoreEvents else { return }
    isFollowingStoreEvents = true
    tasks.start { [events, collection = mutationKeys.collection, storeEvents = store.events.subscribe()] in
      for await event in storeEvents {
        if let event = RepositoryEvent(event, of: collection) { events.emit(event) }
      }
    }
  }

  private func ledgerEntry(
    _ key: StoreKey<MutationRecord<Mutation>>, _ stored: StoredValue<MutationRecord<Mutation>>
  ) -> Ledger.Entry? {
    guard let id = key.id, let sending = capabilities.sending, let valueKey = Key(storeID: stored.value.key) else {
      events.emit(.storeFailed(reason: "The mutation \(key) names a value that this program doesn't know."))
      return nil
    }
    return Ledger.Entry(
      id: MutationID(rawValue: id), key: valueKey, lane: laneName(stored.value.mutation, valueKey, sending),
      byteCount: byteCount(of: stored.value.mutation), record: stored.value, tag: stored.tag, revision: stored.revision)
  }

  /// A lane belongs to one user: what one has to sign in for delays no other.
  private func laneName(
    _ mutation: Mutation, _ key: Key, _ sending: SourceCapabilities<Source>.Sending
  ) -> String {
    let orderingKey = sending.lane(mutation, key)
    return key.userID.map { $0 == orderingKey ? orderingKey : "\($0)/\(orderingKey)" } ?? orderingKey
  }

  private func byteCount(of mutation: Mutation) -> Int {
    // A mutation that can't be encoded is refused by the store, with a better reason.
    (try? JSONEncoder().encode(mutation))?.count ?? 0
  }

  // MARK: - Cells

  /// Opens a key: its base is known, and the pending mutations are over it.
  private func open(_ key: Key) async throws(StoreError) -> Cell {
    if let cell = cells[key], cell.isOpen { return cell }
    let storeKey = StoreKey<Value>(capabilities.source.name, id: key.storeID)
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
      let stored = try await loadStored(storeKey)
      cell.open(stored, residues.removeValue(forKey: key))
      for id in ledger.liveIDs(of: key) { restore(id, in: cell) }
      cell.endWatching = tasks.start { [weak self] in
        for await change in changes { await self?.receive(change, key) }
      }
    }
    publish(cell)
    return cell
  }

  private func restore(_ id: MutationID, in cell: Cell) {
    guard let entry = ledger[id] else { return }
    cell.state.restore(id, entry.record.mutation)
  }

  /// Returns what is stored; corrupt bytes are in quarantine, so nothing is.
  private func loadStored(_ key: StoreKey<Value>) async throws(StoreError) -> StoredValue<Value>? {
    do throws(StoreError) {
      return try await store.load(key)
    } catch {
      guard case .undecodable = error else { throw error }
      return nil
    }
  }

  /// Opens a key for a call, which ends with ``endUse(_:)``: the cell stays as long.
  private func use(_ key: Key) async throws(Failure) -> Cell {
    do throws(StoreError) {
      let cell = try await open(key)
      cell.useCount += 1
      return cell
    } catch {
      throw .store(error)
    }
  }

  private func endUse(_ cell: Cell) {
    cell.useCount -= 1
    release(cell)
  }

  /// Releases a cell that nothing needs, unless it is one of the last that were used.
  private func release(_ cell: Cell) {
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
      sendFirst(cell)
      release(cell)
    } catch {
      // The next call of the repository for this key tries again.
      events.emit(.storeFailed(reason: error.description))
      states.send(State(failure: .store(error)), to: key)
      pendings.sendFirst([], to: key)
    }
  }

  private func sendFirst(_ cell: Cell) {
    if let visible = cell.state.visible { values.sendFirst(visible, to: cell.key) }
    states.sendFirst(cell.currentState(nextCursor: capabilities.paging?.nextCursor), to: cell.key)
    pendings.sendFirst(cell.state.pendingMutations, to: cell.key)
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
      lists.sendFirst(ledger.list, to: mutationKeys.collection)
    } catch {
      events.emit(.storeFailed(reason: error.description))
    }
  }

  func endObservingList() {
    lists.forgetReleased(mutationKeys.collection)
  }

  /// The key of the queue's observers.
  nonisolated var listKey: String { mutationKeys.collection }

  /// Sends what is new of a key to its observers.
  private func publish(_ cell: Cell) {
    for conflict in cell.state.fold() { recordConflict(conflict.id, conflict.conflict) }
    guard let state = cell.takeState(nextCursor: capabilities.paging?.nextCursor) else { return }
    if cell.sentVersion != cell.state.visibleVersion {
      cell.sentVersion = cell.state.visibleVersion
      if let visible = cell.state.visible {
        values.setCurrent(visible, of: cell.key)
        sendToEvery(visible, cell)
      } else {
        // Observers that come from now on don't see what was removed.
        values.resetReplay(of: cell.key)
        if newestKey == cell.key { everyValue.resetReplay(of: name) }
        newestOrder = newestKey == cell.key ? nil : newestOrder
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

  private func sendToEvery(_ visible: Value, _ cell: Cell) {
    let order = SaveOrder(revision: cell.state.base?.revision ?? 0, savedAt: cell.fetchedAt ?? .distantPast)
    if cell.sentVersion == cell.openVersion {
      // A key that was opened again shows what was sent before.
      if let number = cell.everyNumber, number == everyValue.number(of: name) { return }
      // What was stored before is no news where something newer is known.
      if let newestOrder, order < newestOrder { return }
    }
    newestOrder = max(newestOrder ?? order, order)
    newestKey = cell.key
    cell.everyNumber = everyValue.setCurrent(visible, of: name)
  }

  /// The order in which values were saved; before the first one of this store object, by their times.
  private struct SaveOrder: Comparable {
    let revision: UInt64
    let savedAt: Date

    static func < (earlier: SaveOrder, later: SaveOrder) -> Bool {
      (earlier.revision, earlier.savedAt) < (later.revision, later.savedAt)
    }
  }

  /// The name of the collection, under which the values of all keys are observed.
  nonisolated var name: String { capabilities.source.name }

  /// Opens every key that is stored, and each one that is stored later, for observers of all.
  func observeEvery() async {
    guard endObservingEvery == nil else { return }
    endObservingEvery = {}
    do throws(StoreError) {
      try await start()
      let observation = try await store.observe(collection: name, as: Value.self)
      // An observer that has the newest value needs no older ones.
      if !everyValue.hasReplay(of: name) {
        for entry in observation.stored { await openForEvery(entry.key) }
      }
      let changes = observation.changes
      endObservingEvery = tasks.start { [weak self] in
        for await commit in changes {
          for change in commit { await self?.openForEvery(change.key) }
        }
      }
    } catch {
      // The next observer tries again.
      endObservingEvery = nil
      events.emit(.storeFailed(reason: error.description))
    }
  }

  private func openForEvery(_ storeKey: StoreKey<Value>) async {
    guard let id = storeKey.id, let key = Key(storeID: id) else { return }
    do throws(StoreError) {
      let cell = try await open(key)
      if let visible = cell.state.visible, cell.everyNumber != everyValue.number(of: name) {
        cell.everyNumber = everyValue.setCurrent(visible, of: name)
        newestKey = key
      }
      release(cell)
    } catch {
      events.emit(.storeFailed(reason: error.description))
    }
  }

  func endObservingEveryValue() {
    guard everyValue.forgetReleased(name) else { return }
    endObservingEvery?()
    endObservingEvery = nil
  }

  /// Sends what is new of the queue, once for all changes of one step.
  private func ledgerChanged() {
    if liveCounts.value != ledger.liveCount {
      liveCounts.send(ledger.liveCount)
      events.emit(.queueLength(waiting: ledger.liveCount, dead: ledger.count - ledger.liveCount))
    }
    guard !isListScheduled, sentListVersion != ledger.version, lists.isObserved(mutationKeys.collection) else { return }
    isListScheduled = true
    tasks.start { [weak self] in await self?.sendList() }
  }

  private func sendList() {
    isListScheduled = false
    sentListVersion = ledger.version
    lists.send(ledger.list, to: mutationKeys.collection)
  }

  // MARK: - External changes

  /// Takes a change of a value in.
  private func receive(_ change: StoreChange<Value>, _ key: Key) async {
    guard let cell = cells[key], cell.isOpen else { return }
    if cell.state.isWriting {
      // It may be the write's own.
      cell.heldChanges.append(change)
      return
    }
    guard cell.state.isNew(change.revision) else { return }
    // What another process stored may have mutations of this one, which it has sent. They leave in the same step.
    let finished = await externallyFinished(cell)
    guard !cell.state.isWriting else {
      cell.heldChanges.append(change)
      return
    }
    cell.receive(change)
    for id in finished { finishExternally(id, cell, isConfirmed: true) }
    publish(cell)
    release(cell)
  }

  /// The pending mutations of a key whose records another process has removed.
  private func externallyFinished(_ cell: Cell) async -> [MutationID] {
    var finished: [MutationID] = []
    for id in cell.state.pendingIDs where ledger[id]?.tag != nil && ownRecords[id] == nil {
      do throws(StoreError) {
        let isStored = try await store.load(mutationKeys.record(id)) != nil
        if !isStored, ownRecords[id] == nil, ledger[id] != nil { finished.append(id) }
      } catch {
        // Its record can't be read, so it stays.
      }
    }
    return finished
  }

  /// Takes a change of a mutation's record in.
  private func receive(_ change: StoreChange<MutationRecord<Mutation>>) async {
    guard let text = change.key.id else { return }
    let id = MutationID(rawValue: text)
    seenRevision = max(seenRevision, change.revision)
    // The engine's own changes come back, and perhaps long after.
    if let removal = removals[id] {
      if change.revision >= removal { removals[id] = nil }
      return
    }
    guard ownRecords[id] == nil else { return }
    switch change {
    case .saved(let key, let stored):
      if let entry = ledger[id] {
        guard entry.tag != nil, stored.revision > entry.revision else { return }
        replace(entry, with: stored)
      } else if let entry = ledgerEntry(key, stored) {
        add(externalEntry: entry)
      }
    case .removed(_, let revision):
      guard let entry = ledger[id], entry.tag != nil, revision > entry.revision else { return }
      await receiveRemoval(of: entry)
    }
    ledgerChanged()
  }

  private func add(externalEntry entry: Ledger.Entry) {
    var entry = entry
    entry.isExternal = true
    ledger.add(entry)
    guard entry.isLive, let cell = cells[entry.key], cell.isOpen else { return }
    restore(entry.id, in: cell)
    publish(cell)
  }

  private func replace(_ entry: Ledger.Entry, with stored: StoredValue<MutationRecord<Mutation>>) {
    ledger.edit(entry.id) { ($0.record, $0.tag, $0.revision) = (stored.value, stored.tag, stored.revision) }
    guard entry.isLive, stored.value.verdict != nil else { return }
    if !entry.isInFlight { lanes.remove(entry.id, lane: entry.lane) }
    defer { pump() }
    if let cell = cells[entry.key] {
      cell.state.remove(entry.id)
      publish(cell)
    }
    switch stored.value.verdict {
    case .conflicted: resolve(entry.id, .success(.conflicted(entry.id)))
    case .refused, nil: resolve(entry.id, .success(.queued))
    }
  }

  /// Takes in that another process has finished with a mutation: with the value that it stored in the same commit.
  private func receiveRemoval(of entry: Ledger.Entry) async {
    guard let cell = cells[entry.key], cell.isOpen else {
      finishExternally(entry.id, nil, isConfirmed: false)
      return
    }
    var stored: StoredValue<Value>?
    do throws(StoreError) {
      stored = try await loadStored(cell.storeKey)
    } catch {
      events.emit(.storeFailed(reason: error.description))
    }
    guard ledger[entry.id] != nil else { return }
    let isConfirmed = stored.map { cell.state.isNew($0.revision) || $0.revision > entry.revision } ?? false
    if !cell.state.isWriting, let stored, cell.state.isNew(stored.revision) {
      cell.receive(.saved(cell.storeKey, stored))
    }
    finishExternally(entry.id, cell, isConfirmed: isConfirmed)
    publish(cell)
    release(cell)
  }

  /// Forgets a mutation that another repository or process has finished with.
  ///
  /// - Parameter isConfirmed: Whether the base changed with it. Otherwise the mutation was taken back.
  private func finishExternally(_ id: MutationID, _ cell: Cell?, isConfirmed: Bool) {
    guard let entry = ledger.remove(id) else { return }
    if !entry.isInFlight { lanes.remove(id, lane: entry.lane) }
    cell?.state.remove(id)
    resolve(id, isConfirmed ? .success(.confirmed) : .failure(.cancelled))
    ledgerChanged()
    pump()
  }

  // MARK: - Loading

  /// Fetches a value unless the stored one is fresh.
  func refresh(_ key: Key, _ part: Cell.Part? = nil) async throws(Failure) {
    let cell = try await use(key)
    defer { endUse(cell) }
    if cell.state.base != nil, let fetchedAt = cell.fetchedAt,
      configuration.freshness.isFresh(savedAt: fetchedAt, now: configuration.now())
    {
      return
    }
    try await load(key, part)
  }

  /// Fetches a value, or joins a request for it that is under way.
  func load(_ key: Key, _ part: Cell.Part? = nil) async throws(Failure) {
    let part = part ?? (capabilities.paging == nil ? .whole : .newestPage)
    let wasAsked: Bool
    do throws(SharedRequestError<Failure>) {
      wasAsked = try await requests.value(for: LoadKey(key: key, part: part)) { [weak self] () async throws(Failure) in
        guard let self else { throw .cancelled }
        return try await self.performLoad(key, part)
      }
    } catch {
      switch error {
      case .failed(let failure): throw failure
      case .cancelled: throw .cancelled
      }
    }
    // The server can be reached: what waits for that need not wait longer.
    if wasAsked { retryNow() }
  }

  /// - Returns: Whether the server was asked; it isn't where there is no next page.
  private func performLoad(_ key: Key, _ part: Cell.Part) async throws(Failure) -> Bool {
    let cell = try await use(key)
    defer { endUse(cell) }
    guard var request = request(for: part, cell) else { return false }
    if Task.isCancelled { throw .cancelled }
    let load = cell.beginLoading(part)
    publish(cell)
    do throws(Failure) {
      // A reply that may be older than what was stored meanwhile is asked for again.
      while try await !fetch(request, cell) {
        events.emit(.replyDiscarded(key: "\(LoadKey(key: key, part: part))"))
        guard let next = self.request(for: part, cell) else { break }
        request = next
      }
      cell.endLoading(load, nil)
      publish(cell)
      return true
    } catch {
      cell.endLoading(load, error)
      publish(cell)
      throw error
    }
  }

  private enum Request {
    case whole
    case page(after: String?)
  }

  /// What to ask for as things stand; `nil` if there is no next page.
  private func request(for part: Cell.Part, _ cell: Cell) -> Request? {
    guard let paging = capabilities.paging else { return .whole }
    switch part {
    case .whole: return .whole
    case .newestPage: return .page(after: nil)
    case .nextPage:
      guard let base = cell.state.base else { return .page(after: nil) }
      return paging.nextCursor(base.value).map { .page(after: $0) }
    }
  }

  /// - Returns: Whether the reply is stored; otherwise it may be older than what is.
  private func fetch(_ request: Request, _ cell: Cell) async throws(Failure) -> Bool {
    let requestedAt = cell.state.beginFetching()
    let value: Value
    do throws(Source.Failure) {
      switch (request, capabilities.paging) {
      case (.page(let cursor), let paging?): value = try await paging.fetch(cell.key, cursor, configuration.pageSize)
      default: value = try await capabilities.source.fetch(cell.key)
      }
    } catch {
      if Task.isCancelled { throw .cancelled }
      if case .page(let cursor?) = request, capabilities.source.disposition(of: error) == .refused {
        cell.refusedCursor = cursor
      }
      throw .server(error)
    }
    let refusedCursor = cell.refusedCursor
    lastFetch += 1
    let number = lastFetch
    let merge: (Value?) -> Value? = { [capabilities] stored in
      switch (request, capabilities.paging) {
      case (.page(let cursor?), let paging?): paging.joinNext(value, cursor, stored)
      case (.page(nil), let paging?): capabilities.complete(paging.joinNewest(value, stored, refusedCursor), stored)
      default: capabilities.complete(value, stored)
      }
    }
    let extent: SyncState<Value, Mutation>.Extent =
      switch request {
      case .whole: .whole
      case .page(nil): .newest
      case .page: .next
      }
    cell.state.receive(.fetched(number: number, extent, merge: merge), requestedAt: requestedAt)
    return try await withCheckedContinuation { continuation in
      fetchers[number] = continuation
      write(cell)
    }.get()
  }

  // MARK: - Writing

  /// Has the replies that have arrived written, unless that is being done.
  private func write(_ cell: Cell) {
    guard !cell.isWriting else { return }
    cell.isWriting = true
    // Not cancelled with the repository: what the server has answered is stored.
    let key = cell.key
    Task(executorPreference: tasks.executor) { await self.writeAll(key) }
  }

  private func writeAll(_ key: Key) async {
    guard let cell = cells[key] else { return }
    while let write = cell.state.beginWriting() {
      do throws(StoreError) {
        try await perform(write, cell)
        cell.failedWrites = 0
      } catch {
        if await recover(from: error, write, cell) { continue }
        break
      }
    }
    cell.isWriting = false
    if cell.state.needsWholeValue { fetchWhole(cell) }
    release(cell)
  }

  private func perform(_ write: SyncState<Value, Mutation>.Write, _ cell: Cell) async throws(StoreError) {
    var commit: StoreCommit?
    var savedAt = configuration.now()
    if !write.isEmpty {
      var batch = StoreBatch()
      if let value = write.value {
        batch.save(value, for: cell.storeKey)
        batch.require(write.baseTag, of: cell.storeKey)
      }
      for id in write.confirmed {
        batch.remove(mutationKeys.record(id))
        ownRecords[id, default: 0] += 1
      }
      defer { for id in write.confirmed { endOwnWrite(of: id) } }
      commit = try await store.commit(batch)
      // The store's own time, which is what the next process reads.
      if write.isRefreshed { savedAt = await storedTime(of: cell) ?? savedAt }
    }
    cell.state.commit(revision: commit?.revision ?? 0, tag: commit?.tag ?? StoreTag())
    if write.isRefreshed { cell.recordFetch(at: savedAt) }
    for id in write.confirmed { leave(id, removedIn: commit) }
    takeHeldChanges(cell)
    publish(cell)
    for id in write.confirmed {
      events.emit(.mutationDelivered(id))
      resolve(id, .success(.confirmed))
    }
    for number in write.accepted { endFetch(number, .success(true)) }
    for number in write.rejected { endFetch(number, .success(false)) }
    ledgerChanged()
  }

  /// The time at which the value of a key was saved; `nil` if it can't be read.
  private func storedTime(of cell: Cell) async -> Date? {
    do throws(StoreError) {
      return try await store.load(cell.storeKey)?.savedAt
    } catch {
      return nil
    }
  }

  /// Takes a confirmed mutation out of the ledger, and out of its lane if it waited there for another attempt.
  private func leave(_ id: MutationID, removedIn commit: StoreCommit?) {
    if let entry = ledger[id], !entry.isAnswered, !entry.isInFlight {
      lanes.remove(id, lane: entry.lane)
      pump()
    }
    forget(id, removedIn: commit)
  }

  /// Forgets a mutation whose record was removed.
  private func forget(_ id: MutationID, removedIn commit: StoreCommit?) {
    guard let entry = ledger.remove(id), entry.tag != nil, let commit, commit.revision > seenRevision else { return }
    removals[id] = commit.revision
  }

  private func endOwnWrite(of id: MutationID) {
    ownRecords[id]? -= 1
    if ownRecords[id] == 0 { ownRecords[id] = nil }
  }

  private func endFetch(_ number: Int, _ result: Result<Bool, Failure>) {
    fetchers.removeValue(forKey: number)?.resume(returning: result)
  }

  /// Takes in the changes that arrived during a write, its own among them.
  private func takeHeldChanges(_ cell: Cell) {
    let changes = cell.heldChanges
    cell.heldChanges = []
    for change in changes where cell.state.isNew(change.revision) { cell.receive(change) }
  }

  /// Deals with a write that was not made.
  ///
  /// - Returns: Whether to write again now.
  private func recover(
    from error: StoreError, _ write: SyncState<Value, Mutation>.Write, _ cell: Cell
  ) async -> Bool {
    if case .preconditionFailed = error {
      // Another writer came first. The replies are judged anew against what it stored.
      do throws(StoreError) {
        let stored = try await loadStored(cell.storeKey)
        let finished = await externallyFinished(cell)
        cell.state.abandon(keepsFetches: true)
        takeHeldChanges(cell)
        receiveReloaded(stored, cell)
        for id in finished { finishExternally(id, cell, isConfirmed: true) }
        publish(cell)
        return true
      } catch let loadError {
        return await recover(from: loadError, write, cell)
      }
    }
    events.emit(.storeFailed(reason: error.description))
    cell.state.abandon(keepsFetches: false)
    for number in write.accepted + write.rejected { endFetch(number, .failure(.store(error))) }
    takeHeldChanges(cell)
    publish(cell)
    if error.isPermanent {
      // The value of the reply can never be stored, so the mutation is shown no more. Its caller is told.
      for id in write.confirmed { await refuse(id, .store(error), reason: error.description) }
      return cell.state.discardReplies(to: write.confirmed)
    }
    for id in write.confirmed { resolve(id, .success(.queued)) }
    cell.failedWrites += 1
    let delay = configuration.retryPolicy.delay(forAttempt: cell.failedWrites, using: &random)
    let key = cell.key
    tasks.start { [weak self] in
      await self?.pause(for: delay)
      await self?.write(key)
    }
    return false
  }

  /// Waits before another attempt, or until ``retryNow()``.
  private func pause(for delay: Duration) async {
    let deadline = clock.elapsed() + delay
    let retries = retries.stream.subscribe()
    await withTaskGroup { group in
      group.addTask { [clock] in
        // Cancelled by a retry, or when the repository is released.
        do { try await clock.sleep(deadline) } catch {}
      }
      group.addTask { for await _ in retries { return } }
      await group.next()
      group.cancelAll()
    }
  }

  private func write(_ key: Key) {
    if let cell = cells[key] { write(cell) }
  }

  /// Takes in what another writer has stored.
  private func receiveReloaded(_ stored: StoredValue<Value>?, _ cell: Cell) {
    if let stored {
      cell.receive(.saved(cell.storeKey, stored))
    } else if let base = cell.state.base {
      cell.receive(.removed(cell.storeKey, revision: base.revision + 1))
    }
  }

  /// Fetches the whole value, for confirmed mutations whose reply could not be used, until one has them.
  private func fetchWhole(_ cell: Cell) {
    guard !cell.isRecovering else { return }
    cell.isRecovering = true
    let key = cell.key
    // They are at the server, so no attempt of theirs can end the next process.
    for id in cell.state.idsThatNeedWholeValue {
      ledger.edit(id) { ($0.record.unfinishedAttempts, $0.record.isOutcomeUnknown) = (0, true) }
      tasks.start { [weak self] in await self?.saveRecord(id) }
    }
    tasks.start { [weak self] in await self?.fetchWholeUntilConfirmed(key) }
  }

  private func fetchWholeUntilConfirmed(_ key: Key) async {
    guard let cell = cells[key] else { return }
    var attempt = 0
    while cell.state.needsWholeValue, !Task.isCancelled {
      do throws(Failure) {
        try await load(key, .whole)
        attempt = 0
      } catch {
        attempt += 1
        for id in cell.state.idsThatNeedWholeValue { resolve(id, .success(.queued)) }
        let delay = configuration.retryPolicy.delay(forAttempt: attempt, using: &random)
        await pause(for: delay)
      }
    }
    cell.isRecovering = false
    release(cell)
  }

  // MARK: - Mutations

  /// Makes a mutation: shows it, makes it durable, and has it sent.
  ///
  /// - Returns: The outcome, or that the mutation has to wait.
  func perform(_ mutation: Mutation, on key: Key) async throws(Failure) -> MutationResult {
    if Task.isCancelled { throw .cancelled }
    let id = try await enqueue(mutation, on: key, replacing: nil, hasCaller: true)
    return try await outcome(of: id)
  }

  /// Shows a mutation and makes it durable, in the place of another one or behind all.
  private func enqueue(
    _ mutation: Mutation, on key: Key, replacing replaced: Ledger.Entry?, hasCaller: Bool
  ) async throws(Failure) -> MutationID {
    guard let sending = capabilities.sending else {
      preconditionFailure("Only the repository of a mutable source has mutations.")
    }
    let cell = try await use(key)
    defer { endUse(cell) }
    let size = byteCount(of: mutation)
    guard replaced != nil || hasRoom(for: size) else { throw .queueFull }
    let id = MutationID()
    do throws(MutationConflict) {
      try cell.state.add(id, mutation)
    } catch {
      throw .conflict(error)
    }
    let lane = laneName(mutation, key, sending)
    let isFirst = lanes.isFree(lane)
    var record = MutationRecord(
      key: key.storeID, sequence: .max, madeAt: configuration.now(), mutation: mutation)
    // It is sent as soon as it is durable.
    if isFirst { record.unfinishedAttempts = 1 }
    ledger.add(
      Ledger.Entry(id: id, key: key, lane: lane, byteCount: size, record: record, tag: nil, isMarked: isFirst))
    lanes.append(id, lane: lane, userID: key.userID, isDurable: false)
    if hasCaller { waitingCallers.insert(id) }
    ledgerChanged()
    publish(cell)
    let isAdded: Bool
    do throws(StoreError) {
      isAdded = try await addRecord(id, record, replacing: replaced)
    } catch {
      takeBack(id, cell, lane: lane)
      throw .store(error)
    }
    guard isAdded else {
      takeBack(id, cell, lane: lane)
      throw .cancelled
    }
    guard ledger[id]?.isLive ?? false else {
      // It came into conflict meanwhile.
      await saveRecord(id)
      resolve(id, .success(.conflicted(id)))
      return id
    }
    events.emit(.mutationEnqueued(id, orderingKey: lane))
    lanes.makeDurable(id, lane: lane)
    ledgerChanged()
    pump()
    if lanes.isHeldUp(lane) { resolve(id, .success(.queued)) }
    return id
  }

  /// Takes back a mutation that could not be made durable.
  private func takeBack(_ id: MutationID, _ cell: Cell, lane: String) {
    ledger.remove(id)
    lanes.remove(id, lane: lane)
    waitingCallers.remove(id)
    earlyOutcomes[id] = nil
    cell.state.remove(id)
    publish(cell)
    ledgerChanged()
    pump()
  }

  /// - Returns: Whether it was added; it isn't if another process has dealt with the one it replaces.
  private func addRecord(
    _ id: MutationID, _ record: MutationRecord<Mutation>, replacing replaced: Ledger.Entry?
  ) async throws(StoreError) -> Bool {
    ownRecords[id, default: 0] += 1
    if let replaced { ownRecords[replaced.id, default: 0] += 1 }
    defer {
      endOwnWrite(of: id)
      if let replaced { endOwnWrite(of: replaced.id) }
    }
    let outcome = try await records.perform(
      .add({ sequence in record.with(sequence: sequence) }, replacing: replaced.map { ($0.id, $0.tag) }), id)
    guard case .written(let record, let commit) = outcome else { return false }
    ledger.edit(id) { ($0.record.sequence, $0.tag, $0.revision) = (record.sequence, commit.tag, commit.revision) }
    if let replaced { forget(replaced.id, removedIn: commit) }
    return true
  }

  private func hasRoom(for size: Int) -> Bool {
    let limits = configuration.queueLimits
    guard ledger.count < limits.maximumCount, ledger.byteCount + size <= limits.maximumBytes else { return false }
    guard let maximumAge = limits.maximumAge, let oldest = ledger.oldest else { return true }
    return Freshness.age(savedAt: oldest, now: configuration.now()).map { $0 < maximumAge } ?? true
  }

  /// Waits for the outcome of a mutation, or until it is known that it has to wait.
  private func outcome(of id: MutationID) async throws(Failure) -> MutationResult {
    try await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        if let outcome = earlyOutcomes.removeValue(forKey: id) {
          continuation.resume(returning: outcome)
        } else if Task.isCancelled {
          waitingCallers.remove(id)
          continuation.resume(returning: .failure(.cancelled))
        } else {
          callers[id] = continuation
        }
      }
    } onCancel: {
      tasks.start { [weak self] in await self?.resolve(id, .failure(.cancelled)) }
    }.get()
  }

  /// Ends the call that made a mutation, if it still waits.
  private func resolve(_ id: MutationID, _ outcome: Outcome) {
    guard waitingCallers.remove(id) != nil else { return }
    if let caller = callers.removeValue(forKey: id) {
      caller.resume(returning: outcome)
    } else {
      earlyOutcomes[id] = outcome
    }
  }

  // MARK: - Sending

  /// Sends what may be sent.
  private func pump() {
    while !tasks.areCancelled {
      switch lanes.next(at: clock.elapsed()) {
      case .send(let id, let lane):
        guard let entry = ledger[id] else {
          lanes.complete(lane: lane)
          continue
        }
        // From here on it can't be taken back.
        ledger.edit(id) { $0.isInFlight = true }
        tasks.start { [weak self] in await self?.attempt(entry) }
      case .wait(let deadline): return setAlarm(deadline)
      }
    }
  }

  /// Has ``pump()`` called at a time.
  private func setAlarm(_ deadline: Duration?) {
    if alarm?.deadline == deadline { return }
    alarm?.cancel()
    alarm = nil
    guard let deadline else { return }
    let cancel = tasks.start { [weak self, clock] in
      // Cancelled by another alarm, or when the repository is released.
      do { try await clock.sleep(deadline) } catch { return }
      await self?.ring(deadline)
    }
    alarm = (deadline, cancel)
  }

  private func ring(_ deadline: Duration) {
    if alarm?.deadline == deadline { alarm = nil }
    pump()
  }

  /// Makes one attempt to send a mutation.
  private func attempt(_ taken: Ledger.Entry) async {
    let (id, lane) = (taken.id, taken.lane)
    let cell: Cell
    do throws(StoreError) {
      cell = try await open(taken.key)
      ledger.edit(id) { $0.record.attempts += 1 }
      try await mark(id)
    } catch {
      events.emit(.storeFailed(reason: error.description))
      ledger.edit(id) { ($0.isInFlight, $0.record.attempts) = (false, taken.record.attempts) }
      return backOff(taken, after: nil, reason: error.description)
    }
    if Task.isCancelled { return await endCancelledAttempt(id) }
    guard let entry = ledger[id], entry.isLive, let sending = capabilities.sending else {
      // It was finished with by another process, or is in conflict.
      lanes.complete(lane: lane)
      return pump()
    }
    ledgerChanged()
    let requestedAt = cell.state.beginSending(id)
    events.emit(.mutationSending(id, attempt: entry.record.attempts))
    let result: Result<MutationReply<Value>, Source.Failure>
    do throws(Source.Failure) {
      result = .success(try await sending.send(entry.record.mutation, entry.key, id))
    } catch {
      result = .failure(error)
    }
    ledger.edit(id) { ($0.isInFlight, $0.isMarked) = (false, false) }
    switch result {
    case .success(var reply):
      if case .value(let value) = reply, capabilities.completing != nil {
        reply = .value(capabilities.complete(value, cell.state.base?.value))
      }
      ledger.edit(id) { $0.isAnswered = true }
      lanes.complete(lane: entry.lane)
      cell.state.receive(
        .mutation(id, reply, isTrusted: !entry.record.isOutcomeUnknown), requestedAt: requestedAt)
      write(cell)
      pump()
    case .failure(let failure): await take(failure, of: entry, cell)
    }
    ledgerChanged()
  }

  private func take(_ failure: Source.Failure, of entry: Ledger.Entry, _ cell: Cell) async {
    if Task.isCancelled { return await endCancelledAttempt(entry.id) }
    let (id, lane, reason) = (entry.id, entry.lane, String(describing: failure))
    let isLast = !configuration.retryPolicy.allows(attempt: entry.record.attempts + 1)
    switch capabilities.source.disposition(of: failure) {
    case .retryLater where isLast, .unknownOutcome where isLast:
      await refuse(id, .server(failure), reason: reason)
      lanes.complete(lane: lane)
      pump()
      release(cell)
    case .retryLater(let after):
      endAttempt(entry, isOutcomeUnknown: false, cell)
      backOff(entry, after: after, reason: reason)
    case .unknownOutcome:
      endAttempt(entry, isOutcomeUnknown: true, cell)
      backOff(entry, after: nil, reason: reason)
    case .needsSignIn:
      ledger.edit(id) { ($0.needsSignIn, $0.record.attempts) = (true, $0.record.attempts - 1) }
      endAttempt(entry, isOutcomeUnknown: false, cell)
      lanes.release(id, lane: lane, needsSignIn: true)
      for lane in lanes.lanes(of: entry.key.userID) { resolveAll(in: lane, .queued) }
      pump()
    case .conflict:
      cell.state.remove(id)
      publish(cell)
      recordConflict(id, MutationConflict(reason))
      lanes.complete(lane: lane)
      pump()
      release(cell)
    case .refused:
      await refuse(id, .server(failure), reason: reason)
      lanes.complete(lane: lane)
      pump()
      release(cell)
    }
  }

  /// Records that an attempt ended with the repository, and not with the process.
  ///
  /// The next repository sends the mutation.
  private func endCancelledAttempt(_ id: MutationID) async {
    ledger.edit(id) { ($0.record.unfinishedAttempts, $0.record.isOutcomeUnknown) = (0, true) }
    await saveRecord(id)
  }

  /// Records that the server will never make a mutation, or that its value can't be stored.
  ///
  /// It stays listed unless its caller is told.
  private func refuse(_ id: MutationID, _ failure: Failure, reason: String) async {
    if let entry = ledger[id], let cell = cells[entry.key] {
      cell.state.remove(id)
      publish(cell)
    }
    events.emit(.mutationRefused(id, reason: reason))
    let hasCaller = waitingCallers.contains(id)
    ledger.edit(id) {
      ($0.record.verdict, $0.isAnswered, $0.isInFlight) = (.refused(reason: reason), false, false)
      $0.record.unfinishedAttempts = 0
    }
    if hasCaller {
      await removeRecord(id)
    } else {
      await saveRecord(id)
    }
    resolve(id, .failure(failure))
    ledgerChanged()
  }

  /// Records that a mutation isn't possible on the present value.
  private func recordConflict(_ id: MutationID, _ conflict: MutationConflict) {
    guard let entry = ledger[id] else { return }
    ledger.edit(id) {
      $0.record.verdict = .conflicted(conflict)
      $0.record.unfinishedAttempts = 0
      ($0.isInFlight, $0.isMarked) = (false, false)
    }
    if !entry.isInFlight { lanes.remove(id, lane: entry.lane) }
    events.emit(.mutationConflicted(id, reason: conflict.reason))
    ledgerChanged()
    pump()
    // One that isn't durable yet is saved when it is.
    guard entry.tag != nil else { return }
    tasks.start { [weak self] in
      await self?.saveRecord(id)
      await self?.resolve(id, .success(.conflicted(id)))
    }
  }

  /// Makes sure that the attempts that are about to begin are known to the next process, if this one ends during one.
  ///
  /// Those that follow in the lane are marked with the first, so that a long lane takes few commits.
  private func mark(_ id: MutationID) async throws(StoreError) {
    guard let entry = ledger[id], !entry.isMarked else { return }
    let ids = [id] + lanes.upcoming(in: entry.lane, count: Self.markedTogether - 1)
    var failure: StoreError?
    var marked: [MutationID] = []
    await withTaskGroup(of: StoreError?.self) { group in
      for id in ids {
        guard let entry = ledger[id], entry.isLive, entry.tag != nil, !entry.isMarked else { continue }
        ledger.edit(id) {
          $0.isMarked = true
          $0.record.unfinishedAttempts += 1
        }
        marked.append(id)
        group.addTask { [weak self] in await self?.writeRecord(id) }
      }
      for await error in group { failure = failure ?? error }
    }
    if let failure {
      for id in marked {
        ledger.edit(id) {
          $0.isMarked = false
          $0.record.unfinishedAttempts = 0
        }
      }
      throw failure
    }
  }

  /// Records the end of an attempt that failed.
  private func endAttempt(_ entry: Ledger.Entry, isOutcomeUnknown: Bool, _ cell: Cell) {
    let id = entry.id
    cell.state.fail(id, isOutcomeUnknown: isOutcomeUnknown)
    ledger.edit(id) {
      $0.record.unfinishedAttempts = 0
      if isOutcomeUnknown { $0.record.isOutcomeUnknown = true }
    }
    tasks.start { [weak self] in await self?.saveRecord(id) }
  }

  /// Has a lane wait after a failed attempt.
  private func backOff(_ entry: Ledger.Entry, after serverDelay: Duration?, reason: String) {
    let policy = configuration.retryPolicy
    let failures = lanes.failures(in: entry.lane)
    let delay = max(policy.delay(forAttempt: failures, using: &random), serverDelay ?? .zero)
    events.emit(.retryScheduled(entry.id, attempt: entry.record.attempts, delay: delay, reason: reason))
    if !(ledger[entry.id]?.isLive ?? false) {
      // It was finished with by another process meanwhile, or is in conflict.
      lanes.complete(lane: entry.lane)
    } else {
      let deadline = clock.elapsed() + delay
      lanes.backOff(entry.id, lane: entry.lane, until: deadline, isServerDelay: serverDelay != nil)
    }
    resolveAll(in: entry.lane, .queued)
    pump()
  }

  private func resolveAll(in lane: String, _ result: MutationResult) {
    if waitingCallers.isEmpty { return }
    for id in lanes.waiting(in: lane) { resolve(id, .success(result)) }
  }

  // MARK: - Records

  /// Writes what is known of a mutation.
  ///
  /// - Returns: Why that failed.
  private func writeRecord(_ id: MutationID) async -> StoreError? {
    guard let entry = ledger[id] else { return nil }
    ownRecords[id, default: 0] += 1
    defer { endOwnWrite(of: id) }
    do throws(StoreError) {
      switch try await records.perform(.replace(entry.record, tag: entry.tag), id) {
      case .written(_, let commit): ledger.edit(id) { ($0.tag, $0.revision) = (commit.tag, commit.revision) }
      case .gone: finishExternally(id, cells[entry.key], isConfirmed: false)
      case .removed, .superseded: break
      }
      return nil
    } catch {
      return error
    }
  }

  /// Writes what is known of a mutation, again and again until the store takes it.
  private func saveRecord(_ id: MutationID) async {
    guard let error = await writeRecord(id) else { return }
    events.emit(.storeFailed(reason: error.description))
    tasks.start { [weak self] in await self?.saveRecordLater(id) }
  }

  private func saveRecordLater(_ id: MutationID) async {
    var attempt = 1
    repeat {
      await pause(for: configuration.retryPolicy.delay(forAttempt: attempt, using: &random))
      attempt += 1
      if Task.isCancelled { return }
    } while await writeRecord(id) != nil
  }

  private func removeRecord(_ id: MutationID) async {
    do throws(StoreError) {
      try await removeRecord(of: id)
    } catch {
      // It stays listed, as refused.
      events.emit(.storeFailed(reason: error.description))
      tasks.start { [weak self] in await self?.saveRecordLater(id) }
    }
  }

  private func removeRecord(of id: MutationID) async throws(StoreError) {
    ownRecords[id, default: 0] += 1
    defer { endOwnWrite(of: id) }
    if case .removed(let commit) = try await records.perform(.remove, id) { forget(id, removedIn: commit) }
  }

  // MARK: - What an app does with the queue

  /// Ends all backoffs, except those that a server named.
  func retryNow() {
    retries.send(())
    lanes.retryNow()
    pump()
  }

  /// Sends at once all that waits, also for the user to sign in.
  func resumeAll() {
    for userID in lanes.signedOutUsers { credentialsChanged(userID: userID) }
    retryNow()
  }

  func credentialsChanged(userID: String?) {
    for lane in lanes.lanes(of: userID) {
      for id in lanes.waiting(in: lane) { ledger.edit(id) { $0.needsSignIn = false } }
    }
    lanes.signedIn(userID: userID)
    ledgerChanged()
    pump()
  }

  func list() async throws(StoreError) -> [PendingMutation<Key, Mutation>] {
    try await start()
    return ledger.list
  }

  /// Takes a mutation back that has not been sent.
  func cancel(_ id: MutationID) async throws(PendingMutationError) {
    let entry = try await find(id)
    switch entry.standing {
    case .inFlight: throw .alreadySent(id)
    case .refused: throw .alreadySent(id)
    case .waiting, .needsSignIn, .conflicted: break
    }
    // It keeps its place in its lane, and blocks it, until it is known that it is removed.
    lanes.hold(id, lane: entry.lane)
    ledger.edit(id) { $0.isDeciding = true }
    do throws(StoreError) {
      try await removeRecord(of: id)
    } catch {
      ledger.edit(id) { $0.isDeciding = false }
      lanes.makeDurable(id, lane: entry.lane)
      pump()
      throw .store(error)
    }
    lanes.remove(id, lane: entry.lane)
    if let cell = cells[entry.key] {
      cell.state.remove(id)
      publish(cell)
      release(cell)
    }
    events.emit(.mutationCancelled(id))
    resolve(id, .failure(.cancelled))
    ledgerChanged()
    pump()
  }

  /// Sends a mutation again that was refused.
  func requeue(_ id: MutationID) async throws(PendingMutationError) -> MutationID {
    let entry = try await find(id)
    guard case .refused = entry.standing else { throw .notRefused(id) }
    return try await makeAgain(entry.record.mutation, in: entry)
  }

  func resolve(
    _ id: MutationID, _ how: Resolution<Mutation>
  ) async throws(PendingMutationError) -> MutationID? {
    let entry = try await find(id)
    guard case .conflicted = entry.standing else { throw .notConflicted(id) }
    switch how {
    case .retry: return try await makeAgain(entry.record.mutation, in: entry)
    case .replace(let mutation): return try await makeAgain(mutation, in: entry)
    case .discard:
      try await discard(entry)
      return nil
    }
  }

  private func makeAgain(_ mutation: Mutation, in entry: Ledger.Entry) async throws(PendingMutationError) -> MutationID
  {
    ledger.edit(entry.id) { $0.isDeciding = true }
    defer { ledger.edit(entry.id) { $0.isDeciding = false } }
    do throws(Failure) {
      let id = try await enqueue(mutation, on: entry.key, replacing: entry, hasCaller: false)
      events.emit(.mutationRequeued(entry.id))
      return id
    } catch {
      switch error {
      case .conflict(let conflict): throw .conflict(conflict)
      case .store(let error): throw .store(error)
      case .server, .queueFull, .cancelled: throw .unknown(entry.id)
      }
    }
  }

  /// Forgets a mutation that was refused, or is in conflict.
  func discard(_ id: MutationID) async throws(PendingMutationError) {
    let entry = try await find(id)
    switch entry.standing {
    case .refused, .conflicted: try await discard(entry)
    case .waiting, .inFlight, .needsSignIn: throw .notRefused(id)
    }
  }

  private func discard(_ entry: Ledger.Entry) async throws(PendingMutationError) {
    do throws(StoreError) {
      try await removeRecord(of: entry.id)
    } catch {
      throw .store(error)
    }
    events.emit(.mutationDiscarded(entry.id))
    ledgerChanged()
  }

  private func find(_ id: MutationID) async throws(PendingMutationError) -> Ledger.Entry {
    do throws(StoreError) {
      try await start()
    } catch {
      throw .store(error)
    }
    guard let entry = ledger[id], !entry.isDeciding else { throw .unknown(id) }
    // One that isn't durable yet will be in a moment.
    guard entry.tag != nil else { throw .alreadySent(id) }
    return entry
  }
}

extension StoreError {
  /// Whether the same save fails each time.
  fileprivate var isPermanent: Bool {
    switch self {
    case .encodingFailed, .invalidKey, .newerFormat, .collectionHasAnotherType: true
    default: false
    }
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

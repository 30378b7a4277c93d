internal import DataStore
internal import Foundation
internal import Multicast

/// The implementation of a ``SyncedRepository``: holds the state of the keys in use, and sends it to observers.
///
/// - ``SyncCells`` holds a ``SyncCell`` for each key that is in use or was recently. The cell's ``SyncState`` decides
///   which value is visible, and which replies are stored.
/// - ``SyncChannels`` sends values and states to the observers of a key. ``NewestValue`` sends the values of all keys
///   to the observers of the whole repository.
/// - ``UnreadObservations`` reads again what is observed and could not be read.
/// - ``SyncLoader`` fetches values, and ``SyncWrites`` stores the replies.
/// - The mutations are a ``MutationQueue``, whose decisions ``QueuePerformer`` carries out. ``MutationAdder`` adds them,
///   and ``MutationSender`` sends them while the ``Election`` permits it. ``MutationReader`` and ``MutationWriter`` read
///   and write the mutations' records, ``MutationCalls`` completes the calls that wait for mutations, and
///   ``MutationDecisions`` performs the operations of ``PendingMutations``.
/// - ``SyncFeed`` applies what the store has committed, whoever has made the commit.
/// - ``SyncUsers`` tracks which users have signed in and out, and ``SignOuts`` erases a user's data.
/// - ``SyncEvictions`` removes stored values that exceed the limits of the ``EvictionPolicy``.
/// - ``SyncSuspension`` suspends and resumes the repository, and drains the queue.
/// - ``ObservedLoading`` fetches values that are observed with a loading policy, and ``SyncEnvironment`` observes the
///   network and the app.
///
/// One actor serves all keys, so that changing the state and sending it to observers are one step. The parts aren't
/// separate actors for the same reason. Their functions take the engine as an isolated parameter, and therefore run in
/// its isolation.
actor SyncEngine<Source: RepositorySource> {
  typealias Key = Source.Key
  typealias Value = Source.Value
  typealias Mutation = Source.Mutation
  typealias Failure = RepositoryError<Source.Failure>
  typealias Cell = SyncCell<Source>

  nonisolated let channels: SyncChannels<Source>
  nonisolated let events = RepositoryEvents()
  nonisolated let tasks: OwnedTasks
  /// The number of mutations that are waiting or in flight, except those that another independent repository sends; see
  /// ``LeadershipStatus/independent``.
  nonisolated let liveCounts = CurrentValueRelay(0)
  /// The version of the queue, which grows with each change of the queue.
  nonisolated let queueVersion = CurrentValueRelay<UInt64>(0)
  /// The name of the repository, which is also the collection of its values.
  nonisolated let name: String
  nonisolated let recordKeys: MutationKeys

  /// The mutations, their order, and the next one to send.
  var queue: MutationQueue<Key, Mutation>
  let performer: QueuePerformer<Source>
  let adder: MutationAdder<Source>
  let sender: MutationSender<Source>
  let reader: MutationReader<Source>
  let writer: MutationWriter<Source>
  let calls: MutationCalls<Source>
  let loader: SyncLoader<Source>
  let writes: SyncWrites<Source>
  let feed: SyncFeed<Source>
  let newestValue: NewestValue<Source>
  let unread: UnreadObservations<Source>
  let observedLoading: ObservedLoading<Source>
  let environment: SyncEnvironment<Source>
  let election: Election<Source>
  let users: SyncUsers<Source>
  let signOuts: SignOuts<Source>
  let evictions: SyncEvictions<Source>
  let suspension: SyncSuspension<Source>
  let backoff: Backoff

  private let capabilities: SourceCapabilities<Source>
  private let decisions: MutationDecisions<Source>
  private let store: any KeyValueStore
  private let now: @Sendable () -> Date
  private let clock: ElapsedClock
  private let startQueue = AsyncSerialQueue()
  private var hasStarted = false
  /// Whether ``start()`` is reading the store.
  private(set) var isStarting = false
  private let cells: SyncCells<Source>

  init(_ source: Source, store: any KeyValueStore, configuration: RepositoryConfiguration) {
    let clock = ElapsedClock(configuration.clock)
    let tasks = OwnedTasks(executor: configuration.taskExecutor)
    feed = SyncFeed(store, events: events)
    self.store = store
    self.tasks = tasks
    (name, recordKeys) = (source.name, MutationKeys(repository: source.name))
    capabilities = SourceCapabilities(source)
    channels = SyncChannels(capabilities)
    cells = SyncCells(channels)
    backoff = Backoff(configuration.retryPolicy, clock: clock, random: configuration.random)
    queue = MutationQueue(
      maximumInFlight: configuration.maximumConcurrentSends,
      maximumInterruptedAttempts: configuration.retryPolicy.maximumInterruptedAttempts)
    calls = MutationCalls(CallTimeouts(clock, tasks))
    performer = QueuePerformer(
      of: recordKeys.collection, calls, events: events, liveCounts: liveCounts, version: queueVersion,
      lists: channels.lists)
    adder = MutationAdder(capabilities, recordKeys, calls, configuration: configuration, events: events)
    reader = MutationReader(capabilities, store, recordKeys, calls, events: events)
    writer = MutationWriter(recordKeys, events: events)
    decisions = MutationDecisions(calls, events: events)
    sender = MutationSender(
      capabilities, policy: configuration.retryPolicy, clock: clock, events: events, tasks: tasks)
    loader = SyncLoader(capabilities, configuration: configuration, events: events)
    writes = SyncWrites(now: configuration.now, events: events)
    observedLoading = ObservedLoading(configuration, clock: clock, events: events, tasks: tasks)
    election = Election(
      configuration.leadership, recordKeys.collection, on: store, clock: clock, events: events)
    users = SyncUsers(store, repository: source.name, events: events)
    signOuts = SignOuts(
      store, repository: source.name, clock: clock, queueVersion: queueVersion, events: events)
    evictions = SyncEvictions(
      store, repository: source.name, channels: channels, configuration: configuration, clock: clock, events: events,
      tasks: tasks)
    suspension = SyncSuspension(store, clock: clock, events: events)
    environment = SyncEnvironment(configuration, clock: clock, liveCounts: liveCounts, events: events)
    (now, self.clock) = (configuration.now, clock)
    newestValue = NewestValue(source.name, store: store, channels: channels)
    unread = UnreadObservations(events: events)
  }

  /// Cancels all ``tasks`` and finishes the observers' sequences, because the repository is released.
  nonisolated func stop() {
    tasks.cancelAll()
    channels.finish()
  }

  /// The present time.
  var moment: Moment { Moment(time: now(), elapsed: clock.elapsed()) }

  // MARK: - Tasks

  /// Starts a task in the engine's isolation, and cancels it when the repository is released.
  ///
  /// - Returns: A function that cancels the task.
  @discardableResult
  nonisolated func start(
    _ work: @escaping @Sendable (isolated SyncEngine<Source>) async -> Void
  ) -> @Sendable () -> Void {
    tasks.start { [weak self] in
      if let self { await work(self) }
    }
  }

  /// Starts a task in the engine's isolation, and never cancels it.
  ///
  /// What the task writes is therefore stored even if the repository is released.
  nonisolated func startToCompletion(_ work: @escaping @Sendable (isolated SyncEngine<Source>) async -> Void) {
    Task(executorPreference: tasks.executor) { await work(self) }
  }

  /// Performs work in the engine's isolation, and returns the result.
  ///
  /// Cancelling the calling task doesn't cancel the work.
  nonisolated func runToCompletion<Result: Sendable>(
    _ work: @escaping @Sendable (isolated SyncEngine<Source>) async -> Result
  ) async -> Result {
    await Task(executorPreference: tasks.executor) { await work(self) }.value
  }

  /// Waits for a duration, or until the calling task is cancelled.
  func pause(for duration: Duration) async {
    await clock.wait(until: clock.elapsed() + duration)
  }

  // MARK: - Starting

  /// Reads the records of users, makes one attempt to become the leader, and reads the queue of mutations.
  ///
  /// Skips the steps that the source doesn't need. Does nothing if an earlier call has succeeded.
  func start() async throws(StoreError) {
    if hasStarted { return }
    try await startQueue.run { () async throws(StoreError) in
      if hasStarted { return }
      isStarting = true
      defer {
        isStarting = false
        suspension.recordStep()
      }
      if capabilities.hasUsers { try await users.start(in: self) }
      if capabilities.sending != nil { await election.begin(in: self) }
      try await reader.read(in: self)
      hasStarted = true
      // An earlier attempt may have failed. Then the observers of the list wait for the first list, and everything else
      // waits for its next attempt.
      performer.sendFirstList(in: self)
      backoff.endWaits()
      sender.pump(in: self)
    }
  }

  /// Calls ``start()``, and retries until the store can be read.
  func startInBackground() async {
    await keepTrying { (engine) async throws(StoreError) in try await engine.start() }
  }

  /// Repeats an operation until it succeeds, or the calling task is cancelled.
  func keepTrying(_ work: (isolated SyncEngine<Source>) async throws(StoreError) -> Void) async {
    var attempt = 0
    while !Task.isCancelled {
      do throws(StoreError) {
        return try await work(self)
      } catch {
        events.emit(.storeFailed(error))
        attempt += 1
        await backoff.wait(afterAttempt: attempt)
      }
    }
  }

  // MARK: - Cells

  /// Returns the cell of a key; `nil` unless the key is in use or was recently.
  func cell(_ key: Key) -> Cell? { cells[key] }

  /// Opens a key unless it is open: reads the stored value, which becomes the base, and applies the pending mutations.
  ///
  /// - Throws: ``RepositoryError/store(_:)``, or ``RepositoryError/signedOut`` if the key's user has signed out.
  func open(_ key: Key) async throws(Failure) -> Cell {
    let cell: Cell?
    do throws(StoreError) {
      cell = try await openUnlessSignedOut(key)
    } catch {
      throw .store(error)
    }
    guard let cell else { throw .signedOut }
    return cell
  }

  /// Opens a key as ``open(_:)`` does, or returns `nil` if its user has signed out.
  func openUnlessSignedOut(_ key: Key) async throws(StoreError) -> Cell? {
    if let cell = cells[key], cell.isOpen { return cell }
    let storeKey = StoreKey<Value>(name, id: key.storeID)
    try storeKey.validate()
    try await start()
    await evictions.waitWhileRemoving(key)
    guard users.isOpen(key.userID) else { return nil }
    let cell = cells[key] ?? Cell(key: key, storeKey: storeKey, capabilities)
    cells.add(cell)
    do throws(StoreError) {
      try await read(cell)
    } catch {
      cells.removeUnopened(cell)
      // The error may name a key of a user who has signed out meanwhile, and must then not be reported. Nor does it
      // matter if another call has opened the key meanwhile.
      if !cell.isClosed, !cell.isOpen { throw error }
    }
    if cell.isClosed { return nil }
    publish(cell)
    unread.endReading(key, in: self)
    return cell
  }

  /// Reads the base of a cell from the store, and applies the pending mutations, unless that has been done.
  private func read(_ cell: Cell) async throws(StoreError) {
    let (key, storeKey) = (cell.key, cell.storeKey)
    cell.useCount += 1
    defer { cell.useCount -= 1 }
    try await cell.opening.run { () async throws(StoreError) in
      while !cell.isOpen {
        try await feed.follow(storeKey, in: self) { changes, engine in
          guard let cell = engine.cell(key) else { return }
          if let change = changes.first { engine.begin(cell, change) } else { engine.open(cell, nil) }
        }
        if cell.isOpen || cell.isClosed || tasks.areCancelled { return }
        // This program can't use what is stored. The load says why.
        do throws(StoreError) {
          let stored = try await feed.load(storeKey)
          if cell.isOpen { return }
          if stored == nil { return open(cell, nil) }
        } catch {
          if cell.isOpen { return }
          feed.endFollowing(.key(storeKey.keyName), in: self)
          throw error
        }
        feed.endFollowing(.key(storeKey.keyName), in: self)
      }
    }
  }

  /// Opens a cell with the stored value that the feed has reported, unless this program can't use the value.
  func begin(_ cell: Cell, _ change: StoreFeedChange) {
    switch change {
    case .saved: if let stored = change.stored(for: cell.storeKey) { open(cell, stored) }
    case .removed: open(cell, nil)
    case .unusable: break
    }
  }

  /// Opens a cell: applies the pending mutations to the stored value.
  private func open(_ cell: Cell, _ stored: StoredValue<Value>?) {
    if cell.isClosed { return feed.endFollowing(.key(cell.storeKey.keyName), in: self) }
    cells.open(cell, stored)
    for mutation in queue.liveMutations(of: cell.key) { cell.restore(mutation, isSentHere: queue.sends(mutation)) }
    cell.endFollowing = { [weak self, name = cell.storeKey.keyName] in
      self?.assumeIsolated { engine in engine.feed.endFollowing(.key(name), in: engine) }
    }
    // Other calls find the open cell before the one that opens it continues.
    publish(cell)
  }

  /// Applies a mutation that another repository has added, if its key is in use.
  func show(_ entry: MutationQueue<Key, Mutation>.Entry) {
    guard let cell = cells[entry.key], cell.isOpen else { return }
    cell.restore(entry, isSentHere: queue.sends(entry))
    publish(cell)
  }

  /// Opens a key for a call, and keeps its cell until ``endUse(_:)``.
  func use(_ key: Key) async throws(Failure) -> Cell {
    let cell = try await open(key)
    cell.useCount += 1
    return cell
  }

  func endUse(_ cell: Cell) {
    cell.useCount -= 1
    release(cell)
  }

  /// Records that a use of a cell has ended.
  ///
  /// An idle cell stays open until enough others have become idle after it. If the stored values exceed a limit, starts
  /// to evict some.
  func release(_ cell: Cell) {
    cells.release(cell)
    evictions.recordUse(of: cell.key, in: self)
  }

  /// Returns the visible value of a key, or `nil` if there is none.
  ///
  /// - Throws: The errors of ``open(_:)``.
  func value(of key: Key) async throws(Failure) -> Value? {
    let cell = try await use(key)
    defer { endUse(cell) }
    return cell.state.visible
  }

  /// Returns the current state of a key.
  func state(of key: Key) async -> Cell.State {
    do throws(Failure) {
      let cell = try await use(key)
      defer { endUse(cell) }
      return cell.currentState(capabilities.paging)
    } catch {
      return Cell.State(failure: error)
    }
  }

  // MARK: - Observing

  /// Sends the current value, state and pending mutations of a key to its new observers.
  func observe(_ key: Key) async {
    do throws(Failure) {
      let cell = try await open(key)
      channels.sendFirst(cell)
      release(cell)
    } catch {
      channels.sendFailure(error, to: key)
      readLater(.key(key), after: error)
    }
  }

  /// Reports that something observed could not be read, and reads it later, if the reason is a failure of the store.
  private func readLater(_ observation: UnreadObservations<Source>.Observation, after error: Failure) {
    guard case .store(let error) = error else { return }
    events.emit(.storeFailed(error))
    unread.add(observation, after: error, in: self)
  }

  /// Releases the resources of observers that no longer exist.
  func endObserving(_ key: Key) {
    channels.forgetReleased(key)
    unread.removeUnlessObserved(.key(key), in: self)
    recordEndOfUse(of: key)
  }

  private func recordEndOfUse(of key: Key) {
    if let cell = cells[key] { release(cell) } else { evictions.recordUse(of: key, in: self) }
  }

  /// Sends the current value and state to a new observer with a loading policy, and fetches the value if that is due.
  func observe(_ observed: LoadingChannels<Source>.Observed) async {
    let (key, loadingChannels) = (observed.key, channels.loading)
    loadingChannels.begin(observed)
    do throws(Failure) {
      let cell = try await open(key)
      channels.sendFirst(cell, to: observed)
      release(cell)
    } catch {
      loadingChannels.states.send(RepositoryState(failure: error), to: observed)
      readLater(.key(key), after: error)
    }
    guard loadingChannels.isObserved(observed) else { return }
    let age = cells[key]?.fetchedAt.flatMap { Freshness.age(savedAt: $0, now: now()) }
    observedLoading.begin(observed, age: age, in: self)
  }

  /// Releases the resources of observers that no longer exist.
  func endObserving(_ observed: LoadingChannels<Source>.Observed) {
    if channels.loading.forgetReleased(observed) { observedLoading.end(observed, in: self) }
    unread.removeUnlessObserved(.key(observed.key), in: self)
    recordEndOfUse(of: observed.key)
  }

  /// Sends the current list of mutations to the observers of the queue, unless their channel replays one already.
  ///
  /// If the store can't be read, ``start()`` sends the list as soon as ``startInBackground()`` has succeeded.
  func observeList() async {
    do throws(StoreError) {
      try await start()
      performer.sendFirstList(in: self)
    } catch {
      events.emit(.storeFailed(error))
    }
  }

  func endObservingList() {
    channels.lists.forgetReleased(recordKeys.collection)
  }

  func observeEveryValue() async {
    do throws(StoreError) {
      try await newestValue.observe(in: self)
    } catch {
      readLater(.everyValue, after: .store(error))
    }
  }

  /// Opens a stored key, so that the observers of the whole repository receive its value.
  func openForEveryValue(_ storeKey: StoreKey<Value>) async {
    guard let key = storeKey.id.flatMap({ Key(storeID: $0) }) else { return }
    do throws(StoreError) {
      try await newestValue.open(key, in: self)
    } catch {
      readLater(.storedValue(key), after: .store(error))
    }
  }

  func endObservingEveryValue() {
    newestValue.endObserving()
    unread.removeUnobserved(in: self)
  }

  /// Applies the pending mutations of a key, records those that are in conflict now, and sends the changes to the
  /// observers of the key and of the whole repository.
  ///
  /// Nothing is known of a key before it is open, and nothing may be shown of one whose user has signed out.
  func publish(_ cell: Cell) {
    guard cell.isOpen, !cell.isClosed, !feed.postponesPublishing(cell) else { return }
    cell.hasHeldMutation = queue.holdsMutation(of: cell.key)
    for conflicted in cell.state.fold() { performer.recordConflict(conflicted.id, conflicted.conflict, in: self) }
    channels.send(cell, newestValue)
  }

  /// Publishes a key that is in use, because a mutation of it is or was one that this program can't read.
  func publish(_ key: Key) {
    if let cell = cells[key] { publish(cell) }
  }

  // MARK: - Loading

  /// Fetches a value unless the stored one is fresh; see ``SyncLoader``.
  func refresh(_ key: Key, _ part: Cell.Part? = nil) async throws(Failure) {
    try checkMayBegin(key)
    let wasServerAsked = try await loader.refresh(key, part, in: self)
    if wasServerAsked { endWaitsAfterFetch() }
  }

  /// Fetches a value, or joins a request for it that is in flight.
  func load(_ key: Key, _ part: Cell.Part? = nil) async throws(Failure) {
    try checkMayBegin(key)
    let wasServerAsked = try await loader.load(key, part, in: self)
    if wasServerAsked { endWaitsAfterFetch() }
  }

  /// Marks values as stale, and fetches those that are observed with a loading policy.
  func invalidate(_ selection: KeySelection<Key>) {
    cells.invalidate(selection, at: now())
    observedLoading.invalidate(selection, in: self)
  }

  /// Fetches the values that are due when an alarm fires.
  func loadDue(at deadline: Duration) {
    observedLoading.loadDue(at: deadline, in: self)
  }

  /// Performs a request that callers share.
  func performLoad(
    _ key: Key, _ part: Cell.Part, isWanted: @escaping @Sendable () -> Bool
  ) async throws(Failure) -> Bool {
    try await loader.perform(key, part, isWanted: isWanted, in: self)
  }

  // MARK: - Mutations

  /// Applies a mutation, makes it durable, and has it sent.
  ///
  /// - Returns: The result; ``MutationResult/queued`` as soon as the mutation has to wait.
  func perform(_ mutation: Mutation, on key: Key) async throws(Failure) -> MutationResult {
    if Task.isCancelled { throw .cancelled }
    try checkMayBegin(key)
    let id = try await adder.add(mutation, on: key, replacing: nil, hasCaller: true, in: self)
    return try await calls.outcome(of: id)
  }

  /// Returns all mutations in order.
  func list() async throws(StoreError) -> [PendingMutation<Key, Mutation>] {
    try await start()
    return queue.list
  }

  /// Returns the mutations that this program can't read, in order.
  func unreadable() async throws(StoreError) -> [UnreadableMutation<Key>] {
    try await start()
    return queue.unreadable
  }

  func cancel(_ id: MutationID) async throws(PendingMutationError) {
    try await decisions.cancel(id, in: self)
  }

  func requeue(_ id: MutationID) async throws(PendingMutationError) -> MutationID {
    try await decisions.requeue(id, in: self)
  }

  func resolve(
    _ id: MutationID, _ resolution: Resolution<Mutation>
  ) async throws(PendingMutationError) -> MutationID? {
    try await decisions.resolve(id, resolution, in: self)
  }

  func discard(_ id: MutationID) async throws(PendingMutationError) {
    try await decisions.discard(id, in: self)
  }

  /// Stops applying mutations to the visible value, because they are rolled back or the base includes them.
  func removeFromOverlay(_ ids: [MutationID], of key: Key) {
    if let cell = cells[key] {
      for id in ids { cell.state.remove(id) }
      publish(cell)
    }
    recordEndOfUse(of: key)
  }

  /// Makes this repository decide whether a mutation is in conflict, because it sends the mutation now.
  func beginDeciding(_ entry: MutationQueue<Key, Mutation>.Entry) {
    guard let cell = cells[entry.key], cell.isOpen else { return }
    cell.beginDeciding(on: entry.id)
    publish(cell)
  }

  /// Reverses ``beginDeciding(_:)``, because another repository sends the mutation.
  func endDeciding(_ entry: MutationQueue<Key, Mutation>.Entry) {
    guard let cell = cells[entry.key], cell.isOpen else { return }
    cell.deferDecision(on: entry.id)
  }

  /// Ends the calls that have waited too long for another repository to report a result, when an alarm fires.
  func endExpiredCalls(at deadline: Duration) {
    calls.endExpired(at: deadline, in: self)
  }

  /// Writes the marks of mutations whose turn comes next; see ``MutationWriter/mark(_:in:)``.
  func writeMarks(of ids: [MutationID]) async {
    await writer.writeMarks(of: ids, in: self)
  }

  /// Writes the record of a mutation that was marked before an attempt to send, unless another process has changed the
  /// record; see ``MutationWriter/mark(_:in:)``.
  func writeMark(of id: MutationID) async {
    await writer.writeMark(of: id, in: self)
  }

  /// Sends the mutations that are due when an alarm fires.
  func pump(at deadline: Duration) {
    sender.pump(at: deadline, in: self)
  }

  /// Attempts to lead beside the addition of a mutation; see ``Election/acquire(in:)``.
  func acquireLead() async -> Bool { await election.acquire(in: self) }

  /// Gives the lead up when nothing was sent for a while.
  func rest(at deadline: Duration) async {
    await sender.rest(at: deadline, in: self)
  }

  /// Retries immediately what waits for the network or for a backoff, even while the network monitor reports that the
  /// network is unavailable; see ``endWaits()``.
  func retryNow() {
    environment.retryNow(in: self)
  }

  /// Ends all backoff delays, except those that the server requested.
  func endWaits() {
    backoff.endWaits()
    queue.retryNow()
    sender.pump(in: self)
  }

  /// Ends backoff delays because a fetch has shown that the server is reachable; see
  /// ``MutationLanes/resumeAfterFetch()``.
  func endWaitsAfterFetch() {
    backoff.endWaits()
    queue.resumeAfterFetch()
    sender.pump(in: self)
  }

  /// Ends the waits that ``retryNow()`` ends, and those for a user to sign in.
  ///
  /// If the store can't be read, the mutations are sent as soon as ``startInBackground()`` has read it.
  func resumeAll() async {
    do throws(StoreError) {
      try await start()
    } catch {
      events.emit(.storeFailed(error))
    }
    for userID in queue.usersNeedingSignIn { resumeMutations(of: userID) }
    retryNow()
  }

  /// Lets the mutations of a user be sent again, because the user's credentials have changed.
  private func resumeMutations(of userID: String?) {
    performer.signedIn(userID: userID, in: self)
    sender.pump(in: self)
  }

  // MARK: - Users

  /// Whether a call can stop early, because its task is cancelled or the repository is released.
  nonisolated var canStopEarly: Bool { Task.isCancelled || tasks.areCancelled }

  /// Throws ``RepositoryError/signedOut`` if a key's user has signed out, or is signing out.
  private func checkMayBegin(_ key: Key) throws(Failure) {
    guard users.mayBegin(key.userID) else { throw .signedOut }
  }

  /// Records that the credentials of a user have changed, and notifies every repository on the store.
  func signIn(userID: String?) async {
    resumeMutations(of: userID)
    await users.signIn(UserDigest(userID), in: self)
  }

  func signOut(userID: String, unsent policy: UnsentPolicy) async throws(SignOutError) {
    try await signOuts.signOut(userID, policy, in: self)
  }

  /// Resumes the mutations of a user whose stored record shows a new sign-in.
  func takeSignIn(of user: UserDigest) {
    // Includes the users of mutations in flight, because their requests may be using the old credentials.
    let userIDs = queue.usersNeedingSignIn.union(queue.liveCountsByKey.keys.map(\.userID))
    for userID in userIDs where UserDigest(userID) == user { resumeMutations(of: userID) }
  }

  /// Returns whether mutations of a user are waiting or in flight.
  func hasLiveMutations(of user: UserDigest) -> Bool { queue.hasLiveMutations(of: user) }

  /// Discards the state of a user who has signed out.
  func close(_ user: UserDigest) {
    let isOfUser = { (key: Key) in key.userID.map { UserDigest($0) == user } ?? false }
    loader.endRequests(where: isOfUser)
    let closed = cells.close(where: isOfUser)
    for cell in closed {
      for fetch in cell.state.discardReplies() { loader.end(fetch, .failure(.signedOut)) }
    }
    for key in channels.observedKeys where isOfUser(key) { channels.close(key) }
    for cell in closed { channels.close(cell.key) }
    // The key of the newest value may not be in use.
    newestValue.forget(where: isOfUser)
    performer.forget(user, in: self)
    // Earlier events, which new subscribers would otherwise receive, may name the user's keys.
    events.forget()
  }

  /// Reads a user's stored data again, because changes that were reported before the sign-in were ignored.
  ///
  /// Sends the user's values to the existing observers, and fetches those that are observed with a loading policy.
  func reopen(_ user: UserDigest) {
    newestValue.openStored(of: user, in: self)
    for key in channels.observedKeys where UserDigest(key.userID) == user {
      start { engine in
        await engine.observe(key)
        engine.observedLoading.invalidate(.key(key), in: engine)
      }
    }
  }

  // MARK: - Eviction

  /// Starts enforcing the limits of the ``EvictionPolicy``.
  func beginEvicting() async {
    await evictions.begin(in: self)
  }

  func evict(_ selection: KeySelection<Key>) async throws(StoreError) {
    try await evictions.evict(selection, in: self)
  }

  /// Receives changes of values that the store reports together.
  func receiveStored(_ changes: [StoreChange<Value>]) {
    for change in changes { evictions.receive(change) }
    evictions.makeRoomIfNecessary(in: self)
  }

  /// Removes stored values that are due for eviction when an alarm fires.
  func makeRoom(at deadline: Duration) async {
    await evictions.makeRoom(at: deadline, in: self)
  }

  /// Returns whether a key is observed, in use by a call, being fetched or written, or has pending mutations.
  func isInUse(_ key: Key) -> Bool {
    if let cell = cells[key], !cell.isIdle { return true }
    return channels.isObserved(key) || newestValue.isShown(key) || !queue.liveMutations(of: key).isEmpty
      || queue.holdsMutation(of: key)
  }

  /// Returns whether a key's value must not be evicted.
  func isPinned(_ key: Key) -> Bool { capabilities.source.isPinned(key) }

  /// Releases the cell of a key whose value is to be removed.
  ///
  /// - Returns: `false` if the key is in use, so its value must stay.
  func releaseUnlessInUse(_ key: Key) -> Bool {
    if let cell = cells[key], !cells.releaseUnlessInUse(cell) { return false }
    newestValue.forget(key)
    // A new observer, which can subscribe on any thread, may have received the value before it was forgotten.
    return !channels.isObserved(key)
  }

  // MARK: - Report

  /// Returns a report of the repository's contents and activity.
  func report() async -> RepositoryReport {
    var storeFailure: String?
    do throws(StoreError) {
      try await start()
    } catch {
      storeFailure = error.description
    }
    let pendingCounts = queue.liveCountsByKey
    let cells = cells.all
    var keyReports = cells.map { cell in
      cell.report(
        isFresh: loader.isFresh(cell), observerCount: channels.observerCount(of: cell.key),
        pendingCount: pendingCounts[cell.key] ?? 0)
    }
    let keysWithCells = Set(cells.map(\.key))
    for (key, count) in pendingCounts where !keysWithCells.contains(key) {
      keyReports.append(.init(key, pendingCount: count))
    }
    var report = RepositoryReport(name: name, time: now(), keys: keyReports.sorted { $0.key < $1.key })
    report.storeFailure = storeFailure
    report.stored = evictions.usage.map { .init(count: $0.count, byteCount: $0.byteCount) }
    queue.report(to: &report, at: clock.elapsed())
    report.leadership = capabilities.sending == nil ? nil : queue.leadership
    return report
  }

  // MARK: - Environment

  /// Starts observing the network and the app.
  func observeEnvironment() {
    environment.observe(in: self)
  }

  func receive(_ status: NetworkStatus) {
    environment.receive(status, in: self)
  }

  func receive(_ activity: AppActivity) async {
    observedLoading.setActive(activity == .active, in: self)
    await suspension.receive(activity, in: self)
  }

  // MARK: - Suspension

  func suspend() async { await suspension.suspend(in: self) }

  func resume() async { await suspension.resume(in: self) }

  func drain(within duration: Duration) async -> DrainResult { await suspension.drain(within: duration, in: self) }

  /// Whether a condition holds that ``SyncSuspension`` waits for.
  func holds(_ condition: @Sendable (isolated SyncEngine<Source>) -> Bool) -> Bool { condition(self) }

  // MARK: - Feed

  func recordEndOfFollowing(_ part: StoreFeedPart) { feed.recordEnd(of: part) }
}

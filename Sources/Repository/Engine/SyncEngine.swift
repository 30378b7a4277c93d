internal import DataStore
internal import Foundation
internal import Multicast

/// Performs what ``SyncCore`` decides.
///
/// Its functions are inputs of the core, the effects of the core, and the operations that take time: reading and
/// committing, fetching, sending, leading, and waiting.
actor SyncEngine<Source: RepositorySource> {
  typealias Key = Source.Key
  typealias Value = Source.Value
  typealias Mutation = Source.Mutation
  typealias Failure = RepositoryError<Source.Failure>
  typealias Core = SyncCore<Source>
  typealias Entry = Core.Entry
  typealias ID = KeyID<Key>
  typealias Operation = Effects<Source>.Operation

  nonisolated let channels: SyncChannels<Source>
  nonisolated let events = RepositoryEvents()
  nonisolated let tasks: OwnedTasks
  /// The number of mutations that are waiting or in flight, except those that another independent repository sends; see
  /// ``LeadershipStatus/independent``.
  nonisolated let liveCounts = CurrentValueRelay(0)
  /// The name of the repository, which is also the collection of its values.
  nonisolated let name: String
  nonisolated let recordKeys: MutationKeys
  nonisolated let store: any KeyValueStore
  nonisolated let clock: ElapsedClock
  nonisolated let configuration: RepositoryConfiguration

  var core: Core
  /// The calls of `perform` that wait for the outcomes of their mutations.
  let calls = PendingCalls<MutationID, Result<MutationResult, Failure>>()
  /// The fetches whose reply has arrived and is about to be judged, by number; the outcome of each says whether the
  /// reply was accepted.
  let fetches = PendingCalls<Int, Result<Bool, Failure>>()
  /// The requests in flight; the value of each says whether the server was asked.
  let requests: SharedRequests<LoadKey<Source>, Bool, Failure>
  let newestValue: NewestValue<Source>
  private let reports: QueueReports<Source>
  private let alarm: Alarm
  private let endOfWaits = MulticastRelay<Void>(buffering: .unbounded)
  /// Has an element for each input, for those that wait until a condition holds.
  let inputs = CurrentValueRelay(())

  var feed: FeedState
  /// The writes of records that wait for the next commit.
  var waitingWrites: [WaitingWrite] = []
  var isWritingRecords = false
  /// The tasks that write the marks of mutations whose turn comes next; see ``mark(_:)``.
  var marking: [MutationID: Task<Void, Never>] = [:]
  /// The attempts in flight by their numbers, each with a function that cancels it.
  var attempts: [UInt64: @Sendable () -> Void] = [:]
  /// Serializes attempts to open each key.
  var openings: [Key: AsyncSerialQueue] = [:]
  var unread: [Observation: UnreadObservation] = [:]
  var lastUnread: UInt64 = 0
  /// The lease, while the repository leads.
  var lease: (any LeadershipLease)?
  /// Signals that another attempt to lead is worthwhile.
  var vacancies: MulticastStream<Void, Never>?
  /// Makes the sign-outs of this repository run one at a time.
  let signOutTurns = AsyncSerialQueue()
  var eviction: EvictionWork
  var suspension: SuspensionWork

  private let startQueue = AsyncSerialQueue()
  private let readQueue = AsyncSerialQueue()
  private let usersQueue = AsyncSerialQueue()
  private var hasStarted = false
  private var hasReadQueue = false
  private var isReportingStoreEvents = false
  private(set) var hasReadUsers = false

  init(_ source: Source, store: any KeyValueStore, configuration: RepositoryConfiguration) {
    let clock = ElapsedClock(configuration.clock)
    let tasks = OwnedTasks(executor: configuration.taskExecutor)
    let channels = SyncChannels<Source>(SourceCapabilities(source))
    let core = Core(source, configuration) { channels.isObserved($0) }
    (self.store, self.clock, self.configuration, self.tasks) = (store, clock, configuration, tasks)
    (self.core, self.channels) = (core, channels)
    (name, recordKeys) = (core.name, core.recordKeys)
    requests = SharedRequests(events: events, executor: configuration.taskExecutor)
    newestValue = NewestValue(source.name, channels: channels)
    reports = QueueReports(
      of: core.recordKeys.collection, liveCounts: liveCounts, lists: channels.lists, events: events)
    alarm = Alarm(clock, tasks)
    feed = FeedState()
    eviction = EvictionWork(source.name, store, channels)
    suspension = SuspensionWork(store)
  }

  /// Cancels all ``tasks`` and finishes the observers' sequences, because the repository is released.
  nonisolated func stop() {
    tasks.cancelAll()
    channels.finish()
  }

  // MARK: - Inputs

  /// Passes an input to the core, and performs the effects.
  ///
  /// The closure uses nothing of the engine but the core that it gets.
  func update<Result, E: Error>(_ input: (inout Core) throws(E) -> Result) throws(E) -> Result {
    (core.now, core.isReleased) = (moment, tasks.areCancelled)
    defer { settle() }
    return try input(&core)
  }

  /// Variant of ``update(_:)`` for the frequent inputs, which return nothing.
  func update(_ input: (inout Core) -> Void) {
    (core.now, core.isReleased) = (moment, tasks.areCancelled)
    input(&core)
    settle()
  }

  private func settle() {
    let effects = core.settle()
    perform(effects)
    alarm.set(effects.deadline) { [weak self] deadline in await self?.ring(deadline) }
    inputs.send(())
  }

  private func ring(_ deadline: Duration) {
    alarm.clear(deadline)
    update { $0.ring() }
  }

  private func perform(_ effects: Effects<Source>) {
    for (user, keys) in effects.closed { close(user, keys) }
    for key in effects.released { channels.forgetCurrent(of: key) }
    for id in effects.published { core.keys.edit(id) { channels.send(&$0, newestValue) } }
    for report in effects.reports {
      switch report {
      case .event(let event): events.emit(event)
      case .forgetEvents: events.forget()
      }
    }
    if let delay = reports.report(effects.queue) { start { engine in await engine.sendList(after: delay) } }
    for end in effects.ends {
      switch end {
      case .call(let id, let outcome): calls.end(id, outcome)
      case .fetch(let number, let result): fetches.end(number, result)
      }
    }
    if effects.endsWaits { endOfWaits.send(()) }
    for operation in effects.operations { perform(operation) }
  }

  private func perform(_ operation: Operation) {
    switch operation {
    case .send(let entry, let number):
      attempts[number] = start { engine in await engine.send(entry, attempt: number) }
    case .write(let id): startToCompletion { engine in await engine.writeReplies(of: id) }
    case .save(let id): start { engine in await engine.save(id) }
    case .saveToCompletion(let id): startToCompletion { engine in await engine.save(id) }
    case .saveConflict(let id): start { engine in await engine.saveConflict(id) }
    case .awaitSignIn(let id): start { engine in await engine.awaitSignIn(id) }
    case .readPredecessors(let id, let sequence):
      start { engine in await engine.readPredecessors(of: id, sequence) }
    case .checkRecord(let id, let tag): start { engine in await engine.checkRecord(of: id, tag) }
    case .campaign: start { engine in await engine.campaign() }
    case .rest: start { engine in await engine.rest() }
    case .fetchWhole(let id): start { engine in await engine.fetchWhole(id) }
    case .fetchObserved(let request): start { engine in await engine.fetchObserved(request) }
    case .fetchAfterSending(let isDelayed, let count):
      start { engine in await engine.fetchAfterSending(isDelayed: isDelayed, changeCount: count) }
    case .makeRoom: start { engine in await engine.makeRoom() }
    case .endFollowing(let part): endFollowing(part)
    case .finishSignOut(let user): start { engine in await engine.finishSignOut(of: user) }
    case .reopen(let user): reopen(user)
    }
  }

  /// Tells the observers of a user's keys that the user has signed out.
  private func close(_ user: UserDigest, _ keys: [Key]) {
    let isOfUser = { (key: Key) in key.userID.map { UserDigest($0) == user } ?? false }
    requests.end(with: .signedOut) { isOfUser($0.key) }
    for key in channels.observedKeys where isOfUser(key) { channels.close(key) }
    for key in keys { channels.close(key) }
    // The key of the newest value may not be in use.
    newestValue.forget(where: isOfUser)
  }

  // MARK: - Tasks

  /// Starts a task, and cancels it when the repository is released.
  ///
  /// - Returns: A function that cancels the task.
  @discardableResult
  nonisolated func start(_ work: @escaping @Sendable (SyncEngine<Source>) async -> Void) -> @Sendable () -> Void {
    tasks.start { [weak self] in
      if let self { await work(self) }
    }
  }

  /// Starts a task, and never cancels it.
  ///
  /// What the task writes is therefore stored even if the repository is released.
  nonisolated func startToCompletion(_ work: @escaping @Sendable (SyncEngine<Source>) async -> Void) {
    Task(executorPreference: tasks.executor) { await work(self) }
  }

  /// Performs work, and returns the result.
  ///
  /// Cancelling the calling task doesn't cancel the work.
  nonisolated func runToCompletion<Result: Sendable>(
    _ work: @escaping @Sendable (SyncEngine<Source>) async -> Result
  ) async -> Result {
    await Task(executorPreference: tasks.executor) { await work(self) }.value
  }

  /// Whether a call can stop early, because its task is cancelled or the repository is released.
  nonisolated var canStopEarly: Bool { Task.isCancelled || tasks.areCancelled }

  /// Waits until the delay after a failed attempt has passed, or the backoff delays are ended.
  ///
  /// Cancellation ends the wait.
  func wait(afterAttempt attempt: Int, atMost maximum: Duration? = nil) async {
    let delay = core.delay(forAttempt: attempt)
    let deadline = clock.elapsed() + (maximum.map { min($0, delay) } ?? delay)
    await clock.wait(until: deadline, or: endOfWaits.stream.subscribe())
  }

  /// Repeats an operation until it succeeds, or the calling task is cancelled.
  func keepTrying(_ work: () async throws(StoreError) -> Void) async {
    var attempt = 0
    while !Task.isCancelled {
      do throws(StoreError) {
        return try await work()
      } catch {
        events.emit(.storeFailed(error))
        attempt += 1
        await wait(afterAttempt: attempt)
      }
    }
  }

  /// Waits until a condition holds, a deadline passes, or the calling task is cancelled.
  func wait(until deadline: Duration, for condition: @escaping @Sendable (inout Core) -> Bool) async {
    if holds(condition) { return }
    await clock.wait(until: deadline) { [weak self, inputs = inputs.stream] in
      for await _ in inputs {
        guard let self, await !self.holds(condition) else { return }
      }
    }
  }

  private func holds(_ condition: (inout Core) -> Bool) -> Bool {
    core.now = moment
    return condition(&core)
  }

  /// The present time.
  var moment: Moment { Moment(time: configuration.now(), elapsed: clock.elapsed()) }

  // MARK: - Starting

  /// Reads the records of users, makes one attempt to become the leader, and reads the queue of mutations.
  ///
  /// Skips the steps that the source doesn't need. Does nothing if an earlier call has succeeded.
  func start() async throws(StoreError) {
    if hasStarted { return }
    try await startQueue.run { () async throws(StoreError) in
      if hasStarted { return }
      core.isStarting = true
      defer {
        core.isStarting = false
        inputs.send(())
      }
      if core.capabilities.hasUsers { try await readUsers() }
      if core.capabilities.sending != nil { await beginLeadership() }
      try await readQueue()
      hasStarted = true
      // An earlier attempt may have failed. Then the observers of the list wait for the first list, and everything else
      // waits for its next attempt.
      reports.sendFirstList(of: core.queue)
      update { $0.effects.endsWaits = true }
    }
  }

  /// Calls ``start()``, and retries until the store can be read.
  func startInBackground() async {
    await keepTrying { () async throws(StoreError) in try await start() }
  }

  /// Begins to follow the records of users, unless it follows them already.
  func readUsers() async throws(StoreError) {
    if hasReadUsers { return }
    try await usersQueue.run { () async throws(StoreError) in
      if hasReadUsers { return }
      try await follow(collection: core.userCollection, as: UserRecord.self)
      hasReadUsers = true
    }
  }

  /// Begins to follow the stored mutations, unless the source is read-only.
  ///
  /// If they are followed already, waits until everything that was stored before this call is applied.
  func readQueue() async throws(StoreError) {
    guard core.capabilities.sending != nil else { return }
    try await readQueue.run { () async throws(StoreError) in
      if hasReadQueue { return try await catchUp() }
      reportStoreEvents()
      try await follow(recordKeys.withdrawals)
      // The mutations up to the counter's number were stored before the counter.
      try await follow(recordKeys.counter)
      try await follow(collection: recordKeys.collection, as: MutationRecord.self)
      hasReadQueue = true
    }
  }

  /// Starts to report the store's events about records that can't be read.
  private func reportStoreEvents() {
    guard !isReportingStoreEvents else { return }
    isReportingStoreEvents = true
    tasks.start { [collection = recordKeys.collection, storeEvents = store.events.subscribe(), events] in
      for await storeEvent in storeEvents {
        if let event = RepositoryEvent(storeEvent, of: collection) { events.emit(event) }
      }
    }
  }

  // MARK: - Queue

  private func sendList(after delay: Duration) async {
    if delay > .zero { await clock.wait(until: clock.elapsed() + delay) }
    reports.sendList(of: core.queue)
  }

  /// Sends the current list of mutations to the observers of the queue, unless their channel replays one already.
  ///
  /// If the store can't be read, ``start()`` sends the list as soon as ``startInBackground()`` has succeeded.
  func observeList() async {
    do throws(StoreError) {
      try await start()
      reports.sendFirstList(of: core.queue)
    } catch {
      events.emit(.storeFailed(error))
    }
  }

  func endObservingList() {
    channels.lists.forgetReleased(recordKeys.collection)
  }

  /// Returns all mutations in order.
  func list() async throws(StoreError) -> [PendingMutation<Key, Mutation>] {
    try await start()
    return core.queue.list
  }

  /// Returns the mutations that this program can't read, in order.
  func unreadable() async throws(StoreError) -> [UnreadableMutation<Key>] {
    try await start()
    return core.queue.unreadable
  }

  // MARK: - Environment

  /// The maximum time by which a reconnection delays the fetches of observed values, so that mutations are sent first.
  private static var maximumSendingTime: Duration { .seconds(5) }

  /// Starts observing the network and the app.
  func observeEnvironment() {
    tasks.start { [weak self, network = configuration.network] in
      for await status in network.statuses { await self?.update { $0.receive(status) } }
    }
    tasks.start { [weak self, activity = configuration.activity] in
      for await activity in activity.activities { await self?.receive(activity) }
    }
  }

  func invalidate(_ selection: KeySelection<Key>) {
    update { $0.invalidate(selection) }
  }

  func retryNow() {
    update { $0.retryNow() }
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
    update { core in
      for userID in core.queue.usersNeedingSignIn { core.resumeMutations(of: userID) }
      core.retryNow()
    }
  }

  /// Waits for mutations to be sent, and then fetches observed values, unless the network's availability has changed in
  /// the meantime.
  private func fetchAfterSending(isDelayed: Bool, changeCount: Int) async {
    if core.queue.hasMutationsToSend, liveCounts.value != 0 {
      await clock.wait(until: clock.elapsed() + Self.maximumSendingTime) { [counts = liveCounts.stream] in
        for await count in counts where count == 0 { return }
      }
    }
    update { $0.fetchAfterSending(isDelayed: isDelayed, changeCount: changeCount) }
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
    return update { core in
      var report = core.report { channels.observerCount(of: $0) }
      report.storeFailure = storeFailure
      return report
    }
  }
}

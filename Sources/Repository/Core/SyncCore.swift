internal import DataStore
internal import Foundation

/// Decides everything that a repository does: a value without a store, a clock, tasks or actors.
///
/// ``SyncEngine`` calls one of its functions for each input, such as a call of the app, a reply of the server or a
/// commit in the store, and performs the ``Effects``. ``settle()`` ends each input: it applies pending mutations, finds
/// conflicts, and picks the mutations to send. So one input leads to one consistent change, however many functions it
/// passes through.
///
/// - ``KeyStates`` has the state of each key that is in use or was recently. Its ``SyncState`` decides which value is
///   visible, and which replies are stored.
/// - ``MutationQueue`` has the mutations and their order.
/// - ``UserAccess`` knows who has signed in and out, ``Lead`` whether this repository sends, and
///   ``ObservedLoadingState`` what is fetched because it is observed.
struct SyncCore<Source: RepositorySource> {
  typealias Key = Source.Key
  typealias Value = Source.Value
  typealias Mutation = Source.Mutation
  typealias Failure = RepositoryError<Source.Failure>
  typealias Queue = MutationQueue<Key, Mutation>
  typealias Entry = Queue.Entry
  typealias ID = KeyID<Key>
  typealias State = KeyState<Source>

  let capabilities: SourceCapabilities<Source>
  /// The name of the repository, which is also the collection of its values.
  let name: String
  let recordKeys: MutationKeys
  let userCollection: String
  let settings: Settings
  let format: MutationFormat<Mutation>
  /// Whether a key has observers, who come and go on any thread.
  let isObserved: @Sendable (Key) -> Bool

  /// The time of the present input.
  var now = Moment(time: .distantPast, elapsed: .zero)
  /// Whether the repository is released, so that nothing more is sent.
  var isReleased = false
  /// Whether the queue is being read for the first time.
  var isStarting = false

  var keys = KeyStates<Source>()
  @Boxed var queue: Queue
  /// The stored values that the mutations share.
  var shared = SharedRecords()
  /// The last changes, by other processes, of the records of mutations that are being added again under their ids.
  var changesDuringAddition: [MutationID: StoreFeedChange] = [:]
  /// The values in the commit that is being applied that this program can't use.
  var unusableValues: Set<StoreKeyName> = []
  /// The records that are being removed.
  var idsBeingRemoved: Set<MutationID> = []
  /// The mutations whose marks are being written before their turn.
  var idsBeingMarked: Set<MutationID> = []
  /// The mutations with calls that have no outcome yet.
  var calls: Set<MutationID> = []
  var timeouts = CallTimeouts()
  var users = UserAccess()
  /// The number of sign-outs of each user in the records that were read first.
  var signOutCountsAtStart: [UserDigest: UInt64] = [:]
  var lead = Lead()
  /// The attempts in flight, including their reads and writes of the store.
  private(set) var attempts: Set<UInt64> = []
  private var lastAttempt: UInt64 = 0
  /// The writes of replies whose commits the feed hasn't shown yet, by the tags of the commits.
  var writes: [StoreTag: (write: SyncState<Value, Mutation>.Write, key: ID)] = [:]
  var lastFetchNumber = 0
  @Boxed var loading: ObservedLoadingState<Key>
  var network = NetworkState()
  var isActive = true
  var suspension = SuspensionState()
  /// The drains that have resumed the repository and read the queue, or could not read it.
  var drains: [UInt64: Result<Void, StoreError>] = [:]
  /// Whether attempts that still go on no longer matter, because their outcomes are stored as unknown.
  var hasLeftAttempts = false
  /// The time at which the next observed value is due.
  var loadsAt: Duration?
  /// The time at which the queue has something to do.
  private var sendsAt: Duration?
  private var delays: AnyRandomNumberGenerator

  @Boxed var evictions: EvictionState<Key>
  /// Whether the stored values are known to ``evictions``.
  var isEvicting = false
  /// Whether values that exceed the limits are about to be removed.
  var isMakingRoom = false
  /// The time at which stored values are due for eviction.
  var makesRoomAt: Duration?

  private var changedKeys: Set<ID> = []
  private var orderOfChanges: [ID] = []
  var effects = Effects<Source>()

  /// The parts of a ``RepositoryConfiguration`` that decisions depend on.
  struct Settings {
    var retryPolicy: RetryPolicy
    var queueLimits: QueueLimits
    var freshness: Freshness
    var pageSize: Int
    var maximumPages: Int?
    /// The time between two attempts to lead.
    var leadInterval: Duration
  }

  init(_ source: Source, _ configuration: RepositoryConfiguration, isObserved: @escaping @Sendable (Key) -> Bool) {
    (name, recordKeys) = (source.name, MutationKeys(repository: source.name))
    userCollection = UserRecord.collection(ofRepository: source.name)
    capabilities = SourceCapabilities(source)
    format = MutationFormat(repository: source.name)
    settings = Settings(
      retryPolicy: configuration.retryPolicy, queueLimits: configuration.queueLimits,
      freshness: configuration.freshness, pageSize: configuration.pageSize, maximumPages: configuration.maximumPages,
      leadInterval: configuration.leadership.retryInterval)
    queue = Queue(
      maximumInFlight: configuration.maximumConcurrentSends,
      maximumInterruptedAttempts: configuration.retryPolicy.maximumInterruptedAttempts)
    loading = ObservedLoadingState(slotCount: configuration.maximumObservedFetches, random: configuration.random)
    evictions = EvictionState(configuration.eviction)
    delays = AnyRandomNumberGenerator(configuration.random)
    self.isObserved = isObserved
  }

  // MARK: - Effects

  /// Whether an input has effects that ``settle()`` hasn't returned yet.
  ///
  /// A function that neither changes what observers see nor what is to be sent can end without ``settle()`` if it has
  /// no effects.
  var hasEffects: Bool { !effects.operations.isEmpty || !effects.released.isEmpty }

  mutating func emit(_ event: RepositoryEvent) { effects.reports.append(.event(event)) }

  mutating func start(_ operation: Effects<Source>.Operation) { effects.operations.append(operation) }

  /// Ends the call of a mutation, unless it has an outcome already.
  mutating func end(_ id: MutationID, _ outcome: Result<MutationResult, Failure>) {
    if calls.remove(id) != nil { effects.ends.append(.call(id, outcome)) }
  }

  /// Ends the calls of mutations that have to wait for something other than their turn.
  ///
  /// - Parameter ids: The ids of the mutations, evaluated only if there are calls.
  mutating func endQueued(_ ids: (Queue) -> [MutationID]) {
    if calls.isEmpty { return }
    for id in ids(queue) { end(id, .success(.queued)) }
  }

  mutating func endQueued(_ ids: [MutationID]) { endQueued { _ in ids } }

  mutating func endQueuedOfStalledLanes() {
    endQueued { queue in queue.live.filter { queue.isStalled($0.lane) }.map(\.id) }
  }

  /// Returns a random delay for the wait after a failed attempt.
  ///
  /// - Parameter attempt: The number of the failed attempt; the first is 1.
  mutating func delay(forAttempt attempt: Int) -> Duration {
    settings.retryPolicy.delay(forAttempt: attempt, using: &delays)
  }

  // MARK: - Settling

  /// Records that what observers see of a key may have changed.
  mutating func touch(_ id: ID) {
    if changedKeys.insert(id).inserted { orderOfChanges.append(id) }
  }

  mutating func touch(_ key: Key) {
    if let id = keys[key]?.id { touch(id) }
  }

  /// Ends an input: brings everything that depends on what has changed up to date.
  ///
  /// - Returns: The effects of the input.
  mutating func settle() -> Effects<Source> {
    publish()
    pump()
    effects.deadline = deadline
    effects.queue = QueueSummary(
      version: queue.version, count: queue.count, liveCount: queue.liveCount, undecidedCount: queue.undecidedCount)
    defer { effects = Effects() }
    return effects
  }

  /// Applies the pending mutations of the changed keys, and records those that are in conflict now.
  ///
  /// Nothing is known of a key before it is open, and nothing may be shown of one whose user has signed out.
  mutating func publish() {
    let changed = orderOfChanges
    (changedKeys, orderOfChanges) = ([], [])
    for id in changed {
      guard let conflicts = keys.fold(id, hasHeldMutation: queue.holdsMutation(of: id.key)) else { continue }
      for conflicted in conflicts { recordConflict(conflicted.id, conflicted.conflict) }
      effects.published.append(id)
    }
  }

  /// Begins the attempts that may begin now.
  mutating func pump() {
    sendsAt = nil
    while !isReleased {
      if mustYield { return giveUpLead() }
      switch queue.next(at: now.elapsed) {
      case .send(let entry):
        lead.restsAt = nil
        lastAttempt += 1
        attempts.insert(lastAttempt)
        start(.send(entry, attempt: lastAttempt))
      case .lead:
        // Attempts that began before this repository became a follower must end first. Otherwise it might lead again
        // and send their mutations a second time.
        guard attempts.isEmpty, !lead.isCampaigning else { return }
        lead.isCampaigning = true
        return start(.campaign)
      case .wait(let deadline):
        sendsAt = deadline
        return linger()
      }
    }
  }

  /// Gives the lead up after a while without attempts, or at once while nothing may be sent.
  private mutating func linger() {
    if !attempts.isEmpty || !lead.isHeld {
      lead.restsAt = nil
    } else if queue.isPaused {
      // What is being sent or stored calls this function again.
      if queue.isSettled { giveUpLead() }
    } else if lead.restsAt == nil {
      lead.restsAt = now.elapsed + Lead.linger
    }
  }

  /// Gives the lead up as soon as no attempt is in flight.
  private mutating func giveUpLead() {
    lead.restsAt = nil
    guard attempts.isEmpty, !lead.isResting else { return }
    lead.isResting = true
    start(.rest)
  }

  /// Whether the repository must give the lead up, so that a version of the program can lead that can read the
  /// mutations that this one can't.
  var mustYield: Bool { queue.holdsMutations && lead.isOverdue(at: now.elapsed) }

  /// Records that an attempt has ended.
  mutating func endAttempt(_ number: UInt64, _ attempted: Entry) {
    attempts.remove(number)
    handOffIfFollowing(attempted)
  }

  // MARK: - Report

  /// Returns a report of the repository's contents and activity.
  ///
  /// - Parameter observerCount: Returns the number of a key's observers.
  mutating func report(observerCount: (Key) -> Int) -> RepositoryReport {
    let pendingCounts = queue.liveCountsByKey
    let states = keys.all
    var keyReports = states.map { state in
      state.report(
        isFresh: isFresh(state), observerCount: observerCount(state.key), pendingCount: pendingCounts[state.key] ?? 0)
    }
    let keysInUse = Set(states.map(\.key))
    for (key, count) in pendingCounts where !keysInUse.contains(key) {
      keyReports.append(.init(key, pendingCount: count))
    }
    var report = RepositoryReport(name: name, time: now.time, keys: keyReports.sorted { $0.key < $1.key })
    report.stored = isEvicting ? .init(count: evictions.count, byteCount: evictions.byteCount) : nil
    queue.report(to: &report, at: now.elapsed)
    report.leadership = capabilities.sending == nil ? nil : queue.leadership
    return report
  }

  /// The result of a drain that has reached its end; `nil` if there is still something to wait for.
  mutating func result(of drain: UInt64, within deadline: Duration) -> DrainResult? {
    // The repository was suspended.
    guard suspension.isDraining(drain) else { return queue.unfinishedDrainResult }
    switch drains[drain] {
    case nil: return nil
    case .failure(let error): return .paused(.store(error))
    case .success: return queue.drainResult(at: now, within: deadline)
    }
  }

  // MARK: - Time

  /// The time at which ``ring()`` must be called.
  private var deadline: Duration? {
    var deadline: Duration?
    for next in [sendsAt, lead.restsAt, timeouts.deadline, loadsAt, makesRoomAt] {
      if let next { deadline = min(deadline ?? next, next) }
    }
    return deadline
  }

  /// Does what is due by now.
  mutating func ring() {
    for id in timeouts.removeExpired(at: now.elapsed) { end(id, .success(.queued)) }
    if let time = lead.restsAt, time <= now.elapsed { giveUpLead() }
    fetchObserved([])
    if let time = makesRoomAt, time <= now.elapsed {
      makesRoomAt = nil
      start(.makeRoom)
    }
  }
}

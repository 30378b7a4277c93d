internal import DataStore
internal import Foundation
internal import Multicast

/// Removes the values that a call of ``SyncedRepository/evict(_:)`` selects, and those that ``EvictionState`` selects
/// by an ``EvictionPolicy``.
///
/// A commit removes a value only if the stored value still has the tag that was read last, so a value that another
/// process has just stored isn't removed. While a value is being removed, the engine doesn't read it for an observer or
/// a call; see ``waitWhileRemoving(_:isolation:)``. So a new observer never receives a value that is then removed.
///
/// What another repository of this process observes on the same place isn't removed either; see ``EvictionPeer``. But an
/// observer that it gets during a removal may receive the value, and then its removal.
///
/// Belongs to one ``SyncEngine`` and is used in its isolation only.
final class SyncEvictions<Source: RepositorySource> {
  typealias Engine = SyncEngine<Source>
  typealias Key = Source.Key
  typealias Value = Source.Value
  typealias State = EvictionState<Key>

  /// The greatest number of values that one commit removes.
  ///
  /// The limit keeps a large eviction from delaying other commits.
  private static var batchLimit: Int { 256 }

  private let store: any KeyValueStore
  private let name: String
  private let isLimited: Bool
  private let now: @Sendable () -> Date
  private let clock: ElapsedClock
  private let events: RepositoryEvents
  private let alarm: Alarm
  private let peer: EvictionPeer
  private var state: State
  /// Makes the removals of this repository run one at a time.
  private let removalQueue = AsyncSerialQueue()
  private let startQueue = AsyncSerialQueue()
  private var hasStarted = false
  /// The number of failed attempts in a row to make room.
  private var failureCount = 0
  /// Whether a task that makes room is scheduled.
  private var isMakingRoomScheduled = false
  /// The keys whose values are being removed.
  private var keysBeingRemoved: Set<Key> = []
  /// The keys that were kept only because another repository observes them.
  ///
  /// That repository doesn't report the end of the observation, so these keys are considered again.
  private var keysKeptForPeers: [Key] = []

  init(
    _ store: any KeyValueStore, repository name: String, channels: SyncChannels<Source>,
    configuration: RepositoryConfiguration, clock: ElapsedClock, events: RepositoryEvents, tasks: OwnedTasks
  ) {
    peer = EvictionPeer(name, on: store) { storeID in
      guard let key = Key(storeID: storeID) else { return false }
      return channels.isObserved(key) || channels.isShown(key, toObserversOfAll: name)
    }
    (self.store, self.name, self.clock, self.events) = (store, name, clock, events)
    (isLimited, now) = (configuration.eviction.isLimited, configuration.now)
    state = State(configuration.eviction)
    alarm = Alarm(clock, tasks)
  }

  /// The number and the size of the stored values, or `nil` if they aren't known, because the policy sets no limit or
  /// the values haven't been read yet.
  var usage: (count: Int, byteCount: Int)? { hasStarted ? (state.count, state.byteCount) : nil }

  // MARK: - Store

  /// Reads which values are stored, subscribes to their changes, and evicts values that exceed the policy.
  func begin(in engine: isolated Engine) async {
    guard isLimited else { return }
    await engine.keepTrying { (engine) async throws(StoreError) in try await engine.evictions.start(in: engine) }
    await makeRoom(in: engine)
  }

  /// Reads which values are stored and subscribes to their changes, unless that has been done.
  private func start(in engine: isolated Engine) async throws(StoreError) {
    if hasStarted { return }
    try await engine.start()
    try await startQueue.run { () async throws(StoreError) in
      if hasStarted { return }
      let observation = try await store.observe(collection: name, as: Value.self)
      hasStarted = true
      for entry in observation.stored { receive(.saved(entry.key, entry.stored)) }
      engine.tasks.start { [weak engine] in
        for await changes in observation.changes { await engine?.receiveStored(changes) }
      }
    }
  }

  /// Handles a change that the store reports.
  func receive(_ change: StoreChange<Value>) {
    guard let key = change.key.id.flatMap({ Key(storeID: $0) }) else { return }
    switch change {
    case .saved(_, let stored): record(stored, of: key)
    case .removed(_, let revision): state.recordRemoval(of: key, revision: revision)
    }
  }

  private func record(_ stored: StoredValue<Value>, of key: Key) {
    // Saving counts as a use. If the clock has been set back since the save, the time of the save is in the future, and
    // the present time is recorded instead.
    state.recordValue(
      of: key, tag: stored.tag, byteCount: stored.byteCount ?? Self.byteCount(of: stored.value),
      revision: stored.revision, at: min(stored.savedAt, now()))
  }

  /// The size of a value, for a store that doesn't report it.
  private static func byteCount(of value: Value) -> Int {
    // A value that can't be encoded isn't stored.
    do { return try JSONEncoder().encode(value).count } catch { return 0 }
  }

  // MARK: - Uses

  /// Records that a use of a key has ended, and makes room if necessary.
  func recordUse(of key: Key, in engine: isolated Engine) {
    guard hasStarted else { return }
    state.recordUse(of: key, at: now())
    makeRoomIfNecessary(in: engine)
  }

  /// Starts to make room if a limit is exceeded, or if a value will become idle and no alarm is set.
  ///
  /// The second case is a reason because making room sets the alarm.
  func makeRoomIfNecessary(in engine: isolated Engine) {
    if state.isOverLimit || (!alarm.isSet && state.nextIdleTime() != nil) { makeRoomSoon(in: engine) }
  }

  /// Records a value that this repository has just stored, without waiting for the store's report, and makes room.
  func makeRoom(
    afterSaving value: Value, of cell: SyncCell<Source>, _ commit: StoreCommit, in engine: isolated Engine
  ) async {
    guard isLimited else { return }
    let stored = StoredValue(
      value: value, savedAt: commit.savedAt, revision: commit.revision, tag: commit.tag,
      byteCount: commit.byteCounts[cell.storeKey.keyName])
    record(stored, of: cell.key)
    await makeRoom(in: engine)
  }

  private func makeRoomSoon(in engine: isolated Engine) {
    guard !isMakingRoomScheduled else { return }
    isMakingRoomScheduled = true
    engine.start { engine in
      engine.evictions.isMakingRoomScheduled = false
      await engine.evictions.makeRoom(in: engine)
    }
  }

  // MARK: - Evicting

  /// Removes values until the policy is met or the rest must be kept, and sets the alarm for the time at which the next
  /// value becomes idle.
  ///
  /// If the store fails, sets the alarm for another attempt.
  private func makeRoom(in engine: isolated Engine) async {
    var delay = Duration?.none
    do throws(StoreError) {
      try await start(in: engine)
      try await removalQueue.run { () async throws(StoreError) in
        defer { reconsiderKeysKeptForPeers() }
        while case let victims = takeVictims(in: engine), !victims.isEmpty { try await remove(victims, in: engine) }
      }
      failureCount = 0
      delay = state.nextIdleTime().map { .seconds($0.timeIntervalSince(now())) }
    } catch {
      events.emit(.storeFailed(error))
      failureCount += 1
      delay = engine.backoff.delay(forAttempt: failureCount)
    }
    alarm.set(delay.map { clock.elapsed() + $0 }) { [weak engine] deadline in
      await engine?.makeRoom(at: deadline)
    }
  }

  /// Makes room after a deadline of the alarm has passed.
  func makeRoom(at deadline: Duration, in engine: isolated Engine) async {
    alarm.clear(deadline)
    await makeRoom(in: engine)
  }

  private func takeVictims(in engine: isolated Engine) -> [State.Victim] {
    let peers = peer.others
    return state.takeVictims(at: now(), limit: Self.batchLimit) { key in
      if isKept(key, in: engine) { return true }
      let isKeptForPeers = EvictionPeer.isObserved(key.storeID, byAnyOf: peers)
      if isKeptForPeers { keysKeptForPeers.append(key) }
      return isKeptForPeers
    }
  }

  /// Considers the values again that were kept for other repositories, as if they had just been used.
  private func reconsiderKeysKeptForPeers() {
    for key in keysKeptForPeers { state.recordUse(of: key, at: now()) }
    keysKeptForPeers = []
  }

  /// Removes the values of the selected keys, except those that must be kept.
  func evict(_ selection: KeySelection<Key>, in engine: isolated Engine) async throws(StoreError) {
    try await engine.start()
    try await removalQueue.run { () async throws(StoreError) in
      var victims = try await loadVictims(selection)[...]
      while !victims.isEmpty {
        let batch = victims.prefix(Self.batchLimit).filter { !isKept($0.key, in: engine) }
        try await remove(batch, in: engine)
        victims = victims.dropFirst(Self.batchLimit)
      }
    }
  }

  private func loadVictims(
    _ selection: KeySelection<Key>, isolation: isolated (any Actor)? = #isolation
  ) async throws(StoreError) -> [State.Victim] {
    if case .key(let key) = selection {
      let stored = try await store.load(StoreKey<Value>(name, id: key.storeID))
      return stored.map { [State.Victim(key: key, tag: $0.tag)] } ?? []
    }
    return try await store.observe(collection: name, as: Value.self).stored.compactMap { entry in
      guard let key = entry.key.id.flatMap({ Key(storeID: $0) }), selection.contains(key) else { return nil }
      return State.Victim(key: key, tag: entry.stored.tag)
    }
  }

  /// Whether a value must be kept, because its key is in use or pinned.
  private func isKept(_ key: Key, in engine: isolated Engine) -> Bool {
    engine.isInUse(key) || engine.isPinned(key)
  }

  /// Removes values in one commit, except those whose keys are in use by now.
  ///
  /// An observer can subscribe on any thread, even after the victims were chosen. If the stored value of a victim has
  /// changed, tries again without that victim.
  private func remove(_ victims: [State.Victim], in engine: isolated Engine) async throws(StoreError) {
    var pendingVictims: [State.Victim] = []
    let peers = peer.others
    for victim in victims {
      if !EvictionPeer.isObserved(victim.key.storeID, byAnyOf: peers), engine.releaseUnlessInUse(victim.key) {
        pendingVictims.append(victim)
      } else {
        state.recordUse(of: victim.key, at: now())
      }
    }
    keysBeingRemoved = Set(pendingVictims.map(\.key))
    defer { keysBeingRemoved = [] }
    do throws(StoreError) {
      while !pendingVictims.isEmpty { try await commitRemoval(of: &pendingVictims, in: engine) }
    } catch {
      state.restoreVictims(pendingVictims)
      throw error
    }
  }

  /// Tries to remove all `victims` in one commit, and empties the array if it succeeds.
  ///
  /// If a stored value has changed, nothing is removed. The array then loses only that victim, so that the caller can
  /// try again with the others.
  private func commitRemoval(of victims: inout [State.Victim], in engine: isolated Engine) async throws(StoreError) {
    var batch = StoreBatch()
    for victim in victims {
      let key = StoreKey<Value>(name, id: victim.key.storeID)
      batch.remove(key)
      batch.require(victim.tag, of: key)
    }
    do throws(StoreError) {
      let commit = try await store.commit(batch)
      for victim in victims { recordRemoval(of: victim.key, commit, in: engine) }
      victims = []
    } catch {
      guard let index = victims.firstIndex(where: { error.concerns(StoreKeyName(name, id: $0.key.storeID)) }) else {
        throw error
      }
      // The value has been removed or changed since its tag was read. A change counts as a use.
      try await recordStoredValue(of: victims.remove(at: index).key)
    }
  }

  /// After a failed removal, records which value the key has now, or that it has none.
  private func recordStoredValue(of key: Key, isolation: isolated (any Actor)? = #isolation) async throws(StoreError) {
    do throws(StoreError) {
      if let stored = try await store.load(StoreKey<Value>(name, id: key.storeID)) { return record(stored, of: key) }
    } catch {
      switch error {
      // A value that this program can't read is neither evicted nor counted.
      case .undecodable, .newerFormat, .migrationFailed: break
      default: throw error
      }
    }
    // The revision of the removal isn't known. With `.max`, the removal takes effect whatever revision is recorded.
    state.recordRemoval(of: key, revision: .max)
  }

  private func recordRemoval(of key: Key, _ commit: StoreCommit, in engine: isolated Engine) {
    state.recordOwnRemoval(of: key, revision: commit.revision)
    // An event must not name a key of a user who has signed out meanwhile.
    if engine.users.isOpen(key.userID) { events.emit(.valueEvicted(key: key.storeID)) }
  }

  /// Waits until the removal of a value has succeeded or failed.
  func waitWhileRemoving(_ key: Key, isolation: isolated (any Actor)? = #isolation) async {
    while keysBeingRemoved.contains(key) { await removalQueue.run {} }
  }
}

extension StoreError {
  /// Whether a commit failed because of the stored value of a key.
  fileprivate func concerns(_ key: StoreKeyName) -> Bool {
    switch self {
    case .preconditionFailed(let failed), .newerFormat(let failed, _, _): failed == key
    default: false
    }
  }
}

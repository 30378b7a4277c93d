internal import DataStore
internal import Foundation
internal import Multicast

/// Removes what has to go by an ``EvictionPolicy``, as ``EvictionState`` says, and what a call evicts.
///
/// A removal requires the value that is known, so that nothing is removed that another process has just stored. While it is
/// being made, its keys can't be opened: so an observer that comes meanwhile sees the value again, or what follows it, and
/// never a value that vanishes.
///
/// Belongs to one ``SyncEngine`` and is used in its isolation only.
final class SyncEvictions<Source: RepositorySource> {
  typealias Engine = SyncEngine<Source>
  typealias Key = Source.Key
  typealias Value = Source.Value
  typealias State = EvictionState<Key>

  /// The most values that one commit removes.
  private static var batchLimit: Int { 256 }

  private let store: any KeyValueStore
  private let name: String
  private let isLimited: Bool
  private let now: @Sendable () -> Date
  private let clock: ElapsedClock
  private let events: RepositoryEvents
  private let alarm: Alarm
  private var state: State
  /// Lets one removal of this repository come after the other.
  private let turns = AsyncSerialQueue()
  private let starting = AsyncSerialQueue()
  private var hasStarted = false
  /// The number of attempts to make room in a row that failed.
  private var failures = 0
  /// Whether a task makes room.
  private var isMakingRoom = false
  /// The keys whose values are being removed.
  private var leaving: Set<Key> = []

  init(
    _ store: any KeyValueStore, repository name: String, configuration: RepositoryConfiguration, clock: ElapsedClock,
    events: RepositoryEvents, tasks: OwnedTasks
  ) {
    (self.store, self.name, self.clock, self.events) = (store, name, clock, events)
    (isLimited, now) = (configuration.eviction.isLimited, configuration.now)
    state = State(configuration.eviction)
    alarm = Alarm(clock, tasks)
  }

  /// What the stored values come to; `nil` if that isn't known, because nothing limits them.
  var usage: (count: Int, byteCount: Int)? { hasStarted ? (state.count, state.byteCount) : nil }

  // MARK: - Following the store

  /// Reads which values are stored, follows them from there, and removes those that have to go.
  func begin(in engine: isolated Engine) async {
    guard isLimited else { return }
    await engine.keepTrying { (engine) async throws(StoreError) in try await engine.evictions.start(in: engine) }
    await makeRoom(in: engine)
  }

  private func start(in engine: isolated Engine) async throws(StoreError) {
    if hasStarted { return }
    try await engine.start()
    try await starting.run { () async throws(StoreError) in
      if hasStarted { return }
      let observation = try await store.observe(collection: name, as: Value.self)
      hasStarted = true
      for entry in observation.stored { receive(.saved(entry.key, entry.stored)) }
      engine.tasks.start { [weak engine] in
        for await changes in observation.changes { await engine?.receiveStored(changes) }
      }
    }
  }

  /// Takes in a change that the store reports.
  func receive(_ change: StoreChange<Value>) {
    guard let key = change.key.id.flatMap({ Key(storeID: $0) }) else { return }
    switch change {
    case .saved(_, let stored): record(stored, of: key)
    case .removed(_, let revision): state.recordRemoval(of: key, revision: revision)
    }
  }

  private func record(_ stored: StoredValue<Value>, of key: Key) {
    state.recordValue(
      of: key, tag: stored.tag, byteCount: stored.byteCount ?? Self.byteCount(of: stored.value),
      revision: stored.revision, at: min(stored.savedAt, now()))
  }

  /// The size of a value in a store that doesn't say it.
  private static func byteCount(of value: Value) -> Int {
    // What can't be encoded isn't stored.
    do { return try JSONEncoder().encode(value).count } catch { return 0 }
  }

  // MARK: - Following the engine

  /// Records that a use of a key has ended, and makes room if it was waited for.
  func recordUse(of key: Key, in engine: isolated Engine) {
    guard hasStarted else { return }
    state.recordUse(of: key, at: now())
    if state.isOverLimit { makeRoomSoon(in: engine) }
  }

  /// Records a value that this repository has stored, before the store reports it, and makes room for it.
  func makeRoom(for key: StoreKey<Value>, of cell: SyncCell<Source>, in engine: isolated Engine) async {
    guard isLimited else { return }
    do throws(StoreError) {
      if let stored = try await store.load(key) { record(stored, of: cell.key) }
    } catch {
      // The store's report tells it too.
      events.emit(.storeFailed(error))
    }
    await makeRoom(in: engine)
  }

  private func makeRoomSoon(in engine: isolated Engine) {
    guard !isMakingRoom else { return }
    isMakingRoom = true
    engine.start { engine in
      engine.evictions.isMakingRoom = false
      await engine.evictions.makeRoom(in: engine)
    }
  }

  // MARK: - Evicting

  /// Removes what has to go, and sets the alarm for what comes next.
  private func makeRoom(in engine: isolated Engine) async {
    var wait = Duration?.none
    do throws(StoreError) {
      try await start(in: engine)
      try await turns.run { () async throws(StoreError) in
        while case let victims = takeVictims(in: engine), !victims.isEmpty { try await remove(victims, in: engine) }
      }
      failures = 0
      wait = state.nextIdleTime().map { .seconds($0.timeIntervalSince(now())) }
    } catch {
      events.emit(.storeFailed(error))
      failures += 1
      wait = engine.backoff.delay(forAttempt: failures)
    }
    alarm.set(wait.map { clock.elapsed() + $0 }) { [weak engine] deadline in
      await engine?.makeRoom(at: deadline)
    }
  }

  /// Removes what has to go when the alarm rings.
  func makeRoom(at deadline: Duration, in engine: isolated Engine) async {
    alarm.silence(deadline)
    await makeRoom(in: engine)
  }

  private func takeVictims(in engine: isolated Engine) -> [State.Victim] {
    state.takeVictims(at: now(), limit: Self.batchLimit) { isKept($0, in: engine) }
  }

  /// Removes the values of some keys, except those that have to stay.
  func evict(_ selection: KeySelection<Key>, in engine: isolated Engine) async throws(StoreError) {
    try await engine.start()
    try await turns.run { () async throws(StoreError) in
      var victims = try await stored(selection)[...]
      while !victims.isEmpty {
        let batch = victims.prefix(Self.batchLimit).filter { !isKept($0.key, in: engine) }
        try await remove(batch, in: engine)
        victims = victims.dropFirst(Self.batchLimit)
      }
    }
  }

  private func stored(
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

  /// Whether a value has to stay.
  private func isKept(_ key: Key, in engine: isolated Engine) -> Bool {
    engine.isInUse(key) || engine.isPinned(key)
  }

  /// Removes values in one commit, and those of them that nothing has changed in another one if it fails.
  private func remove(_ victims: [State.Victim], in engine: isolated Engine) async throws(StoreError) {
    var left: [State.Victim] = []
    for victim in victims {
      if engine.closeIdle(victim.key) { left.append(victim) } else { state.recordUse(of: victim.key, at: now()) }
    }
    leaving = Set(left.map(\.key))
    defer { leaving = [] }
    do throws(StoreError) {
      while !left.isEmpty { try await commitRemoval(of: &left, in: engine) }
    } catch {
      state.giveBack(left)
      throw error
    }
  }

  /// Removes values in one commit, or takes one away that isn't what it was thought to be.
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
      // Another process has changed it. It isn't considered again until what is there now is used.
      try await reload(victims.remove(at: index).key)
    }
  }

  /// Records what is stored of a key that isn't what it was thought to be.
  private func reload(_ key: Key, isolation: isolated (any Actor)? = #isolation) async throws(StoreError) {
    do throws(StoreError) {
      if let stored = try await store.load(StoreKey<Value>(name, id: key.storeID)) { return record(stored, of: key) }
    } catch {
      switch error {
      // What this program can't read isn't its to remove, nor to count.
      case .undecodable, .newerFormat, .migrationFailed: break
      default: throw error
      }
    }
    state.recordRemoval(of: key, revision: .max)
  }

  private func recordRemoval(of key: Key, _ commit: StoreCommit, in engine: isolated Engine) {
    state.recordOwnRemoval(of: key, revision: commit.revision)
    // Nothing may name a user who has signed out meanwhile.
    if engine.users.isOpen(key.userID) { events.emit(.valueEvicted(key: key.storeID)) }
  }

  /// Waits until a value that is being removed is gone, or stays.
  func waitUntilRemoved(_ key: Key, isolation: isolated (any Actor)? = #isolation) async {
    while leaving.contains(key) { await turns.run {} }
  }
}

extension StoreError {
  /// Whether a commit failed because of what is stored under a key.
  fileprivate func concerns(_ key: StoreKeyName) -> Bool {
    switch self {
    case .preconditionFailed(let failed), .newerFormat(let failed, _, _): failed == key
    default: false
    }
  }
}

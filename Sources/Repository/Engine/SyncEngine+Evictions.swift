internal import DataStore
internal import Foundation
internal import Multicast

/// The removals of stored values, which ``EvictionState`` or a call of ``SyncedRepository/evict(_:)`` selects.
///
/// A commit removes a value only if the stored value still has the tag that was read last, so a value that another
/// process has just stored isn't removed. While a value is being removed, the engine doesn't read it for an observer or
/// a call. So a new observer never receives a value that is then removed.
///
/// What another repository of this process observes on the same place isn't removed either; see ``EvictionPeer``. But
/// an observer that it gets during a removal may receive the value, and then its removal.
struct EvictionWork {
  /// The greatest number of values that one commit removes.
  ///
  /// The limit keeps a large eviction from delaying other commits.
  static var batchLimit: Int { 256 }

  fileprivate let peer: EvictionPeer
  /// Makes the removals of this repository run one at a time.
  fileprivate let removalQueue = AsyncSerialQueue()
  fileprivate let startQueue = AsyncSerialQueue()
  /// The number of failed attempts in a row to make room.
  fileprivate var failureCount = 0
  /// The store ids of the keys whose values are being removed.
  fileprivate var idsBeingRemoved: Set<String> = []
  /// The keys that were kept only because another repository observes them.
  ///
  /// That repository doesn't report the end of the observation, so these keys are considered again.
  fileprivate var keysKeptForPeers: [String] = []

  init<Source: RepositorySource>(_ name: String, _ store: any KeyValueStore, _ channels: SyncChannels<Source>) {
    peer = EvictionPeer(name, on: store) { storeID in
      guard let key = Source.Key(storeID: storeID) else { return false }
      return channels.isObserved(key) || channels.isShown(key, toObserversOfAll: name)
    }
  }
}

extension SyncEngine {
  typealias Victim = EvictionState<Key>.Victim

  // MARK: - Store

  /// Reads which values are stored, subscribes to their changes, and evicts values that exceed the policy.
  func beginEvicting() async {
    guard configuration.eviction.isLimited else { return }
    await keepTrying { () async throws(StoreError) in try await startEvicting() }
    await makeRoom()
  }

  /// Reads which values are stored and subscribes to their changes, unless that has been done.
  private func startEvicting() async throws(StoreError) {
    if core.isEvicting { return }
    try await start()
    try await eviction.startQueue.run { () async throws(StoreError) in
      if core.isEvicting { return }
      let observation = try await store.observe(collection: name, as: Value.self)
      core.isEvicting = true
      for entry in observation.stored { record(.saved(entry.key, entry.stored)) }
      tasks.start { [weak self] in
        for await changes in observation.changes { await self?.receiveStored(changes) }
      }
    }
  }

  /// Receives changes of values that the store reports together.
  private func receiveStored(_ changes: [StoreChange<Value>]) {
    for change in changes { record(change) }
    update { $0.makeRoomIfNecessary() }
  }

  private func record(_ change: StoreChange<Value>) {
    guard let key = change.key.id.flatMap({ Key(storeID: $0) }) else { return }
    switch change {
    case .saved(_, let stored): record(stored, of: key)
    case .removed(_, let revision): core.evictions.recordRemoval(of: key, revision: revision)
    }
  }

  private func record(_ stored: StoredValue<Value>, of key: Key) {
    // Saving counts as a use. If the clock has been set back since the save, the time of the save is in the future, and
    // the present time is recorded instead.
    core.evictions.recordValue(
      of: key, tag: stored.tag, byteCount: stored.byteCount ?? Self.byteCount(of: stored.value),
      revision: stored.revision, at: min(stored.savedAt, configuration.now()))
  }

  /// The size of a value, for a store that doesn't report it.
  private static func byteCount(of value: Value) -> Int {
    // A value that can't be encoded isn't stored.
    do { return try JSONEncoder().encode(value).count } catch { return 0 }
  }

  /// Records a value that this repository has just stored, without waiting for the store's report, and makes room.
  func makeRoom(afterSaving value: Value, _ id: ID, _ commit: StoreCommit) async {
    guard configuration.eviction.isLimited else { return }
    let stored = StoredValue(
      value: value, savedAt: commit.savedAt, revision: commit.revision, tag: commit.tag,
      byteCount: commit.byteCounts[StoreKeyName(name, id: id.key.storeID)])
    record(stored, of: id.key)
    await makeRoom()
  }

  // MARK: - Evicting

  /// Removes values until the policy is met or the rest must be kept, and sets the time at which the next value becomes
  /// idle.
  ///
  /// If the store fails, sets the time of another attempt.
  func makeRoom() async {
    core.isMakingRoom = false
    var delay = Duration?.none
    do throws(StoreError) {
      try await startEvicting()
      try await eviction.removalQueue.run { () async throws(StoreError) in
        defer { reconsiderKeysKeptForPeers() }
        while case let victims = takeVictims(), !victims.isEmpty { try await remove(victims) }
      }
      eviction.failureCount = 0
      delay = core.evictions.nextIdleTime().map { .seconds($0.timeIntervalSince(configuration.now())) }
    } catch {
      events.emit(.storeFailed(error))
      eviction.failureCount += 1
      delay = core.delay(forAttempt: eviction.failureCount)
    }
    update { core in core.makesRoomAt = delay.map { core.now.elapsed + $0 } }
  }

  private func takeVictims() -> [Victim] {
    let peers = eviction.peer.others
    return core.takeVictims(limit: EvictionWork.batchLimit, at: configuration.now()) { key in
      if channels.isObserved(key) || newestValue.isShown(key) { return true }
      let isKeptForPeers = EvictionPeer.isObserved(key.storeID, byAnyOf: peers)
      if isKeptForPeers { eviction.keysKeptForPeers.append(key.storeID) }
      return isKeptForPeers
    }
  }

  /// Considers the values again that were kept for other repositories, as if they had just been used.
  private func reconsiderKeysKeptForPeers() {
    for key in eviction.keysKeptForPeers.compactMap({ Key(storeID: $0) }) {
      core.evictions.recordUse(of: key, at: configuration.now())
    }
    eviction.keysKeptForPeers = []
  }

  /// Removes the values of the selected keys, except those that must be kept.
  func evict(_ selection: KeySelection<Key>) async throws(StoreError) {
    try await start()
    try await eviction.removalQueue.run { () async throws(StoreError) in
      var victims = try await loadVictims(selection)[...]
      while !victims.isEmpty {
        let batch = victims.prefix(EvictionWork.batchLimit).filter { !isInUse($0.key) && !core.isPinned($0.key) }
        try await remove(batch)
        victims = victims.dropFirst(EvictionWork.batchLimit)
      }
    }
  }

  private func loadVictims(_ selection: KeySelection<Key>) async throws(StoreError) -> [Victim] {
    if case .key(let key) = selection {
      let stored = try await store.load(StoreKey<Value>(name, id: key.storeID))
      return stored.map { [Victim(key: key, tag: $0.tag)] } ?? []
    }
    return try await store.observe(collection: name, as: Value.self).stored.compactMap { entry in
      guard let key = entry.key.id.flatMap({ Key(storeID: $0) }), selection.contains(key) else { return nil }
      return Victim(key: key, tag: entry.stored.tag)
    }
  }

  /// Returns whether a key is observed, in use by a call, being fetched or written, or has pending mutations.
  func isInUse(_ key: Key) -> Bool {
    core.isInUse(key) || channels.isObserved(key) || newestValue.isShown(key)
  }

  /// Removes values in one commit, except those whose keys are in use by now.
  ///
  /// An observer can subscribe on any thread, even after the victims were chosen. If the stored value of a victim has
  /// changed, tries again without that victim.
  private func remove(_ victims: [Victim]) async throws(StoreError) {
    var pendingVictims: [Victim] = []
    let peers = eviction.peer.others
    for victim in victims {
      if !EvictionPeer.isObserved(victim.key.storeID, byAnyOf: peers), releaseUnlessInUse(victim.key) {
        pendingVictims.append(victim)
      } else {
        core.evictions.recordUse(of: victim.key, at: configuration.now())
      }
    }
    eviction.idsBeingRemoved = Set(pendingVictims.map(\.key.storeID))
    defer { eviction.idsBeingRemoved = [] }
    do throws(StoreError) {
      while !pendingVictims.isEmpty { try await commitRemoval(of: &pendingVictims) }
    } catch {
      core.evictions.restoreVictims(pendingVictims)
      throw error
    }
  }

  /// Releases a key whose value is to be removed.
  ///
  /// - Returns: `false` if the key is in use, so its value must stay.
  private func releaseUnlessInUse(_ key: Key) -> Bool {
    guard update({ $0.releaseUnlessInUse(key) }) else { return false }
    newestValue.forget { $0 == key }
    // A new observer, which can subscribe on any thread, may have received the value before it was forgotten.
    return !channels.isObserved(key)
  }

  /// Tries to remove all `victims` in one commit, and empties the array if it succeeds.
  ///
  /// If a stored value has changed, nothing is removed. The array then loses only that victim, so that the caller can
  /// try again with the others.
  private func commitRemoval(of victims: inout [Victim]) async throws(StoreError) {
    var batch = StoreBatch()
    for victim in victims {
      let key = StoreKey<Value>(name, id: victim.key.storeID)
      batch.remove(key)
      batch.require(victim.tag, of: key)
    }
    do throws(StoreError) {
      let commit = try await store.commit(batch)
      for victim in victims {
        core.evictions.recordOwnRemoval(of: victim.key, revision: commit.revision)
        // An event must not name a key of a user who has signed out meanwhile.
        if core.isOpen(victim.key.userID) { events.emit(.valueEvicted(key: victim.key.storeID)) }
      }
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
  private func recordStoredValue(of key: Key) async throws(StoreError) {
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
    core.evictions.recordRemoval(of: key, revision: .max)
  }

  /// Waits until the removal of a value has succeeded or failed.
  func waitWhileRemoving(_ key: Key) async {
    while eviction.idsBeingRemoved.contains(key.storeID) { await eviction.removalQueue.run {} }
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

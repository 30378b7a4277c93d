internal import Multicast

/// A feed of a store that has none of its own: it observes each part by itself, so a commit may be several elements.
actor ObservedFeed<Store: KeyValueStore>: StoreFeed {
  nonisolated let elements: MulticastSubscription<StoreFeedElement, Never>
  private let store: Store
  private let relay = MulticastRelay<StoreFeedElement>(buffering: .unbounded)
  private var parts: [StoreFeedPart: Part] = [:]
  private var lastNumber: UInt64 = 0

  /// A followed part: the task that forwards its changes, and what it has forwarded.
  private struct Part: Sendable {
    let number: UInt64
    let forwarding: Task<Void, Never>
    let progress: CurrentValueRelay<Progress>
    let read: Read
  }

  /// Returns what is stored now, and what has become of those of the given keys that have no value anymore.
  private typealias Read =
    @Sendable (_ known: [StoreKeyName]) async throws(StoreError) -> (
      found: [StoreKeyName: Progress.Save], missing: [StoreFeedChange]
    )

  /// What was forwarded of a part.
  private struct Progress: Sendable {
    struct Save: Hashable, Sendable {
      let tag: StoreTag
      let revision: UInt64
    }

    /// The last forwarded save of each key that wasn't removed since.
    private(set) var saves: [StoreKeyName: Save] = [:]
    /// Whether the part is no longer followed.
    var hasEnded = false
    private var lastRevision: UInt64 = 0

    init(_ changes: [StoreFeedChange]) { for change in changes { record(change) } }

    mutating func record(_ change: StoreFeedChange) {
      switch change {
      case .saved(let key, let stored): saves[key] = Save(tag: stored.tag, revision: stored.revision)
      case .removed(let key, _), .unusable(let key, _, _, _): saves[key] = nil
      }
      lastRevision = max(lastRevision, change.revision)
    }

    /// Whether all saves were forwarded that a read has found.
    func covers(_ found: [StoreKeyName: Save]) -> Bool {
      hasEnded || found.allSatisfy { key, save in saves[key] == save || lastRevision >= save.revision }
    }
  }

  init(of store: Store) {
    self.store = store
    elements = relay.stream.subscribe()
  }

  deinit {
    for part in parts.values { part.forwarding.cancel() }
  }

  func follow<Value>(_ key: StoreKey<Value>) async throws(StoreError) {
    let changes = try await store.changes(of: key).subscribe()
    let stored = try await load(key)
    let first = stored.map { [StoreFeedChange.saved(key.keyName, $0)] } ?? []
    // The subscription begins with the stored value, and may have changes from before the load.
    let read: Read = { [store] known async throws(StoreError) in
      do throws(StoreError) {
        if let stored = try await store.load(key) {
          return ([key.keyName: Progress.Save(tag: stored.tag, revision: stored.revision)], [])
        }
      } catch {
        guard let change = error.unusableChange(of: key.keyName) else { throw error }
        return ([:], known.isEmpty ? [] : [change])
      }
      return ([:], known.map { .removed($0, revision: 0) })
    }
    begin(.key(key.keyName), first, read) { forward in
      for await change in changes {
        if let stored, change.revision <= stored.revision { continue }
        await forward([StoreFeedChange(change)])
      }
    }
  }

  private func load<Value>(_ key: StoreKey<Value>) async throws(StoreError) -> StoredValue<Value>? {
    do throws(StoreError) {
      return try await store.load(key)
    } catch {
      if case .undecodable = error { return nil }
      throw error
    }
  }

  func follow<Value: Codable & Sendable>(collection: String, as type: Value.Type) async throws(StoreError) {
    let observation = try await store.observe(collection: collection, as: type)
    let first = observation.stored.map { StoreFeedChange.saved($0.key.keyName, $0.stored) }
    let read: Read = { [store] known async throws(StoreError) in
      var found: [StoreKeyName: Progress.Save] = [:]
      var missing: [StoreFeedChange] = []
      for entry in try await store.observe(collection: collection, as: type).stored {
        found[entry.key.keyName] = Progress.Save(tag: entry.stored.tag, revision: entry.stored.revision)
      }
      for key in known where found[key] == nil {
        do throws(StoreError) {
          if try await store.load(StoreKey<Value>(key)) == nil { missing.append(.removed(key, revision: 0)) }
        } catch {
          guard let change = error.unusableChange(of: key) else { throw error }
          missing.append(change)
        }
      }
      return (found, missing)
    }
    begin(.collection(collection), first, read) { forward in
      for await changes in observation.changes { await forward(changes.map { StoreFeedChange($0) }) }
    }
  }

  /// Sends what is stored, and forwards the changes, unless the part is followed already.
  private func begin(
    _ part: StoreFeedPart, _ first: [StoreFeedChange],
    _ read: @escaping Read,
    forwarding changes: @escaping @Sendable (_ forward: @Sendable ([StoreFeedChange]) async -> Void) async -> Void
  ) {
    guard parts[part] == nil else { return }
    relay.send(.began(part, first))
    lastNumber += 1
    let forwarding = Task { [weak self, lastNumber] in
      await changes { [weak self] changes in await self?.forward(changes, of: part, number: lastNumber) }
    }
    parts[part] = Part(
      number: lastNumber, forwarding: forwarding, progress: CurrentValueRelay(Progress(first)), read: read)
  }

  /// Sends changes, without removals that ``catchUp()`` has sent.
  private func forward(_ changes: [StoreFeedChange], of part: StoreFeedPart, number: UInt64) {
    guard let part = parts[part], part.number == number else { return }
    var progress = part.progress.value
    let unsent = changes.filter { change in
      defer { progress.record(change) }
      if case .removed(let key, _) = change { return progress.saves[key] != nil } else { return true }
    }
    if let last = unsent.last {
      relay.send(.committed(StoreTransaction(changes: unsent, revision: last.revision, ownTag: nil)))
    }
    part.progress.send(progress)
  }

  func endFollowing(_ part: StoreFeedPart) {
    guard let ended = parts.removeValue(forKey: part) else { return }
    ended.forwarding.cancel()
    ended.progress.update { $0.hasEnded = true }
  }

  /// Reads all followed parts, because a call notices the external changes of what it reads.
  ///
  /// A store doesn't tell the observers of a collection that a value can't be used anymore. So a value that is missing
  /// isn't waited for, but sent here.
  func catchUp() async throws(StoreError) {
    for part in Array(parts.values) {
      let before = part.progress.value.saves
      let (found, missing) = try await part.read(Array(before.keys))
      // What was forwarded before the read may be followed by a newer save, which has another revision.
      let awaited = found.filter { before[$0.key] != $0.value && $0.value.revision > 0 }
      for await progress in part.progress.stream where progress.covers(awaited) { break }
      let now = part.progress.value
      var unsent: [StoreFeedChange] = []
      for change in missing where !now.hasEnded && before[change.key] == now.saves[change.key] {
        if case .removed(let key, _) = change {
          // The revision of the removal isn't known. It is newer than the save, and not newer than a later one.
          unsent.append(.removed(key, revision: (before[key]?.revision ?? 0) + 1))
        } else {
          unsent.append(change)
        }
      }
      guard let revision = unsent.map(\.revision).max() else { continue }
      relay.send(.committed(StoreTransaction(changes: unsent, revision: revision, ownTag: nil)))
      part.progress.update { progress in for change in unsent { progress.record(change) } }
    }
    relay.send(.caughtUp)
  }
}

extension StoreError {
  /// The change of a key whose value a load could not use; `nil` if the store could not be read.
  fileprivate func unusableChange(of key: StoreKeyName) -> StoreFeedChange? {
    switch self {
    case .newerFormat(_, let found, _):
      .unusable(key, schema: found.schema, reason: description, byteCount: nil)
    case .undecodable, .migrationFailed: .unusable(key, schema: nil, reason: description, byteCount: nil)
    default: nil
    }
  }
}

extension StoreFeedChange {
  /// The revision of a save or a removal; 0 for a value that can't be used.
  fileprivate var revision: UInt64 {
    switch self {
    case .saved(_, let stored): stored.revision
    case .removed(_, let revision): revision
    case .unusable: 0
    }
  }
}

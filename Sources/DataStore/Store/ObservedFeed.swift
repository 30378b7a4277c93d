internal import Multicast

/// A feed of a store that has none of its own: it observes each part by itself, so a commit may be several elements.
actor ObservedFeed<Store: KeyValueStore>: StoreFeed {
  nonisolated let elements: MulticastSubscription<StoreFeedElement, Never>
  private let store: Store
  private let relay = MulticastRelay<StoreFeedElement>(buffering: .unbounded)
  private var parts: [StoreFeedPart: Part] = [:]

  /// A followed part: the task that forwards its changes, and what it has forwarded.
  private struct Part: Sendable {
    let forwarding: Task<Void, Never>
    let progress: CurrentValueRelay<Progress>
    /// Returns what is stored now.
    let read: @Sendable () async throws(StoreError) -> [StoreKeyName: Progress.Save]
  }

  /// What was forwarded of a part.
  private struct Progress: Sendable {
    struct Save: Hashable, Sendable {
      let tag: StoreTag
      let revision: UInt64
    }

    /// The last forwarded save of each key that wasn't removed since.
    private var saves: [StoreKeyName: Save] = [:]
    private var lastRevision: UInt64 = 0

    init(_ changes: [StoreFeedChange]) { for change in changes { record(change) } }

    mutating func record(_ change: StoreFeedChange) {
      switch change {
      case .saved(let key, let stored): saves[key] = Save(tag: stored.tag, revision: stored.revision)
      case .removed(let key, _): saves[key] = nil
      case .unusable: return
      }
      lastRevision = max(lastRevision, change.revision)
    }

    /// Whether everything was forwarded that a read has found, given what was forwarded before it.
    func covers(_ found: [StoreKeyName: Save], since before: Progress) -> Bool {
      found.allSatisfy { key, save in saves[key] == save || (save.revision > 0 && lastRevision >= save.revision) }
        && before.saves.allSatisfy { key, save in found[key] != nil || saves[key] != save }
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
    let read = { @Sendable [store] () async throws(StoreError) in
      try await store.load(key).map { [key.keyName: Progress.Save(tag: $0.tag, revision: $0.revision)] } ?? [:]
    }
    begin(.key(key.keyName), first, read) { forward in
      for await change in changes {
        if let stored, change.revision <= stored.revision { continue }
        forward([StoreFeedChange(change)])
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
    let read = { @Sendable [store] () async throws(StoreError) in
      var found: [StoreKeyName: Progress.Save] = [:]
      for entry in try await store.observe(collection: collection, as: type).stored {
        found[entry.key.keyName] = Progress.Save(tag: entry.stored.tag, revision: entry.stored.revision)
      }
      return found
    }
    begin(.collection(collection), first, read) { forward in
      for await changes in observation.changes { forward(changes.map { StoreFeedChange($0) }) }
    }
  }

  /// Sends what is stored, and forwards the changes, unless the part is followed already.
  private func begin(
    _ part: StoreFeedPart, _ first: [StoreFeedChange],
    _ read: @escaping @Sendable () async throws(StoreError) -> [StoreKeyName: Progress.Save],
    forwarding changes: @escaping @Sendable (_ forward: @Sendable ([StoreFeedChange]) -> Void) async -> Void
  ) {
    guard parts[part] == nil else { return }
    relay.send(.began(part, first))
    let progress = CurrentValueRelay(Progress(first))
    let forwarding = Task { [relay] in
      await changes { changes in
        guard let last = changes.last else { return }
        relay.send(.committed(StoreTransaction(changes: changes, revision: last.revision, ownTag: nil)))
        progress.update { progress in for change in changes { progress.record(change) } }
      }
    }
    parts[part] = Part(forwarding: forwarding, progress: progress, read: read)
  }

  func endFollowing(_ part: StoreFeedPart) {
    parts.removeValue(forKey: part)?.forwarding.cancel()
  }

  /// Reads all followed parts, because a call notices the external changes of what it reads.
  func catchUp() async throws(StoreError) {
    for part in Array(parts.values) {
      let before = part.progress.value
      let found = try await part.read()
      for await progress in part.progress.stream where progress.covers(found, since: before) { break }
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

public import Foundation
public import Multicast

/// A store over any place that can keep bytes: the whole of ``KeyValueStore``, given a ``StoreBackend``.
///
/// ``FileStore``, ``UserDefaultsStore`` and ``InMemoryStore`` are this store over three backends, and so is
/// `SQLiteStore` over a fourth, which the package trait `SQLite` adds. Use this type for a backend of your own.
///
/// The store works on a queue of its own, so a slow disk never blocks a thread that tasks share. Only a load of a value
/// that is known to be the stored one stays on the caller's thread, as it reads nothing. Calls do their work in the order
/// they arrive, which is what orders changes.
///
/// Every call takes the same way: it opens its key, reads what is stored, reconciles that with what is known, and
/// publishes what is new. The store trusts no memory of its own, except that it doesn't decode equal bytes twice: an
/// external change is noticed by the next call for its key at the latest, and at once if the backend watches. The watch
/// begins with the first observer.
///
/// **Group commit.** A synchronisation of the medium takes far longer than a write, so a store that makes 400 saves one
/// after the other waits for the disk 400 times. Delaying saves to collect more of them would help, but would make each
/// of them slower. Instead the store writes at once when it is idle, and what arrives meanwhile waits and is written
/// together when it is free. No commit of a group changes what another one changes or requires: each is made
/// or fails by itself, and all share one synchronisation if the backend can do that. Of several saves of one key only
/// the last is written. All are sent, in the order they arrived.
///
/// - Complexity: A call costs what its backend does and the coding of one value. A save also reads what it replaces.
///   ``observe(collection:as:)`` reads every value of the collection.
public actor BackedStore<Backend: StoreBackend>: KeyValueStore {
  private let contents: StoreContents<Backend>
  private let checker: ChangeChecker<Backend>
  private let commits: CommitQueue<Backend>
  private let now: @Sendable () -> Date
  private let eventRelay = MulticastRelay<StoreEvent>(replay: 16, buffering: .unbounded)
  private let executor = StoreExecutor(label: "DataStore.\(Backend.self)")

  /// The executor of the store's calls: one serial queue, in the order the calls arrive.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// The last 16 events, then every later one.
  public nonisolated var events: MulticastStream<StoreEvent, Never> { eventRelay.stream }

  /// Creates a store over `backend`, which belongs to the store from then on.
  ///
  /// - Parameters:
  ///   - backend: Where the bytes are kept.
  ///   - now: Returns the present time, for ``StoredValue/savedAt``.
  public init(backend: sending Backend, now: @escaping @Sendable () -> Date = { Date() }) {
    self.now = now
    contents = StoreContents(backend: backend, eventRelay: eventRelay, now: now)
    checker = ChangeChecker(contents)
    commits = CommitQueue(contents, checker)
  }

  /// The number of ids of a collection that anything is remembered about.
  func knownCount(in collection: String) -> Int { contents.topics[collection]?.knownCount ?? 0 }

  /// The number of channels of a collection's keys that exist.
  func observedCount(in collection: String) -> Int { contents.topics[collection]?.observedKeys.count ?? 0 }

  // MARK: - Loading

  /// Returns the stored value of a key, or `nil`.
  ///
  /// - Complexity: The decoding of the value. O(1) if the backend's ``StoreBackend/externalVersion()`` shows that the value
  ///   is the one that was read or written last. If the store is idle too, that takes no change of threads, but for one
  ///   load of 256, so that a loop of loads gives way to other tasks.
  public nonisolated func load<Value>(_ key: StoreKey<Value>) async throws(StoreError) -> StoredValue<Value>? {
    let known = executor.runIfIdle {
      self.assumeIsolated { store in
        Result { () throws(StoreError) in try store.contents.knownValue(of: key) }
      }
    }
    if let known = try known?.get() { return known }
    return try await read(key)
  }

  private func read<Value>(_ key: StoreKey<Value>) throws(StoreError) -> StoredValue<Value>? {
    let slot = try contents.topics.open(key)
    commits.performPending()
    while true {
      let result = try contents.withBackend(retriesAfterQuarantine: false) {
        (backend: inout Backend) throws(StoreError) in
        try slot.read(from: &backend, needsValue: true)
      }
      switch result {
      case .corrupt(let bytes, let reason):
        guard let movedTo = try contents.quarantine(bytes, of: slot, reason: reason) else { continue }
        throw .undecodable(key.keyName, movedTo: movedTo, reason: reason)
      case .future(let version, _):
        contents.reconcile(result, slot)
        checker.publish(slot)
        throw .newerFormat(key.keyName, found: version, supported: Envelope.supported(by: Value.self))
      case .unmigratable(_, let failure, _):
        contents.reconcile(result, slot)
        checker.publish(slot)
        throw .migrationFailed(key.keyName, from: failure.version, reason: failure.reason)
      case .nothing, .unchanged, .value, .unreadable:
        let reconciled = contents.reconcile(result, slot)
        checker.publish(slot)
        return reconciled.stored
      }
    }
  }

  // MARK: - Committing

  /// Stores a value, and sends it to every observer once it is durable.
  @discardableResult
  public nonisolated func save<Value>(
    _ value: Value, for key: StoreKey<Value>
  ) async throws(StoreError) -> StoredValue<Value> {
    let (savedAt, tag) = (now(), StoreTag())
    let entry = StoreBatchEntry(key: key, change: .save(value))
    let change = try PreparedChange(entry, savedAt: savedAt, tag: tag)
    let made = try await make([change], savedAt: savedAt, tag: tag)
    return StoredValue(
      value: value, savedAt: savedAt, revision: made.revision, tag: made.tag, byteCount: change.whole?.bytes.count)
  }

  /// Removes the stored value of a key, and notifies every observer.
  public nonisolated func remove<Value>(_ key: StoreKey<Value>) async throws(StoreError) {
    var batch = StoreBatch()
    batch.remove(key)
    try await commit(batch)
  }

  /// Makes several saves and removals as one: all or none, at any instant, in every process.
  @discardableResult
  public nonisolated func commit(_ batch: StoreBatch) async throws(StoreError) -> StoreCommit {
    let (savedAt, tag) = (now(), StoreTag())
    var changes: [any AnyPreparedChange] = []
    for entry in batch.entries { changes.append(try Self.prepare(entry, savedAt: savedAt, tag: tag)) }
    return try await make(changes, savedAt: savedAt, tag: tag)
  }

  private static func prepare(
    _ entry: some AnyStoreBatchEntry, savedAt: Date, tag: StoreTag
  ) throws(StoreError) -> any AnyPreparedChange {
    try PreparedChange(entry.typed, savedAt: savedAt, tag: tag)
  }

  /// Makes a commit, and waits until it is durable and sent.
  ///
  /// The caller waits outside of the store's isolation. So it goes on as soon as the commit is complete, while the store
  /// still releases the values that were replaced.
  private nonisolated func make(
    _ changes: [any AnyPreparedChange], savedAt: Date, tag: StoreTag
  ) async throws(StoreError) -> StoreCommit {
    try await withCheckedContinuation { continuation in
      executor.enqueue {
        self.assumeIsolated { $0.begin(changes, savedAt: savedAt, tag: tag, continuation) }
      }
    }.get()
  }

  private func begin(
    _ changes: [any AnyPreparedChange], savedAt: Date, tag: StoreTag,
    _ continuation: CheckedContinuation<Result<StoreCommit, StoreError>, Never>
  ) {
    do throws(StoreError) {
      var keys: [any AnyPendingKey] = []
      for change in changes { keys.append(try pendingKey(change)) }
      enqueue(PendingCommit(keys: keys, savedAt: savedAt, tag: tag, continuation))
    } catch {
      continuation.resume(returning: .failure(error))
    }
  }

  private func pendingKey(_ change: some AnyPreparedChange) throws(StoreError) -> any AnyPendingKey {
    let change = change.typed
    return PendingKey(try contents.topics.open(change.entry.key, named: change.name), change)
  }

  /// Removes all values of a collection in one commit, and notifies every observer.
  public func removeAll(in collection: String) async throws(StoreError) {
    _ = try StoreKeyName(collection).encoded()
    commits.performPending()
    let names = try contents.withBackend { (backend: inout Backend) throws(StoreError) in try backend.names() }
    var keys = Set(names.compactMap { StoreKeyName(encoded: $0) }.filter { $0.collection == collection })
    let pendingKeys: [any AnyPendingKey]
    if let topic = contents.topics[collection] {
      keys.formUnion(topic.storedKeys)
      pendingKeys = try removals(of: keys, in: topic)
    } else {
      pendingKeys = try removals(of: keys, in: Topic<UntypedValue>(collection: collection))
    }
    _ = try await withCheckedContinuation { continuation in
      enqueue(PendingCommit(keys: pendingKeys, savedAt: now(), tag: StoreTag(), continuation))
    }.get()
  }

  private func removals<T: AnyTopic>(
    of keys: Set<StoreKeyName>, in topic: T
  ) throws(StoreError) -> [any AnyPendingKey] {
    var removals: [any AnyPendingKey] = []
    for key in keys.sorted(by: { ($0.id ?? "") < ($1.id ?? "") }) {
      let slot = topic.typed.slot(StoreKey(key), named: try key.encoded())
      let entry = StoreBatchEntry(key: slot.key, change: .remove)
      removals.append(PendingKey(slot, try PreparedChange(entry, savedAt: now(), tag: StoreTag())))
    }
    return removals
  }

  /// Takes a commit, to be made behind the calls that wait already: those of them that commit too are written with it.
  private func enqueue(_ commit: PendingCommit) {
    if commits.add(commit) {
      executor.enqueue { self.assumeIsolated { $0.commits.performPending() } }
    }
  }

  // MARK: - Erasing

  /// Erases what is kept of some keys, so that nothing of it is left.
  public func erase(where isErased: @escaping @Sendable (StoredItem) -> Bool) async throws(StoreError) {
    commits.performPending()
    var keys: Set<StoreKeyName> = []
    // Also after an error, because something may be erased.
    defer {
      for key in keys { publishErasure(of: key) }
      eventRelay.resetReplay()
    }
    try contents.withBackend { (backend: inout Backend) throws(StoreError) in
      try backend.erase { item in
        guard isErased(item) else { return false }
        if let key = item.key { keys.insert(key) }
        return true
      }
    }
  }

  /// Reads a key again, of which something was erased, and notifies its observers.
  private func publishErasure(of key: StoreKeyName) {
    guard let topic = contents.topics[key.collection] else { return }
    publishErasure(of: key, topic)
  }

  private func publishErasure(of key: StoreKeyName, _ topic: some AnyTopic) {
    do throws(StoreError) {
      let slot = topic.typed.slot(StoreKey(key), named: try key.encoded())
      // The backend's version tells external changes alone.
      slot.topic.forgetRead(slot.id)
      let result = try contents.withBackend { (backend: inout Backend) throws(StoreError) in
        try slot.readEntry(from: &backend, needsValue: false)
      }
      checker.reconcile(result, ofObserved: slot)
      checker.publish(slot)
    } catch {
      // The next call for the key notices it.
      contents.send(.watchingFailed(error))
    }
  }

  // MARK: - Locking

  /// Locks a name, so that one of several processes can do what only one may do.
  public func acquireLock(_ name: String) async throws(StoreError) -> StoreLockResult {
    let name = try StoreKeyName(name).encoded()
    return try contents.withBackend { (backend: inout Backend) throws(StoreError) in try backend.acquireLock(name) }
  }

  // MARK: - Observing

  /// The changes of one key: each subscriber gets the stored value first, if there is one, then every later change.
  public func changes<Value>(
    of key: StoreKey<Value>
  ) throws(StoreError) -> MulticastStream<StoreChange<Value>, Never> {
    let slot = try contents.topics.open(key)
    commits.performPending()
    startWatching()
    if let stream = slot.topic.changes(of: key.id) {
      try refresh(slot)
      return stream
    }
    while true {
      let result = try contents.withBackend { (backend: inout Backend) throws(StoreError) in
        try slot.read(from: &backend, needsValue: true)
      }
      switch result {
      case .corrupt(let bytes, let reason):
        _ = try quarantineForObserver(bytes, of: slot, reason: reason)
        continue
      case .future(let version, _):
        throw .newerFormat(key.keyName, found: version, supported: Envelope.supported(by: Value.self))
      default: break
      }
      let reconciled = contents.reconcile(result, slot)
      // Before what is new is sent, because the stream would not get what is found newer then.
      let stream = slot.topic.beginChanges(of: key.id, stored: reconciled.stored)
      checker.publish(slot)
      contents.report(result, slot)
      return stream
    }
  }

  /// Reads a key that is observed already, for a new observer.
  ///
  /// What can't be used is an event, as it is to the observers there are, and for none of them anything is stored.
  private func refresh<Value>(_ slot: Slot<Value>) throws(StoreError) {
    let result = try contents.withBackend { (backend: inout Backend) throws(StoreError) in
      try slot.read(from: &backend, needsValue: false)
    }
    checker.reconcile(result, ofObserved: slot)
    checker.publish(slot)
  }

  /// The values of a collection, and all their later changes.
  public func observe<Value>(
    collection: String, as type: Value.Type
  ) throws(StoreError) -> StoreObservation<Value> where Value: Codable & Sendable {
    _ = try StoreKeyName(collection).encoded()
    let topic = try contents.topics.topic(of: collection, as: Value.self)
    commits.performPending()
    startWatching()
    while true {
      let reads = try contents.withBackend { (backend: inout Backend) throws(StoreError) in
        try backend.snapshot { (backend: inout Backend) throws(StoreError) in
          var reads: [(Slot<Value>, ReadResult<Value>)] = []
          for key in try Self.keys(in: collection, of: topic, &backend) {
            let slot = topic.slot(StoreKey(key), named: try key.encoded())
            reads.append((slot, try slot.readEntry(from: &backend, needsValue: true)))
          }
          return reads
        }
      }
      guard var entries = try takeEntries(reads) else { continue }
      topic.flush()
      topic.recordListing()
      entries.sort { $0.wasSaved(before: $1) }
      return StoreObservation(stored: entries, changes: topic.subscribeToCollection())
    }
  }

  /// Records what was read of a collection, and returns what can be shown.
  ///
  /// - Returns: `nil` if something else is stored by now.
  private func takeEntries<Value>(
    _ reads: [(slot: Slot<Value>, result: ReadResult<Value>)]
  ) throws(StoreError) -> [StoreObservation<Value>.Entry]? {
    var entries: [StoreObservation<Value>.Entry] = []
    for (slot, result) in reads {
      if case .corrupt(let bytes, let reason) = result {
        guard try quarantineForObserver(bytes, of: slot, reason: reason) else { return nil }
        continue
      }
      if let stored = contents.reconcile(result, slot).stored { entries.append(.init(key: slot.key, stored: stored)) }
      contents.report(result, slot)
      if case .unreadable = result { checker.miss(slot) }
    }
    return entries
  }

  /// Quarantines corrupt bytes, which an observer learns by an event.
  ///
  /// - Returns: Whether they were still there. They aren't if the whole store turned out to be corrupt, either.
  private func quarantineForObserver<Value>(
    _ bytes: Data, of slot: Slot<Value>, reason: String
  ) throws(StoreError) -> Bool {
    do throws(StoreError) {
      return try contents.quarantine(bytes, of: slot, reason: reason) != nil
    } catch {
      guard case .damaged = error else { throw error }
      return false
    }
  }

  private func startWatching() {
    checker.startWatching { [weak self] in self?.wake() }
  }

  private nonisolated func wake() {
    executor.enqueue { [weak self] in self?.assumeIsolated { $0.checker.checkForChanges() } }
  }

  /// All keys of a collection under which something is stored, or was when it was read last.
  private static func keys(
    in collection: String, of topic: some AnyTopic, _ backend: inout Backend
  ) throws(StoreError) -> [StoreKeyName] {
    let found = try backend.names().compactMap { StoreKeyName(encoded: $0) }.filter { $0.collection == collection }
    let isFound = Set(found)
    return found + topic.storedKeys.filter { !isFound.contains($0) }
  }
}

extension StoreObservation.Entry {
  /// The order of saving: by revision, before the first one by time, and by id where that is the same.
  fileprivate func wasSaved(before other: Self) -> Bool {
    (stored.revision, stored.savedAt, key.id ?? "") < (other.stored.revision, other.stored.savedAt, other.key.id ?? "")
  }
}

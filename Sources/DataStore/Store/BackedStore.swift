public import Foundation
public import Multicast

/// A store over any place that can keep bytes: the whole of ``KeyValueStore``, given a ``StoreBackend``.
///
/// ``FileStore``, ``UserDefaultsStore`` and ``InMemoryStore`` are this store over three backends, and so is
/// `SQLiteStore` over a fourth, which the package trait `SQLite` adds. Use this type for a backend of your own.
///
/// The store works on a queue of its own, so a slow disk never blocks a thread that tasks share. Calls do their work in
/// the order they arrive, which is what orders changes.
///
/// Every call takes the same way: it opens its key, reads what is stored, reconciles that with what is known, and
/// publishes what is new. The store trusts no memory of its own, except that it doesn't decode equal bytes twice: an
/// external change is noticed by the next call for its key at the latest, and at once if the backend watches. The watch
/// begins with the first observer.
///
/// **Group commit.** A synchronisation of the medium takes far longer than a write, so a store that makes 400 saves one
/// after the other waits for the disk 400 times. Delaying saves to collect more of them would help, but would make each
/// of them slower. Instead the store writes at once when it is idle, and what arrives meanwhile waits and is written
/// together when it is free. Commits of one group change different keys, so that none depends on another: each is made
/// or fails by itself, and all share one synchronisation if the backend can do that. Of several saves of one key only
/// the last is written. All are sent, in the order they arrived.
///
/// - Complexity: A call costs what its backend does and the coding of one value. A save also reads what it replaces.
///   ``observe(collection:as:)`` reads every value of the collection.
public actor BackedStore<Backend: StoreBackend>: KeyValueStore {
  private var backend: Backend
  private let now: @Sendable () -> Date
  /// The revision of the newest change.
  private var revision: UInt64 = 0
  /// The commit of the newest change, if it is an external one.
  private var lastExternalTag: StoreTag?
  private var topics: [String: any AnyTopic] = [:]
  /// Commits that arrived and are not made yet, in order.
  private var pending: [PendingCommit] = []
  private var watch = WatchState()
  /// What was read before the commits that are being made, until they are.
  private var checksOfCommits: [any AnyCheck] = []
  private var recentlyUsed = RecentlyUsed(limit: 32 << 20)
  private let eventRelay = MulticastRelay<StoreEvent>(replay: 16, buffering: .unbounded)
  private let executor = DispatchQueueExecutor(label: "DataStore.\(Backend.self)")

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
    self.backend = backend
    self.now = now
  }

  /// The number of ids of a collection that anything is remembered about.
  func knownCount(in collection: String) -> Int { topics[collection]?.knownCount ?? 0 }

  /// The number of channels of a collection's keys that exist.
  func observedCount(in collection: String) -> Int { topics[collection]?.observedKeys.count ?? 0 }

  // MARK: - Keys

  private func open<Value>(_ key: StoreKey<Value>) throws(StoreError) -> Slot<Value> {
    try open(key, named: key.keyName.encoded())
  }

  private func open<Value>(_ key: StoreKey<Value>, named name: String) throws(StoreError) -> Slot<Value> {
    try topic(of: key.collection, as: Value.self).slot(key, named: name)
  }

  private func topic<Value>(
    of collection: String, as type: Value.Type
  ) throws(StoreError) -> Topic<Value> where Value: Codable & Sendable {
    guard let existing = topics[collection] else {
      let topic = Topic<Value>(collection: collection)
      topics[collection] = topic
      return topic
    }
    guard let topic = existing as? Topic<Value> else {
      throw .collectionHasAnotherType(
        collection: collection, existing: existing.valueTypeName, requested: "\(Value.self)")
    }
    return topic
  }

  // MARK: - Loading

  /// Returns the stored value of a key, or `nil`.
  public func load<Value>(_ key: StoreKey<Value>) throws(StoreError) -> StoredValue<Value>? {
    let slot = try open(key)
    performPending()
    while true {
      let result = try withBackend(retriesAfterQuarantine: false) { (backend: inout Backend) throws(StoreError) in
        try slot.read(from: &backend, needsValue: true)
      }
      switch result {
      case .corrupt(let bytes, let reason):
        guard let movedTo = try quarantine(bytes, of: slot, reason: reason) else { continue }
        throw .undecodable(key.keyName, movedTo: movedTo, reason: reason)
      case .future(let version, _):
        reconcile(result, slot)
        publish(slot)
        throw .newerFormat(key.keyName, found: version, supported: Envelope.supported(by: Value.self))
      case .unmigratable(_, let failure, _):
        reconcile(result, slot)
        publish(slot)
        throw .migrationFailed(key.keyName, from: failure.version, reason: failure.reason)
      case .nothing, .unchanged, .value, .unreadable:
        let reconciled = reconcile(result, slot)
        publish(slot)
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
    let made = try await make([PreparedChange(entry, savedAt: savedAt, tag: tag)], savedAt: savedAt, tag: tag)
    return StoredValue(value: value, savedAt: savedAt, revision: made.revision, tag: made.tag)
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
    return PendingKey(try open(change.entry.key, named: change.name), change)
  }

  /// Removes all values of a collection in one commit, and notifies every observer.
  public func removeAll(in collection: String) async throws(StoreError) {
    _ = try StoreKeyName(collection).encoded()
    performPending()
    let names = try withBackend { (backend: inout Backend) throws(StoreError) in try backend.names() }
    var keys = Set(names.compactMap { StoreKeyName(encoded: $0) }.filter { $0.collection == collection })
    let pendingKeys: [any AnyPendingKey]
    if let topic = topics[collection] {
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
    if pending.isEmpty {
      executor.enqueue { self.assumeIsolated { $0.performPending() } }
    }
    pending.append(commit)
  }

  /// Makes the commits that wait, group by group.
  ///
  /// Every other call does so first, and therefore finds what was committed before it came.
  private func performPending() {
    while !pending.isEmpty { perform(CommitGroup.take(from: &pending) { readPart($0) }) }
  }

  /// Reads a part of a value, for a save that keeps most of it.
  ///
  /// - Returns: `nil` if it can't be read; then the save writes all of the part anew. If the whole store can't be used, the
  ///   commit meets the same error.
  private func readPart(_ name: String) -> Data? {
    do throws(StoreError) {
      return try withBackend(retriesAfterQuarantine: false) { (backend: inout Backend) throws(StoreError) in
        try backend.read(name)
      }
    } catch {
      return nil
    }
  }

  private func perform(_ group: CommitGroup) {
    var waiting = group.writing
    var wasQuarantined = false
    // What this group has made already isn't recorded yet, and would be taken for external.
    var isFirst = true
    while !waiting.isEmpty {
      let results: [Result<Bool, StoreError>]
      let wasWatching = watch.isWatching
      do throws(StoreError) {
        results = try withBackend(retriesAfterQuarantine: false) { (backend: inout Backend) throws(StoreError) in
          try backend.commit(group: waiting.map(\.writes)) { (index, backend: inout Backend) throws(StoreError) in
            if isFirst { try readExternalChanges(from: &backend) }
            isFirst = false
            return try waiting[index].decide(reading: &backend)
          }
        }
      } catch {
        var result = Result<Bool, StoreError>.failure(error)
        if case .damaged = error {
          // What was written before is gone with the rest, and so is what was read: all of it is done again, once.
          for commit in waiting { commit.discardReads() }
          checksOfCommits = []
          if !wasQuarantined { result = .success(false) }
          wasQuarantined = true
        }
        results = waiting.map { _ in result }
      }
      let checks = checksOfCommits
      checksOfCommits = []
      for check in checks { reconcile(check) }
      for check in checks { publish(check) }
      if wasWatching { startWatching() }
      waiting = zip(waiting, results).compactMap { settle($0, $1) ? nil : $0 }
    }
    for commit in group.all { publish(commit) }
  }

  /// Takes in the result of an attempt, and prepares the next one if there must be one.
  ///
  /// - Returns: Whether the commit is settled.
  private func settle(_ commit: PendingCommit, _ result: Result<Bool, StoreError>) -> Bool {
    do throws(StoreError) {
      defer { for key in commit.keys { flush(key) } }
      for key in commit.keys { try reconcileRead(of: key) }
      switch (result, commit.verdict) {
      case (.failure(let error), _), (.success(false), .fail(let error)): throw error
      case (.success(true), _): commit.settle(.success(()))
      case (.success(false), _):
        try commit.encode { readPart($0) }
        return false
      }
    } catch {
      // A commit that is durable succeeded, whatever failed afterwards.
      commit.settle(result == .success(true) ? .success(()) : .failure(error))
    }
    return true
  }

  /// Records what a commit read, if it is an external change, and quarantines what is in its way.
  private func reconcileRead(of key: some AnyPendingKey) throws(StoreError) {
    let key = key.typed
    guard let result = key.takeRead() else { return }
    if let (bytes, reason) = key.obstacle(in: result) {
      if try quarantine(bytes, of: key.slot, reason: reason) != nil { key.recordQuarantine() }
    } else {
      reconcile(result, key.slot)
    }
  }

  /// Sends the changes of a commit that is durable, and completes it.
  private func publish(_ commit: PendingCommit) {
    if case .failure(let error) = (commit.successor ?? commit).result { return commit.complete(.failure(error)) }
    if commit.keys.contains(where: \.changesSomething) { (revision, lastExternalTag) = (revision + 1, nil) }
    let made = StoreCommit(revision: revision, tag: commit.tag)
    // The values that are replaced may be large, so they are released when no caller waits any more.
    var released: [Any] = []
    for key in commit.keys { released.append(record(key, of: commit, made)) }
    for key in commit.keys { flush(key) }
    commit.complete(.success(made))
    extendLifetime(released)
  }

  /// - Returns: What was replaced.
  private func record(_ key: some AnyPendingKey, of commit: PendingCommit, _ made: StoreCommit) -> Any {
    let key = key.typed
    let old = key.slot.topic.content(of: key.slot.id)
    key.record(made, savedAt: commit.savedAt, isWritten: commit.successor == nil)
    if let size = key.writtenSize {
      noteUse(of: key.slot.key.keyName, size: size)
    } else if key.changesSomething {
      recentlyUsed.remove(key.slot.key.keyName)
    }
    return old as Any
  }

  private func flush(_ key: some AnyPendingKey) {
    key.typed.slot.topic.flush()
  }

  // MARK: - Observing

  /// The changes of one key: each subscriber gets the stored value first, if there is one, then every later change.
  public func changes<Value>(
    of key: StoreKey<Value>
  ) throws(StoreError) -> MulticastStream<StoreChange<Value>, Never> {
    let slot = try open(key)
    performPending()
    startWatching()
    if let stream = slot.topic.changes(of: key.id) {
      try refresh(slot)
      return stream
    }
    while true {
      let result = try withBackend { (backend: inout Backend) throws(StoreError) in
        try slot.read(from: &backend, needsValue: true)
      }
      switch result {
      case .corrupt(let bytes, let reason):
        _ = try quarantine(bytes, of: slot, reason: reason)
        continue
      case .future(let version, _):
        throw .newerFormat(key.keyName, found: version, supported: Envelope.supported(by: Value.self))
      default: break
      }
      let reconciled = reconcile(result, slot)
      publish(slot)
      report(result, slot)
      return slot.topic.beginChanges(of: key.id, stored: reconciled.stored)
    }
  }

  /// Reads a key that is observed already, for a new observer.
  ///
  /// What can't be used is an event, as it is to the observers there are, and for none of them anything is stored.
  private func refresh<Value>(_ slot: Slot<Value>) throws(StoreError) {
    let result = try withBackend { (backend: inout Backend) throws(StoreError) in
      try slot.read(from: &backend, needsValue: false)
    }
    reconcile(result, ofObserved: slot)
    publish(slot)
  }

  /// The values of a collection, and all their later changes.
  public func observe<Value>(
    collection: String, as type: Value.Type
  ) throws(StoreError) -> StoreObservation<Value> where Value: Codable & Sendable {
    _ = try StoreKeyName(collection).encoded()
    let topic = try topic(of: collection, as: Value.self)
    performPending()
    startWatching()
    let reads = try withBackend { (backend: inout Backend) throws(StoreError) in
      try backend.snapshot { (backend: inout Backend) throws(StoreError) in
        var reads: [(Slot<Value>, ReadResult<Value>)] = []
        for key in try Self.keys(in: collection, of: topic, &backend) {
          let slot = topic.slot(StoreKey(key), named: try key.encoded())
          reads.append((slot, try slot.readEntry(from: &backend, needsValue: true)))
        }
        return reads
      }
    }
    var entries: [StoreObservation<Value>.Entry] = []
    for (slot, result) in reads {
      if case .corrupt(let bytes, let reason) = result {
        _ = try quarantine(bytes, of: slot, reason: reason)
        continue
      }
      if let stored = reconcile(result, slot).stored { entries.append(.init(key: slot.key, stored: stored)) }
      report(result, slot)
    }
    topic.flush()
    topic.recordListing()
    entries.sort { $0.wasSaved(before: $1) }
    return StoreObservation(stored: entries, changes: topic.subscribeToCollection())
  }

  /// All keys of a collection under which something is stored, or was when it was read last.
  private static func keys(
    in collection: String, of topic: some AnyTopic, _ backend: inout Backend
  ) throws(StoreError) -> [StoreKeyName] {
    let found = try backend.names().compactMap { StoreKeyName(encoded: $0) }.filter { $0.collection == collection }
    let isFound = Set(found)
    return found + topic.storedKeys.filter { !isFound.contains($0) }
  }

  // MARK: - External changes

  private func startWatching() {
    guard !watch.isWatching else { return }
    do throws(StoreError) {
      try withBackend { (backend: inout Backend) throws(StoreError) in
        try backend.startWatching { [weak self] in self?.wake() }
      }
    } catch {
      // No call fails for it, and the next observer tries again.
      eventRelay.send(.watchingFailed(error))
      return
    }
    watch.begin()
    checkForChanges(takesReport: false)
  }

  private nonisolated func wake() {
    executor.enqueue { [weak self] in self?.assumeIsolated { $0.checkForChanges() } }
  }

  /// Reads what was changed externally, and publishes it to those who observe it.
  ///
  /// - Parameter takesReport: Whether the backend is asked what changed.
  private func checkForChanges(takesReport: Bool = true) {
    var plan: WatchState.Plan?
    do throws(StoreError) {
      let checks = try withBackend { (backend: inout Backend) throws(StoreError) in
        try backend.snapshot { (backend: inout Backend) throws(StoreError) in
          if takesReport { try takeReport(&backend) }
          let taken = watch.takePlan()
          plan = taken
          return try readObserved(taken, from: &backend)
        }
      }
      for check in checks { reconcile(check) }
      for check in checks { publish(check) }
    } catch {
      eventRelay.send(.watchingFailed(error))
      if let plan {
        watch.miss(plan)
      } else if takesReport {
        // The backend wakes the store only once until it is asked.
        do throws(StoreError) {
          try withBackend { (backend: inout Backend) throws(StoreError) in try takeReport(&backend) }
        } catch {
          // A broken watch ends below, and the event above says why.
        }
      }
      if !watch.isWatching { startWatching() }
    }
  }

  /// Reads what was changed externally before a commit, under its lock or in its transaction.
  ///
  /// Otherwise the commit would read, and send, only those keys of an external commit that it changes itself.
  ///
  /// - Throws: ``StoreError/damaged(movedTo:reason:)`` only. The commit is made whatever else fails here.
  private func readExternalChanges(from backend: inout Backend) throws(StoreError) {
    guard watch.isWatching else { return }
    var plan: WatchState.Plan?
    do throws(StoreError) {
      try takeReport(&backend)
      let taken = watch.takePlan()
      plan = taken
      checksOfCommits += try readObserved(taken, from: &backend)
    } catch {
      if case .damaged = error { throw error }
      eventRelay.send(.watchingFailed(error))
      if let plan { watch.miss(plan) }
    }
  }

  private func takeReport(_ backend: inout Backend) throws(StoreError) {
    do throws(StoreError) {
      watch.report(try backend.takeExternalChanges())
    } catch {
      watch.end()
      throw error
    }
  }

  /// Reads the observed names of a plan, those of one commit one after the other.
  private func readObserved(
    _ plan: WatchState.Plan, from backend: inout Backend
  ) throws(StoreError) -> [any AnyCheck] {
    var checks: [any AnyCheck] = []
    var isRead: Set<String> = []
    for name in try plan.names + (plan.includesAllObserved ? observedNames(&backend) : []) {
      guard isRead.insert(name).inserted, let keyName = StoreKeyName(encoded: name),
        let topic = topics[keyName.collection], topic.isObserved(keyName.id)
      else { continue }
      checks.append(try check(keyName, named: name, in: topic, &backend))
    }
    var commits: [[any AnyCheck]] = []
    var positions: [StoreTag: Int] = [:]
    for check in checks {
      if let tag = check.tag, let position = positions[tag] {
        commits[position].append(check)
      } else {
        if let tag = check.tag { positions[tag] = commits.count }
        commits.append([check])
      }
    }
    return commits.flatMap { $0 }
  }

  private func check<T: AnyTopic>(
    _ keyName: StoreKeyName, named name: String, in topic: T, _ backend: inout Backend
  ) throws(StoreError) -> any AnyCheck {
    let slot = topic.typed.slot(StoreKey(keyName), named: name)
    return Check(slot: slot, result: try slot.readEntry(from: &backend, needsValue: false))
  }

  /// The names of all keys that are observed.
  private func observedNames(_ backend: inout Backend) throws(StoreError) -> [String] {
    var names = topics.values.contains { $0.isCollectionObserved } ? try backend.names() : []
    for topic in topics.values {
      for key in topic.observedKeys + (topic.isCollectionObserved ? topic.storedKeys : []) {
        names.append(try key.encoded())
      }
    }
    return names
  }

  private func reconcile(_ check: some AnyCheck) {
    let check = check.typed
    reconcile(check.result, ofObserved: check.slot)
  }

  private func publish(_ check: some AnyCheck) {
    check.typed.slot.topic.flush()
  }

  // MARK: - Steps

  /// Uses the backend.
  ///
  /// A store that turns out to be corrupt as a whole has been quarantined, and an empty one is in its place.
  ///
  /// - Parameter retriesAfterQuarantine: Whether `body` is called again on the empty store.
  private func withBackend<Result>(
    retriesAfterQuarantine: Bool = true, _ body: (inout Backend) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    defer { for event in backend.takeEvents() { eventRelay.send(event) } }
    do throws(StoreError) {
      return try body(&backend)
    } catch {
      guard case .damaged(let movedTo, let reason) = error else { throw error }
      for topic in topics.values { topic.recordQuarantineOfAll() }
      eventRelay.send(.storeQuarantined(movedTo: movedTo, reason: reason))
      guard retriesAfterQuarantine else { throw error }
    }
    return try withBackend(retriesAfterQuarantine: false, body)
  }

  /// Records what a read found, other than corrupt bytes.
  ///
  /// An external change is sent by ``publish(_:)``.
  @discardableResult
  private func reconcile<Value>(_ result: ReadResult<Value>, _ slot: Slot<Value>) -> Reconciled<Value> {
    let action = slot.topic.reconcile(result, slot.id, revision: revision(of: result))
    switch result {
    case .value(_, let content): noteUse(of: slot.key.keyName, size: content.size)
    case .unchanged: break
    default: recentlyUsed.remove(slot.key.keyName)
    }
    switch action {
    case .sendSaved(let new), .sendRemoved(let new):
      revision = new
      lastExternalTag = result.tag
    case .keep, .keepNothing, .hide: break
    }
    return Reconciled(result, action)
  }

  /// The revision of an external change, if a read turns out to be one: values of one commit share it.
  private func revision<Value>(of result: ReadResult<Value>) -> UInt64 {
    if let tag = result.tag, tag == lastExternalTag { revision } else { revision + 1 }
  }

  /// Sends the change that a read of one key found.
  ///
  /// The external commit that made it may have changed other keys too. Those who observe the whole collection get all of
  /// it at once, so the other external changes are read and recorded first.
  private func publish<Value>(_ slot: Slot<Value>) {
    if slot.topic.hasUnsent, slot.topic.isCollectionObserved { checkForChanges() }
    slot.topic.flush()
  }

  /// Records what a read found under a key that is observed, and reports what observers can't be given.
  private func reconcile<Value>(_ result: ReadResult<Value>, ofObserved slot: Slot<Value>) {
    if case .corrupt(let bytes, let reason) = result {
      // What could not be quarantined before is left alone: each attempt would wake the store for the next one.
      if slot.topic.isUnusable(Fingerprint(bytes), slot.id) { return }
      do throws(StoreError) {
        _ = try quarantine(bytes, of: slot, reason: reason)
      } catch {
        eventRelay.send(.watchingFailed(error))
      }
      return
    }
    if reconcile(result, slot).isNew { report(result, slot) }
    // Nothing reports when it can be read, so it is read again with the next change.
    if case .unreadable = result { watch.miss(slot.name) }
  }

  /// Moves corrupt bytes out of the way.
  ///
  /// - Returns: Where they are; `nil` if other bytes are stored by now.
  private func quarantine<Value>(
    _ bytes: Data, of slot: Slot<Value>, reason: String
  ) throws(StoreError) -> String? {
    let time = now()
    let movedTo: String?
    do throws(StoreError) {
      movedTo = try withBackend { (backend: inout Backend) throws(StoreError) in
        try backend.quarantine(bytes, of: slot.name, at: time)
      }
    } catch {
      slot.topic.recordUnusable(Fingerprint(bytes), slot.id)
      throw error
    }
    guard let movedTo else { return nil }
    slot.topic.recordQuarantine(of: slot.id)
    eventRelay.send(.valueQuarantined(slot.key.keyName, movedTo: movedTo, reason: reason))
    return movedTo
  }

  /// Reports what observers of a key can't be given.
  private func report<Value>(_ result: ReadResult<Value>, _ slot: Slot<Value>) {
    let keyName = slot.key.keyName
    switch result {
    case .future(let found, _):
      let supported = Envelope.supported(by: Value.self)
      eventRelay.send(.newerValueLeftUntouched(keyName, found: found, supported: supported))
    case .unmigratable(_, let failure, _):
      eventRelay.send(.migrationFailed(keyName, from: failure.version, reason: failure.reason))
    case .unreadable(let error): eventRelay.send(.valueUnreadable(keyName, error))
    case .nothing, .unchanged, .value, .corrupt: break
    }
  }

  /// Keeps the decoded value of a key at hand, and releases those that were used longest ago.
  private func noteUse(of keyName: StoreKeyName, size: Int) {
    for released in recentlyUsed.use(keyName, size: size) {
      topics[released.collection]?.releaseContent(of: released.id)
    }
  }
}

/// What a read meant.
private struct Reconciled<Value: Codable & Sendable> {
  /// The stored value; `nil` if there is none to show.
  let stored: StoredValue<Value>?
  /// Whether something that can't be shown was found for the first time.
  let isNew: Bool

  init(_ result: ReadResult<Value>, _ action: TopicState.Action) {
    switch (action, result) {
    case (.keep(let revision), .value(let edition, let content)),
      (.sendSaved(let revision), .value(let edition, let content)):
      stored = StoredValue(content.value, edition, revision: revision)
    default: stored = nil
    }
    isNew = action == .hide(isNew: true)
  }
}

/// What was read under an observed key.
private struct Check<Value: Codable & Sendable>: AnyCheck {
  let slot: Slot<Value>
  let result: ReadResult<Value>

  var tag: StoreTag? { result.tag }
  var typed: Check<Value> { self }
}

/// A ``Check`` of any type of value.
private protocol AnyCheck {
  associatedtype Value: Codable & Sendable

  /// The commit that wrote what was read.
  var tag: StoreTag? { get }

  /// The check with its type.
  var typed: Check<Value> { get }
}

extension StoreObservation.Entry {
  /// The order of saving: by revision, before the first one by time, and by id where that is the same.
  fileprivate func wasSaved(before other: Self) -> Bool {
    (stored.revision, stored.savedAt, key.id ?? "") < (other.stored.revision, other.stored.savedAt, other.key.id ?? "")
  }
}

public import Foundation
public import Multicast

/// A ``KeyValueStore`` over any place that can keep bytes, given a ``StoreBackend`` for it.
///
/// ``FileStore``, ``UserDefaultsStore`` and ``InMemoryStore`` are this store over three backends, and so are
/// `SQLiteStore` and `PostgreSQLStore`, which package traits add. Use this type for a backend of your own.
///
/// **Execution.** The store works on a serial queue of its own, so a slow disk never blocks a thread that tasks share.
/// The exception is a load of a value that is known to be the stored one. It reads no stored bytes, so it stays on the
/// caller's thread if the store is idle. Calls do their work in the order they arrive, which determines the order of
/// changes. A value is encoded before its call arrives at the queue, unless it is a ``PartitionedValue``.
///
/// **Reading.** Every call for a key follows the same steps: it validates the key, reads the stored bytes, reconciles
/// them with the last known state, and publishes the differences. The store doesn't rely on what it remembers: it reads
/// again unless ``StoreBackend/externalVersion()`` shows that nothing was changed externally. An external change is
/// therefore noticed by the next call for its key, or earlier if the key is observed and the backend watches. The watch
/// begins with the first observer. Bytes aren't decoded again while their decoded value is in memory.
///
/// **Group commit.** An idle store writes a commit at once. Commits that arrive while the store is writing are pending
/// until it is free. They are then written together, with one synchronization of the medium if the backend supports
/// that. Each of them still succeeds or fails by itself. The exception is several single saves of one key without
/// preconditions: only the last save is written, and the earlier ones share its result. Once the last save is durable,
/// the values of all these saves are sent, in the order they arrived.
///
/// - Complexity: A call costs the work of its backend and the encoding or decoding of its values. A save also reads the
///   value that it replaces. ``observe(collection:as:)`` reads every value of the collection.
public actor BackedStore<Backend: StoreBackend>: PlacedStore {
  private let contents: StoreContents<Backend>
  private let checker: ChangeChecker<Backend>
  private let commits: CommitQueue<Backend>
  private let now: @Sendable () -> Date
  private let eventRelay = MulticastRelay<StoreEvent>(replay: 16, buffering: .unbounded)
  /// The feeds whose elements somebody may still receive, by number.
  private var feeds: [UInt64: FollowedFeed] = [:]
  private var lastFeedNumber: UInt64 = 0
  private let executor = StoreExecutor(label: "DataStore.\(Backend.self)")
  private nonisolated let backendPlace: StorePlace?

  /// The place of the backend, or this store if the backend doesn't know its place.
  package nonisolated var place: StorePlace { backendPlace ?? .object(ObjectIdentifier(self)) }

  /// The executor of the store: a serial queue, which runs calls in the order they arrive.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// The last 16 events, then every later one.
  public nonisolated var events: MulticastStream<StoreEvent, Never> { eventRelay.stream }

  /// Creates a store over `backend`, which belongs to the store from then on.
  ///
  /// - Parameters:
  ///   - backend: The backend that keeps the bytes.
  ///   - now: Returns the current time, for ``StoredValue/savedAt`` and the names of quarantined bytes.
  public init(backend: sending Backend, now: @escaping @Sendable () -> Date = { Date() }) {
    self.now = now
    backendPlace = (backend as? any PlacedBackend)?.place
    contents = StoreContents(
      backend: backend, eventRelay: eventRelay, now: now, jobStart: { [executor] in executor.jobStart })
    checker = ChangeChecker(contents)
    commits = CommitQueue(contents, checker)
  }

  /// The number of ids of a collection that the store keeps any state for.
  func knownCount(in collection: String) -> Int { contents.topics[collection]?.knownCount ?? 0 }

  /// The number of keys of a collection that are observed one by one.
  func observedCount(in collection: String) -> Int { contents.topics[collection]?.observedKeys.count ?? 0 }

  /// The number of feeds whose elements somebody may still receive.
  var feedCount: Int { feeds.count }

  // MARK: - Loading

  /// Returns the stored value of a key, or `nil` if nothing is stored.
  ///
  /// - Complexity: The decoding of the value. O(1) if the decoded value is in memory and the backend's
  ///   ``StoreBackend/externalVersion()`` shows that it is the stored one. If the store is also idle, the call doesn't
  ///   change threads. After every 256 such loads, one load does change threads, so that a loop of loads yields to
  ///   other tasks.
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
    return try naming(StoreError.readFailed) { () throws(StoreError) in try read(slot) }
  }

  private func read<Value>(_ slot: Slot<Value>) throws(StoreError) -> StoredValue<Value>? {
    let key = slot.key
    while true {
      let result = try contents.withBackend(retriesAfterQuarantine: false) {
        (backend: inout Backend) throws(StoreError) in
        try slot.read(from: &backend, needsValue: true)
      }
      switch result {
      case .corrupt(let bytes, let reason):
        guard let movedTo = try contents.quarantine(bytes, of: slot, reason: reason) else { continue }
        checker.publish(slot)
        throw .undecodable(key.keyName, movedTo: movedTo, reason: reason)
      case .future(let version, _, _):
        contents.reconcile(result, slot)
        checker.publish(slot)
        throw .newerFormat(key.keyName, found: version, supported: Envelope.supported(by: Value.self))
      case .unusable(let value):
        contents.reconcile(result, slot)
        checker.publish(slot)
        throw value.reason.error(for: key.keyName)
      // `.unreadable` doesn't occur here, because `Slot.read` throws the error instead.
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
    let commit = try await make([change], savedAt: savedAt, tag: tag)
    return StoredValue(
      value: value, savedAt: commit.savedAt, revision: commit.revision, tag: commit.tag,
      byteCount: commit.byteCounts[key.keyName])
  }

  /// Removes the stored value of a key, and notifies every observer.
  public nonisolated func remove<Value>(_ key: StoreKey<Value>) async throws(StoreError) {
    var batch = StoreBatch()
    batch.remove(key)
    try await commit(batch)
  }

  /// Applies several saves and removals as one change: all or none, at any instant, in every process.
  @discardableResult
  public nonisolated func commit(_ batch: StoreBatch) async throws(StoreError) -> StoreCommit {
    let (savedAt, tag) = (now(), batch.tag)
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
  /// The caller waits outside of the store's isolation. It therefore continues as soon as the commit is complete, while
  /// the store still releases the values that were replaced.
  private nonisolated func make(
    _ changes: [any AnyPreparedChange], savedAt: Date, tag: StoreTag
  ) async throws(StoreError) -> StoreCommit {
    try await withCheckedContinuation { continuation in
      executor.enqueue {
        self.assumeIsolated { $0.enqueueCommit(of: changes, savedAt: savedAt, tag: tag, continuation) }
      }
    }.get()
  }

  private func enqueueCommit(
    of changes: [any AnyPreparedChange], savedAt: Date, tag: StoreTag,
    _ continuation: CheckedContinuation<Result<StoreCommit, StoreError>, Never>
  ) {
    do throws(StoreError) {
      var keys: [any AnyPendingKey] = []
      for change in changes { keys.append(try pendingKey(change)) }
      enqueue(PendingCommit(keys: keys, savedAt: savedAt, tag: tag, start: executor.jobStart, continuation))
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
    // Validates the name of the collection.
    _ = try StoreKeyName(collection).encoded()
    commits.performPending()
    let topic: any AnyTopic = contents.topics[collection] ?? Topic<UntypedValue>(collection: collection)
    let entries = try naming(StoreError.removeFailed) { () throws(StoreError) in
      try contents.withBackend { (backend: inout Backend) throws(StoreError) in
        try backend.snapshot { (backend: inout Backend) throws(StoreError) in
          try Self.entries(in: collection, of: topic, &backend)
        }
      }
    }
    let pendingKeys = try removals(of: entries, in: topic)
    let result = await withCheckedContinuation { continuation in
      enqueue(
        PendingCommit(keys: pendingKeys, savedAt: now(), tag: StoreTag(), start: executor.jobStart, continuation))
    }
    // A commit without keys doesn't know that it is a removal.
    _ = try result.mapError { $0.naming(StoreError.removeFailed) }.get()
  }

  private func removals<T: AnyTopic>(
    of entries: [(key: StoreKeyName, name: String)], in topic: T
  ) throws(StoreError) -> [any AnyPendingKey] {
    var removals: [any AnyPendingKey] = []
    for (key, name) in entries.sorted(by: { ($0.key.id ?? "") < ($1.key.id ?? "") }) {
      let slot = topic.typed.slot(StoreKey(key), named: name)
      let entry = StoreBatchEntry(key: slot.key, change: .remove)
      // The time and the tag here are unused, because nothing is encoded for a removal.
      removals.append(PendingKey(slot, try PreparedChange(entry, savedAt: now(), tag: StoreTag())))
    }
    return removals
  }

  /// Adds a commit and, if no other commit is pending, schedules the work that makes the pending commits.
  ///
  /// The work runs after the calls that already wait. If one of these is a commit, it becomes pending too. If one is a
  /// read, it makes the pending commits first.
  private func enqueue(_ commit: PendingCommit) {
    let queueWasEmpty = commits.add(commit)
    if queueWasEmpty {
      executor.enqueue { self.assumeIsolated { $0.commits.performPending() } }
    }
  }

  // MARK: - Erasing

  /// Erases the items that a closure selects, and leaves no byte of them in the store.
  public func erase(where isErased: @escaping @Sendable (StoredItem) -> Bool) async throws(StoreError) {
    commits.performPending()
    var keys: Set<StoreKeyName> = []
    // This also runs after an error, because some items may be erased by then.
    defer {
      for key in keys { publishErasure(of: key) }
      eventRelay.resetReplay()
    }
    try naming(StoreError.eraseFailed) { () throws(StoreError) in
      try contents.withBackend { (backend: inout Backend) throws(StoreError) in
        try backend.erase { item in
          guard isErased(item) else { return false }
          if let key = item.key { keys.insert(key) }
          return true
        }
      }
    }
  }

  /// Reads a key again after an erasure, and notifies its observers.
  private func publishErasure(of key: StoreKeyName) {
    guard let topic = contents.topics[key.collection] else { return }
    publishErasure(of: key, topic)
  }

  private func publishErasure(of key: StoreKeyName, _ topic: some AnyTopic) {
    do throws(StoreError) {
      let slot = topic.typed.slot(StoreKey(key), named: try key.encoded())
      // The backend's version changes with external changes only, so it doesn't show the erasure.
      slot.topic.forgetRead(slot.id)
      let result = try contents.withBackend { (backend: inout Backend) throws(StoreError) in
        try slot.readEntry(from: &backend, needsValue: false)
      }
      checker.reconcile(result, ofObserved: slot)
      checker.publish(slot)
    } catch {
      // The next call for the key notices the erasure.
      contents.send(.watchingFailed(error))
    }
  }

  // MARK: - Locking

  /// Locks a name, so that only one of several processes performs a task.
  public func acquireLock(_ name: String) async throws(StoreError) -> StoreLockResult {
    let name = try StoreKeyName(name).encoded()
    return try naming(StoreError.lockFailed) { () throws(StoreError) in
      try contents.withBackend { (backend: inout Backend) throws(StoreError) in try backend.acquireLock(name) }
    }
  }

  // MARK: - Suspending

  /// Suspends the store, so that it holds nothing that the system minds while the process is suspended.
  ///
  /// It calls ``StoreBackend/close()``, now and after each later use of the backend, until the last ``resume()``.
  public func suspend() async {
    // These commits have arrived before this call, but the job that makes them would run after it.
    commits.performPending()
    checker.suspend()
  }

  /// Ends a suspension.
  public func resume() async {
    checker.resume()
  }

  // MARK: - Observing

  /// Returns the changes of one key, starting with the stored value.
  public func changes<Value>(
    of key: StoreKey<Value>
  ) throws(StoreError) -> MulticastStream<StoreChange<Value>, Never> {
    let slot = try contents.topics.open(key)
    commits.performPending()
    startWatching()
    return try naming(StoreError.readFailed) { () throws(StoreError) in try changes(of: slot) }
  }

  private func changes<Value>(of slot: Slot<Value>) throws(StoreError) -> MulticastStream<StoreChange<Value>, Never> {
    let key = slot.key
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
      case .future(let version, _, _):
        throw .newerFormat(key.keyName, found: version, supported: Envelope.supported(by: Value.self))
      default: break
      }
      let reconciled = contents.reconcile(result, slot)
      // The stream must exist before `publish`, which may read external changes and then send a newer value of the key.
      let stream = slot.topic.openChannel(of: key.id, stored: reconciled.stored)
      checker.publish(slot)
      contents.report(result, slot)
      return stream
    }
  }

  /// Reads a key that is already observed, for a new observer.
  ///
  /// A value that can't be used is reported as an event, unless the last read found it too. In both cases, the key has
  /// no value for observers.
  private func refresh<Value>(_ slot: Slot<Value>) throws(StoreError) {
    let result = try contents.withBackend { (backend: inout Backend) throws(StoreError) in
      try slot.read(from: &backend, needsValue: false)
    }
    checker.reconcile(result, ofObserved: slot)
    checker.publish(slot)
  }

  /// Returns the values of a collection, and a subscription to all later changes of the collection.
  public func observe<Value>(
    collection: String, as type: Value.Type
  ) throws(StoreError) -> StoreObservation<Value> where Value: Codable & Sendable {
    // Validates the name of the collection.
    _ = try StoreKeyName(collection).encoded()
    let topic = try contents.topics.topic(of: collection, as: Value.self)
    commits.performPending()
    startWatching()
    return try naming(StoreError.readFailed) { () throws(StoreError) in try observe(collection, topic) }
  }

  private func observe<Value>(
    _ collection: String, _ topic: Topic<Value>
  ) throws(StoreError) -> StoreObservation<Value> {
    let entries = try readCollection(collection, topic).entries
    return StoreObservation(stored: entries, changes: topic.subscribeToCollection())
  }

  /// The values of a collection, and those that this program can't use.
  private typealias Listing<Value: Codable & Sendable> = (
    entries: [StoreObservation<Value>.Entry], unusable: [StoreFeedChange]
  )

  /// Reads a collection, and sends all changes that the read has found before it returns.
  private func readCollection<Value>(
    _ collection: String, _ topic: Topic<Value>
  ) throws(StoreError) -> Listing<Value> {
    while true {
      let reads = try contents.withBackend { (backend: inout Backend) throws(StoreError) in
        try backend.snapshot { (backend: inout Backend) throws(StoreError) in
          var reads: [(Slot<Value>, ReadResult<Value>)] = []
          for (key, name) in try Self.entries(in: collection, of: topic, &backend) {
            let slot = topic.slot(StoreKey(key), named: name)
            reads.append((slot, try slot.readEntry(from: &backend, needsValue: true)))
          }
          return reads
        }
      }
      guard var listing = try recordReads(reads), !sendsFoundChanges(of: topic) else { continue }
      topic.recordListing()
      listing.entries.sort { $0.wasSaved(before: $1) }
      return listing
    }
  }

  /// Sends the changes that a read has found.
  ///
  /// A feed receives whole commits, so the other external changes are read first. They may be newer than the read.
  ///
  /// - Returns: Whether the caller must read again.
  private func sendsFoundChanges(of topic: some AnyTopic) -> Bool {
    defer { contents.flush() }
    guard topic.hasUnsent, topic.isFed else { return false }
    checker.checkForChanges()
    return true
  }

  /// Records the reads of a collection, and returns what an observer begins with.
  ///
  /// - Returns: `nil` if the collection must be read again, because corrupt bytes were replaced before they could be
  ///   quarantined, or because the whole store turned out to be corrupt.
  private func recordReads<Value>(
    _ reads: [(slot: Slot<Value>, result: ReadResult<Value>)]
  ) throws(StoreError) -> Listing<Value>? {
    var listing: Listing<Value> = ([], [])
    for (slot, result) in reads {
      let keyName = slot.key.keyName
      if case .corrupt(let bytes, let reason) = result {
        guard try quarantineForObserver(bytes, of: slot, reason: reason) else { return nil }
        listing.unusable.append(.unusable(keyName, schema: nil, reason: reason, byteCount: bytes.count))
        continue
      }
      if let stored = contents.reconcile(result, slot).stored {
        listing.entries.append(.init(key: slot.key, stored: stored))
      } else if let change = result.unusableChange(of: keyName) {
        listing.unusable.append(change)
      }
      contents.report(result, slot)
      if case .unreadable = result { checker.markUnread(slot) }
    }
    return listing
  }

  /// Quarantines corrupt bytes that were read for an observer, and reports them as an event.
  ///
  /// - Returns: Whether the bytes were quarantined; `false` if they were replaced meanwhile, or if the whole store
  ///   turned out to be corrupt.
  private func quarantineForObserver<Value>(
    _ bytes: Data, of slot: Slot<Value>, reason: String
  ) throws(StoreError) -> Bool {
    do throws(StoreError) {
      return try contents.quarantine(bytes, of: slot, reason: reason) != nil
    } catch {
      guard case .corruptStore = error else { throw error }
      return false
    }
  }

  // MARK: - Feeds

  /// Whether each commit is one element of a feed.
  public nonisolated var feedIsWhole: Bool { true }

  /// Creates a feed of the commits, which follows nothing yet.
  public func feed() async -> any StoreFeed {
    // The function is `async` because a call would mean the default implementation otherwise.
    lastFeedNumber += 1
    let number = lastFeedNumber
    let (feed, elements) = FollowedFeed.make { [weak self] in self?.releaseFeed(number) }
    feeds[number] = feed
    return BackedFeed(number, of: self, elements: elements)
  }

  private nonisolated func releaseFeed(_ number: UInt64) {
    executor.enqueue { [weak self] in
      self?.assumeIsolated { store in
        store.feeds[number] = nil
        for topic in store.contents.topics.all { topic.removeReleasedFeeds() }
      }
    }
  }

  func follow<Value>(_ key: StoreKey<Value>, by number: UInt64) throws(StoreError) {
    let slot = try contents.topics.open(key)
    commits.performPending()
    startWatching()
    try naming(StoreError.readFailed) { () throws(StoreError) in
      while true {
        let result = try contents.withBackend { (backend: inout Backend) throws(StoreError) in
          try slot.readEntry(from: &backend, needsValue: true)
        }
        guard let listing = try recordReads([(slot, result)]), !sendsFoundChanges(of: slot.topic) else { continue }
        return begin(.key(key.keyName), listing, slot.topic, by: number)
      }
    }
  }

  func follow<Value: Codable & Sendable>(
    _ collection: String, as type: Value.Type, by number: UInt64
  ) throws(StoreError) {
    // Validates the name of the collection.
    _ = try StoreKeyName(collection).encoded()
    let topic = try contents.topics.topic(of: collection, as: Value.self)
    commits.performPending()
    startWatching()
    try naming(StoreError.readFailed) { () throws(StoreError) in
      begin(.collection(collection), try readCollection(collection, topic), topic, by: number)
    }
  }

  private func begin<Value>(
    _ part: StoreFeedPart, _ listing: Listing<Value>, _ topic: Topic<Value>, by number: UInt64
  ) {
    guard let feed = feeds[number], topic.follow(part, by: feed) else { return }
    let saves = listing.entries.map { StoreFeedChange.saved($0.key.keyName, $0.stored) }
    feed.send(.began(part, saves + listing.unusable))
  }

  func endFollowing(_ part: StoreFeedPart, by number: UInt64) {
    guard let feed = feeds[number] else { return }
    switch part {
    case .key(let key): contents.topics[key.collection]?.endFollowing(part, by: feed)
    case .collection(let collection): contents.topics[collection]?.endFollowing(part, by: feed)
    }
  }

  func catchUp(_ number: UInt64) throws(StoreError) {
    commits.performPending()
    try naming(StoreError.readFailed) { () throws(StoreError) in
      try contents.withBackend { (backend: inout Backend) throws(StoreError) in try backend.settle() }
      try checker.catchUp()
    }
    feeds[number]?.send(.caughtUp)
  }

  /// Calls `body`, and gives its errors the case that names what the caller asked for.
  private func naming<Result>(
    _ failure: (SystemError) -> StoreError, _ body: () throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    do throws(StoreError) { return try body() } catch { throw error.naming(failure) }
  }

  private func startWatching() {
    checker.startWatching { [weak self] in self?.wake() }
  }

  /// Schedules a check for external changes.
  private nonisolated func wake() {
    executor.enqueue { [weak self] in self?.assumeIsolated { $0.checker.checkForChanges() } }
  }

  /// Returns all keys of a collection that have stored bytes, or had some when they were last read or written, with
  /// their names.
  private static func entries(
    in collection: String, of topic: any AnyTopic, _ backend: inout Backend
  ) throws(StoreError) -> [(key: StoreKeyName, name: String)] {
    var entries: [(key: StoreKeyName, name: String)] = []
    for name in try backend.names() {
      // The values of other collections aren't read for their ids.
      if let longName = LongKeyName(name), longName.collection != collection { continue }
      guard let key = try StoreKeyName.stored(under: name, in: &backend), key.collection == collection else { continue }
      entries.append((key, name))
    }
    let listed = Set(entries.map(\.key))
    for key in topic.storedKeys where !listed.contains(key) { entries.append((key, try key.encoded())) }
    return entries
  }
}

extension StoreObservation.Entry {
  /// Returns whether this entry precedes another one by revision, then by time, then by id.
  ///
  /// The time orders the values of revision 0, which the store object has neither written nor noticed as changes.
  package func wasSaved(before other: Self) -> Bool {
    (stored.revision, stored.savedAt, key.id ?? "") < (other.stored.revision, other.stored.savedAt, other.key.id ?? "")
  }
}

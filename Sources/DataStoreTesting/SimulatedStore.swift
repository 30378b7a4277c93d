public import DataStore
internal import Foundation
public import Multicast

/// A store for tests that has no thread of its own: it runs on its callers' task executor.
///
/// A test that runs it on a `ManualTaskExecutor` is deterministic. Several stores over one ``SimulatedStorage``
/// simulate the stores of several processes, and ``disconnect()`` simulates that a process is killed. ``Hooks`` delay
/// calls and make them fail.
///
/// A store notices the commits of other stores in ``noticeExternalChanges()`` and ``observe(collection:as:)``, by any
/// call for a key that they changed, and, while it has a feed, by each commit. It notices them in the order in which they
/// were made.
///
/// Values are kept without encoding. So no call fails because a value can't be encoded or decoded, and there are no
/// schemas.
public actor SimulatedStore: KeyValueStore {
  /// The closures that a store calls before and after its operations.
  public struct Hooks: Sendable {
    /// Called before a read, with the keys of the call.
    ///
    /// A feed that catches up has none.
    ///
    /// For a call about a whole collection, the only key is the collection's. If the hook throws, the call throws the
    /// same error.
    public var onRead: @Sendable ([StoreKeyName]) async throws(StoreError) -> Void

    /// Called before a commit or an erasure, with the keys that have a change or a precondition.
    ///
    /// For an erasure, these are the keys of the items that match before the hook runs. The items that match after it
    /// has run are erased.
    ///
    /// For ``SimulatedStore/removeAll(in:)``, the only key is the collection's. If the hook throws, the call throws the
    /// same error and changes nothing.
    public var onCommit: @Sendable ([StoreKeyName]) async throws(StoreError) -> Void

    /// Called synchronously after a commit, before observers are notified, even if the commit changed nothing.
    ///
    /// It receives the same keys as ``onCommit``, except for an erasure and for ``SimulatedStore/removeAll(in:)``: then
    /// it receives the keys of the removed values.
    public var didCommit: @Sendable ([StoreKeyName]) -> Void

    /// Called after a commit was made and observers were notified, before the call returns.
    ///
    /// It receives the same keys as ``didCommit``. If the hook throws, the call throws the same error although the
    /// commit was made, as after a lost answer of a database server.
    public var onCommitted: @Sendable ([StoreKeyName]) async throws(StoreError) -> Void

    /// Creates hooks; omitted hooks do nothing.
    public init(
      onRead: @escaping @Sendable ([StoreKeyName]) async throws(StoreError) -> Void = { _ in },
      onCommit: @escaping @Sendable ([StoreKeyName]) async throws(StoreError) -> Void = { _ in },
      didCommit: @escaping @Sendable ([StoreKeyName]) -> Void = { _ in },
      onCommitted: @escaping @Sendable ([StoreKeyName]) async throws(StoreError) -> Void = { _ in }
    ) {
      self.onRead = onRead
      self.onCommit = onCommit
      self.didCommit = didCommit
      self.onCommitted = onCommitted
    }
  }

  /// The error that every call throws after ``disconnect()``.
  public static let disconnectedError = StoreError.writeFailed(
    // Code 5 is `EIO`, an input/output error.
    SystemError(code: 5, operation: "simulating", path: "memory"))

  private let storage: SimulatedStorage
  private let hooks: Hooks
  private let isConnected = Lock(true)
  private let eventRelay = MulticastRelay<StoreEvent>(buffering: .unbounded)

  private var topics: [String: any SimulatedTopic] = [:]
  private var lastRevision: UInt64 = 0
  /// The revision of the last change of each key since the store was opened.
  private var revisions: [StoreKeyName: UInt64] = [:]
  /// The store has noticed, or made itself, each commit of the storage whose number is less than this count.
  private var noticedCount: Int
  /// The numbers of the store's own commits, without those below ``noticedCount``.
  private var ownCommits: Set<Int> = []
  /// The feeds whose elements somebody may still receive, by number.
  private var feeds: [UInt64: SimulatedFeed] = [:]
  private var lastFeedNumber: UInt64 = 0

  /// Opens a store.
  public init(storage: SimulatedStorage = SimulatedStorage(), hooks: Hooks = Hooks()) {
    self.storage = storage
    self.hooks = hooks
    noticedCount = storage.commitCount
  }

  /// Simulates that the store's process is killed: from now on each call throws and changes nothing, and the store's
  /// locks are released.
  ///
  /// A call in progress throws too, unless its commit is already made.
  public nonisolated func disconnect() {
    isConnected.withLock { $0 = false }
    storage.releaseLocks(of: ObjectIdentifier(self))
  }

  /// Releases the store's locks without notifying the store, as a server does when a connection is lost.
  public nonisolated func loseLocks() {
    storage.releaseLocks(of: ObjectIdentifier(self))
  }

  /// Notices the commits of other stores.
  public func noticeExternalChanges() {
    notice(upTo: storage.commitCount)
  }

  // MARK: - KeyValueStore

  /// A stream that never sends an event.
  public nonisolated var events: MulticastStream<StoreEvent, Never> { eventRelay.stream }

  /// Returns the stored value of a key, or `nil` if there is none.
  public func load<Value>(_ key: StoreKey<Value>) async throws(StoreError) -> StoredValue<Value>? {
    try check(key)
    try await beginRead(of: [key.keyName])
    return read(key)
  }

  /// Stores a value, and sends it to every observer.
  @discardableResult
  public func save<Value>(_ value: Value, for key: StoreKey<Value>) async throws(StoreError) -> StoredValue<Value> {
    var batch = StoreBatch()
    batch.save(value, for: key)
    let commit = try await makeCommit(of: batch)
    return StoredValue(value: value, savedAt: commit.savedAt, revision: commit.revision, tag: commit.tag)
  }

  /// Removes the stored value of a key, and notifies every observer.
  public func remove<Value>(_ key: StoreKey<Value>) async throws(StoreError) {
    var batch = StoreBatch()
    batch.remove(key)
    try await commit(batch)
  }

  /// Removes all values of a collection in one commit, and notifies every observer.
  public func removeAll(in collection: String) async throws(StoreError) {
    // Encoding throws if the name is invalid.
    _ = try StoreKeyName(collection).encoded()
    try await hooks.onCommit([StoreKeyName(collection)])
    let requests = storage.read(collection: collection).records.map { key, _ in
      SimulatedStorage.Request(key: key, requirements: [], action: .remove)
    }
    _ = try makeCommit(of: requests)
    try await hooks.onCommitted(requests.map(\.key))
  }

  /// Makes several saves and removals as one commit.
  @discardableResult
  public func commit(_ batch: StoreBatch) async throws(StoreError) -> StoreCommit {
    try await makeCommit(of: batch)
  }

  /// Returns the changes of one key.
  public func changes<Value>(
    of key: StoreKey<Value>
  ) async throws(StoreError) -> MulticastStream<StoreChange<Value>, Never> {
    try check(key)
    try await beginRead(of: [key.keyName])
    let topic = topic(of: key.collection, Value.self)
    return topic.changes(of: key) { read(key) }
  }

  /// Returns the values of a collection, and all later changes of the collection.
  public func observe<Value>(
    collection: String, as type: Value.Type
  ) async throws(StoreError) -> StoreObservation<Value> where Value: Codable & Sendable {
    let entries = try await readCollection(collection, type)
    return StoreObservation(stored: entries, changes: topic(of: collection, Value.self).subscribeToCollection())
  }

  /// Reads a collection, after it has noticed and sent all external changes.
  private func readCollection<Value: Codable & Sendable>(
    _ collection: String, _ type: Value.Type
  ) async throws(StoreError) -> [StoreObservation<Value>.Entry] {
    try check(StoreKey<Value>(collection))
    try await beginRead(of: [StoreKeyName(collection)])
    let (records, count) = storage.read(collection: collection)
    notice(upTo: count)
    var entries = records.map { key, record in
      StoreObservation.Entry(key: StoreKey<Value>(key), stored: stored(record, key, Value.self))
    }
    entries.sort { $0.wasSaved(before: $1) }
    return entries
  }

  // MARK: - Feeds

  /// Whether each commit is one element of a feed.
  public nonisolated var feedIsWhole: Bool { true }

  /// Creates a feed of the commits, which follows nothing yet.
  public func feed() async -> any StoreFeed {
    let (feed, elements) = SimulatedFeed.make()
    lastFeedNumber += 1
    feeds[lastFeedNumber] = feed
    return SimulatedStoreFeed(lastFeedNumber, of: self, elements: elements)
  }

  fileprivate func follow<Value>(_ key: StoreKey<Value>, by number: UInt64) async throws(StoreError) {
    try check(key)
    try await beginRead(of: [key.keyName])
    let topic = topic(of: key.collection, Value.self)
    let (record, count) = storage.read(key.keyName)
    notice(upTo: count)
    let change = record.map { SimulatedStorage.Change(key: key.keyName, record: $0) }
    feeds[number]?.begin(
      .key(key.keyName), [change].compactMap(\.self).map { topic.feedChange($0, revisions[$0.key] ?? 0) })
  }

  fileprivate func follow<Value: Codable & Sendable>(
    _ collection: String, as type: Value.Type, by number: UInt64
  ) async throws(StoreError) {
    let entries = try await readCollection(collection, type)
    // The topic knows the type of the changes that follow.
    _ = topic(of: collection, Value.self)
    feeds[number]?.begin(.collection(collection), entries.map { .saved($0.key.keyName, $0.stored) })
  }

  fileprivate func endFollowing(_ part: StoreFeedPart, by number: UInt64) { feeds[number]?.end(part) }

  fileprivate func catchUp(_ number: UInt64) async throws(StoreError) {
    try await beginRead(of: [])
    noticeExternalChanges()
    feeds[number]?.send(.caughtUp)
  }

  // MARK: - Erasing and locking

  /// Erases items in one commit.
  ///
  /// The bytes of an item are its value encoded as JSON; empty if the value can't be encoded.
  public func erase(where isErased: @escaping @Sendable (StoredItem) -> Bool) async throws(StoreError) {
    try await hooks.onCommit(keys(where: isErased))
    // The hook may have changed stored values, so the items are selected again.
    let erasedKeys = keys(where: isErased)
    _ = try makeCommit(of: erasedKeys.map { SimulatedStorage.Request(key: $0, requirements: [], action: .remove) })
    try await hooks.onCommitted(erasedKeys)
  }

  private func keys(where isSelected: (StoredItem) -> Bool) -> [StoreKeyName] {
    storage.allValues.filter { key, value in isSelected(StoredItem(key: key) { Self.json(of: value) }) }.keys
      .sorted { "\($0)" < "\($1)" }
  }

  private static func json(of value: any Sendable) -> Data {
    guard let value = value as? any Encodable else { return Data() }
    do { return try JSONEncoder().encode(value) } catch { return Data() }
  }

  /// Locks a name, for work that only one of several stores may do.
  public func acquireLock(_ name: String) async throws(StoreError) -> StoreLockResult {
    // Encoding throws if the name is invalid.
    _ = try StoreKeyName(name).encoded()
    return try storage.acquireLock(name, ObjectIdentifier(self)) { self.isConnected.withLock { $0 } }
  }

  // MARK: - Reading

  private func beginRead(of keys: [StoreKeyName]) async throws(StoreError) {
    try await hooks.onRead(keys)
    guard isConnected.withLock({ $0 }) else { throw Self.disconnectedError }
  }

  private func check<Value>(_ key: StoreKey<Value>) throws(StoreError) {
    try key.validate()
    try storage.claim(key.collection, "\(Value.self)")
  }

  private func read<Value>(_ key: StoreKey<Value>) -> StoredValue<Value>? {
    let (record, count) = storage.read(key.keyName)
    notice(upTo: count, of: [key.keyName])
    return record.map { stored($0, key.keyName, Value.self) }
  }

  private func stored<Value>(
    _ record: SimulatedStorage.Record, _ key: StoreKeyName, _ type: Value.Type
  ) -> StoredValue<Value> {
    StoredValue(
      value: record.value as! Value, savedAt: record.savedAt, revision: revisions[key] ?? 0, tag: record.tag)
  }

  private func topic<Value>(of collection: String, _ type: Value.Type) -> TypedTopic<Value> {
    // The storage has verified the type of each collection.
    if let topic = topics[collection] { return topic as! TypedTopic<Value> }
    let topic = TypedTopic<Value>()
    topics[collection] = topic
    return topic
  }

  // MARK: - Writing

  private func makeRequest(
    of entry: any AnyStoreBatchEntry
  ) throws(StoreError) -> SimulatedStorage.Request {
    func makeTypedRequest<Entry: AnyStoreBatchEntry>(of entry: Entry) throws(StoreError) -> SimulatedStorage.Request {
      let entry = entry.typed
      try check(entry.key)
      let action: SimulatedStorage.Request.Action =
        switch entry.change {
        case nil: .none
        case .remove: .remove
        case .save(let value): .save(value)
        }
      return SimulatedStorage.Request(
        key: entry.keyName, requirements: entry.requirements, action: action)
    }
    return try makeTypedRequest(of: entry)
  }

  private func makeCommit(of batch: StoreBatch) async throws(StoreError) -> StoreCommit {
    var requests: [SimulatedStorage.Request] = []
    for entry in batch.entries { requests.append(try makeRequest(of: entry)) }
    try await hooks.onCommit(batch.keys)
    let result = try makeCommit(of: requests, tag: batch.tag)
    try await hooks.onCommitted(batch.keys)
    return result
  }

  private func makeCommit(
    of requests: [SimulatedStorage.Request], tag: StoreTag = StoreTag()
  ) throws(StoreError) -> StoreCommit {
    let keys = Set(requests.map(\.key))
    let commit: SimulatedStorage.Commit
    do throws(StoreError) {
      commit = try storage.commit(requests, tag: tag) { self.isConnected.withLock { $0 } }.get()
    } catch {
      if case .preconditionFailed = error { notice(upTo: storage.commitCount, of: keys) }
      throw error
    }
    hooks.didCommit(requests.map(\.key))
    // Even a commit that changes nothing notices the earlier external changes of its keys.
    if feeds.isEmpty { notice(upTo: commit.number, of: keys) } else { notice(upTo: commit.number) }
    if commit.changesSomething {
      if noticedCount == commit.number { noticedCount += 1 } else { ownCommits.insert(commit.number) }
    }
    send(commit.changesSomething ? storage.changes(ofCommit: commit.number) : [], own: (commit.tag, keys))
    return StoreCommit(revision: lastRevision, tag: commit.tag, savedAt: commit.time)
  }

  // MARK: - External changes and sending

  /// Notices the external commits that changed any of the keys, among the first `count` commits of the storage.
  ///
  /// The external commits before them are noticed too, because a store notices commits in order.
  private func notice(upTo count: Int, of keys: Set<StoreKeyName>) {
    let lastNumber = (noticedCount..<max(count, noticedCount)).last { number in
      !ownCommits.contains(number) && storage.changes(ofCommit: number).contains { keys.contains($0.key) }
    }
    if let lastNumber { notice(upTo: lastNumber + 1) }
  }

  /// Notices the external commits among the first `count` commits of the storage, in order.
  private func notice(upTo count: Int) {
    while noticedCount < count {
      if ownCommits.remove(noticedCount) == nil { send(storage.changes(ofCommit: noticedCount)) }
      noticedCount += 1
    }
  }

  /// Gives the changes of one commit the next revision, and sends them to their observers.
  ///
  /// - Parameters:
  ///   - changes: The changes.
  ///   - own: The tag and the keys of the commit, if this store has made it.
  private func send(_ changes: [SimulatedStorage.Change], own: (tag: StoreTag, keys: Set<StoreKeyName>)? = nil) {
    if !changes.isEmpty { lastRevision += 1 }
    var changesByCollection: [(collection: String, changes: [SimulatedStorage.Change])] = []
    for change in changes {
      revisions[change.key] = lastRevision
      if let index = changesByCollection.firstIndex(where: { $0.collection == change.key.collection }) {
        changesByCollection[index].changes.append(change)
      } else {
        changesByCollection.append((change.key.collection, [change]))
      }
    }
    for (collection, changes) in changesByCollection { topics[collection]?.send(changes, revision: lastRevision) }
    feeds = feeds.filter { $0.value.isReferenced }
    for (_, feed) in feeds.sorted(by: { $0.key < $1.key }) {
      let followed = changes.filter { feed.follows($0.key) }
      if followed.isEmpty, !(own?.keys.contains(where: feed.follows) ?? false) { continue }
      let feedChanges = followed.compactMap { topics[$0.key.collection]?.feedChange($0, lastRevision) }
      feed.send(.committed(StoreTransaction(changes: feedChanges, revision: lastRevision, ownTag: own?.tag)))
    }
  }
}

/// A feed as its store has it.
///
/// Used only in the isolation of the store.
private final class SimulatedFeed {
  private let channel: UnownedChannel<StoreFeedElement>
  private var followed: Set<StoreFeedPart> = []

  private init(_ channel: UnownedChannel<StoreFeedElement>) { self.channel = channel }

  deinit { channel.finish() }

  static func make() -> (feed: SimulatedFeed, elements: MulticastSubscription<StoreFeedElement, Never>) {
    let (channel, stream) = UnownedChannel<StoreFeedElement>.makeStream(replay: 0)
    return (SimulatedFeed(channel), stream.subscribe())
  }

  var isReferenced: Bool { channel.isReferenced }

  func follows(_ key: StoreKeyName) -> Bool {
    followed.contains(.key(key)) || followed.contains(.collection(key.collection))
  }

  func begin(_ part: StoreFeedPart, _ changes: [StoreFeedChange]) {
    if followed.insert(part).inserted { send(.began(part, changes)) }
  }

  func end(_ part: StoreFeedPart) { followed.remove(part) }

  func send(_ element: StoreFeedElement) { channel.send(element) }
}

/// A feed of a ``SimulatedStore``, which doesn't keep the store alive.
private final class SimulatedStoreFeed: StoreFeed {
  let elements: MulticastSubscription<StoreFeedElement, Never>
  private let number: UInt64
  private weak let store: SimulatedStore?

  init(_ number: UInt64, of store: SimulatedStore, elements: MulticastSubscription<StoreFeedElement, Never>) {
    (self.number, self.store, self.elements) = (number, store, elements)
  }

  func follow<Value>(_ key: StoreKey<Value>) async throws(StoreError) { try await store?.follow(key, by: number) }

  func follow<Value: Codable & Sendable>(collection: String, as type: Value.Type) async throws(StoreError) {
    try await store?.follow(collection, as: type, by: number)
  }

  func endFollowing(_ part: StoreFeedPart) async { await store?.endFollowing(part, by: number) }

  func catchUp() async throws(StoreError) { try await store?.catchUp(number) }
}

/// The channels of a collection's observers.
///
/// A topic belongs to one ``SimulatedStore``, and is used only in its isolation.
private protocol SimulatedTopic: AnyObject {
  func send(_ changes: [SimulatedStorage.Change], revision: UInt64)
  func feedChange(_ change: SimulatedStorage.Change, _ revision: UInt64) -> StoreFeedChange
}

private final class TypedTopic<Value: Codable & Sendable>: SimulatedTopic {
  private var channels: [StoreKeyName: UnownedChannel<StoreChange<Value>>] = [:]
  private var collectionChannel: UnownedChannel<[StoreChange<Value>]>?

  deinit {
    for channel in channels.values { channel.finish() }
    collectionChannel?.finish()
  }

  func changes(
    of key: StoreKey<Value>, read: () -> StoredValue<Value>?
  ) -> MulticastStream<StoreChange<Value>, Never> {
    // The read comes first because it also notices, and sends, external changes of the key.
    let value = read()
    if let stream = channels[key.keyName]?.stream { return stream }
    let (channel, stream) = UnownedChannel<StoreChange<Value>>.makeStream(replay: 1)
    if let value { channel.send(.saved(key, value)) }
    channels[key.keyName] = channel
    return stream
  }

  func subscribeToCollection() -> MulticastSubscription<[StoreChange<Value>], Never> {
    if let stream = collectionChannel?.stream { return stream.subscribe() }
    let (channel, stream) = UnownedChannel<[StoreChange<Value>]>.makeStream(replay: 0)
    collectionChannel = channel
    return stream.subscribe()
  }

  func feedChange(_ change: SimulatedStorage.Change, _ revision: UInt64) -> StoreFeedChange {
    guard let record = change.record else { return .removed(change.key, revision: revision) }
    return .saved(
      change.key,
      StoredValue(value: record.value as! Value, savedAt: record.savedAt, revision: revision, tag: record.tag))
  }

  func send(_ changes: [SimulatedStorage.Change], revision: UInt64) {
    let changes = changes.map { change -> StoreChange<Value> in
      let key = StoreKey<Value>(change.key)
      guard let record = change.record else { return .removed(key, revision: revision) }
      return .saved(
        key,
        StoredValue(value: record.value as! Value, savedAt: record.savedAt, revision: revision, tag: record.tag))
    }
    for change in changes {
      guard let channel = channels[change.key.keyName] else { continue }
      channel.send(change)
      // After a removal, there is no value to replay.
      if change.stored == nil { channel.resetReplay() }
    }
    collectionChannel?.send(changes)
  }
}

public import Foundation
public import Multicast

/// A store over any place that can keep bytes: the whole of ``KeyValueStore``, given a ``StoreBackend``.
///
/// ``FileStore``, ``UserDefaultsStore`` and ``InMemoryStore`` are this store over three backends.
///
/// The store works on a queue of its own, so a slow disk never holds a thread that tasks share, and each call runs from
/// its beginning to its end without another between: that is what orders changes. What a call costs is what its backend
/// does and the coding of one value; ``observe(everyUserOf:as:)`` reads every value of the name.
///
/// Cancellation does not interrupt a call: a save that began ends, and says how.
public actor BackedStore<Backend: StoreBackend>: KeyValueStore {
  private var backend: Backend
  private let now: @Sendable () -> Date
  private var revision: UInt64 = 0
  private var topics: [String: any AnyTopic] = [:]
  private let eventRelay = MulticastRelay<StoreEvent>(replay: 16, buffering: .unbounded)
  private let executor = DispatchQueueExecutor(label: "DataStore.\(Backend.self)")

  /// The executor the store's calls run on: one serial queue, in the order the calls arrive.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// The last 16 events, then every later one.
  public nonisolated var events: MulticastStream<StoreEvent, Never> { eventRelay.stream }

  /// Creates a store over `backend`, which from here on belongs to it.
  ///
  /// - Parameters:
  ///   - backend: Where the bytes are kept.
  ///   - now: Tells the time, for ``StoredValue/savedAt``.
  public init(backend: sending Backend, now: @escaping @Sendable () -> Date = { Date() }) {
    self.backend = backend
    self.now = now
  }

  /// What is stored for a key; nil when nothing is.
  public func load<Value>(_ key: StoreKey<Value>) throws(StoreError) -> StoredValue<Value>? {
    let name = try key.keyName.encoded()
    switch try find(key, named: name, in: topic(of: key)) {
    case .nothing: return nil
    case .value(let stored): return stored
    case .newer(let version): throw newerFormat(key, found: version)
    case .undecodable(let movedTo, let reason): throw .undecodable(key.keyName, movedTo: movedTo, reason: reason)
    }
  }

  /// Stores a value, and sends it to every observer once it is durable.
  @discardableResult
  public func save<Value>(_ value: Value, for key: StoreKey<Value>) throws(StoreError) -> StoredValue<Value> {
    let name = try key.keyName.encoded()
    let topic = try topic(of: key)
    let savedAt = now()
    let bytes: Data
    do {
      bytes = try Envelope.encode(value, savedAt: savedAt)
    } catch {
      throw .encodingFailed(key.keyName, reason: String(describing: error))
    }
    // The first save of a key looks at what is there, so as to replace neither the value of a newer program nor bytes
    // that cannot be decoded, which it moves aside.
    if topic.revision(of: key.userID) == nil, case .newer(let version) = try find(key, named: name, in: topic) {
      throw newerFormat(key, found: version)
    }

    try backend.write(bytes, to: name)

    revision += 1
    let stored = StoredValue(value: value, savedAt: savedAt, revision: revision)
    topic.publish(.saved(key, stored))
    return stored
  }

  /// Removes what is stored for a key, and tells every observer.
  public func remove<Value>(_ key: StoreKey<Value>) throws(StoreError) {
    let name = try key.keyName.encoded()
    let topic = try topic(of: key)
    if topic.revision(of: key.userID) == nil {
      guard let bytes = try backend.read(name) else { return }
      if let version = Envelope.newerVersion(of: bytes) { throw newerFormat(key, found: version) }
    }

    try backend.remove(name)

    revision += 1
    topic.publish(.removed(key, revision: revision))
  }

  /// The changes of one key: each reader gets what is stored first, if anything is, then every later change.
  public func changes<Value>(
    of key: StoreKey<Value>
  ) throws(StoreError) -> MulticastStream<StoreChange<Value>, Never> {
    let name = try key.keyName.encoded()
    let topic = try topic(of: key)
    if let changes = topic.changes(of: key.userID) { return changes }
    switch try find(key, named: name, in: topic) {
    case .nothing, .undecodable: return topic.beginChanges(of: key, stored: nil)
    case .value(let stored): return topic.beginChanges(of: key, stored: stored)
    case .newer(let version): throw newerFormat(key, found: version)
    }
  }

  /// Every user's value of one name, the value that belongs to no user among them, and all their later changes.
  public func observe<Value>(
    everyUserOf name: String, as type: Value.Type
  ) throws(StoreError) -> StoreObservation<Value> where Value: Codable & Sendable {
    _ = try StoreKeyName(name).encoded()
    let topic = try topic(of: StoreKey<Value>(name))
    var entries: [StoreObservation<Value>.Entry] = []
    for encodedName in try backend.names() {
      guard let keyName = StoreKeyName(encoded: encodedName), keyName.name == name else { continue }
      let key = StoreKey<Value>(keyName)
      switch try find(key, named: encodedName, in: topic) {
      case .nothing, .undecodable: break
      case .value(let stored): entries.append(StoreObservation.Entry(key: key, stored: stored))
      case .newer(let version):
        eventRelay.send(.newerValueLeftUntouched(keyName, found: version, supported: Envelope.version))
      }
    }
    entries.sort { $0.wasSaved(before: $1) }
    return StoreObservation(stored: entries, changes: topic.subscribeToEveryUser())
  }
}

extension BackedStore {
  /// What a look at a key found.
  private enum Finding<Value: Sendable> {
    case nothing
    case value(StoredValue<Value>)
    case newer(StoredVersion)
    /// The bytes have been moved aside, and the event is sent.
    case undecodable(movedTo: String, reason: String)
  }

  /// Looks at what is stored for a key, moving aside what cannot be decoded.
  private func find<Value>(
    _ key: StoreKey<Value>, named name: String, in topic: Topic<Value>
  ) throws(StoreError) -> Finding<Value> {
    guard let bytes = try backend.read(name) else {
      topic.forget(key.userID)
      return .nothing
    }
    switch Envelope.decode(bytes, as: Value.self) {
    case .value(let value, let savedAt):
      return .value(StoredValue(value: value, savedAt: savedAt, revision: topic.noteStored(for: key.userID)))
    case .newer(let version):
      return .newer(version)
    case .undecodable(let reason):
      let movedTo = try backend.setAside(name, at: now())
      topic.forget(key.userID)
      eventRelay.send(.corruptValueMovedAside(key.keyName, movedTo: movedTo, reason: reason))
      return .undecodable(movedTo: movedTo, reason: reason)
    }
  }

  /// The topic of a valid key's name.
  private func topic<Value>(of key: StoreKey<Value>) throws(StoreError) -> Topic<Value> {
    guard let existing = topics[key.name] else {
      let topic = Topic<Value>()
      topics[key.name] = topic
      return topic
    }
    guard let topic = existing as? Topic<Value> else {
      throw .keyHasAnotherType(name: key.name, existing: "\(existing.valueType)", requested: "\(Value.self)")
    }
    return topic
  }

  private func newerFormat<Value>(_ key: StoreKey<Value>, found: StoredVersion) -> StoreError {
    .newerFormat(key.keyName, found: found, supported: Envelope.version)
  }
}

extension StoreObservation.Entry {
  /// The order of saving: by revision for this store's own, before them by time, and by user where that is the same.
  fileprivate func wasSaved(before other: Self) -> Bool {
    (stored.revision, stored.savedAt, key.userID ?? "") < (
      other.stored.revision, other.stored.savedAt, other.key.userID ?? ""
    )
  }
}

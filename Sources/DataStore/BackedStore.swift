public import Foundation
public import Multicast

/// A store over any place that can keep bytes: the whole of ``KeyValueStore``, given a ``StoreBackend``.
///
/// ``FileStore``, ``UserDefaultsStore`` and ``InMemoryStore`` are this store over three backends, and so is
/// `SQLiteStore` over a fourth, which the package trait `SQLite` adds.
///
/// The store works on a queue of its own, so a slow disk never holds a thread that tasks share, and what calls do, they
/// do in the order they arrive: that is what orders changes. Saves that arrive while the backend is busy are written
/// together when it is free, each key once.
///
/// The store trusts no memory of its own: each call looks at what is stored, and what it finds there that the store did
/// not put there is sent as a change. So a store sees what others do in the same place at the next call at the latest,
/// and at once where its backend watches. The watch begins with the first observer.
///
/// What a call costs is what its backend does and the coding of one value; a save reads what it replaces;
/// ``observe(everyUserOf:as:)`` reads every value of the name.
///
/// Cancellation does not interrupt a call: a save that began ends, and says how.
public actor BackedStore<Backend: StoreBackend>: KeyValueStore {
  var backend: Backend
  let now: @Sendable () -> Date
  /// Of the newest change.
  var revision: UInt64 = 0
  var topics: [String: any AnyTopic] = [:]
  /// Saves that arrived and are not written yet, in order.
  var pendingSaves: [any AnyPendingSave] = []
  var isWatching = false
  /// The names of what others changed and could not be looked at so far, in order.
  var missedNames: [String] = []
  /// Whether others may have changed anything, and it could not be looked at so far.
  var mustLookAtAll = false
  let eventRelay = MulticastRelay<StoreEvent>(replay: 16, buffering: .unbounded)
  let executor = DispatchQueueExecutor(label: "DataStore.\(Backend.self)")

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
    let topic = try topic(of: key)
    writePendingSaves()
    switch try tellingDamage({ () throws(StoreError) in try look(at: key, named: name, in: topic) }) {
    case .nothing: return nil
    case .value(let stored): return stored
    case .newer(let version, _): throw newerFormat(key, found: version)
    case .unmigratable(_, let failure, _):
      throw .migrationFailed(key.keyName, from: failure.version, reason: failure.reason)
    case .undecodable(let movedTo, let reason): throw .undecodable(key.keyName, movedTo: movedTo, reason: reason)
    }
  }

  /// Stores a value, and sends it to every observer once it is durable.
  @discardableResult
  public func save<Value>(_ value: Value, for key: StoreKey<Value>) async throws(StoreError) -> StoredValue<Value> {
    let name = try key.keyName.encoded()
    let topic = try topic(of: key)
    let savedAt = now()
    let bytes: Data
    do {
      bytes = try Envelope.encode(value, savedAt: savedAt, schema: topic.schema.version)
    } catch {
      throw .encodingFailed(key.keyName, reason: String(describing: error))
    }
    let save = PendingSave(key: key, name: name, topic: topic, value: value, savedAt: savedAt, bytes: bytes)
    enqueue(save)
    return try await outcome(of: save).get()
  }

  /// Removes what is stored for a key, and tells every observer.
  public func remove<Value>(_ key: StoreKey<Value>) throws(StoreError) {
    let name = try key.keyName.encoded()
    let topic = try topic(of: key)
    writePendingSaves()
    try againIfDamaged { () throws(StoreError) in
      while let bytes = try backend.read(name) {
        guard try takeAway(bytes, of: key, named: name, in: topic) else { continue }
        revision += 1
        topic.publishRemoval(of: key, revision: revision)
        return
      }
      topic.noteNothing(for: key, revision: &revision)
    }
  }

  /// Removes a value, and moves aside what is none.
  ///
  /// - Returns: False when something else is stored by now.
  private func takeAway<Value>(
    _ bytes: Data, of key: StoreKey<Value>, named name: String, in topic: Topic<Value>
  ) throws(StoreError) -> Bool {
    if !topic.knowsValue(Fingerprint(bytes), of: key.userID) {
      switch Envelope.decode(bytes, as: Value.self, schema: topic.schema) {
      case .value, .unmigratable: break
      case .newer(let version): throw newerFormat(key, found: version)
      case .undecodable(let reason):
        return try setAside(bytes, of: key, named: name, in: topic, reason: reason) != nil
      }
    }
    try backend.remove(name)
    return true
  }

  /// The changes of one key: each reader gets what is stored first, if anything is, then every later change.
  public func changes<Value>(
    of key: StoreKey<Value>
  ) throws(StoreError) -> MulticastStream<StoreChange<Value>, Never> {
    let name = try key.keyName.encoded()
    let topic = try topic(of: key)
    writePendingSaves()
    startWatching()
    if let known = topic.changes(of: key.userID) {
      try lookForLaterReader(of: key, named: name, in: topic)
      return known
    }
    let finding = try againIfDamaged { () throws(StoreError) in try look(at: key, named: name, in: topic) }
    switch finding {
    case .nothing, .undecodable: return topic.beginChanges(of: key, stored: nil)
    case .value(let stored): return topic.beginChanges(of: key, stored: stored)
    case .unmigratable(_, let failure, _):
      send(failure, of: key.keyName)
      return topic.beginChanges(of: key, stored: nil)
    case .newer(let version, _): throw newerFormat(key, found: version)
    }
  }

  /// Every user's value of one name, the value that belongs to no user among them, and all their later changes.
  public func observe<Value>(
    everyUserOf name: String, as type: Value.Type
  ) throws(StoreError) -> StoreObservation<Value> where Value: Codable & Sendable {
    _ = try StoreKeyName(name).encoded()
    let topic = try topic(of: StoreKey<Value>(name))
    writePendingSaves()
    startWatching()
    var entries = try againIfDamaged { () throws(StoreError) in try lookAtEveryUser(in: topic, called: name) }
    topic.noteEveryUser()
    entries.sort { $0.wasSaved(before: $1) }
    return StoreObservation(stored: entries, changes: topic.subscribeToEveryUser())
  }

  private func lookAtEveryUser<Value>(
    in topic: Topic<Value>, called name: String
  ) throws(StoreError) -> [StoreObservation<Value>.Entry] {
    var entries: [StoreObservation<Value>.Entry] = []
    for encodedName in try namesStored(in: topic, called: name) {
      guard let keyName = StoreKeyName(encoded: encodedName) else { continue }
      let key = StoreKey<Value>(keyName)
      switch try look(at: key, named: encodedName, in: topic) {
      case .nothing, .undecodable: break
      case .value(let stored): entries.append(StoreObservation.Entry(key: key, stored: stored))
      case .newer(let version, _): sendNewer(version, of: key)
      case .unmigratable(_, let failure, _): send(failure, of: keyName)
      }
    }
    return entries
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

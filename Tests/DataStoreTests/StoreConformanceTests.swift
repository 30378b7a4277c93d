import DataStore
import DataStoreTesting
import Foundation
import Multicast
import TestRounds
import TestSupport
import Testing

/// Verifies that the conformance checks fail for stores that break a rule.
@Suite(.timeLimit(.minutes(15))) struct StoreConformanceTests {
  @Test(arguments: FaultyStore.Fault.allCases)
  func `A faulty store fails the check of the rule that it breaks`(fault: FaultyStore.Fault) async throws {
    var brokenRules: Set<String> = []
    // All checks together take seconds for each fault, because some of them fail by a timeout.
    for check in StoreConformance.checks where Rounds.areFull || check.rule == fault.brokenRule {
      let storage = InMemoryStorage()
      let harness = StoreHarness(timeLimit: .milliseconds(300)) {
        FaultyStore(fault: fault, storage: storage)
      } corrupt: { key in
        storage[try key.encoded()] = Data("corrupt".utf8)
      }
      do {
        try await check.run(on: harness)
      } catch let failure as StoreConformance.Failure {
        #expect(failure.rule == check.rule)
        brokenRules.insert(failure.rule)
      }
    }
    // A fault may break other rules too.
    #expect(brokenRules.contains(fault.brokenRule), "\(brokenRules)")
  }

  @Test(arguments: StoreConformance.checks)
  func `A watched store keeps the rules of a harness that isn't watched`(check: StoreConformance.Check) async throws {
    let temporary = TemporaryFolder()
    let folder = temporary.url
    let harness = StoreHarness(isWatched: false) {
      FileStore(folder: folder)
    } corrupt: { key in
      try Data("corrupt".utf8).write(to: folder.appending(path: "\(try key.encoded()).value"))
    }
    try await check.run(on: harness)
    extendLifetime(temporary)
  }

  /// A store of another author, which implements what has no default.
  private struct MinimalStore: KeyValueStore {
    let base: InMemoryStore

    var events: MulticastStream<StoreEvent, Never> { base.events }

    func load<Value>(_ key: StoreKey<Value>) async throws(StoreError) -> StoredValue<Value>? {
      try await base.load(key)
    }

    func save<Value>(_ value: Value, for key: StoreKey<Value>) async throws(StoreError) -> StoredValue<Value> {
      try await base.save(value, for: key)
    }

    func remove<Value>(_ key: StoreKey<Value>) async throws(StoreError) { try await base.remove(key) }

    func removeAll(in collection: String) async throws(StoreError) { try await base.removeAll(in: collection) }

    func commit(_ batch: StoreBatch) async throws(StoreError) -> StoreCommit { try await base.commit(batch) }

    func changes<Value>(of key: StoreKey<Value>) async throws(StoreError) -> MulticastStream<StoreChange<Value>, Never>
    {
      try await base.changes(of: key)
    }

    func observe<Value>(
      collection: String, as type: Value.Type
    ) async throws(StoreError) -> StoreObservation<Value> where Value: Codable & Sendable {
      try await base.observe(collection: collection, as: type)
    }
  }

  @Test(arguments: StoreConformance.checks.filter { !$0.needsCorruption && !$0.needsErasure })
  func `A store that implements what has no default keeps the rules`(check: StoreConformance.Check) async throws {
    let storage = InMemoryStorage()
    try await check.run(
      on: StoreHarness(isWatched: true, hasLocks: false) { MinimalStore(base: InMemoryStore(storage: storage)) })
  }

  @Test func `The default feed catches up with a value that became unreadable, and ends to wait for what it left`()
    async throws
  {
    let storage = InMemoryStorage()
    let (store, key) = (MinimalStore(base: InMemoryStore(storage: storage)), StoreKey<Int>("a", id: "0"))
    _ = try await store.save(1, for: key)
    let feed = await store.feed()
    try await feed.follow(collection: "a", as: Int.self)
    try await InMemoryStore(storage: storage).save("text", for: StoreKey<String>("a", id: "0"))
    try await feed.catchUp()
    guard case .committed(let transaction) = await feed.elements.first(2).last,
      case .unusable(key.keyName, schema: nil, _, _) = transaction.changes.first
    else {
      Issue.record("expected a value that can't be used")
      return
    }
    try await InMemoryStore(storage: storage).remove(StoreKey<String>("a", id: "0"))
    try await feed.catchUp()
    await feed.endFollowing(.collection("a"))
    try await feed.catchUp()
  }

  @Test func `A watched store that stays suspended fails the check of external changes`() async throws {
    /// A store that never ends a suspension.
    struct SleepingStore: ForwardingStore {
      let base: InMemoryStore

      func resume() async {}
    }
    let storage = InMemoryStorage()
    let harness = StoreHarness(timeLimit: .milliseconds(300), isWatched: true) {
      SleepingStore(base: InMemoryStore(storage: storage))
    }
    let check = try #require(
      StoreConformance.checks.first { $0.rule == FaultyStore.Fault.repeatsChangesWhenResumed.brokenRule })
    let failure = await #expect(throws: StoreConformance.Failure.self) { try await check.run(on: harness) }
    #expect(failure?.explanation.contains("only these came") == true)
  }

  @Test(arguments: StoreConformance.checks.filter(\.needsCorruption))
  func `A check that cannot corrupt a value fails and says so`(check: StoreConformance.Check) async throws {
    let failure = await #expect(throws: StoreConformance.Failure.self) {
      try await check.run(on: StoreHarness { InMemoryStore() })
    }
    #expect(failure?.description.contains("`corrupt`") == true)
  }
}

/// A store in memory with one fault.
struct FaultyStore: KeyValueStore {
  enum Fault: CaseIterable, Sendable {
    case ignoresIDs
    case hidesEncodingFailures
    case losesSavesOnReopening
    case replaysNothing
    case repeatsChanges
    case acceptsEmptyNames
    case swallowsCorruption
    case observesWithAGap
    case hidesNewerValues
    case hidesFailedMigrations
    case missesExternalChanges
    case deletesCorruption
    case quarantinesUndecodableValues
    case overwritesUndecodableValues
    case commitsHalf
    case hidesFailedPreconditions
    case splitsCommits
    case removesTooMuch
    case locksTwice
    case keepsQuarantine
    case erasesTooMuch
    case miscountsBytes
    case forgetsValuesWhenSuspended
    case repeatsChangesWhenResumed

    var brokenRule: String {
      switch self {
      case .ignoresIDs: "Each id has its own value, and so has the key without an id"
      case .hidesEncodingFailures:
        "Saving a value that cannot be encoded throws, sends nothing, and keeps the old value"
      case .losesSavesOnReopening: "A reopened store loads a value with the time of its save and with revision 0"
      case .replaysNothing: "A value stored before the store was opened is sent first"
      case .repeatsChanges: "Saving an equal value again is a change"
      case .acceptsEmptyNames: "Every call refuses a key with an empty collection or id, and a key that is too long"
      case .swallowsCorruption: "Corrupt bytes are reported once by load and once by an event"
      case .observesWithAGap: "Observing a collection during saves misses no change and repeats none"
      case .hidesNewerValues: "A value of a future schema is neither read, nor replaced, nor removed"
      case .hidesFailedMigrations:
        "A value whose migration fails is reported by load and by an event, and the next save replaces it"
      case .deletesCorruption: "A removal quarantines corrupt bytes"
      case .quarantinesUndecodableValues:
        "A program that can't decode a value reports it and leaves it untouched, so another one still reads it"
      case .overwritesUndecodableValues:
        "A save or a removal of a value that can't be decoded keeps its bytes in quarantine"
      case .commitsHalf: "A commit makes all of its changes"
      case .hidesFailedPreconditions: "A commit with a failed precondition changes nothing, and its error names the key"
      case .splitsCommits:
        "A commit is one element for observers of a collection, and one change for observers of a key"
      case .removesTooMuch: "Removing a collection removes all of its values as one commit, and no other values"
      case .keepsQuarantine: "No byte remains of erased quarantined values, and the replay of events is cleared"
      case .erasesTooMuch: "Erased values are removed for all observers, and all other values stay"
      case .miscountsBytes: "A store reports the same size of a value as a store that is opened later"
      case .locksTwice: "A name is locked by one store at a time, and becomes free when the lock is released"
      case .forgetsValuesWhenSuspended: "A suspended store keeps working, and what it saves is durable and sent"
      case .repeatsChangesWhenResumed:
        "External changes during a suspension reach every observer once after it, and none ends a stream"
      case .missesExternalChanges:
        "A store's next call notices a change by another store over the same medium, and sends it once"
      }
    }
  }

  let fault: Fault
  private let storage: InMemoryStorage
  /// A store over the storage that all stores of a harness share.
  private let sharedStore: InMemoryStore
  /// A store on a medium of its own.
  private let isolatedStore = InMemoryStore()

  init(fault: Fault, storage: InMemoryStorage) {
    self.fault = fault
    self.storage = storage
    sharedStore = InMemoryStore(storage: storage)
  }

  /// The store that most calls are forwarded to.
  private var store: InMemoryStore {
    fault == .losesSavesOnReopening || fault == .missesExternalChanges ? isolatedStore : sharedStore
  }

  /// Returns the key that the store uses in a call for the given key.
  private func actual<Value>(_ key: StoreKey<Value>) -> StoreKey<Value> {
    switch fault {
    case .ignoresIDs: StoreKey(key.collection)
    case .acceptsEmptyNames where key.collection.isEmpty: StoreKey("empty")
    default: key
    }
  }

  func load<Value>(_ key: StoreKey<Value>) async throws(StoreError) -> StoredValue<Value>? {
    do {
      let stored = try await store.load(actual(key))
      guard fault == .miscountsBytes, let stored else { return stored }
      return StoredValue(
        value: stored.value, savedAt: stored.savedAt, revision: stored.revision, tag: stored.tag,
        // A wrong size, which differs from save to save.
        byteCount: Int(clamping: stored.revision))
    } catch {
      switch (fault, error) {
      case (.swallowsCorruption, .undecodable), (.hidesNewerValues, .newerFormat),
        (.hidesFailedMigrations, .migrationFailed):
        return nil
      case (.quarantinesUndecodableValues, .undecodable): try await store.remove(actual(key))
      default: break
      }
      throw error
    }
  }

  func save<Value>(_ value: Value, for key: StoreKey<Value>) async throws(StoreError) -> StoredValue<Value> {
    if fault == .overwritesUndecodableValues { storage[try key.keyName.encoded()] = nil }
    do {
      let stored = try await store.save(value, for: actual(key))
      return fault == .repeatsChanges ? try await store.save(value, for: actual(key)) : stored
    } catch {
      if fault == .hidesEncodingFailures, case .encodingFailed = error {
        return StoredValue(value: value, savedAt: Date(), revision: 0, tag: StoreTag())
      }
      throw error
    }
  }

  func remove<Value>(_ key: StoreKey<Value>) async throws(StoreError) {
    if fault == .deletesCorruption { storage[try key.keyName.encoded()] = nil }
    try await store.remove(actual(key))
  }

  func removeAll(in collection: String) async throws(StoreError) {
    try await store.removeAll(in: collection)
    guard fault == .removesTooMuch else { return }
    for name in storage.names { storage[name] = nil }
  }

  func commit(_ batch: StoreBatch) async throws(StoreError) -> StoreCommit {
    switch fault {
    case .commitsHalf:
      let commit = try await store.commit(batch)
      if let key = batch.keys.first { storage[try key.encoded()] = nil }
      return commit
    case .hidesFailedPreconditions:
      do throws(StoreError) { return try await store.commit(batch) } catch .preconditionFailed {
        return StoreCommit(revision: 0, tag: StoreTag(), savedAt: .distantPast)
      } catch {
        throw error
      }
    default: return try await store.commit(batch)
    }
  }

  func changes<Value>(of key: StoreKey<Value>) async throws(StoreError) -> MulticastStream<StoreChange<Value>, Never> {
    guard fault == .replaysNothing else { return try await store.changes(of: actual(key)) }
    return try await isolatedStore.changes(of: key)
  }

  func observe<Value>(
    collection: String, as type: Value.Type
  ) async throws(StoreError) -> StoreObservation<Value> where Value: Codable & Sendable {
    let observation = try await store.observe(collection: collection, as: type)
    if fault == .splitsCommits { return split(observation) }
    guard fault == .observesWithAGap else { return observation }
    return StoreObservation(
      stored: observation.stored, changes: try await store.observe(collection: collection, as: type).changes)
  }

  func erase(where isErased: @escaping @Sendable (StoredItem) -> Bool) async throws(StoreError) {
    switch fault {
    case .keepsQuarantine: try await store.erase { $0.bytes != Data("corrupt".utf8) && isErased($0) }
    case .erasesTooMuch:
      try await store.erase { item in
        // The check expects this call for every item.
        _ = isErased(item)
        return true
      }
    default: try await store.erase(where: isErased)
    }
  }

  func acquireLock(_ name: String) async throws(StoreError) -> StoreLockResult {
    if fault == .locksTwice { return .acquired(StoreLock {}) }
    return try await sharedStore.acquireLock(name)
  }

  func suspend() async {
    if fault == .forgetsValuesWhenSuspended { for name in storage.names { storage[name] = nil } }
    await store.suspend()
  }

  func resume() async {
    await store.resume()
    guard fault == .repeatsChangesWhenResumed else { return }
    let key = StoreKey<StoreConformance.Note>("note", id: "Jake")
    do {
      if let stored = try await store.load(key) { try await store.save(stored.value, for: key) }
    } catch {
      // The check then meets the same error.
    }
  }

  private func split<Value>(_ observation: StoreObservation<Value>) -> StoreObservation<Value> {
    let relay = MulticastRelay<[StoreChange<Value>]>(buffering: .unbounded)
    let changes = relay.stream.subscribe()
    Task {
      for await commit in observation.changes {
        for change in commit { relay.send([change]) }
      }
    }
    return StoreObservation(stored: observation.stored, changes: changes)
  }

  var events: MulticastStream<StoreEvent, Never> { store.events }
}

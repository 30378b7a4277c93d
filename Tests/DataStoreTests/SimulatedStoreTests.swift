import DataStore
import DataStoreTesting
import Foundation
import Multicast
import MulticastTesting
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(15))) struct SimulatedStoreTests {
  /// The checks that apply to a simulated store.
  ///
  /// A simulated store keeps values without encoding them, so checks of encoding, of decoding, of schemas and of values
  /// in parts don't apply. The check of external commits doesn't apply either. It expects a store without a watch to
  /// notice the changes of a commit key by key, but a simulated store notices the whole commit in a call for one of its
  /// keys.
  private static let checks = StoreConformance.checks.filter { check in
    !check.needsCorruption
      && !["encoded", "decode", "schema", "migrat", "in parts", "An external commit"].contains {
        check.rule.contains($0)
      }
  }

  @Test(arguments: checks) func `A simulated store keeps the rules`(check: StoreConformance.Check) async throws {
    let storage = SimulatedStorage()
    try await check.run(on: StoreHarness { SimulatedStore(storage: storage) })
  }

  private let key = StoreKey<Int>("number")

  @Test func `A simulated store runs on the executor of its callers`() {
    let executor = ManualTaskExecutor()
    let store = SimulatedStore()
    let seen = CurrentValueRelay<[Int?]>([])
    let task = Task(executorPreference: executor) { [key] in
      for await change in try await store.changes(of: key) { seen.update { $0.append(change.stored?.value) } }
    }
    executor.runUntilIdle()
    Task(executorPreference: executor) { [key] in
      try await store.save(1, for: key)
      try await store.remove(key)
    }
    #expect(seen.value == [])
    executor.runUntilIdle()
    #expect(seen.value == [1, nil])
    task.cancel()
    executor.runUntilIdle()
  }

  @Test func `An erasure keeps a value that doesn't match and is saved while the hook of the erasure runs`()
    async throws
  {
    let storage = SimulatedStorage()
    let otherStore = SimulatedStore(storage: storage)
    let store = SimulatedStore(
      storage: storage,
      hooks: .init(onCommit: { [key] (keys) async throws(StoreError) in
        #expect(keys == [key.keyName])
        try await otherStore.save(2, for: key)
      }))
    try await otherStore.save(1, for: key)
    // The store encodes the value as JSON only for this closure.
    try await store.erase { $0.bytes == Data("1".utf8) }
    #expect(try await store.load(key)?.value == 2)
  }

  @Test func `A call notices external commits up to its key's newest one, and noticeExternalChanges notices the rest`()
    async throws
  {
    let storage = SimulatedStorage()
    let (store, otherStore) = (SimulatedStore(storage: storage), SimulatedStore(storage: storage))
    let (firstKey, secondKey) = (StoreKey<Int>("number", id: "1"), StoreKey<Int>("number", id: "2"))
    let changes = try await store.observe(collection: "number", as: Int.self).changes
    try await otherStore.save(1, for: firstKey)
    try await otherStore.save(2, for: secondKey)
    try await otherStore.save(3, for: firstKey)
    // The load notices the first two commits. The save doesn't notice the third one, which is of another key.
    try await #expect(store.load(secondKey)?.revision == 2)
    try await store.save(4, for: secondKey)
    await store.noticeExternalChanges()
    var seen: [(revision: UInt64, value: Int?)] = []
    for await commit in changes {
      seen += commit.map { (revision: $0.revision, value: $0.stored?.value) }
      if seen.count == 4 { break }
    }
    #expect(seen.map { $0.revision } == [1, 2, 3, 4])
    #expect(seen.map { $0.value } == [1, 2, 4, 3])
  }

  @Test func `Observed values are in the order in which the store made or noticed their saves`() async throws {
    let storage = SimulatedStorage()
    let (store, otherStore) = (SimulatedStore(storage: storage), SimulatedStore(storage: storage))
    try await otherStore.save(1, for: StoreKey<Int>("number", id: "1"))
    try await store.save(2, for: StoreKey<Int>("number", id: "2"))
    // This call notices the earlier save of the other store.
    let stored = try await store.observe(collection: "number", as: Int.self).stored
    #expect(stored.map(\.stored.value) == [2, 1])
    #expect(stored.map(\.stored.revision) == [1, 2])
  }

  @Test func `Observed values of one revision are in the order of their times, then of their ids`() async throws {
    let time = CurrentValueRelay(Date(timeIntervalSince1970: 2))
    let storage = SimulatedStorage(now: { time.value })
    let otherStore = SimulatedStore(storage: storage)
    try await otherStore.save(1, for: StoreKey<Int>("number", id: "c"))
    try await otherStore.save(2, for: StoreKey<Int>("number", id: "a"))
    time.send(Date(timeIntervalSince1970: 1))
    try await otherStore.save(3, for: StoreKey<Int>("number", id: "b"))
    // The values were stored before the observed store existed, so each has revision 0.
    let stored = try await SimulatedStore(storage: storage).observe(collection: "number", as: Int.self).stored
    #expect(stored.map(\.key.id) == ["b", "a", "c"])
    #expect(stored.map(\.stored.revision) == [0, 0, 0])
  }

  @Test func `Removing a value that another store has removed notices the other store's removal`() async throws {
    let storage = SimulatedStorage()
    let (store, otherStore) = (SimulatedStore(storage: storage), SimulatedStore(storage: storage))
    let key = StoreKey<Int>("number", id: "1")
    try await store.save(1, for: key)
    let changes = try await store.changes(of: key).subscribe()
    try await otherStore.remove(key)
    try await store.remove(key)
    // The first change is the replayed save, and the second one the other store's removal.
    #expect(await changes.first(2).map(\.revision) == [1, 2])
  }

  @Test func `If a hook throws, the call throws the hook's error and changes nothing`() async throws {
    let storage = SimulatedStorage()
    // 28 is ENOSPC.
    let fullDiskError = StoreError.writeFailed(SystemError(code: 28, operation: "writing", path: "memory"))
    let store = SimulatedStore(
      storage: storage, hooks: .init(onCommit: { (_) async throws(StoreError) in throw fullDiskError }))
    await #expect(throws: fullDiskError) { try await store.save(1, for: key) }
    #expect(storage.value(of: key) == nil)
    #expect(storage.commitCount == 0)
  }

  @Test func `A disconnected store throws and changes nothing`() async throws {
    let storage = SimulatedStorage()
    let store = SimulatedStore(storage: storage)
    try await store.save(1, for: key)
    store.disconnect()
    await #expect(throws: SimulatedStore.disconnectedError) { try await store.save(2, for: key) }
    await #expect(throws: SimulatedStore.disconnectedError) { try await store.load(key) }
    #expect(storage.value(of: key) == 1)
    #expect(storage.values(in: "number", as: Int.self) == [nil: 1])
  }
}

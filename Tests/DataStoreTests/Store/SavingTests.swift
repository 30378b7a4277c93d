import DataStore
import Dispatch
import Foundation
import Multicast
import MulticastTesting
import Synchronization
import Testing

/// Group commit: saves that arrive while the store is writing are written together.
@Suite(.timeLimit(.minutes(15))) struct SavingTests {
  private typealias Outcome = Result<StoredValue<Int>, StoreError>

  private let key = StoreKey<Int>("number", id: "0")
  private let backend = ControlledBackend()
  private let store: BackedStore<ControlledBackend>
  private let executor = ManualTaskExecutor()

  init() {
    store = BackedStore(backend: backend)
  }

  /// Starts a save, which has arrived at the store when this method returns.
  private func startSave(_ value: Int, for key: StoreKey<Int>) -> Task<Outcome, Never> {
    defer { executor.runUntilIdle() }
    return Task(executorPreference: executor) { [store] in
      do throws(StoreError) {
        return .success(try await store.save(value, for: key))
      } catch {
        return .failure(error)
      }
    }
  }

  /// Starts a commit, which has arrived at the store when this method returns.
  private func startCommit(_ change: (inout StoreBatch) -> Void) -> Task<StoreError?, Never> {
    defer { executor.runUntilIdle() }
    var batch = StoreBatch()
    change(&batch)
    return Task(executorPreference: executor) { [store, batch] in
      do throws(StoreError) {
        try await store.commit(batch)
        return nil
      } catch {
        return error
      }
    }
  }

  /// Starts a save, and waits until its write is blocked.
  ///
  /// The write blocks the store until ``releaseBackend()``.
  private func startBlockedSave(_ value: Int) async -> Task<Outcome, Never> {
    backend.blocksWrites.withLock { $0 = true }
    let task = startSave(value, for: key)
    await backend.waitUntilWriteIsBlocked()
    return task
  }

  /// Unblocks the store, and waits until all its calls are complete.
  private func releaseBackend() async throws {
    backend.blocksWrites.withLock { $0 = false }
    backend.gate.signal()
    // Before a call returns, it switches between the store's executor and `executor` a few times at most.
    for _ in 1...5 {
      _ = try await store.load(StoreKey<Int>("other"))
      executor.runUntilIdle()
    }
  }

  @Test func `A burst of saves of one key is one write, and each save is sent once, in order`() async throws {
    let changes = try await store.changes(of: key).subscribe()
    let first = await startBlockedSave(0)
    let burst = (1...999).map { startSave($0, for: key) }
    try await releaseBackend()
    #expect(backend.writes.withLock { $0 } == ["number.0", "number.0"])

    var iterator = changes.makeAsyncIterator()
    for (value, task) in ([first] + burst).enumerated() {
      let stored = try await task.value.get()
      #expect(stored.value == value)
      #expect(stored.revision == UInt64(value + 1))
      #expect(await iterator.next() == .saved(key, stored))
    }
    #expect(try await store.load(key)?.value == 999)
    #expect(try await store.load(key)?.revision == 1_000)
    #expect(try await BackedStore(backend: backend.base).load(key)?.value == 999)
  }

  @Test func `If the write of a burst fails, all its saves throw and none is sent`() async throws {
    let changes = try await store.changes(of: key).subscribe()
    let first = await startBlockedSave(0)
    let burst = (1...20).map { startSave($0, for: key) }
    backend.failingNames.withLock { $0 = ["number.0"] }
    try await releaseBackend()
    // The write of the blocked save had already begun.
    let stored = try await first.value.get()
    for task in burst {
      #expect(await task.value == .failure(.writeFailed(ControlledBackend.error)))
    }
    #expect(try await store.load(key) == stored)
    backend.failingNames.withLock { $0 = [] }
    let later = try await store.save(21, for: key)
    #expect(later.revision == 2)
    var iterator = changes.makeAsyncIterator()
    #expect(await iterator.next() == .saved(key, stored))
    #expect(await iterator.next() == .saved(key, later))
  }

  @Test func `Saves of several keys in one commit group are sent in order, and fail independently`() async throws {
    let (a, b, c) = (
      StoreKey<Int>("number", id: "a"), StoreKey<Int>("number", id: "b"), StoreKey<Int>("number", id: "c")
    )
    let changes = try await store.observe(collection: "number", as: Int.self).changes
    let first = await startBlockedSave(0)
    let burst = [(1, a), (2, b), (3, c), (4, a), (5, b), (6, c)].map { startSave($0.0, for: $0.1) }
    backend.failingNames.withLock { $0 = ["number.b"] }
    try await releaseBackend()
    #expect(backend.writes.withLock { $0 } == ["number.0", "number.a", "number.c"])
    var expected: [StoreChange<Int>] = [.saved(key, try await first.value.get())]
    for (index, key) in [a, b, c, a, b, c].enumerated() {
      let outcome = await burst[index].value
      if key == b {
        #expect(outcome == .failure(.writeFailed(ControlledBackend.error)))
      } else {
        expected.append(.saved(key, try outcome.get()))
      }
    }
    #expect(expected.map(\.revision) == [1, 2, 3, 4, 5])
    var iterator = changes.makeAsyncIterator()
    for change in expected { #expect(await iterator.next() == [change]) }
  }

  @Test func `If another process locks the store, only one save of a burst waits, and all unwritten ones throw`()
    async throws
  {
    let keys = ["a", "b", "c"].map { StoreKey<Int>("number", id: $0) }
    let first = await startBlockedSave(0)
    let burst = keys.map { startSave(1, for: $0) }
    backend.lockedNames.withLock { $0 = ["number.b"] }
    try await releaseBackend()
    #expect(try await first.value.get().value == 0)
    #expect(try await burst[0].value.get().value == 1)
    // The save of "c" would succeed, but isn't attempted after the save of "b" was locked out.
    for task in burst[1...] { #expect(await task.value == .failure(.writeFailed(ControlledBackend.lockedOut))) }
    #expect(backend.writes.withLock { $0 } == ["number.0", "number.a"])
    backend.lockedNames.withLock { $0 = [] }
    #expect(try await store.save(2, for: keys[2]).value == 2)
  }

  @Test func `If a group is locked out, each of its commits fails with an error that names what it asked for`()
    async throws
  {
    let ids = ["a", "b", "c"]
    let keys = ids.map { StoreKey<Int>("number", id: $0) }
    let first = await startBlockedSave(0)
    let save = startSave(1, for: keys[0])
    let removal = startCommit { $0.remove(keys[1]) }
    let check = startCommit { $0.require(nil, of: keys[2]) }
    backend.lockedNames.withLock { $0 = ["number.a"] }
    try await releaseBackend()
    _ = await first.value
    #expect(await save.value == .failure(.writeFailed(ControlledBackend.lockedOut)))
    #expect(await removal.value == .removeFailed(ControlledBackend.lockedOut))
    #expect(await check.value == .checkFailed(ControlledBackend.lockedOut))
  }

  @Test func `A backend learns since when the first commit of a group has waited, and not since when it has its turn`()
    async throws
  {
    let first = await startBlockedSave(0)
    let commits = [startSave(1, for: StoreKey("number", id: "a"))]
    let arrival = ContinuousClock.now
    let later = startSave(2, for: StoreKey("number", id: "b"))
    backend.starts.withLock { $0 = [] }
    try await releaseBackend()
    for commit in [first] + commits + [later] { _ = try await commit.value.get() }
    let groupStart = try #require(backend.starts.withLock { $0.first })
    #expect(groupStart < arrival)
  }

  @Test func `Commits with a precondition on one key are written together, but not with a later change of that key`()
    async throws
  {
    let shared = StoreKey<Int>("shared")
    let tag = try await store.save(0, for: shared).tag
    let first = await startBlockedSave(0)
    let commits = ["a", "b"].map { id in
      startCommit { batch in
        batch.save(1, for: StoreKey<Int>("number", id: id))
        batch.require(tag, of: shared)
      }
    }
    let last = startCommit { $0.save(1, for: shared) }
    // If a commit is locked out, the rest of its group fails without an attempt. So the commit of "b" fails only if it
    // is in the group of the commit of "a".
    backend.lockedNames.withLock { $0 = ["number.a"] }
    try await releaseBackend()
    _ = await first.value
    for commit in commits { #expect(await commit.value == .writeFailed(ControlledBackend.lockedOut)) }
    #expect(await last.value == nil)
    #expect(backend.writes.withLock { $0 } == ["shared", "number.0", "shared"])
  }

  @Test func `Values that a burst wrote before the store was found corrupt are written again`() async throws {
    let (a, b) = (StoreKey<Int>("number", id: "a"), StoreKey<Int>("number", id: "b"))
    let first = await startBlockedSave(0)
    let burst = [(1, a), (2, b)].map { startSave($0.0, for: $0.1) }
    backend.namesFindingCorruptStore.withLock { $0 = ["number.b"] }
    try await releaseBackend()
    #expect(try await first.value.get().value == 0)
    #expect(backend.writes.withLock { $0 } == ["number.0", "number.a", "number.a", "number.b"])
    for (task, key) in zip(burst, [a, b]) { #expect(try await store.load(key) == task.value.get()) }
  }

  @Test func `Values that a burst wrote before a quarantine found the store corrupt are written again`() async throws {
    let (a, b) = (StoreKey<Int>("number", id: "a"), StoreKey<Int>("number", id: "b"))
    let first = await startBlockedSave(0)
    backend.corrupt("number.b")
    let burst = [(1, a), (2, b)].map { startSave($0.0, for: $0.1) }
    backend.quarantineFindsCorruptStore.withLock { $0 = true }
    try await releaseBackend()
    #expect(try await first.value.get().value == 0)
    #expect(backend.writes.withLock { $0 } == ["number.0", "number.a", "number.a", "number.b"])
    for (task, key) in zip(burst, [a, b]) { #expect(try await store.load(key) == task.value.get()) }
  }

  @Test func `A commit that must wait for a quarantine isn't overtaken by later ones`() async throws {
    let keys = ["a", "b", "c"].map { StoreKey<Int>("number", id: $0) }
    let first = await startBlockedSave(0)
    backend.corrupt("number.a")
    let burst = keys.map { startSave(1, for: $0) }
    try await releaseBackend()
    var revisions: [UInt64] = []
    for task in [first] + burst { revisions.append(try await task.value.get().revision) }
    #expect(revisions == [1, 2, 3, 4])
  }

  @Test func `A replaced save is sent before later saves, even if the replacing save must wait for a quarantine`()
    async throws
  {
    let (a, b) = (StoreKey<Int>("number", id: "a"), StoreKey<Int>("number", id: "b"))
    let changes = try await store.observe(collection: "number", as: Int.self).changes
    let first = await startBlockedSave(0)
    backend.corrupt("number.a")
    let burst = [(1, a), (2, b), (3, a)].map { startSave($0.0, for: $0.1) }
    // The first save of "a" isn't written, because the second save of "a" replaces it. Until the second one is durable,
    // neither the first one nor the save of "b" is sent. The store takes the last report when the save of "b" is
    // durable but not sent yet. The report makes the store read all observed keys, but it must not mistake the save of
    // "b" for an external change.
    backend.reports.withLock { $0 = [.names([]), .names([]), .unknown] }
    try await releaseBackend()
    #expect(backend.writes.withLock { $0 } == ["number.0", "number.b", "number.a"])
    var expected: [StoreChange<Int>] = [.saved(key, try await first.value.get())]
    for (task, key) in zip(burst, [a, b, a]) { expected.append(.saved(key, try await task.value.get())) }
    #expect(expected.map(\.revision) == [1, 2, 3, 4])
    var iterator = changes.makeAsyncIterator()
    for change in expected { #expect(await iterator.next() == [change]) }
  }

  @Test func `A save that waits to be sent is written again if the store is found corrupt`() async throws {
    let (a, b) = (StoreKey<Int>("number", id: "a"), StoreKey<Int>("number", id: "b"))
    _ = await startBlockedSave(0)
    backend.corrupt("number.a")
    // The saves of "a" wait for a quarantine. The save of "b" is written before that, but waits to be sent until the
    // first save of "a" is sent.
    let burst = [(1, a), (2, b), (3, a)].map { startSave($0.0, for: $0.1) }
    backend.namesFindingCorruptStore.withLock { $0 = ["number.a"] }
    try await releaseBackend()
    #expect(backend.writes.withLock { $0 } == ["number.0", "number.b", "number.b", "number.a"])
    var revisions: [UInt64] = []
    for task in burst { revisions.append(try await task.value.get().revision) }
    #expect(revisions == [2, 3, 4])
    #expect(try await store.load(b)?.value == 2)
  }

  @Test func `A removal by another process is sent, even if a commit group has tried to remove the same key`()
    async throws
  {
    let (a, b) = (StoreKey<Int>("number", id: "a"), StoreKey<Int>("number", id: "b"))
    try await store.save(1, for: a)
    let changes = try await store.changes(of: a).subscribe()
    let received = Lock<[StoreChange<Int>]>([])
    let receiving = Task(executorPreference: executor) {
      for await change in changes { received.withLock { $0.append(change) } }
    }
    _ = await startBlockedSave(0)
    backend.externallyRemovedNames.withLock { $0 = ["number.a"] }
    let removing = startCommit { $0.remove(a) }
    let saving = startSave(2, for: b)
    try await releaseBackend()
    #expect(await removing.value == .removeFailed(ControlledBackend.error))
    #expect(try await saving.value.get().revision == 3)
    // The first element is the replay of the stored value.
    #expect(received.withLock { $0.dropFirst() } == [.removed(a, revision: 4)])
    receiving.cancel()
  }

  @Test func `A save during which the watch fails is sent once`() async throws {
    let changes = try await store.changes(of: key).subscribe()
    backend.watchFails.withLock { $0 = true }
    let first = try await store.save(1, for: key)
    let second = try await store.save(2, for: key)
    var iterator = changes.makeAsyncIterator()
    #expect(await iterator.next() == .saved(key, first))
    #expect(await iterator.next() == .saved(key, second))
    #expect(second.revision == 2)
  }

  @Test func `If a burst finds the store corrupt twice, all its saves throw`() async throws {
    let (a, b) = (StoreKey<Int>("number", id: "a"), StoreKey<Int>("number", id: "b"))
    _ = await startBlockedSave(0)
    let burst = [(1, a), (2, b)].map { startSave($0.0, for: $0.1) }
    backend.namesFindingCorruptStore.withLock { $0 = ["number.b", "number.b"] }
    try await releaseBackend()
    for (task, key) in zip(burst, [a, b]) {
      #expect(await task.value == .failure(ControlledBackend.corruption))
      #expect(try await store.load(key) == nil)
    }
  }

  @Test func `A load and a removal during a burst keep their places in the order of the calls`() async throws {
    let changes = try await store.changes(of: key).subscribe()
    _ = await startBlockedSave(0)
    _ = startSave(1, for: key)
    let second = startSave(2, for: key)
    let loading = Task(executorPreference: executor) { [store, key] in try await store.load(key) }
    executor.runUntilIdle()
    _ = startSave(3, for: key)
    let removing = Task(executorPreference: executor) { [store, key] in try await store.remove(key) }
    executor.runUntilIdle()
    _ = startSave(4, for: key)
    try await releaseBackend()
    #expect(try await loading.value == second.value.get())
    try await removing.value
    // Only the saves of 1 and 2 are one write, because no other call came between them.
    #expect(backend.writes.withLock { $0.count } == 4)
    var iterator = changes.makeAsyncIterator()
    for expected in [0, 1, 2, 3, nil, 4] { #expect(await iterator.next()?.stored?.value == expected) }
    #expect(try await store.load(key)?.revision == 6)
  }

  @Test func `A save whose task is cancelled is still made`() async throws {
    let first = await startBlockedSave(0)
    let second = startSave(1, for: key)
    first.cancel()
    second.cancel()
    try await releaseBackend()
    #expect(await first.value.map(\.value) == .success(0))
    #expect(await second.value.map(\.value) == .success(1))
    #expect(try await store.load(key)?.value == 1)
  }

  @Test func `A save whose value cannot be encoded fails alone`() async throws {
    let store = BackedStore(backend: backend.base)
    let key = StoreKey<Double>("double")
    try await withThrowingTaskGroup(of: StoredValue<Double>.self) { group in
      for value in [1, 2, 3] as [Double] { group.addTask { try await store.save(value, for: key) } }
      await #expect(throws: StoreError.self) { try await store.save(.nan, for: key) }
      let revisions = try await group.reduce(into: Set<UInt64>()) { $0.insert($1.revision) }
      #expect(revisions == [1, 2, 3])
    }
  }
}

/// An in-memory backend that records writes, and blocks them or lets them fail on demand.
private final class ControlledBackend: StoreBackend, Sendable {
  static let error = SystemError(code: 28, operation: "write", path: "a full disk")
  static let lockedOut = SystemError(code: POSIXErrorCode.EAGAIN.rawValue, operation: "flock", path: "a folder")
  static let corruption = StoreError.corruptStore(movedTo: "a place", reason: "a reason")
  private let storage = InMemoryStorage()
  let base: InMemoryBackend
  /// Whether each write is blocked until the gate is signaled.
  let blocksWrites = Lock(false)
  let gate = DispatchSemaphore(value: 0)
  /// The written names, in order.
  let writes = Lock<[String]>([])
  /// The names whose writes fail.
  let failingNames = Lock<Set<String>>([])
  /// The names whose writes time out while they wait for the lock of the store.
  let lockedNames = Lock<Set<String>>([])
  /// The names whose writes find the whole store corrupt, in order; each entry affects one write.
  let namesFindingCorruptStore = Lock<[String]>([])
  /// The names that another process removes just when this backend tries to, so that this backend's commit fails.
  let externallyRemovedNames = Lock<Set<String>>([])
  /// Whether the next quarantine finds the whole store corrupt.
  let quarantineFindsCorruptStore = Lock(false)
  /// The next reports of external changes, in order.
  let reports = Lock<[ExternalChanges]>([])
  /// Whether the next report fails.
  let watchFails = Lock(false)
  /// The times since which callers have waited.
  let starts = Lock<[ContinuousClock.Instant]>([])
  private let blockedWrites: AsyncStream<Void>
  private let blockedWritesContinuation: AsyncStream<Void>.Continuation

  init() {
    base = InMemoryBackend(storage: storage)
    (blockedWrites, blockedWritesContinuation) = AsyncStream.makeStream()
  }

  /// Waits until a write is blocked.
  func waitUntilWriteIsBlocked() async {
    for await _ in blockedWrites { return }
  }

  func beginCall(at start: ContinuousClock.Instant) { starts.withLock { $0.append(start) } }

  func read(_ name: String) -> Data? { base.read(name) }

  func commit(
    _ writes: [StoreWrite], deciding decide: (inout ControlledBackend) throws(StoreError) -> CommitDecision
  ) throws(StoreError) -> Bool {
    var backend = self
    guard case .proceed(let removals) = try decide(&backend) else { return false }
    for write in writes { try self.write(write.bytes, to: write.name) }
    for name in removals {
      storage[name] = nil
      if externallyRemovedNames.withLock({ $0.contains(name) }) {
        reports.withLock { $0.append(.names([name])) }
        throw .removeFailed(Self.error)
      }
    }
    return true
  }

  private func write(_ bytes: Data, to name: String) throws(StoreError) {
    if failingNames.withLock({ $0.contains(name) }) { throw .writeFailed(Self.error) }
    if lockedNames.withLock({ $0.contains(name) }) { throw .writeFailed(Self.lockedOut) }
    let isCorrupt = namesFindingCorruptStore.withLock { names in
      guard names.first == name else { return false }
      names.removeFirst()
      return true
    }
    if isCorrupt { try quarantineStore() }
    writes.withLock { $0.append(name) }
    if blocksWrites.withLock({ $0 }) {
      blockedWritesContinuation.yield()
      gate.wait()
    }
    storage[name] = bytes
  }

  /// Replaces the whole store with an empty one and throws, as a backend does when it finds the store corrupt.
  private func quarantineStore() throws(StoreError) {
    for name in storage.names { storage[name] = nil }
    throw Self.corruption
  }

  /// Replaces the stored bytes of a name by corrupt ones.
  func corrupt(_ name: String) {
    storage[name] = Data("corrupt".utf8)
  }

  func quarantine(_ bytes: Data, of name: String, at time: Date) throws(StoreError) -> String? {
    if quarantineFindsCorruptStore.withLock({ exchange(&$0, with: false) }) { try quarantineStore() }
    return base.quarantine(bytes, of: name, at: time)
  }

  func names() -> [String] { base.names() }

  func takeExternalChanges() throws(StoreError) -> ExternalChanges {
    if watchFails.withLock({ exchange(&$0, with: false) }) { throw .readFailed(Self.error) }
    return reports.withLock { $0.isEmpty ? .names([]) : $0.removeFirst() }
  }
}

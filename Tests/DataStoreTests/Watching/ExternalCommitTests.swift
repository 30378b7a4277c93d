import Dispatch
import Foundation
import Multicast
import MulticastTesting
import Synchronization
import TestSupport
import Testing

@testable import DataStore

/// Observers receive external changes in order, regardless of which call notices them first.
///
/// Observers of a collection receive an external commit as one element.
@Suite(.timeLimit(.minutes(15))) struct ExternalCommitTests {
  /// The call to the observed store right after another store has committed.
  enum Call: CaseIterable {
    case load, save, remove, commit, changes, observe
  }

  private let temporary = TemporaryFolder()
  private let keys = (0..<3).map { StoreKey<Int>("numbers", id: "\($0)") }

  @Test(arguments: DurableStore.allCases, Call.allCases)
  func `A call that notices one change of an external commit notices all changes of the commit`(
    kind: DurableStore, call: Call
  ) async throws {
    let (store, other) = (kind.open(in: temporary), kind.open(in: temporary))
    var changes = try await store.observe(collection: "numbers", as: Int.self).changes.makeAsyncIterator()
    var currentValues: [String?: Int] = [:]
    for number in 1...20 {
      var externalBatch = StoreBatch()
      for key in keys { externalBatch.save(number, for: key) }
      try await other.commit(externalBatch)
      switch call {
      case .load: #expect(try await store.load(keys[1])?.value == number)
      case .save: try await store.save(-number, for: keys[1])
      case .remove: try await store.remove(keys[1])
      case .commit:
        var batch = StoreBatch()
        for key in keys.dropFirst() { batch.save(-number, for: key) }
        try await store.commit(batch)
      case .changes: _ = try await store.changes(of: keys[1])
      case .observe: _ = try await store.observe(collection: "numbers", as: Int.self)
      }
      // The changes of the other store are one element, which comes before the element of the call itself.
      var valuesAfterElement: [[Int?]] = []
      let sendsOwnElement = [.save, .remove, .commit].contains(call)
      for _ in 0..<(sendsOwnElement ? 2 : 1) {
        for change in await changes.next() ?? [] { currentValues[change.key.id] = change.stored?.value }
        valuesAfterElement.append(keys.map { currentValues[$0.id] })
      }
      #expect(valuesAfterElement[0] == [number, number, number])
      switch call {
      case .load, .changes, .observe: break
      case .save: #expect(valuesAfterElement[1] == [number, -number, number])
      case .remove: #expect(valuesAfterElement[1] == [number, nil, number])
      case .commit: #expect(valuesAfterElement[1] == [number, -number, -number])
      }
    }
  }

  @Test func `If a repeated decision finds a new value, and then the old one again, observers receive both values`()
    async throws
  {
    let backend = RepeatingBackend()
    let store = BackedStore(backend: backend)
    try await store.save(1, for: keys[0])
    var changes = try await store.changes(of: keys[0]).subscribe().makeAsyncIterator()
    #expect(await changes.next()?.stored?.value == 1)
    try backend.repeatNextDecision(whileStoring: encodedEnvelope(2), for: keys[0])
    try await store.save(3, for: keys[1])
    #expect(await changes.next()?.stored?.value == 2)
    #expect(await changes.next()?.stored?.value == 1)
  }

  @Test func `External changes that a commit can't read are read after it`() async throws {
    let backend = RepeatingBackend()
    let store = BackedStore(backend: backend)
    try await store.save(1, for: keys[0])
    var changes = try await store.changes(of: keys[0]).subscribe().makeAsyncIterator()
    #expect(await changes.next()?.stored?.value == 1)
    try backend.failNextRead(afterStoring: encodedEnvelope(2), for: keys[0])
    try await store.save(3, for: keys[1])
    #expect(await changes.next()?.stored?.value == 2)
  }

  @Test func `Commits that wait together are made in order, even if one removes a file`() async throws {
    let keys = (0..<4).map { StoreKey<Int>("numbers", id: "\($0)") }
    let (heldGate, releaseSemaphore) = (Gate(), DispatchSemaphore(value: 0))
    let holdsNextCreate = Lock(false)
    let store = FileStore(
      folder: temporary.url,
      fileSystem: FileSystem { call in
        if call.operation == "create", holdsNextCreate.withLock({ exchange(&$0, with: false) }) {
          heldGate.open()
          releaseSemaphore.wait()
        }
        return nil
      })
    try await store.save(0, for: keys[1])
    var changes = try await store.observe(collection: "numbers", as: Int.self).changes.makeAsyncIterator()
    holdsNextCreate.withLock { $0 = true }
    var removingBatch = StoreBatch()
    removingBatch.save(2, for: keys[0])
    // The folder watch may report this removal like an external change, before the later commits are made.
    removingBatch.remove(keys[1])
    var batches = [StoreBatch(), removingBatch, StoreBatch(), StoreBatch()]
    batches[0].save(1, for: keys[3])
    batches[2].save(3, for: keys[2])
    batches[3].save(4, for: keys[3])
    // The first commit is held while it stages its file, so the other three wait together.
    let executor = ManualTaskExecutor()
    var commits: [Task<UInt64, any Error>] = []
    for batch in batches {
      commits.append(Task(executorPreference: executor) { try await store.commit(batch).revision })
      executor.runUntilIdle()
      if commits.count == 1 { await heldGate.pass() }
    }
    releaseSemaphore.signal()
    let runningTask = startRunning(executor)
    defer { runningTask.cancel() }
    // The id and the value of each change, with 0 for a removal.
    var elements: [[String]] = []
    for _ in batches {
      elements.append((await changes.next() ?? []).map { "\($0.key.id ?? "") \($0.stored?.value ?? 0)" })
    }
    #expect(elements == [["3 1"], ["0 2", "1 0"], ["2 3"], ["3 4"]])
    var revisions: [UInt64] = []
    for commit in commits { revisions.append(try await commit.value) }
    #expect(revisions == [2, 3, 4, 5])
  }

  @Test func `An external commit between two commits that wait together is sent as one element`() async throws {
    let keys = (0..<4).map { StoreKey<Int>("numbers", id: "\($0)") }
    let hook = Lock<@Sendable (FileSystem.Call) -> Void>({ _ in })
    let store = FileStore(
      folder: temporary.url,
      fileSystem: FileSystem { call in
        hook.withLock { $0 }(call)
        return nil
      })
    // Without the trailing slash.
    let folderPath = String(temporary.url.path(percentEncoded: false).dropLast())
    try await store.save(0, for: keys[0])
    var changes = try await store.observe(collection: "numbers", as: Int.self).changes.makeAsyncIterator()

    // The first save blocks the store until three more wait.
    let (heldGate, releaseSemaphore) = (Gate(), DispatchSemaphore(value: 0))
    hook.withLock {
      $0 = { call in
        guard call.operation == "create" else { return }
        hook.withLock { $0 = { _ in } }
        heldGate.open()
        releaseSemaphore.wait()
      }
    }
    let executor = ManualTaskExecutor()
    let saves = [1, 2, 3, 4].map { number in
      let (store, key) = (store, keys[number - 1])
      defer { executor.runUntilIdle() }
      return Task(executorPreference: executor) { _ = try await store.save(number, for: key) }
    }
    await heldGate.pass()
    let replacedFileCount = Lock(0)
    let bytes = try encodedEnvelope(9)
    let names = [keys[1], keys[3]].map(\.keyName)
    hook.withLock {
      $0 = { call in
        // Each save replaces one file. After the second save, the next lock of the folder is for the third save or for
        // a check for changes. Another backend commits right before that lock.
        if call.operation == "rename" { replacedFileCount.withLock { $0 += 1 } }
        guard call.operation == "flock", call.path == folderPath, replacedFileCount.withLock({ $0 }) >= 2 else {
          return
        }
        hook.withLock { $0 = { _ in } }
        do {
          var other = FileBackend(folder: URL(filePath: folderPath, directoryHint: .isDirectory))
          let writes = try names.map { StoreWrite(name: try $0.encoded(), bytes: bytes) }
          #expect(try other.commit(writes) { _ in .proceed(removing: []) })
        } catch {
          Issue.record(error)
        }
      }
    }
    releaseSemaphore.signal()
    let runningTask = startRunning(executor)
    defer { runningTask.cancel() }
    // The id and the value of each change, with 0 for a removal.
    var elements: [[String]] = []
    for _ in 1...5 {
      elements.append((await changes.next() ?? []).map { "\($0.key.id ?? "") \($0.stored?.value ?? 0)" })
    }
    #expect(elements == [["0 1"], ["1 2"], ["1 9", "3 9"], ["2 3"], ["3 4"]])
    for save in saves { try await save.value }
  }

  /// Runs the jobs of an executor until the returned task is cancelled.
  ///
  /// The store sends the changes of a commit before it resumes the caller of the commit. So a test that has received
  /// the changes can't know when the caller's job is ready to run.
  private func startRunning(_ executor: ManualTaskExecutor) -> Task<Void, Never> {
    Task {
      while !Task.isCancelled {
        executor.runUntilIdle()
        await Task.yield()
      }
    }
  }
}

/// A backend in memory that can repeat a decision, as a database does after a lost connection, or fail to read.
private final class RepeatingBackend: StoreBackend, Sendable {
  private let storage = InMemoryStorage()
  private let base: InMemoryBackend
  /// The name and the bytes that are stored only during the first call of the next decision.
  private let temporary = Lock<(name: String, bytes: Data)?>(nil)

  /// The name whose next read fails.
  private let unreadable = Lock<String?>(nil)

  init() {
    base = InMemoryBackend(storage: storage)
  }

  /// Stores bytes for a key, and makes the next read of the key fail with an error that concerns the whole store.
  func failNextRead(afterStoring bytes: Data, for key: StoreKey<Int>) throws {
    let name = try key.keyName.encoded()
    storage[name] = bytes
    unreadable.withLock { $0 = name }
  }

  /// Makes the next commit call its decision twice, and stores other bytes for a key during the first call.
  func repeatNextDecision(whileStoring bytes: Data, for key: StoreKey<Int>) throws {
    let name = try key.keyName.encoded()
    temporary.withLock { $0 = (name, bytes) }
  }

  func commit(
    _ writes: [StoreWrite], deciding decide: (inout RepeatingBackend) throws(StoreError) -> CommitDecision
  ) throws(StoreError) -> Bool {
    var backend = self
    if let (name, bytes) = temporary.withLock({ exchange(&$0, with: nil) }) {
      let storedBytes = storage[name]
      storage[name] = bytes
      _ = try decide(&backend)
      storage[name] = storedBytes
    }
    return try base.make(writes, try decide(&backend))
  }

  func read(_ name: String) throws(StoreError) -> Data? {
    if unreadable.withLock({ unreadableName in
      guard unreadableName == name else { return false }
      unreadableName = nil
      return true
    }) {
      throw .readFailed(SystemError(code: ENOMEM, operation: "reading", path: "memory"))
    }
    return base.read(name)
  }

  func names() -> [String] { base.names() }

  func quarantine(_ bytes: Data, of name: String, at time: Date) -> String? {
    base.quarantine(bytes, of: name, at: time)
  }

  /// Returns all names, as if each could have been changed.
  func takeExternalChanges() -> ExternalChanges { .names(base.names()) }
}

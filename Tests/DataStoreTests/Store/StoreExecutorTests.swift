import Dispatch
import Foundation
import Multicast
import MulticastTesting
import Testing

@testable import DataStore

@Suite(.timeLimit(.minutes(15))) struct StoreExecutorTests {
  private let executor = StoreExecutor(label: "StoreExecutorTests")
  private let recorder = Recorder()

  @Test func `Jobs run one after the other, in the order they arrived`() async {
    for number in 0..<1_000 { executor.enqueue { [recorder] in recorder.record(number) } }
    await waitUntilIdle()
    #expect(recorder.numbers == Array(0..<1_000))
  }

  @Test func `An idle executor runs work on the calling thread, in the executor's isolation`() {
    let callingThread = ThreadID()
    let workThread = executor.runIfIdle {
      executor.checkIsolated()
      return ThreadID()
    }
    #expect(workThread == callingThread)
  }

  @Test func `Work isn't run while a job waits or runs`() async {
    let gate = DispatchSemaphore(value: 0)
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      executor.enqueue {
        continuation.resume()
        gate.wait()
      }
      // The job may not have begun yet.
      #expect(executor.runIfIdle { 1 } == nil)
    }
    // The job runs until the gate is signaled.
    #expect(executor.runIfIdle { 1 } == nil)
    executor.enqueue {}
    #expect(executor.runIfIdle { 1 } == nil)
    gate.signal()
    await waitUntilIdle()
    #expect(executor.runIfIdle { 1 } == 1)
  }

  @Test func `Every 257th call in a row is refused, so that a loop of calls yields to other tasks`() {
    let hasRun = (0..<1_024).map { _ in executor.runIfIdle {} != nil }
    let expected = (0..<1_024).map { $0 % 257 != 256 }
    #expect(hasRun == expected)
  }

  @Test func `Jobs that arrive while work runs are started when it is done, in order`() async {
    let ran: Void? = executor.runIfIdle {
      for number in 1...3 { executor.enqueue { [recorder] in recorder.record(number) } }
      #expect(executor.runIfIdle { 1 } == nil)
      recorder.record(0)
    }
    #expect(ran != nil)
    await waitUntilIdle()
    #expect(recorder.numbers == [0, 1, 2, 3])
  }

  @Test func `Work and jobs of many threads never run at the same time`() async {
    let total = Total()
    await withTaskGroup { group in
      for _ in 0..<4 {
        group.addTask { [executor] in
          for _ in 0..<2_000 {
            if executor.runIfIdle({ total.value += 1 }) == nil { executor.enqueue { total.value += 1 } }
          }
        }
      }
    }
    await waitUntilIdle()
    #expect(total.value == 8_000)
  }

  /// Waits until all enqueued jobs are finished and the executor is idle.
  private func waitUntilIdle() async {
    await withCheckedContinuation { continuation in executor.enqueue { continuation.resume() } }
    // The executor becomes idle shortly after its last job.
    while executor.runIfIdle({}) == nil { await Task.yield() }
  }
}

/// Loading a known value: one that the store keeps in memory, and reads again only after an external change.
@Suite(.timeLimit(.minutes(15))) struct KnownValueLoadTests {
  private let key = StoreKey<Int>("number")
  private let backend = VersionedBackend()
  private let store: BackedStore<VersionedBackend>

  init() {
    store = BackedStore(backend: backend)
  }

  @Test func `A known value is loaded on the caller's thread, without reading`() async throws {
    try await store.save(1, for: key)
    try await #expect(store.load(key)?.value == 1)
    let readCount = backend.readCount.withLock { $0 }
    var hasStayedOnThread = false
    // The store becomes idle shortly after its last call, so the first loads may not find it idle.
    for _ in 1...1_000 where !hasStayedOnThread { hasStayedOnThread = try await loadStaysOnCallingThread() }
    #expect(hasStayedOnThread)
    #expect(backend.readCount.withLock { $0 } == readCount)
  }

  /// Loads the value, and returns whether the backend was used on the thread of the call.
  private func loadStaysOnCallingThread() async throws -> Bool {
    let executor = ManualTaskExecutor()
    let task = Task(executorPreference: executor) { [store, key] in try await store.load(key)?.value }
    backend.threadOfLastVersionRequest.withLock { $0 = nil }
    executor.runUntilIdle()
    let hasStayedOnThread = backend.threadOfLastVersionRequest.withLock { $0 } == ThreadID()
    // If the load has moved to the store's queue, it resumes on the manual executor, whose jobs must then be run.
    let jobRunner = Task { while !Task.isCancelled { executor.runUntilIdle(); await Task.yield() } }
    defer { jobRunner.cancel() }
    try await #expect(task.value == 1)
    return hasStayedOnThread
  }

  @Test func `A known value that was changed externally is read again`() async throws {
    let first = try await store.save(1, for: key)
    try await #expect(store.load(key) == first)
    try backend.changeExternally(encodedEnvelope(2), of: key)
    try await #expect(store.load(key)?.value == 2)
    try await #expect(store.load(key)?.revision == first.revision + 1)
  }

  @Test func `If the version number for external changes can't be read, the load throws`() async throws {
    try await store.save(1, for: key)
    _ = try await store.load(key)
    backend.versionError.withLock { $0 = .readFailed(SystemError(code: 5, operation: "read", path: "a disk")) }
    await #expect(throws: StoreError.readFailed(SystemError(code: 5, operation: "read", path: "a disk"))) {
      try await store.load(key)
    }
    backend.versionError.withLock { $0 = nil }
    try await #expect(store.load(key)?.value == 1)
  }
}

/// An in-memory backend with a version number that counts external changes.
private final class VersionedBackend: StoreBackend, Sendable {
  private let storage = InMemoryStorage()
  private let base: InMemoryBackend
  private let version = Lock<UInt64>(1)
  let readCount = Lock(0)
  /// The thread of the last request for the version.
  let threadOfLastVersionRequest = Lock<ThreadID?>(nil)
  /// The error of each request for the version; `nil` if the requests succeed.
  let versionError = Lock<StoreError?>(nil)

  init() {
    base = InMemoryBackend(storage: storage)
  }

  func changeExternally(_ bytes: Data, of key: StoreKey<some Any>) throws {
    storage[try key.keyName.encoded()] = bytes
    version.withLock { $0 += 1 }
  }

  func externalVersion() throws(StoreError) -> UInt64? {
    threadOfLastVersionRequest.withLock { $0 = ThreadID() }
    if let error = versionError.withLock({ $0 }) { throw error }
    return version.withLock { $0 }
  }

  func read(_ name: String) -> Data? {
    readCount.withLock { $0 += 1 }
    return base.read(name)
  }

  func commit(
    _ writes: [StoreWrite], deciding decide: (inout VersionedBackend) throws(StoreError) -> CommitDecision
  ) throws(StoreError) -> Bool {
    var backend = self
    return try base.make(writes, try decide(&backend))
  }

  func names() -> [String] { base.names() }

  func quarantine(_ bytes: Data, of name: String, at time: Date) -> String? {
    base.quarantine(bytes, of: name, at: time)
  }
}

/// Records numbers, in the order of the calls.
private final class Recorder: Sendable {
  private let recorded = Lock<[Int]>([])

  var numbers: [Int] { recorded.withLock { $0 } }

  func record(_ number: Int) { recorded.withLock { $0.append(number) } }
}

/// A number without a lock of its own.
///
/// `@unchecked`, because it is used only in the isolation of one executor. The thread sanitizer verifies that.
private final class Total: @unchecked Sendable {
  var value = 0
}

/// The identity of the thread that creates it.
private struct ThreadID: Equatable {
  private let thread = ObjectIdentifier(Thread.current)
}

import Foundation
import Multicast
import MulticastTesting
import TestSupport
import Testing

@testable import DataStore

/// When a suspended store opens and closes its backend, whatever comes at the same time.
@Suite(.timeLimit(.minutes(15))) struct SuspensionTests {
  private let control = SteppedBackend.Control()
  private let storage = InMemoryStorage()
  private let store: BackedStore<SteppedBackend>
  private let other: InMemoryStore
  private let key = StoreKey<Int>("number")
  /// Runs the tests' calls of the store up to the point at which they wait in the store's queue.
  private let executor = ManualTaskExecutor()

  init() {
    store = BackedStore(backend: SteppedBackend(control, storage: storage))
    other = InMemoryStore(storage: storage)
  }

  /// Begins a call, which has arrived at the store's queue when this function returns.
  private func begin<Result: Sendable>(
    _ call: @escaping @Sendable (BackedStore<SteppedBackend>) async throws -> Result
  ) -> Task<Result, any Error> {
    let task = Task(executorPreference: executor) { [store] in try await call(store) }
    executor.runUntilIdle()
    return task
  }

  /// Waits for a call, whose result needs the executor too.
  private func finish<Result>(_ task: Task<Result, any Error>) async throws -> Result {
    let executor = executor
    let isFinished = Lock(false)
    let runner = Task {
      while !isFinished.withLock({ $0 }) {
        executor.runUntilIdle()
        await Task.yield()
      }
    }
    let result = await task.result
    isFinished.withLock { $0 = true }
    await runner.value
    return try result.get()
  }

  // MARK: - Closing

  @Test func `A suspended store closes its backend at once and after each use, and a resumed one keeps it open`()
    async throws
  {
    try await store.save(1, for: key)
    _ = control.takeCalls()
    await store.suspend()
    #expect(control.takeCalls() == [.close])
    try await store.save(2, for: key)
    #expect(control.takeCalls() == [.commit, .read, .close])
    #expect(try await store.load(key)?.value == 2)
    #expect(control.takeCalls() == [.read, .close])
    await store.resume()
    #expect(try await store.load(key)?.value == 2)
    #expect(control.takeCalls() == [.read])
  }

  @Test func `A call that fails closes the backend of a suspended store too`() async throws {
    await store.suspend()
    control.setFailing([.read, .commit])
    await #expect(throws: StoreError.self) { try await store.load(key) }
    await #expect(throws: StoreError.self) { try await store.save(1, for: key) }
    #expect(control.takeCalls() == [.close, .read, .close, .commit, .close])
  }

  @Test func `Only the first of several suspensions closes the backend, and only the last end starts the watch`()
    async throws
  {
    let stream = try await store.changes(of: key)
    await store.resume()
    _ = control.takeCalls()
    await store.suspend()
    await store.suspend()
    await store.resume()
    #expect(control.takeCalls() == [.close])
    await store.resume()
    #expect(control.takeCalls() == [.startWatching, .read])
    await store.resume()
    #expect(control.takeCalls() == [])
    extendLifetime(stream)
  }

  @Test func `A store that nobody has observed doesn't watch when it is resumed`() async throws {
    await store.suspend()
    await store.resume()
    #expect(control.takeCalls() == [.close])
  }

  @Test func `The watch of an observer that comes during the suspension begins when the store is resumed`()
    async throws
  {
    await store.suspend()
    var changes = try await store.changes(of: key).subscribe().makeAsyncIterator()
    #expect(control.takeCalls() == [.close, .read, .close])
    try await other.save(1, for: key)
    await store.resume()
    #expect(await changes.next()?.stored?.value == 1)
    try await other.save(2, for: key)
    #expect(await changes.next()?.stored?.value == 2)
  }

  // MARK: - What comes at the same time

  @Test func `suspend() waits for a call that hangs, and for the saves behind it`() async throws {
    control.holdNext(.read)
    let loading = begin { [key] in try await $0.load(key) }
    await control.arrival.pass()
    let saving = begin { [key] in try await $0.save(1, for: key) }
    let suspending = begin { await $0.suspend() }
    let later = begin { [key] in try await $0.load(key) }
    #expect(control.calls == [.read])
    control.proceed()
    #expect(try await finish(loading) == nil)
    #expect(try await finish(saving).value == 1)
    try await finish(suspending)
    #expect(try await finish(later)?.value == 1)
    // The save is made before the backend is closed. The last call, which has come later, uses the closed backend.
    #expect(control.takeCalls() == [.read, .commit, .read, .close, .read, .close])
  }

  @Test func `resume() during a suspend() that waits ends the suspension after it has begun`() async throws {
    var changes = try await store.changes(of: key).subscribe().makeAsyncIterator()
    _ = control.takeCalls()
    control.holdNext(.read)
    let loading = begin { [key] in try await $0.load(key) }
    await control.arrival.pass()
    let suspending = begin { await $0.suspend() }
    let resuming = begin { await $0.resume() }
    control.proceed()
    _ = try await finish(loading)
    try await finish(suspending)
    try await finish(resuming)
    #expect(control.takeCalls() == [.read, .close, .startWatching, .read])
    try await other.save(1, for: key)
    #expect(await changes.next()?.stored?.value == 1)
  }

  @Test func `A watch that is just being started when suspend() comes is ended`() async throws {
    control.holdNext(.startWatching)
    let observing = begin { [key] in try await $0.changes(of: key).subscribe() }
    await control.arrival.pass()
    let suspending = begin { await $0.suspend() }
    control.proceed()
    var changes = try await finish(observing).makeAsyncIterator()
    try await finish(suspending)
    #expect(control.takeCalls() == [.startWatching, .read, .close])
    try await other.save(1, for: key)
    #expect(control.takeCalls() == [])
    await store.resume()
    #expect(await changes.next()?.stored?.value == 1)
  }

  @Test func `A report that arrives before suspend() ends the watch opens nothing afterwards`() async throws {
    var changes = try await store.changes(of: key).subscribe().makeAsyncIterator()
    _ = control.takeCalls()
    control.holdNext(.read)
    let loading = begin { [key] in try await $0.load(key) }
    await control.arrival.pass()
    let suspending = begin { await $0.suspend() }
    // The check waits behind `suspend()`.
    try await other.save(1, for: key)
    control.proceed()
    _ = try await finish(loading)
    try await finish(suspending)
    control.reportChange()
    // A call of the store that comes after the checks.
    #expect(await store.observedCount(in: "number") == 1)
    let calls = control.takeCalls()
    #expect(calls == [.read, .close])
    await store.resume()
    #expect(await changes.next()?.stored?.value == 1)
  }

  @Test func `A watch that has broken isn't started again while the store is suspended`() async throws {
    var changes = try await store.changes(of: key).subscribe().makeAsyncIterator()
    control.setFailing([.takeExternalChanges, .startWatching])
    // The report breaks the watch, and the attempt to start another one fails.
    control.reportChange()
    #expect(await store.observedCount(in: "number") == 1)
    #expect(control.takeCalls().last == .startWatching)
    await store.suspend()
    control.setFailing([])
    control.reportChange()
    try await other.save(1, for: key)
    #expect(await store.observedCount(in: "number") == 1)
    #expect(control.takeCalls() == [.close])
    await store.resume()
    #expect(control.takeCalls() == [.startWatching, .read])
    #expect(await changes.next()?.stored?.value == 1)
  }

  @Test func `If the watch can't begin at the end of a suspension, observers receive what has changed nevertheless`()
    async throws
  {
    var changes = try await store.changes(of: key).subscribe().makeAsyncIterator()
    var events = store.events.makeAsyncIterator()
    await store.suspend()
    try await other.save(1, for: key)
    control.setFailing([.startWatching])
    await store.resume()
    #expect(await changes.next()?.stored?.value == 1)
    guard case .watchingFailed = await events.next() else {
      Issue.record("No event.")
      return
    }
    // The next observer starts the watch.
    control.setFailing([])
    _ = try await store.changes(of: key)
    try await other.save(2, for: key)
    #expect(await changes.next()?.stored?.value == 2)
  }

  // MARK: - Lifetime

  @Test func `Streams of a suspended store finish when the store is released`() async throws {
    var store: BackedStore? = BackedStore(backend: SteppedBackend(control, storage: storage))
    var changes = try #require(try await store?.changes(of: key).subscribe()).makeAsyncIterator()
    var observation = try #require(try await store?.observe(collection: "number", as: Int.self))
      .changes.makeAsyncIterator()
    await store?.suspend()
    try await store?.save(1, for: key)
    #expect(await changes.next()?.stored?.value == 1)
    #expect(await observation.next()?.count == 1)
    store = nil
    #expect(await changes.next() == nil)
    #expect(await observation.next() == nil)
  }

  @Test func `A store can be suspended and resumed by many tasks at once`() async throws {
    let temporary = TemporaryFolder()
    let (store, other) = (FileStore(folder: temporary.url), FileStore(folder: temporary.url))
    var changes = try await store.changes(of: key).buffering(.latest).subscribe().makeAsyncIterator()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 1...8 {
        group.addTask { [key] in
          for _ in 1...20 {
            await store.suspend()
            try await store.save(number, for: key)
            await store.resume()
          }
        }
        group.addTask { [key] in
          for _ in 1...5 { try await other.save(-number, for: key) }
        }
      }
      try await group.waitForAll()
    }
    // The suspensions have all ended, so the store notices this change by its watch.
    try await other.save(1_000, for: key)
    while let change = await changes.next(), change.stored?.value != 1_000 {}
    extendLifetime(temporary)
  }
}

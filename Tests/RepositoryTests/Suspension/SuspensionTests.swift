import DataStore
import DataStoreTesting
import Foundation
import Multicast
import MulticastTesting
import RepositoryTesting
import Testing

@testable import Repository

/// A repository that is suspended sends nothing and holds nothing.
@Suite(.timeLimit(.minutes(15))) struct SuspensionTests: LeaseSuite {
  let fixture = LeaseFixture()

  /// A store that counts its suspensions.
  private final class CountingStore: ForwardingStore {
    let base: SimulatedStore
    let calls = Setting<[String]>([])

    init(_ storage: SimulatedStorage) { base = SimulatedStore(storage: storage) }

    func suspend() async { calls.value.append("suspend") }
    func resume() async { calls.value.append("resume") }
  }

  /// Passes a gate in a task of its own, which isn't cancelled with the calling one.
  private func passUncancelled(_ gate: Gate) async {
    await Task(executorPreference: executor) { await gate.pass() }.value
  }

  // MARK: - Suspending

  @Test func `A suspended repository holds no lock and sends nothing until it is resumed`() async throws {
    let store = CountingStore(storage)
    let repository = makeRepository("only", store: store)
    try await #expect(!isLockFree)
    let suspension = start { await repository.suspend() }
    try await suspension.value
    try await #expect(isLockFree)
    #expect(store.calls.value == ["suspend"])
    try await #expect(perform("1", in: repository) == .queued)
    let (lane, count) = try #require(await repository.report().lanes.first.map { ($0.status, $0.count) })
    #expect((lane, count) == (.suspended, 1))
    advance(by: .seconds(600))
    try await #expect(isLockFree)
    #expect(server.applied.isEmpty)
    #expect(storedRecords.map(\.isMarked) == [false])
    let resumption = start { await repository.resume() }
    try await resumption.value
    executor.runUntilIdle()
    #expect(server.applied.map(\.mutation) == [.add("1")])
    #expect(store.calls.value == ["suspend", "resume"])
  }

  @Test func `A repository that is suspended before its first read takes no lock`() async throws {
    let reads = Gate()
    let hooks = SimulatedStore.Hooks(onRead: { _ in await reads.pass() })
    let repository = makeRepository("only", store: SimulatedStore(storage: storage, hooks: hooks))
    let suspension = start { await repository.suspend() }
    // The reads take longer than the suspension waits for them.
    advance(by: .seconds(2))
    try await suspension.value
    reads.open()
    executor.runUntilIdle()
    try await #expect(isLockFree)
    _ = repository
  }

  @Test func `A mutation that is being stored is durable before the repository is suspended`() async throws {
    let storing = Gate()
    let hooks = SimulatedStore.Hooks(onCommit: { _ in await storing.pass() })
    let repository = makeRepository("only", store: SimulatedStore(storage: storage, hooks: hooks))
    let call = start { try await repository.perform(.add("1"), on: "a") }
    let isSuspended = Setting(false)
    let suspension = start {
      await repository.suspend()
      isSuspended.value = true
    }
    #expect(!isSuspended.value)
    storing.open()
    executor.runUntilIdle()
    try await suspension.value
    try await #expect(call.value == .queued)
    try await #expect(isLockFree)
    #expect(storedRecords.map(\.isMarked) == [false])
  }

  @Test func `An attempt that ends within two seconds is completed before the repository is suspended`() async throws {
    let sending = Gate()
    let repository = makeRepository("only") { await sending.pass() }
    let call = start { try await repository.perform(.add("1"), on: "a") }
    let waiting = start { try await repository.perform(.add("2"), on: "a") }
    let isSuspended = Setting(false)
    let suspension = start {
      await repository.suspend()
      isSuspended.value = true
    }
    // The second mutation waits for more than its turn.
    try await #expect(waiting.value == .queued)
    advance(by: .milliseconds(1_999))
    #expect(!isSuspended.value)
    sending.open()
    executor.runUntilIdle()
    try await suspension.value
    try await #expect(call.value == .confirmed)
    try await #expect(isLockFree)
    #expect(senders.value.count == 1)
    #expect(storedRecords.map(\.isMarked) == [false])
  }

  @Test func `An attempt that takes longer is cancelled, and sent again under its id when the repository is resumed`()
    async throws
  {
    let sending = Gate()
    let repository = makeRepository("only") { () async throws(NotesFailure) in
      await sending.pass()
      if Task.isCancelled { throw .brokenConnection }
    }
    let call = start { try await repository.perform(.add("1"), on: "a") }
    let suspension = start { await repository.suspend() }
    advance(by: .seconds(2))
    try await suspension.value
    try await #expect(call.value == .queued)
    try await #expect(isLockFree)
    let record = try #require(storedRecords.first)
    #expect(record.isOutcomeUnknown && !record.isMarked && record.interruptedAttempts == 0)
    let id = try #require(try await repository.mutations.list().first?.id)
    sending.open()
    let resumption = start { await repository.resume() }
    try await resumption.value
    executor.runUntilIdle()
    #expect(server.applied.map(\.id) == [id])
    #expect(senders.value.count == 2)
    #expect(storedRecords.isEmpty)
  }

  @Test func `A call whose mutation is confirmed without a value doesn't wait longer than the suspension`() async throws
  {
    let fetching = Gate()
    let server = server
    var configuration = RepositoryConfiguration(clock: clock, now: fixture.now)
    configuration.taskExecutor = executor
    let source = NotesSource(
      fetch: { (key) async throws(NotesFailure) in
        await fetching.pass()
        return server.value(of: key)
      },
      send: { (mutation, key, id) async throws(NotesFailure) in
        _ = try server.take(mutation, key, id)
        return .withoutValue
      })
    let repository = NotesRepository(
      source, store: SimulatedStore(storage: storage), configuration: configuration)
    let call = start { try await repository.perform(.add("1"), on: "a") }
    let suspension = start { await repository.suspend() }
    advance(by: .seconds(2))
    try await suspension.value
    try await #expect(call.value == .queued)
    fetching.open()
    executor.runUntilIdle()
  }

  @Test func `An attempt whose source ignores the cancellation doesn't keep the lock`() async throws {
    let sending = Gate()
    let first = makeRepository("first") {
      await passUncancelled(sending)
    }
    let call = start { try await first.perform(.add("1"), on: "a") }
    let suspension = start { await first.suspend() }
    advance(by: .seconds(2))
    advance(by: .milliseconds(500))
    try await suspension.value
    try await #expect(call.value == .queued)
    try await #expect(isLockFree)
    #expect(storedRecords.map(\.isOutcomeUnknown) == [true])
    let second = makeRepository("second")
    let other = start { try await second.perform(.add("2"), on: "a") }
    try await #expect(other.value == .confirmed)
    let commitCount = storage.commitCount
    // The server knows the id of the late request, and the suspended repository stores nothing of its answer.
    sending.open()
    executor.runUntilIdle()
    #expect(server.applied.map(\.mutation) == [.add("1"), .add("2")])
    #expect(senders.value == ["first", "second", "second"])
    #expect(storage.commitCount == commitCount)
  }

  @Test func `Resuming ends a suspension that still waits, and the attempt goes on`() async throws {
    let sending = Gate()
    let store = CountingStore(storage)
    let repository = makeRepository("only", store: store) { await sending.pass() }
    let call = start { try await repository.perform(.add("1"), on: "a") }
    let suspension = start { await repository.suspend() }
    let resumption = start { await repository.resume() }
    try await suspension.value
    try await resumption.value
    sending.open()
    executor.runUntilIdle()
    try await #expect(call.value == .confirmed)
    #expect(senders.value.count == 1)
    #expect(!store.calls.value.contains("suspend"))
  }

  @Test func `Resuming after an attempt was cancelled sends its mutation again as soon as the attempt has ended`()
    async throws
  {
    let (sending, ending) = (Gate(), Gate())
    let repository = makeRepository("only") { () async throws(NotesFailure) in
      await sending.pass()
      if Task.isCancelled {
        await passUncancelled(ending)
        throw .brokenConnection
      }
    }
    let call = start { try await repository.perform(.add("1"), on: "a") }
    let suspension = start { await repository.suspend() }
    advance(by: .seconds(2))
    let resumption = start { await repository.resume() }
    try await suspension.value
    try await resumption.value
    sending.open()
    ending.open()
    executor.runUntilIdle()
    try await #expect(call.value == .queued)
    #expect(server.applied.map(\.mutation) == [.add("1")])
    #expect(senders.value.count == 2)
  }

  @Test func `A repository runs while it is neither suspended nor in the background`() async throws {
    let activity = ManualActivityMonitor(.background)
    let store = CountingStore(storage)
    let repository = makeRepository("only", activity: activity, store: store)
    try await #expect(isLockFree)
    try await #expect(perform("1", in: repository) == .queued)
    try await start { await repository.suspend() }.value
    activity.activity = .active
    advance(by: .seconds(10))
    #expect(senders.value.isEmpty)
    activity.activity = .background
    executor.runUntilIdle()
    try await start { await repository.resume() }.value
    advance(by: .seconds(10))
    #expect(senders.value.isEmpty)
    #expect(store.calls.value == ["suspend"])
    activity.activity = .inactive
    executor.runUntilIdle()
    #expect(server.applied.map(\.mutation) == [.add("1")])
    #expect(store.calls.value == ["suspend", "resume"])
  }

  @Test func `A store is suspended while all repositories that use it are`() async throws {
    let store = CountingStore(storage)
    let first = makeRepository("first", store: store)
    var second: NotesRepository? = makeRepository("second", store: store)
    try await start { await first.suspend() }.value
    #expect(store.calls.value.isEmpty)
    try await start { [second] in await second?.suspend() }.value
    try await start { [second] in await second?.suspend() }.value
    #expect(store.calls.value == ["suspend"])
    try await start { [second] in await second?.resume() }.value
    #expect(store.calls.value == ["suspend", "resume"])
    second = nil
    executor.runUntilIdle()
    try await start { await first.resume() }.value
    try await start { await first.suspend() }.value
    #expect(store.calls.value.last == "suspend")
  }

  // MARK: - Draining

  private func drain(_ repository: NotesRepository, within duration: Duration) -> Task<DrainResult, any Error> {
    start { await repository.drain(within: duration) }
  }

  @Test func `A drain sends what is queued, and leaves the repository suspended`() async throws {
    let store = CountingStore(storage)
    let repository = makeRepository("only", store: store)
    try await start { await repository.suspend() }.value
    for text in ["1", "2", "3"] { try await #expect(perform(text, in: repository) == .queued) }
    try await #expect(drain(repository, within: .seconds(20)).value == .empty)
    #expect(server.applied.map(\.mutation) == [.add("1"), .add("2"), .add("3")])
    try await #expect(isLockFree)
    #expect(store.calls.value == ["suspend", "resume", "suspend"])
    try await #expect(perform("4", in: repository) == .queued)
    // A repository that isn't suspended goes on.
    try await start { await repository.resume() }.value
    try await #expect(drain(repository, within: .seconds(20)).value == .empty)
    try await #expect(perform("5", in: repository) == .confirmed)
  }

  @Test func `A drain says how many mutations are left when its time is over`() async throws {
    let sending = Gate()
    let repository = makeRepository("only") { () async throws(NotesFailure) in
      await sending.pass()
      if Task.isCancelled { throw .brokenConnection }
    }
    try await start { await repository.suspend() }.value
    for text in ["1", "2", "3"] { try await #expect(perform(text, in: repository) == .queued) }
    let result = drain(repository, within: .seconds(20))
    advance(by: .seconds(20))
    advance(by: .seconds(2))
    try await #expect(result.value == .remaining(3))
    try await #expect(isLockFree)
    #expect(storedRecords.map(\.isOutcomeUnknown) == [true, false, false])
    // So it does if it is ended by a suspension.
    let second = drain(repository, within: .seconds(20))
    let suspension = start { await repository.suspend() }
    advance(by: .seconds(2))
    try await suspension.value
    try await #expect(second.value == .remaining(3))
    // Without time, the queue isn't read.
    try await #expect(drain(repository, within: .zero).value == .remaining(3))
    // Or cancelled.
    let third = drain(repository, within: .seconds(20))
    third.cancel()
    executor.runUntilIdle()
    try await #expect(third.value == .remaining(3))
    try await #expect(isLockFree)
  }

  @Test func `A drain names the reason why it can't go on, without waiting`() async throws {
    let network = ManualNetworkMonitor(.online)
    let failure = Setting<NotesFailure?>(nil)
    let repository = makeRepository("only", network: network) { () async throws(NotesFailure) in
      if let failure = failure.value { throw failure }
    }
    try await start { await repository.suspend() }.value
    try await #expect(drain(repository, within: .seconds(20)).value == .empty)
    try await #expect(perform("1", in: repository) == .queued)
    network.status = .offline
    executor.runUntilIdle()
    try await #expect(drain(repository, within: .seconds(20)).value == .paused(.offline))
    network.status = .online
    executor.runUntilIdle()
    failure.value = .busy(retryAfter: .seconds(60))
    let until = fixture.now().addingTimeInterval(60)
    try await #expect(drain(repository, within: .seconds(20)).value == .paused(.backingOff(until: until)))
    advance(by: .seconds(50))
    // This one ends within the time.
    failure.value = .signedOut
    let patient = drain(repository, within: .seconds(20))
    advance(by: .seconds(10))
    try await #expect(patient.value == .paused(.needsSignIn))
    try await #expect(isLockFree)
  }

  @Test func `A drain names the mutations that this program can't read`() async throws {
    let other = SimulatedStore(storage: storage)
    let unreadable = try MutationRecord.sample(["unreadable"], key: "b", sequence: 0)
    _ = try await start {
      try await other.save(unreadable, for: MutationKeys(repository: "notes").record(MutationID(rawValue: "id")))
    }.value
    let repository = makeRepository("only")
    try await #expect(drain(repository, within: .seconds(20)).value == .paused(.unreadable(1)))
  }

  @Test func `A drain says that another repository sends, or that the store can't be read`() async throws {
    let sending = Gate()
    let leader = makeRepository("leader") { await sending.pass() }
    let call = start { try await leader.perform(.add("1"), on: "a") }
    let follower = makeRepository("follower")
    let result = drain(follower, within: .seconds(20))
    advance(by: .seconds(20))
    try await #expect(result.value == .paused(.sentElsewhere))
    sending.open()
    executor.runUntilIdle()
    try await #expect(call.value == .confirmed)
    let error = StoreError.readFailed(SystemError(code: 5, operation: "testing", path: "memory"))
    let hooks = SimulatedStore.Hooks(onRead: { (_) throws(StoreError) in throw error })
    let broken = makeRepository("broken", store: SimulatedStore(storage: storage, hooks: hooks))
    try await #expect(drain(broken, within: .seconds(20)).value == .paused(.store(error)))
  }
}

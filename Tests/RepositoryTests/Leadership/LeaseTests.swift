import DataStore
import DataStoreTesting
import Foundation
import Multicast
import MulticastTesting
import RepositoryTesting
import TestSupport
import Testing

@testable import Repository

/// A repository holds the lock of its queue only while it sends.
@Suite(.timeLimit(.minutes(15))) struct LeaseTests: LeaseSuite {
  let fixture = LeaseFixture()

  @Test func `A repository that has sent everything releases the lock after 250 milliseconds`() async throws {
    let repository = makeRepository("only")
    try await #expect(!isLockFree)
    advance(by: linger)
    try await #expect(isLockFree)
    try await #expect(perform("1", in: repository) == .confirmed)
    advance(by: .milliseconds(200))
    try await #expect(perform("2", in: repository) == .confirmed)
    advance(by: .milliseconds(200))
    try await #expect(!isLockFree)
    advance(by: .milliseconds(50))
    try await #expect(isLockFree)
    #expect(await repository.report().leadership == .following)
  }

  @Test func `While every lane backs off, nothing is locked, and the next attempt takes the lock again`() async throws {
    isOffline.value = true
    let repository = makeRepository("only")
    try await #expect(perform("1", in: repository) == .queued)
    let delay = try #require(storedRecords.first?.backOff?.delay)
    clock.advance(by: min(delay, linger))
    executor.runUntilIdle()
    isOffline.value = false
    advance(by: .seconds(5))
    advance(by: .seconds(5))
    #expect(server.applied.map(\.mutation) == [.add("1")])
    advance(by: linger)
    try await #expect(isLockFree)
    #expect(storedRecords.isEmpty)
  }

  @Test func `A mutation that is made without the lock takes two commits, as with the lock`() async throws {
    let repository = makeRepository("only")
    try await #expect(perform("1", in: repository) == .confirmed)
    let commitCount = storage.commitCount
    try await #expect(perform("2", in: repository) == .confirmed)
    #expect(storage.commitCount == commitCount + 2)
    advance(by: linger)
    try await #expect(isLockFree)
    try await #expect(perform("3", in: repository) == .confirmed)
    #expect(storage.commitCount == commitCount + 4)
  }

  @Test func `Before the lock is released, the marks of waiting mutations are removed`() async throws {
    isOffline.value = true
    do {
      let repository = makeRepository("first")
      for text in ["1", "2", "3"] { try await #expect(perform(text, in: repository) == .queued) }
      // The second attempt marks the other mutations too.
      while senders.value.count < 2 { advance(by: .milliseconds(100)) }
      while try await !isLockFree { advance(by: linger) }
      #expect(storedRecords.map(\.isMarked) == [false, false, false])
      // The process ends here.
    }
    executor.runUntilIdle()
    isOffline.value = false
    let second = makeRepository("second")
    advance(by: .seconds(10))
    advance(by: .seconds(10))
    #expect(server.applied.map(\.mutation) == [.add("1"), .add("2"), .add("3")])
    _ = second
  }

  @Test
  func `Retrying at once ends the delays of a repository that doesn't hold the lock, also if the clock stands still`()
    async throws
  {
    isOffline.value = true
    let repository = makeRepository("only")
    try await #expect(perform("1", in: repository) == .queued)
    while try await !isLockFree { advance(by: linger) }
    isOffline.value = false
    let retry = Task(executorPreference: executor) { await repository.retryNow() }
    executor.runUntilIdle()
    await retry.value
    #expect(server.applied.map(\.mutation) == [.add("1")])
  }

  @Test func `Several repositories make no more attempts than one while the server is away`() async throws {
    isOffline.value = true
    let repositories = (0..<3).map { makeRepository("\($0)") }
    try await #expect(perform("1", in: repositories[0]) == .queued)
    var deadlines: [Date] = []
    for _ in 0..<200 {
      let backOff = try #require(storedRecords.first?.backOff)
      let deadline = backOff.failedAt.addingTimeInterval(backOff.delay / .seconds(1))
      if deadlines.last != deadline { deadlines.append(deadline) }
      advance(by: .milliseconds(100))
    }
    // Each delay was waited for before the next attempt, whichever repository made it.
    #expect(senders.value.count <= deadlines.count + 1)
    #expect(senders.value.count > 3)
    #expect(storedRecords.map(\.attempts) == [senders.value.count])
  }

  @Test func `A repository whose network is offline lets another one send`() async throws {
    let network = ManualNetworkMonitor(.online)
    let first = makeRepository("first", network: network)
    let second = makeRepository("second")
    try await #expect(perform("1", in: first) == .confirmed)
    network.status = .offline
    executor.runUntilIdle()
    try await #expect(isLockFree)
    try await #expect(perform("2", in: first) == .queued)
    let call = Task(executorPreference: executor) { try await second.perform(.add("3"), on: "a") }
    executor.runUntilIdle()
    #expect(server.applied.map(\.mutation) == [.add("1"), .add("2"), .add("3")])
    try await #expect(call.value == .confirmed)
    #expect(senders.value == ["first", "second", "second"])
  }

  @Test func `A mutation that this program can't read can be discarded if the process that was sending it has ended`()
    async throws
  {
    let other = SimulatedStore(storage: storage)
    var unreadable = try MutationRecord.sample(["unreadable"], key: "b", sequence: 0)
    unreadable.isMarked = true
    let id = MutationID(rawValue: "id")
    try await store(unreadable, as: id)
    var lock: StoreLock?
    if case .acquired(let acquired) = try await other.acquireLock("notes.mutations") { lock = acquired }
    let repository = makeRepository("only")
    await #expect(throws: PendingMutationError.alreadySent(id)) {
      try await start { try await repository.mutations.discard(id) }.value
    }
    withExtendedLifetime(lock) {}
    lock = nil
    try await start { try await repository.mutations.discard(id) }.value
    #expect(storedRecords.isEmpty)
  }

  /// Stores a record as another program does.
  private func store(_ record: MutationRecord, as id: MutationID = MutationID(rawValue: "id")) async throws {
    let other = SimulatedStore(storage: storage)
    _ = try await start { try await other.save(record, for: MutationKeys(repository: "notes").record(id)) }.value
  }

  /// Checks that a repository gives the lead up although it has something to send all the time.
  private func expectYield(by repository: NotesRepository) async throws {
    var wasFree = false
    for number in 0..<30 {
      _ = start { try await repository.perform(.add("\(number)"), on: "a") }
      if try await isLockFree { wasFree = true }
      advance(by: .milliseconds(100))
    }
    #expect(wasFree)
    advance(by: .seconds(10))
    #expect(server.applied.count == 30)
  }

  @Test func `A leader that can't read a mutation lets another version of the program lead after a second`()
    async throws
  {
    let unreadable = try MutationRecord.sample(["unreadable"], key: "b", sequence: 0)
    try await store(unreadable)
    let repository = makeRepository("only")
    try await expectYield(by: repository)
  }

  @Test
  func `A leader that can't read the value of a mutation lets another version of the program lead after a second`()
    async throws
  {
    let record = try MutationRecord.sample(NotesMutation.add("newer"), key: "b", sequence: 0)
    try await store(record)
    // A newer version of the program has stored the value.
    let newer = StoreKey<Notes>.notes("b").keyName
    let hooks = SimulatedStore.Hooks(onRead: { (keys) throws(StoreError) in
      if !keys.contains(newer) { return }
      throw .newerFormat(
        newer, found: StoredVersion(format: 1, schema: 2), supported: StoredVersion(format: 1, schema: 1))
    })
    let repository = makeRepository("only", store: SimulatedStore(storage: storage, hooks: hooks))
    try await expectYield(by: repository)
  }
}

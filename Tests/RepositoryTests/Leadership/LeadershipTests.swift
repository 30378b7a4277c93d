import DataStore
import DataStoreTesting
import Foundation
import Multicast
import MulticastTesting
import RepositoryTesting
import TestRounds
import TestSupport
import Testing

@testable import Repository

/// One of several repositories on a store sends the mutations of all of them.
@Suite(.timeLimit(.minutes(15))) struct LeadershipTests {
  /// The time after which a follower that has mutations to send tries to lead.
  private static let leadershipRetryInterval = Duration.milliseconds(250)

  private let executor = ManualTaskExecutor()
  private let clock = ManualClock()
  private let storage = SimulatedStorage()
  private let server = NotesServer(empty: Notes("old"))
  /// The mutations that were sent, each with the name of the sending process.
  private let sent = Setting<[String]>([])
  /// The names of the processes that sent mutations, in order.
  private var senders: [Substring] { sent.value.map { $0.prefix { $0 != " " } } }
  /// The generator that orders jobs, or `nil` to run them in the order of their arrival.
  private let random: Setting<SplitMix64?>

  init() { random = Setting(nil) }

  /// Creates a suite whose jobs run in an order that a seed determines, except in ``advance(by:)``.
  private init(orderedBy seed: UInt64) { random = Setting(SplitMix64(seed: seed)) }

  /// The texts of all mutations that were ever stored, by sequence number.
  private let textsBySequence = Setting<[UInt64: String]>([:])

  /// The texts in the order in which they became durable.
  private var durableTexts: [String] { textsBySequence.value.sorted { $0.key < $1.key }.map(\.value) }

  /// Runs jobs until none is ready or, in a suite with a seed, a limit is reached.
  private func runJobs() {
    guard var random = random.value else { return executor.runUntilIdle() }
    executor.run(atMost: 100_000, using: &random)
    self.random.value = random
  }

  /// A simulated process: a repository with its own store.
  private final class Process: Sendable {
    let store: SimulatedStore
    private let heldRepository: Setting<NotesRepository?>

    var repository: NotesRepository { heldRepository.value! }

    init(_ store: SimulatedStore, _ repository: NotesRepository) {
      self.store = store
      heldRepository = Setting(repository)
    }

    /// Ends the process abruptly.
    func kill() {
      store.disconnect()
      release()
    }

    func release() {
      heldRepository.value = nil
    }
  }

  private func makeProcess(
    _ name: String, leadership: any Leadership = StoreLeadership(),
    reply: @escaping @Sendable (Notes) -> MutationReply<Notes> = { .value($0) },
    onRead: @escaping @Sendable ([StoreKeyName]) async throws(StoreError) -> Void = { _ in },
    onCommit: @escaping @Sendable ([StoreKeyName]) async throws(StoreError) -> Void = { _ in },
    onCommitted: @escaping @Sendable ([StoreKeyName]) async -> Void = { _ in },
    onSend: @escaping @Sendable () async throws(NotesFailure) -> Void = {}
  ) -> Process {
    let store = SimulatedStore(
      storage: storage,
      hooks: .init(
        onRead: onRead, onCommit: onCommit,
        didCommit: { [storage, textsBySequence] _ in
          let records = storage.values(in: "notes.mutations", as: MutationRecord.self)
          for record in records.values {
            if case .add(let text) = record.mutation(as: NotesMutation.self) {
              textsBySequence.value[record.sequence] = text
            }
          }
        }, onCommitted: onCommitted))
    var configuration = RepositoryConfiguration(clock: clock, leadership: leadership)
    configuration.now = { [clock] in
      Date(timeIntervalSinceReferenceDate: clock.now.offset / .seconds(1))
    }
    configuration.taskExecutor = executor
    let source = NotesSource(
      fetch: { [server] in server.value(of: $0) },
      send: { [server, sent] (mutation, key, id) async throws(NotesFailure) in
        sent.value.append("\(name) \(mutation)")
        try await onSend()
        return reply(try server.take(mutation, key, id))
      })
    defer { runJobs() }
    return Process(store, NotesRepository(source, store: store, configuration: configuration))
  }

  /// Starts a call, and runs jobs until none is ready.
  private func start<Result: Sendable>(
    _ body: @escaping @Sendable () async throws -> Result
  ) -> Task<Result, any Error> {
    defer { runJobs() }
    return Task(executorPreference: executor) { try await body() }
  }

  private func perform(_ mutation: NotesMutation, _ process: Process) -> Task<MutationResult, any Error> {
    let repository = process.repository
    return start { try await repository.perform(mutation, on: "a") }
  }

  /// Makes each process notice the changes of the others, three times, because a process may react with new changes.
  private func noticeChanges(in processes: Process...) {
    for _ in 0..<3 {
      for process in processes { _ = start { await process.store.noticeExternalChanges() } }
    }
  }

  /// Advances the clock, and runs jobs in the order of their arrival until none is ready.
  private func advance(by duration: Duration) {
    clock.advance(by: duration)
    executor.runUntilIdle()
  }

  private func pendingMutations(of process: Process) async throws -> [PendingMutation<String, NotesMutation>] {
    let repository = process.repository
    return try await start { try await repository.mutations.list() }.value
  }

  // MARK: - Following

  @Test func `The first of two repositories sends the mutations of both, and calls of the second return confirmed`()
    async throws
  {
    let (first, second) = (makeProcess("first"), makeProcess("second"))
    let call = perform(.add("1"), second)
    #expect(sent.value == [])
    noticeChanges(in: first, second)
    #expect(sent.value == ["first \(NotesMutation.add("1"))"])
    #expect(try await call.value == .confirmed)
    #expect(storage.value(of: .notes("a")) == Notes("old", "1"))
    #expect(try await perform(.add("2"), first).value == .confirmed)
    #expect(sent.value.count == 2)
  }

  @Test func `A follower shows its mutation at once and keeps showing it`() async throws {
    let (first, second) = (makeProcess("first"), makeProcess("second"))
    _ = start { try await second.repository.reload("a") }
    let seen = Setting<[Notes]>([])
    let values = second.repository.values(of: "a").subscribe()
    _ = start { for await value in values { seen.value.append(value) } }
    _ = perform(.add("1"), second)
    #expect(seen.value == [Notes("old"), Notes("old", "1")])
    noticeChanges(in: first, second)
    #expect(Set(seen.value.dropFirst().map(\.texts)) == [["old", "1"]])
  }

  @Test func `A follower's call returns as soon as the leader must wait before a retry`() async throws {
    let isOffline = Setting(true)
    let first = makeProcess("first", onSend: { () throws(NotesFailure) in if isOffline.value { throw .offline } })
    let second = makeProcess("second")
    let calls = [perform(.add("1"), second), perform(.add("2"), second)]
    noticeChanges(in: first, second)
    for call in calls { #expect(try await call.value == .queued) }
    // The lane is stalled.
    #expect(try await perform(.add("3"), second).value == .queued)
    isOffline.value = false
    noticeChanges(in: first, second)
    _ = start { await first.repository.retryNow() }
    noticeChanges(in: first, second)
    #expect(server.applied.map(\.mutation) == [.add("1"), .add("2"), .add("3")])
    #expect(try await pendingMutations(of: second).isEmpty)
    // The lane is no longer stalled.
    let call = perform(.add("4"), second)
    noticeChanges(in: first, second)
    #expect(try await call.value == .confirmed)
    #expect(sent.value.allSatisfy { $0.hasPrefix("first ") })
  }

  @Test func `A follower learns that its mutation is in conflict or was refused`() async throws {
    let failures = Setting<[NotesFailure]>([.conflict, .refused])
    let first = makeProcess("first", onSend: { () throws(NotesFailure) in throw failures.value.removeFirst() })
    let second = makeProcess("second")
    _ = start { try await second.repository.reload("a") }
    let conflicted = perform(.add("1"), second)
    noticeChanges(in: first, second)
    let id = try #require(try await pendingMutations(of: second).first?.id)
    #expect(try await conflicted.value == .conflicted(id))
    let refused = perform(.add("2"), second)
    noticeChanges(in: first, second)
    // Only the leader has the server's error, so the follower's call can't throw it.
    #expect(try await refused.value == .queued)
    #expect(try await pendingMutations(of: second).map(\.standing.name) == ["conflicted", "refused"])
    let values = second.repository.values(of: "a").subscribe()
    #expect(try await start { await values.first(1) }.value == [Notes("old")])
  }

  @Test func `A follower's call returns queued if the leader doesn't report a result within ten seconds`()
    async throws
  {
    let gate = Gate()
    let first = makeProcess("first", onSend: { () async in await gate.pass() })
    let second = makeProcess("second")
    let call = perform(.add("1"), second)
    noticeChanges(in: first, second)
    let hasReturned = Setting(false)
    _ = start {
      _ = try await call.value
      hasReturned.value = true
    }
    advance(by: .milliseconds(9_999))
    #expect(!hasReturned.value)
    advance(by: .milliseconds(1))
    #expect(hasReturned.value)
    #expect(try await call.value == .queued)
    gate.open()
    noticeChanges(in: first, second)
    #expect(try await pendingMutations(of: second).isEmpty)
  }

  @Test func `A follower waits for the pending mutations of all repositories`() async throws {
    let gate = Gate()
    let first = makeProcess("first", onSend: { () async in await gate.pass() })
    let second = makeProcess("second")
    _ = perform(.add("1"), first)
    noticeChanges(in: second)
    let hasReturned = Setting(false)
    _ = start {
      try await second.repository.waitForPendingMutations()
      hasReturned.value = true
    }
    #expect(!hasReturned.value)
    gate.open()
    noticeChanges(in: first, second)
    #expect(hasReturned.value)
  }

  @Test func `A mutation that a follower cancels isn't sent by the leader`() async throws {
    let gate = Gate()
    let first = makeProcess("first", onSend: { () async in await gate.pass() })
    _ = perform(.add("1"), first)
    let second = makeProcess("second")
    let call = perform(.add("2"), second)
    let id = try #require(try await pendingMutations(of: second).last?.id)
    try await start { try await second.repository.mutations.cancel(id) }.value
    await #expect(throws: NotesError.cancelled) { try await call.value }
    gate.open()
    noticeChanges(in: first, second)
    #expect(server.applied.map(\.mutation) == [.add("1")])
    #expect(try await pendingMutations(of: first).isEmpty)
  }

  @Test func `A follower's call throws if another repository cancels the mutation`() async throws {
    let gate = Gate()
    let first = makeProcess("first", onSend: { () async in await gate.pass() })
    let second = makeProcess("second")
    _ = perform(.add("1"), first)
    let call = perform(.add("2"), second)
    noticeChanges(in: first)
    // Stores a value that is newer than the mutation but doesn't include it. The second process must not take this
    // value as proof that the mutation was confirmed.
    _ = start { try await first.repository.reload("a") }
    let id = try #require(try await pendingMutations(of: first).last?.id)
    try await start { try await first.repository.mutations.cancel(id) }.value
    noticeChanges(in: second)
    await #expect(throws: NotesError.cancelled) { try await call.value }
    gate.open()
    noticeChanges(in: first, second)
    #expect(server.applied.map(\.mutation) == [.add("1")])
  }

  @Test func `A follower's call returns confirmed even if the mutation leaves nothing in the store`() async throws {
    let gate = Gate()
    let first = makeProcess("first", reply: { _ in .done })
    let second = makeProcess("second", onCommitted: { (keys) async in if keys.addsNotesMutation { await gate.pass() } })
    let call = perform(.add("1"), second)
    noticeChanges(in: first)
    #expect(server.applied.count == 1)
    // The second process notices no external change before the first one has removed the mutation's record.
    noticeChanges(in: second)
    gate.open()
    executor.runUntilIdle()
    #expect(try await call.value == .confirmed)
  }

  @Test func `Mutations of all repositories are sent in the order in which they became durable`() async throws {
    let gate = Gate()
    let first = makeProcess("first", onSend: { () async in await gate.pass() })
    let second = makeProcess("second")
    _ = perform(.add("1"), first)
    _ = perform(.add("2"), second)
    // The first process notices the second one's mutation only when it commits its own.
    _ = perform(.add("3"), first)
    _ = perform(.add("4"), second)
    gate.open()
    noticeChanges(in: first, second)
    #expect(server.applied.map(\.mutation) == [.add("1"), .add("2"), .add("3"), .add("4")])
  }

  @Test func `The order of sending doesn't depend on which mutations the leader has noticed`() async throws {
    for seed in 0..<UInt64(Rounds.count(30, full: 300)) {
      let suite = LeadershipTests(orderedBy: seed)
      let (first, second) = (suite.makeProcess("first"), suite.makeProcess("second"))
      _ = suite.perform(.add("1"), first)
      // All three calls start before any job runs, so the seed determines which changes a process notices.
      let calls = [(NotesMutation.add("2"), second), (.add("3"), first), (.add("4"), second)].map { mutation, process in
        let repository = process.repository
        return Task(executorPreference: suite.executor) { try await repository.perform(mutation, on: "a") }
      }
      suite.runJobs()
      suite.noticeChanges(in: first, second)
      let texts = suite.durableTexts
      #expect(texts.count == 4 && texts.first == "1", "seed \(seed)")
      #expect(suite.server.applied.map(\.mutation) == texts.map { .add($0) }, "seed \(seed)")
      for call in calls { #expect(try await call.value == .confirmed) }
    }
  }

  // MARK: - Leading

  @Test func `When the leader dies the follower sends the mutations of both, in order`() async throws {
    let gate = Gate()
    let first = makeProcess("first", onSend: { () async in await gate.pass() })
    let second = makeProcess("second")
    _ = perform(.add("1"), first)
    let calls = [perform(.add("2"), second), perform(.add("3"), second)]
    noticeChanges(in: first, second)
    #expect(sent.value.count == 1)
    let ids = try await pendingMutations(of: second).map(\.id)
    first.kill()
    executor.runUntilIdle()
    advance(by: Self.leadershipRetryInterval)
    #expect(server.applied.map(\.mutation) == [.add("1"), .add("2"), .add("3")])
    #expect(server.applied.map(\.id) == ids)
    for call in calls { #expect(try await call.value == .confirmed) }
    #expect(sent.value.dropFirst().allSatisfy { $0.hasPrefix("second ") })
    gate.open()
    executor.runUntilIdle()
    #expect(server.applied.count == 3)
  }

  @Test func `A call that waited for the leader waits for the server once its repository leads`() async throws {
    let gate = Gate()
    let first = makeProcess("first", onSend: { () async in await gate.pass() })
    let second = makeProcess("second", onSend: { () async in await gate.pass() })
    let call = perform(.add("1"), second)
    let hasReturned = Setting(false)
    _ = start {
      _ = try await call.value
      hasReturned.value = true
    }
    first.kill()
    advance(by: Self.leadershipRetryInterval)
    #expect(sent.value == ["second \(NotesMutation.add("1"))"])
    advance(by: .seconds(60))
    #expect(!hasReturned.value)
    gate.open()
    executor.runUntilIdle()
    #expect(try await call.value == .confirmed)
  }

  @Test func `A new leader also sends mutations that it hadn't noticed while it followed`() async throws {
    let isOffline = Setting(true)
    let first = makeProcess("first", onSend: { () throws(NotesFailure) in if isOffline.value { throw .offline } })
    let second = makeProcess("second")
    // The second process notices only the first mutation, and then tries to lead.
    _ = perform(.add("1"), first)
    noticeChanges(in: second)
    _ = perform(.add("2"), first)
    isOffline.value = false
    first.kill()
    // The delay after the failed attempt.
    advance(by: .seconds(1))
    #expect(server.applied.map(\.mutation) == [.add("1"), .add("2")])
    #expect(try await pendingMutations(of: second).isEmpty)
  }

  @Test func `A mutation that the leader confirmed before it died isn't sent again`() async throws {
    let (first, second, third) = (makeProcess("first"), makeProcess("second"), makeProcess("third"))
    _ = perform(.add("1"), third)
    // The second process notices the mutation, but not that the leader confirms it.
    noticeChanges(in: second)
    noticeChanges(in: first)
    #expect(sent.value.count == 1)
    first.kill()
    third.kill()
    advance(by: Self.leadershipRetryInterval)
    #expect(sent.value.count == 1)
    #expect(try await pendingMutations(of: second).isEmpty)
    let values = second.repository.values(of: "a").subscribe()
    #expect(try await start { await values.first(1) }.value == [Notes("old", "1")])
  }

  @Test func `When the leader is released, a follower sends once the delay after the failed attempt has passed`()
    async throws
  {
    let isOffline = Setting(true)
    let first = makeProcess("first", onSend: { () throws(NotesFailure) in if isOffline.value { throw .offline } })
    let second = makeProcess("second")
    let call = perform(.add("1"), first)
    #expect(try await call.value == .queued)
    noticeChanges(in: second)
    isOffline.value = false
    first.release()
    executor.runUntilIdle()
    // It waits for the rest of the delay after the failed attempt of the first one.
    #expect(sent.value.count == 1)
    advance(by: .seconds(1))
    #expect(server.applied.map(\.mutation) == [.add("1")])
    #expect(sent.value.last == "second \(NotesMutation.add("1"))")
  }

  @Test func `Only a leader records that a mutation is in conflict`() async throws {
    let first = makeProcess("first", onSend: { () throws(NotesFailure) in throw .offline })
    let second = makeProcess("second")
    _ = start { try await second.repository.reload("a") }
    let values = second.repository.values(of: "a").subscribe()
    let seen = Setting<[Notes]>([])
    _ = start { for await value in values { seen.value.append(value) } }
    let call = perform(.replace("old", with: "new"), second)
    #expect(seen.value.last == Notes("new"))
    server.edit("a") { $0 = Notes("other") }
    _ = start { try await second.repository.reload("a") }
    // The mutation is impossible on this value, but the leader may have another value.
    #expect(seen.value.last == Notes("other"))
    #expect(try await pendingMutations(of: second).map(\.standing) == [.waiting])
    first.kill()
    advance(by: Self.leadershipRetryInterval)
    let conflicted = try #require(try await pendingMutations(of: second).first)
    #expect(conflicted.standing.name == "conflicted")
    #expect(try await call.value == .conflicted(conflicted.id))
    #expect(sent.value == [])
  }

  @Test func `After five leaders died while sending a mutation, the next one refuses it`() async throws {
    let gate = Gate()
    var process = makeProcess("0", onSend: { () async in await gate.pass() })
    _ = perform(.add("1"), process)
    for number in 1...5 {
      let next = makeProcess("\(number)", onSend: { () async in await gate.pass() })
      process.kill()
      advance(by: Self.leadershipRetryInterval)
      process = next
    }
    #expect(sent.value.count == 5)
    #expect(try await pendingMutations(of: process).map(\.standing.name) == ["refused"])
    #expect(try await pendingMutations(of: process).map(\.attempts) == [5])
    gate.open()
    executor.runUntilIdle()
  }

  @Test func `A mutation whose attempt was interrupted by the end of a process is waiting, and can be cancelled`()
    async throws
  {
    let (gate, commitsFail) = (Gate(), Setting(false))
    let first = makeProcess("first", onSend: { () async in await gate.pass() })
    _ = perform(.add("1"), first)
    let second = makeProcess(
      "second",
      onCommit: { (_) throws(StoreError) in if commitsFail.value { throw SimulatedStore.disconnectedError } })
    commitsFail.value = true
    first.kill()
    // The second process leads, but can't store that it begins an attempt.
    advance(by: Self.leadershipRetryInterval)
    let interrupted = try #require(try await pendingMutations(of: second).first)
    #expect(interrupted.standing == .waiting)
    #expect(interrupted.attempts == 1)
    commitsFail.value = false
    let repository = second.repository
    try await start { try await repository.mutations.cancel(interrupted.id) }.value
    #expect(try await pendingMutations(of: second) == [])
    #expect(storedRecords.isEmpty)
    #expect(sent.value == ["first \(NotesMutation.add("1"))"])
    gate.open()
    executor.runUntilIdle()
  }

  @Test func `A mutation is refused after five leaders died while sending it, even if the store failed in between`()
    async throws
  {
    let (gate, commitsFail) = (Gate(), Setting(false))
    func makeNextProcess(_ number: Int) -> Process {
      makeProcess(
        "\(number)",
        onCommit: { (_) throws(StoreError) in if commitsFail.value { throw SimulatedStore.disconnectedError } },
        onSend: { () async in await gate.pass() })
    }
    var process = makeNextProcess(0)
    _ = perform(.add("1"), process)
    for number in 1...5 {
      let next = makeNextProcess(number)
      process.kill()
      commitsFail.value = true
      // The next process leads, but can't store that it begins an attempt.
      advance(by: Self.leadershipRetryInterval)
      commitsFail.value = false
      advance(by: .seconds(60))
      process = next
    }
    #expect(sent.value.count == 5)
    #expect(try await pendingMutations(of: process).map(\.standing.name) == ["refused"])
    #expect(try await pendingMutations(of: process).map(\.attempts) == [5])
    gate.open()
    executor.runUntilIdle()
  }

  // MARK: - Losing the lead

  @Test func `A leader that has lost its lock stops sending, and the next leader sends the mutations of both`()
    async throws
  {
    let (first, second) = (makeProcess("first"), makeProcess("second"))
    let events = first.repository.events.subscribe()
    #expect(try await perform(.add("1"), first).value == .confirmed)
    first.store.loseLocks()
    let secondCall = perform(.add("2"), second)
    #expect(try await secondCall.value == .confirmed)
    let firstCall = perform(.add("3"), first)
    noticeChanges(in: first, second)
    #expect(try await firstCall.value == .confirmed)
    #expect(senders == ["first", "second", "second"])
    #expect(server.applied.map(\.mutation) == [.add("1"), .add("2"), .add("3")])
    #expect(await first.repository.report().leadership == .following)
    for await event in events where event == .leadershipLost { break }
  }

  @Test func `An attempt that is in flight when the lock is lost completes, and the next leader repeats it`()
    async throws
  {
    let gate = Gate()
    let (first, second) = (makeProcess("first", onSend: { () async in await gate.pass() }), makeProcess("second"))
    let firstCalls = [perform(.add("1"), first), perform(.add("2"), first)]
    noticeChanges(in: second)
    first.store.loseLocks()
    let secondCall = perform(.add("3"), second)
    noticeChanges(in: first, second)
    #expect(server.applied.map(\.mutation) == [.add("1"), .add("2"), .add("3")])
    #expect(try await secondCall.value == .confirmed)
    gate.open()
    executor.runUntilIdle()
    noticeChanges(in: first, second)
    for call in firstCalls { #expect(try await call.value == .confirmed) }
    #expect(server.applied.count == 3)
    #expect(sent.value.filter { $0.hasPrefix("first ") } == ["first \(NotesMutation.add("1"))"])
    #expect(storage.value(of: .notes("a")) == Notes("old", "1", "2", "3"))
  }

  @Test func `A mutation that fails after the lock is lost is left to the next leader`() async throws {
    let gate = Gate()
    let first = makeProcess(
      "first",
      onSend: { () async throws(NotesFailure) in
        await gate.pass()
        throw .refused
      })
    let second = makeProcess("second", onSend: { () throws(NotesFailure) in throw .offline })
    let call = perform(.add("1"), first)
    noticeChanges(in: second)
    first.store.loseLocks()
    _ = perform(.add("2"), second)
    gate.open()
    executor.runUntilIdle()
    noticeChanges(in: first, second)
    #expect(try await call.value == .queued)
    #expect(try await pendingMutations(of: first).first?.standing == .waiting)
    #expect(try await pendingMutations(of: second).map(\.standing) == [.waiting, .waiting])
  }

  @Test func `A lone repository that has lost its lock leads again when the attempt in flight has completed`()
    async throws
  {
    let gate = Gate()
    let process = makeProcess("only", onSend: { () async in await gate.pass() })
    let events = process.repository.events.subscribe()
    let callInFlight = perform(.add("1"), process)
    process.store.loseLocks()
    let repository = process.repository
    let otherCall = start { try await repository.perform(.add("2"), on: "b") }
    advance(by: .seconds(10))
    #expect(try await otherCall.value == .queued)
    #expect(sent.value.count == 1)
    gate.open()
    executor.runUntilIdle()
    #expect(try await callInFlight.value == .confirmed)
    #expect(server.applied.map(\.mutation) == [.add("1"), .add("2")])
    var leadershipEvents: [RepositoryEvent] = []
    for await event in events where event == .leadershipLost || event == .leadershipGained {
      leadershipEvents.append(event)
      if leadershipEvents.count == 3 { break }
    }
    #expect(leadershipEvents == [.leadershipGained, .leadershipLost, .leadershipGained])
  }

  @Test func `A former leader doesn't undo the next leader's refusal of a mutation`() async throws {
    let (delaysCommits, commitGate, attempts) = (Setting(false), Gate(), Counter())
    let first = makeProcess(
      "first", onCommit: { (_) async in if delaysCommits.value { await commitGate.pass() } },
      onSend: { () throws(NotesFailure) in throw .offline })
    let second = makeProcess(
      "second", onSend: { () throws(NotesFailure) in if attempts.next() == 1 { throw .refused } })
    #expect(try await perform(.add("1"), first).value == .queued)
    noticeChanges(in: second)
    // The first process is suspended when it is about to store that it sends the mutation again.
    delaysCommits.value = true
    _ = start { await first.repository.retryNow() }
    first.store.loseLocks()
    // The delay after the failed attempt.
    advance(by: .seconds(1))
    #expect(try await pendingMutations(of: second).map(\.standing.name) == ["refused"])
    commitGate.open()
    noticeChanges(in: first, second)
    #expect(try await pendingMutations(of: first).map(\.standing.name) == ["refused"])
    #expect(try await pendingMutations(of: first).map(\.attempts) == pendingMutations(of: second).map(\.attempts))
    #expect(try await pendingMutations(of: second).map(\.standing.name) == ["refused"])
    #expect(server.applied.isEmpty)
    #expect(senders == ["first", "second"])
  }

  @Test func `If a repository knows that a sign-in is required, its calls return queued even while it follows`()
    async throws
  {
    let (firstSendGate, secondSendGate, attempts) = (Gate(), Gate(), Counter())
    let first = makeProcess(
      "first",
      onSend: { () async throws(NotesFailure) in
        // Only the first attempt, which sends "1", waits at the gate. Any other fails because a sign-in is required.
        if attempts.next() > 1 { throw .signedOut }
        await firstSendGate.pass()
        throw .offline
      })
    let second = makeProcess("second", onSend: { () async in await secondSendGate.pass() })
    let (firstRepository, secondRepository) = (first.repository, second.repository)
    _ = start { try await firstRepository.perform(.add("1"), on: "b") }
    #expect(try await start { try await firstRepository.perform(.add("2"), on: "a") }.value == .queued)
    first.store.loseLocks()
    _ = start { try await secondRepository.perform(.add("3"), on: "c") }
    firstSendGate.open()
    executor.runUntilIdle()
    #expect(await firstRepository.report().leadership == .following)
    let result = Setting<MutationResult?>(nil)
    _ = start { result.value = try await firstRepository.perform(.add("4"), on: "a") }
    #expect(result.value == .queued)
    second.kill()
    executor.runUntilIdle()
    advance(by: Self.leadershipRetryInterval)
    // The second repository may have sent "2", whose record it has marked.
    #expect(
      try await pendingMutations(of: first).filter { $0.key == "a" }.map(\.standing) == [.inFlight, .needsSignIn])
    secondSendGate.open()
    executor.runUntilIdle()
  }

  @Test func `A mutation that the server has applied isn't in conflict when its repository leads again`() async throws {
    let replyCommitsFail = Setting(true)
    let process = makeProcess(
      "only",
      onCommit: { (keys) throws(StoreError) in
        if replyCommitsFail.value, keys.hasNotesMutation, keys.contains(StoreKey.notes("a").keyName) {
          throw SimulatedStore.disconnectedError
        }
      })
    let (repository, otherStore) = (process.repository, SimulatedStore(storage: storage))
    _ = start { try await repository.reload("a") }
    // The server applies the mutation, but the reply can't be stored.
    #expect(try await perform(.replace("old", with: "new"), process).value == .queued)
    process.store.loseLocks()
    #expect(try await start { try await repository.perform(.add("2"), on: "b") }.value == .confirmed)
    _ = start { try await otherStore.save(Notes("other"), for: .notes("a")) }
    noticeChanges(in: process)
    #expect(try await pendingMutations(of: process).map(\.standing) == [.inFlight])
    replyCommitsFail.value = false
    advance(by: .seconds(60))
    #expect(try await pendingMutations(of: process).isEmpty)
    #expect(storage.value(of: .notes("a")) == Notes("new"))
    #expect(sent.value.count == 2)
  }

  // MARK: - Leases that are lost at once

  private struct LostLease: LeadershipLease {
    func isHeld() async -> Bool { false }
  }

  /// A leadership that gives a lease to the process whose turn it is.
  private struct TurnBasedLeadership: Leadership {
    let name: String
    /// The name of the process whose turn is next; `nil` if the turn doesn't change.
    let next: String?
    /// The name of the process whose turn it is, or `"none"` if it is no process's turn.
    let turn: Setting<String>
    var lease: any LeadershipLease = LostLease()
    let leaseCount = Counter()
    let vacancies = MulticastRelay<Void>(buffering: .latest)
    var retryInterval: Duration { .seconds(1) }

    func tryToLead(_: String, on store: any KeyValueStore) async throws(StoreError) -> LeadershipResult {
      guard turn.value == name else { return .following(vacancies: vacancies.stream) }
      if let next { turn.value = next }
      leaseCount.next()
      return .leading(lease: lease)
    }
  }

  private var storedRecords: [MutationRecord] {
    Array(storage.values(in: "notes.mutations", as: MutationRecord.self).values)
  }

  @Test func `Leaders that lose their leases before sending a mutation don't cause its refusal`() async throws {
    let turn = Setting("none")
    let first = makeProcess("first", leadership: TurnBasedLeadership(name: "first", next: "second", turn: turn))
    let second = makeProcess("second", leadership: TurnBasedLeadership(name: "second", next: "first", turn: turn))
    _ = perform(.add("1"), first)
    noticeChanges(in: second)
    let commitCount = storage.commitCount
    turn.value = "first"
    for _ in 0..<20 { advance(by: .seconds(1)) }
    #expect(sent.value == [])
    #expect(try await pendingMutations(of: first).map(\.standing) == [.waiting])
    // No process has stored that an attempt begins.
    #expect(storage.commitCount == commitCount)
  }

  @Test func `A leader that loses its lease before sending a mutation stores that no attempt has begun`() async throws {
    let leadership = TurnBasedLeadership(name: "only", next: "none", turn: Setting("only"))
    let process = makeProcess("only", leadership: leadership)
    // The repository leads, so it stores the new mutation with the mark of an attempt and then has to remove the mark.
    _ = perform(.add("1"), process)
    #expect(await process.repository.report().leadership == .following)
    #expect(storedRecords.map(\.attempts) == [0])
    #expect(storedRecords.map(\.isMarked) == [false])
  }

  @Test func `A former leader doesn't overwrite what the next leader has stored about an attempt`() async throws {
    let (turn, commitGate, sendGate, firstCommits) = (Setting("first"), Gate(), Gate(), Counter())
    let first = makeProcess(
      "first", leadership: TurnBasedLeadership(name: "first", next: "second", turn: turn),
      // The second commit would store that the first process doesn't send the mutation.
      onCommit: { (_) async in if firstCommits.next() == 2 { await commitGate.pass() } })
    let second = makeProcess(
      "second", leadership: TurnBasedLeadership(name: "second", next: nil, turn: turn, lease: HeldLease()),
      onSend: { () async in await sendGate.pass() })
    _ = perform(.add("1"), first)
    noticeChanges(in: second)
    #expect(sent.value == ["second \(NotesMutation.add("1"))"])
    let marksBefore = storedRecords.map(\.isMarked)
    commitGate.open()
    noticeChanges(in: first, second)
    #expect(firstCommits.value == 2)
    #expect(marksBefore == [true])
    #expect(storedRecords.map(\.isMarked) == marksBefore)
    sendGate.open()
    executor.runUntilIdle()
    #expect(server.applied.count == 1)
  }

  @Test func `A former leader that marks a mutation too late doesn't change the next leader's mark`() async throws {
    let (delaysCommits, commitGate, sendGate, isOffline) = (Setting(false), Gate(), Gate(), Setting(true))
    let first = makeProcess(
      "first", onCommit: { (_) async in if delaysCommits.value { await commitGate.pass() } },
      onSend: { () throws(NotesFailure) in if isOffline.value { throw .offline } })
    let second = makeProcess("second", onSend: { () async in await sendGate.pass() })
    #expect(try await perform(.add("1"), first).value == .queued)
    noticeChanges(in: second)
    // The first process loses its lock when it is about to mark the mutation, that is, to store that an attempt begins.
    delaysCommits.value = true
    _ = start { await first.repository.retryNow() }
    first.store.loseLocks()
    _ = perform(.add("2"), second)
    // The delay after the failed attempt.
    advance(by: .seconds(1))
    #expect(sent.value.last == "second \(NotesMutation.add("1"))")
    commitGate.open()
    noticeChanges(in: first, second)
    let id = try await pendingMutations(of: first)[0].id
    #expect(try await pendingMutations(of: first)[0].standing == .inFlight)
    #expect(storedRecords.map(\.isMarked).contains(true))
    let repository = first.repository
    await #expect(throws: PendingMutationError.alreadySent(id)) {
      try await start { try await repository.mutations.cancel(id) }.value
    }
    sendGate.open()
    executor.runUntilIdle()
    #expect(server.applied.map(\.mutation) == [.add("1"), .add("2")])
    #expect(storage.value(of: .notes("a")) == Notes("old", "1", "2"))
  }

  @Test func `A repository that has lost several leases in a row waits before it tries to lead again`() async throws {
    // Only a suite with a seed limits the number of jobs. So if the repository always tried again at once, the test
    // would fail instead of hanging.
    let suite = LeadershipTests(orderedBy: 1)
    let leadership = TurnBasedLeadership(name: "only", next: nil, turn: Setting("only"))
    let process = suite.makeProcess("only", leadership: leadership)
    _ = suite.perform(.add("1"), process)
    // After the first loss, the repository tries again at once and gets the second lease.
    try #require(leadership.leaseCount.value == 2)
    for expectedCount in 3...6 {
      suite.advance(by: .seconds(60))
      #expect(leadership.leaseCount.value == expectedCount)
    }
    #expect(suite.sent.value == [])
  }

  // MARK: - Leaderships

  private struct HeldLease: LeadershipLease {
    func isHeld() async -> Bool { true }
  }

  /// A leadership with scripted results.
  private final class ScriptedLeadership: Leadership {
    let retryInterval = Duration.seconds(3)
    let remainingResults: Setting<[Result<LeadershipResult, StoreError>]>

    init(_ results: [Result<LeadershipResult, StoreError>]) { remainingResults = Setting(results) }

    func tryToLead(_ name: String, on store: any KeyValueStore) async throws(StoreError) -> LeadershipResult {
      #expect(name == "notes.mutations")
      return try remainingResults.value.removeFirst().get()
    }
  }

  @Test func `A repository that has failed to lead tries again after the retry interval`() async throws {
    let leadership = ScriptedLeadership([
      .failure(SimulatedStore.disconnectedError), .failure(SimulatedStore.disconnectedError),
      .failure(SimulatedStore.disconnectedError),
      .success(.leading(lease: HeldLease())),
    ])
    let process = makeProcess("only", leadership: leadership)
    let events = process.repository.events.subscribe()
    // The first attempt to lead failed when the repository was created. The mutation causes two more: one
    // beside its addition, and one when it is durable.
    let call = perform(.add("1"), process)
    advance(by: .milliseconds(2_999))
    #expect(sent.value == [])
    #expect(leadership.remainingResults.value.count == 1)
    // The third failed attempt may be followed by a longer delay than the interval.
    advance(by: .milliseconds(1_001))
    #expect(try await call.value == .confirmed)
    for await event in events where event == .leadershipGained { break }
    #expect(await process.repository.report().leadership == .leading)
  }

  @Test func `A follower without mutations to send doesn't try to lead again`() async throws {
    let vacancies = MulticastRelay<Void>(buffering: .latest)
    let leadership = ScriptedLeadership([.success(.following(vacancies: vacancies.stream))])
    let process = makeProcess("only", leadership: leadership)
    advance(by: .seconds(60))
    vacancies.send(())
    executor.runUntilIdle()
    #expect(leadership.remainingResults.value.isEmpty)
    #expect(await process.repository.report().leadership == .following)
  }

  @Test func `Without a leader each repository sends its own mutations`() async throws {
    let first = makeProcess("first", leadership: NoLeadership())
    let second = makeProcess("second", leadership: NoLeadership())
    #expect(try await perform(.add("1"), second).value == .confirmed)
    noticeChanges(in: first, second)
    #expect(try await perform(.add("2"), first).value == .confirmed)
    #expect(sent.value == ["second \(NotesMutation.add("1"))", "first \(NotesMutation.add("2"))"])
    #expect(await first.repository.report().leadership == .independent)
  }
}

extension PendingMutation.Standing {
  fileprivate var name: String {
    switch self {
    case .waiting: "waiting"
    case .inFlight: "inFlight"
    case .needsSignIn: "needsSignIn"
    case .conflicted: "conflicted"
    case .refused: "refused"
    }
  }
}

import DataStore
import DataStoreTesting
import Multicast
import MulticastTesting
import RepositoryTesting
import TestSupport
import Testing

@testable import Repository

/// One of several repositories on a store sends the mutations of all of them.
@Suite(.timeLimit(.minutes(15))) struct LeadershipTests {
  private let executor = ManualTaskExecutor()
  private let clock = ManualClock()
  private let storage = SimulatedStorage()
  private let server = NotesServer(empty: Notes("old"))
  /// The mutations that were sent, each with the name of the sending process.
  private let sent = Setting<[String]>([])
  /// The generator that orders jobs, or `nil` to run them in the order of their arrival.
  private let random: Setting<SplitMix64?>

  init() { random = Setting(nil) }

  /// Creates a suite whose jobs run in an order that a seed determines.
  private init(orderedBy seed: UInt64) { random = Setting(SplitMix64(seed: seed)) }

  /// The texts of all mutations that were ever stored, by sequence number.
  private let committed = Setting<[UInt64: String]>([:])

  /// The texts in the order in which they became durable.
  private var madeDurable: [String] { committed.value.sorted { $0.key < $1.key }.map(\.value) }

  private func run() {
    guard var random = random.value else { return executor.runUntilIdle() }
    executor.run(atMost: 100_000, using: &random)
    self.random.value = random
  }

  /// A simulated process: a repository with its own store.
  private final class Process: Sendable {
    let store: SimulatedStore
    private let held: Setting<NotesRepository?>

    var repository: NotesRepository { held.value! }

    init(_ store: SimulatedStore, _ repository: NotesRepository) {
      self.store = store
      held = Setting(repository)
    }

    /// Ends the process abruptly.
    func kill() {
      store.disconnect()
      release()
    }

    func release() {
      held.value = nil
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
        didCommit: { [storage, committed] _ in
          let records = storage.values(in: "notes.mutations", as: MutationRecord<NotesMutation>.self)
          for record in records.values {
            if case .add(let text) = record.mutation { committed.value[record.sequence] = text }
          }
        }, onCommitted: onCommitted))
    var configuration = RepositoryConfiguration(clock: clock, leadership: leadership)
    configuration.taskExecutor = executor
    let source = NotesSource(
      fetch: { [server] in server.value(of: $0) },
      send: { [server, sent] (mutation, key, id) async throws(NotesFailure) in
        sent.value.append("\(name) \(mutation)")
        try await onSend()
        return reply(try server.take(mutation, key, id))
      })
    defer { run() }
    return Process(store, NotesRepository(source, store: store, configuration: configuration))
  }

  /// Starts a call, and runs jobs until none is ready.
  private func start<Result: Sendable>(
    _ body: @escaping @Sendable () async throws -> Result
  ) -> Task<Result, any Error> {
    defer { run() }
    return Task(executorPreference: executor) { try await body() }
  }

  private func perform(_ mutation: NotesMutation, _ process: Process) -> Task<MutationResult, any Error> {
    let repository = process.repository
    return start { try await repository.perform(mutation, on: "a") }
  }

  /// Makes each process notice the changes of the others, three times, because a process may react with new changes.
  private func notice(_ processes: Process...) {
    for _ in 0..<3 {
      for process in processes { _ = start { await process.store.noticeExternalChanges() } }
    }
  }

  private func advance(by duration: Duration) {
    clock.advance(by: duration)
    executor.runUntilIdle()
  }

  private func list(_ process: Process) async throws -> [PendingMutation<String, NotesMutation>] {
    let repository = process.repository
    return try await start { try await repository.mutations.list() }.value
  }

  // MARK: - Following

  @Test func `The first of two repositories sends the mutations of both, and a call of the second one returns`()
    async throws
  {
    let (first, second) = (makeProcess("first"), makeProcess("second"))
    let call = perform(.add("1"), second)
    #expect(sent.value == [])
    notice(first, second)
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
    notice(first, second)
    #expect(Set(seen.value.dropFirst().map(\.texts)) == [["old", "1"]])
  }

  @Test func `A follower's call returns as soon as the leader must wait before a retry`() async throws {
    let isOffline = Setting(true)
    let first = makeProcess("first", onSend: { () throws(NotesFailure) in if isOffline.value { throw .offline } })
    let second = makeProcess("second")
    let calls = [perform(.add("1"), second), perform(.add("2"), second)]
    notice(first, second)
    for call in calls { #expect(try await call.value == .queued) }
    // The lane is stalled.
    #expect(try await perform(.add("3"), second).value == .queued)
    isOffline.value = false
    notice(first, second)
    _ = start { await first.repository.retryNow() }
    notice(first, second)
    #expect(server.applied.map(\.mutation) == [.add("1"), .add("2"), .add("3")])
    #expect(try await list(second).isEmpty)
    // The lane is no longer stalled.
    let call = perform(.add("4"), second)
    notice(first, second)
    #expect(try await call.value == .confirmed)
    #expect(sent.value.allSatisfy { $0.hasPrefix("first ") })
  }

  @Test func `A follower learns that its mutation is in conflict or was refused`() async throws {
    let answers = Setting<[NotesFailure]>([.conflict, .refused])
    let first = makeProcess("first", onSend: { () throws(NotesFailure) in throw answers.value.removeFirst() })
    let second = makeProcess("second")
    _ = start { try await second.repository.reload("a") }
    let conflicted = perform(.add("1"), second)
    notice(first, second)
    let id = try #require(try await list(second).first?.id)
    #expect(try await conflicted.value == .conflicted(id))
    let refused = perform(.add("2"), second)
    notice(first, second)
    #expect(try await refused.value == .queued)
    #expect(try await list(second).map(\.standing.name) == ["conflicted", "refused"])
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
    notice(first, second)
    let isEnded = Setting(false)
    _ = start {
      _ = try await call.value
      isEnded.value = true
    }
    advance(by: .milliseconds(9_999))
    #expect(!isEnded.value)
    advance(by: .milliseconds(1))
    #expect(isEnded.value)
    #expect(try await call.value == .queued)
    gate.open()
    notice(first, second)
    #expect(try await list(second).isEmpty)
  }

  @Test func `A follower waits for the pending mutations of all repositories`() async throws {
    let gate = Gate()
    let first = makeProcess("first", onSend: { () async in await gate.pass() })
    let second = makeProcess("second")
    _ = perform(.add("1"), first)
    notice(second)
    let isEmpty = Setting(false)
    _ = start {
      try await second.repository.waitForPendingMutations()
      isEmpty.value = true
    }
    #expect(!isEmpty.value)
    gate.open()
    notice(first, second)
    #expect(isEmpty.value)
  }

  @Test func `A mutation that a follower cancels isn't sent by the leader`() async throws {
    let gate = Gate()
    let first = makeProcess("first", onSend: { () async in await gate.pass() })
    _ = perform(.add("1"), first)
    let second = makeProcess("second")
    let call = perform(.add("2"), second)
    let id = try #require(try await list(second).last?.id)
    try await start { try await second.repository.mutations.cancel(id) }.value
    await #expect(throws: NotesError.cancelled) { try await call.value }
    gate.open()
    notice(first, second)
    #expect(server.applied.map(\.mutation) == [.add("1")])
    #expect(try await list(first).isEmpty)
  }

  @Test func `A follower's call throws if another repository cancels the mutation`() async throws {
    let gate = Gate()
    let first = makeProcess("first", onSend: { () async in await gate.pass() })
    let second = makeProcess("second")
    _ = perform(.add("1"), first)
    let call = perform(.add("2"), second)
    notice(first)
    // Stores a value that is newer than the mutation and doesn't include it.
    _ = start { try await first.repository.reload("a") }
    let id = try #require(try await list(first).last?.id)
    try await start { try await first.repository.mutations.cancel(id) }.value
    notice(second)
    await #expect(throws: NotesError.cancelled) { try await call.value }
    gate.open()
    notice(first, second)
    #expect(server.applied.map(\.mutation) == [.add("1")])
  }

  @Test func `A follower's call returns confirmed even if the mutation leaves nothing in the store`() async throws {
    let gate = Gate()
    let first = makeProcess("first", reply: { _ in .done })
    let second = makeProcess("second", onCommitted: { (keys) async in if keys.addsNotesMutation { await gate.pass() } })
    let call = perform(.add("1"), second)
    notice(first)
    #expect(server.applied.count == 1)
    // The second process notices nothing before the first one has removed the record.
    notice(second)
    gate.open()
    executor.runUntilIdle()
    #expect(try await call.value == .confirmed)
  }

  @Test func `A follower's call waits until the outcome of its mutation can be read`() async throws {
    let isUnreadable = Setting(false)
    let first = makeProcess("first")
    let second = makeProcess(
      "second",
      onRead: { (keys) throws(StoreError) in
        let keysOfWithdrawals = keys.filter { $0.collection == "notes.mutation-withdrawals" }
        if isUnreadable.value, !keysOfWithdrawals.isEmpty { throw SimulatedStore.disconnectedError }
      })
    isUnreadable.value = true
    let call = perform(.add("1"), second)
    let result = Setting<MutationResult?>(nil)
    _ = start { result.value = try await call.value }
    notice(first, second)
    #expect(server.applied.count == 1)
    #expect(result.value == nil)
    isUnreadable.value = false
    advance(by: .seconds(1))
    #expect(result.value == .confirmed)
  }

  @Test func `A call whose outcome can't be read returns queued after a timeout, even if its repository leads by then`()
    async throws
  {
    let isUnreadable = Setting(true)
    let first = makeProcess("first")
    let second = makeProcess(
      "second",
      onRead: { (keys) throws(StoreError) in
        let keysOfWithdrawals = keys.filter { $0.collection == "notes.mutation-withdrawals" }
        if isUnreadable.value, !keysOfWithdrawals.isEmpty { throw SimulatedStore.disconnectedError }
      })
    let call = perform(.add("1"), second)
    let result = Setting<MutationResult?>(nil)
    _ = start { result.value = try await call.value }
    notice(first, second)
    _ = perform(.add("2"), second)
    first.kill()
    advance(by: .milliseconds(250))
    #expect(sent.value == ["first \(NotesMutation.add("1"))", "second \(NotesMutation.add("2"))"])
    advance(by: .milliseconds(9_749))
    #expect(result.value == nil)
    advance(by: .milliseconds(1))
    #expect(result.value == .queued)
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
    notice(first, second)
    #expect(server.applied.map(\.mutation) == [.add("1"), .add("2"), .add("3"), .add("4")])
  }

  @Test func `The order of sending doesn't depend on which mutations the leader has noticed`() async throws {
    for seed in 0..<300 as Range<UInt64> {
      let world = LeadershipTests(orderedBy: seed)
      let (first, second) = (world.makeProcess("first"), world.makeProcess("second"))
      _ = world.perform(.add("1"), first)
      // All three calls start before any job runs, so the seed determines which changes a process notices.
      let calls = [(NotesMutation.add("2"), second), (.add("3"), first), (.add("4"), second)].map { mutation, process in
        let repository = process.repository
        return Task(executorPreference: world.executor) { try await repository.perform(mutation, on: "a") }
      }
      world.run()
      world.notice(first, second)
      let order = world.madeDurable
      #expect(order.count == 4 && order.first == "1", "seed \(seed)")
      #expect(world.server.applied.map(\.mutation) == order.map { .add($0) }, "seed \(seed)")
      for call in calls { #expect(try await call.value == .confirmed) }
    }
  }

  @Test func `A leader that hasn't noticed an earlier mutation reads it and sends it first`() async throws {
    let records = Gate()
    let isLate = Setting(false)
    let store = InterceptedStore(
      InMemoryStore(), .init(onChanges: { (_) async in if isLate.value { await records.pass() } }))
    let leading = ScriptedLeadership([.success(.leading(lease: Lease()))])
    func makeRepository(_ leadership: any Leadership) -> NotesRepository {
      NotesRepository(
        NotesSource(server), store: store,
        configuration: RepositoryConfiguration(clock: clock, leadership: leadership))
    }
    let first = makeRepository(leading)
    #expect(try await first.perform(.add("1"), on: "a") == .confirmed)
    let vacancies = MulticastRelay<Void>(buffering: .latest)
    let second = makeRepository(
      ScriptedLeadership(Array(repeating: .success(.following(vacancies: vacancies.stream)), count: 3)))
    _ = try await second.mutations.list()
    isLate.value = true
    let call = Task { try await second.perform(.add("2"), on: "a") }
    for await event in second.events { if case .mutationEnqueued = event { break } }
    #expect(try await first.perform(.add("3"), on: "a") == .confirmed)
    #expect(server.applied.map(\.mutation) == [.add("1"), .add("2"), .add("3")])
    isLate.value = false
    records.open()
    #expect(try await call.value == .confirmed)
  }

  // MARK: - Leading

  @Test func `When the leader dies the follower sends the mutations of both, in order`() async throws {
    let gate = Gate()
    let first = makeProcess("first", onSend: { () async in await gate.pass() })
    let second = makeProcess("second")
    _ = perform(.add("1"), first)
    let calls = [perform(.add("2"), second), perform(.add("3"), second)]
    notice(first, second)
    #expect(sent.value.count == 1)
    let ids = try await list(second).map(\.id)
    first.kill()
    executor.runUntilIdle()
    advance(by: .milliseconds(250))
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
    let isEnded = Setting(false)
    _ = start {
      _ = try await call.value
      isEnded.value = true
    }
    first.kill()
    advance(by: .milliseconds(250))
    #expect(sent.value == ["second \(NotesMutation.add("1"))"])
    advance(by: .seconds(60))
    #expect(!isEnded.value)
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
    notice(second)
    _ = perform(.add("2"), first)
    isOffline.value = false
    first.kill()
    advance(by: .milliseconds(250))
    #expect(server.applied.map(\.mutation) == [.add("1"), .add("2")])
    #expect(try await list(second).isEmpty)
  }

  @Test func `A mutation that the leader confirmed before it died isn't sent again`() async throws {
    let (first, second) = (makeProcess("first"), makeProcess("second"))
    let gate = Gate()
    let third = makeProcess("third", onSend: { () async in await gate.pass() })
    _ = perform(.add("1"), third)
    // The second process notices the mutation, but not that the leader confirms it.
    notice(second)
    notice(first)
    #expect(sent.value.count == 1)
    first.kill()
    third.kill()
    advance(by: .milliseconds(250))
    #expect(sent.value.count == 1)
    #expect(try await list(second).isEmpty)
    let values = second.repository.values(of: "a").subscribe()
    #expect(try await start { await values.first(1) }.value == [Notes("old", "1")])
  }

  @Test func `When the leader is released a follower leads at once`() async throws {
    let isOffline = Setting(true)
    let first = makeProcess("first", onSend: { () throws(NotesFailure) in if isOffline.value { throw .offline } })
    let second = makeProcess("second")
    let call = perform(.add("1"), first)
    #expect(try await call.value == .queued)
    notice(second)
    isOffline.value = false
    first.release()
    executor.runUntilIdle()
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
    #expect(try await list(second).map(\.standing) == [.waiting])
    first.kill()
    advance(by: .milliseconds(250))
    let conflicted = try #require(try await list(second).first)
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
      advance(by: .milliseconds(250))
      process = next
    }
    #expect(sent.value.count == 5)
    #expect(try await list(process).map(\.standing.name) == ["refused"])
    #expect(try await list(process).map(\.attempts) == [5])
    gate.open()
    executor.runUntilIdle()
  }

  @Test func `A mutation whose attempt was interrupted by the end of a process is waiting, and can be cancelled`()
    async throws
  {
    let (gate, isFailing) = (Gate(), Setting(false))
    let first = makeProcess("first", onSend: { () async in await gate.pass() })
    _ = perform(.add("1"), first)
    let second = makeProcess(
      "second",
      onCommit: { (_) throws(StoreError) in if isFailing.value { throw SimulatedStore.disconnectedError } })
    isFailing.value = true
    first.kill()
    // The second process leads, but can't store that it begins an attempt.
    advance(by: .milliseconds(250))
    let interrupted = try #require(try await list(second).first)
    #expect(interrupted.standing == .waiting)
    #expect(interrupted.attempts == 1)
    isFailing.value = false
    let repository = second.repository
    try await start { try await repository.mutations.cancel(interrupted.id) }.value
    #expect(try await list(second) == [])
    #expect(storedRecords.isEmpty)
    #expect(sent.value == ["first \(NotesMutation.add("1"))"])
    gate.open()
    executor.runUntilIdle()
  }

  @Test func `A mutation is refused after five leaders died while sending it, even if the store failed in between`()
    async throws
  {
    let (gate, isFailing) = (Gate(), Setting(false))
    func makeNextProcess(_ number: Int) -> Process {
      makeProcess(
        "\(number)",
        onCommit: { (_) throws(StoreError) in if isFailing.value { throw SimulatedStore.disconnectedError } },
        onSend: { () async in await gate.pass() })
    }
    var process = makeNextProcess(0)
    _ = perform(.add("1"), process)
    for number in 1...5 {
      let next = makeNextProcess(number)
      process.kill()
      isFailing.value = true
      // The next process leads, but can't store that it begins an attempt.
      advance(by: .milliseconds(250))
      isFailing.value = false
      advance(by: .seconds(60))
      process = next
    }
    #expect(sent.value.count == 5)
    #expect(try await list(process).map(\.standing.name) == ["refused"])
    #expect(try await list(process).map(\.attempts) == [5])
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
    let call = perform(.add("2"), second)
    #expect(try await call.value == .confirmed)
    let own = perform(.add("3"), first)
    notice(first, second)
    #expect(try await own.value == .confirmed)
    #expect(sent.value.map { $0.prefix { $0 != " " } } == ["first", "second", "second"])
    #expect(server.applied.map(\.mutation) == [.add("1"), .add("2"), .add("3")])
    #expect(await first.repository.report().leadership == .following)
    for await event in events where event == .leadershipLost { break }
  }

  @Test func `An attempt in flight when the lock is lost completes, and the next leader repeats it`() async throws {
    let gate = Gate()
    let (first, second) = (makeProcess("first", onSend: { () async in await gate.pass() }), makeProcess("second"))
    let calls = [perform(.add("1"), first), perform(.add("2"), first)]
    notice(second)
    first.store.loseLocks()
    let last = perform(.add("3"), second)
    notice(first, second)
    #expect(server.applied.map(\.mutation) == [.add("1"), .add("2"), .add("3")])
    #expect(try await last.value == .confirmed)
    gate.open()
    executor.runUntilIdle()
    notice(first, second)
    for call in calls { #expect(try await call.value == .confirmed) }
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
    notice(second)
    first.store.loseLocks()
    _ = perform(.add("2"), second)
    gate.open()
    executor.runUntilIdle()
    notice(first, second)
    #expect(try await call.value == .queued)
    #expect(try await list(first).first?.standing == .waiting)
    #expect(try await list(second).map(\.standing) == [.waiting, .waiting])
  }

  @Test func `A lone repository that has lost its lock leads again when the attempt in flight has completed`()
    async throws
  {
    let gate = Gate()
    let process = makeProcess("only", onSend: { () async in await gate.pass() })
    let events = process.repository.events.subscribe()
    let inFlight = perform(.add("1"), process)
    process.store.loseLocks()
    let repository = process.repository
    let other = start { try await repository.perform(.add("2"), on: "b") }
    advance(by: .seconds(10))
    #expect(try await other.value == .queued)
    #expect(sent.value.count == 1)
    gate.open()
    executor.runUntilIdle()
    #expect(try await inFlight.value == .confirmed)
    #expect(server.applied.map(\.mutation) == [.add("1"), .add("2")])
    var changes: [RepositoryEvent] = []
    for await event in events where event == .leadershipLost || event == .leadershipGained {
      changes.append(event)
      if changes.count == 3 { break }
    }
    #expect(changes == [.leadershipGained, .leadershipLost, .leadershipGained])
  }

  @Test func `A former leader doesn't undo the next leader's refusal of a mutation`() async throws {
    let (isSuspended, gate, answers) = (Setting(false), Gate(), Counter())
    let first = makeProcess(
      "first", onCommit: { (_) async in if isSuspended.value { await gate.pass() } },
      onSend: { () throws(NotesFailure) in throw .offline })
    let second = makeProcess("second", onSend: { () throws(NotesFailure) in if answers.next() == 1 { throw .refused } })
    #expect(try await perform(.add("1"), first).value == .queued)
    notice(second)
    // The first process is suspended when it is about to store that it sends the mutation again.
    isSuspended.value = true
    _ = start { await first.repository.retryNow() }
    first.store.loseLocks()
    advance(by: .milliseconds(250))
    #expect(try await list(second).map(\.standing.name) == ["refused"])
    gate.open()
    notice(first, second)
    #expect(try await list(first).map(\.standing.name) == ["refused"])
    #expect(try await list(first).map(\.attempts) == list(second).map(\.attempts))
    #expect(try await list(second).map(\.standing.name) == ["refused"])
    #expect(server.applied.isEmpty)
    #expect(sent.value.map { $0.prefix { $0 != " " } } == ["first", "second"])
  }

  @Test func `A call for a user who has to sign in returns once its repository leads again`() async throws {
    let (gate, hang, attempts) = (Gate(), Gate(), Counter())
    let first = makeProcess(
      "first",
      onSend: { () async throws(NotesFailure) in
        if attempts.next() > 1 { throw .signedOut }
        await gate.pass()
        throw .offline
      })
    let second = makeProcess("second", onSend: { () async in await hang.pass() })
    let (repository, other) = (first.repository, second.repository)
    _ = start { try await repository.perform(.add("1"), on: "b") }
    #expect(try await start { try await repository.perform(.add("2"), on: "a") }.value == .queued)
    first.store.loseLocks()
    _ = start { try await other.perform(.add("3"), on: "c") }
    gate.open()
    executor.runUntilIdle()
    #expect(await repository.report().leadership == .following)
    let result = Setting<MutationResult?>(nil)
    _ = start { result.value = try await repository.perform(.add("4"), on: "a") }
    #expect(result.value == nil)
    second.kill()
    executor.runUntilIdle()
    advance(by: .milliseconds(250))
    #expect(await repository.report().leadership == .leading)
    #expect(result.value == .queued)
    hang.open()
    executor.runUntilIdle()
  }

  @Test func `A mutation that the server has applied isn't in conflict when its repository leads again`() async throws {
    let isBroken = Setting(true)
    let process = makeProcess(
      "only",
      onCommit: { (keys) throws(StoreError) in
        if isBroken.value, keys.hasNotesMutation, keys.contains(StoreKey.notes("a").keyName) {
          throw SimulatedStore.disconnectedError
        }
      })
    let (repository, other) = (process.repository, SimulatedStore(storage: storage))
    _ = start { try await repository.reload("a") }
    // The server applies the mutation, but the reply can't be stored.
    #expect(try await perform(.replace("old", with: "new"), process).value == .queued)
    process.store.loseLocks()
    #expect(try await start { try await repository.perform(.add("2"), on: "b") }.value == .confirmed)
    _ = start { try await other.save(Notes("other"), for: .notes("a")) }
    notice(process)
    #expect(try await list(process).map(\.standing) == [.inFlight])
    isBroken.value = false
    advance(by: .seconds(60))
    #expect(try await list(process).isEmpty)
    #expect(storage.value(of: .notes("a")) == Notes("new"))
    #expect(sent.value.count == 2)
  }

  // MARK: - Leases that are lost at once

  private struct LostLease: LeadershipLease {
    func isHeld() async -> Bool { false }
  }

  /// A leadership that gives a lease to the process whose turn it is.
  private struct Alternating: Leadership {
    let name: String
    /// The name of the process whose turn is next; `nil` if the turn doesn't change.
    let next: String?
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

  private var storedRecords: [MutationRecord<NotesMutation>] {
    Array(storage.values(in: "notes.mutations", as: MutationRecord<NotesMutation>.self).values)
  }

  @Test func `Leaders that lose their leases before sending a mutation don't cause its refusal`() async throws {
    let turn = Setting("none")
    let first = makeProcess("first", leadership: Alternating(name: "first", next: "second", turn: turn))
    let second = makeProcess("second", leadership: Alternating(name: "second", next: "first", turn: turn))
    _ = perform(.add("1"), first)
    notice(second)
    let commitCount = storage.commitCount
    turn.value = "first"
    for _ in 0..<20 { advance(by: .seconds(1)) }
    #expect(sent.value == [])
    #expect(try await list(first).map(\.standing) == [.waiting])
    // No process has stored that an attempt begins.
    #expect(storage.commitCount == commitCount)
  }

  @Test func `A leader that loses its lease before sending a mutation stores that no attempt has begun`() async throws {
    let leadership = Alternating(name: "only", next: "none", turn: Setting("only"))
    let process = makeProcess("only", leadership: leadership)
    _ = perform(.add("1"), process)
    #expect(await process.repository.report().leadership == .following)
    #expect(storedRecords.map(\.attempts) == [0])
    #expect(storedRecords.map(\.isMarked) == [false])
  }

  @Test func `A former leader doesn't overwrite what the next leader has stored about an attempt`() async throws {
    let (turn, gate, hang, commits) = (Setting("first"), Gate(), Gate(), Counter())
    let first = makeProcess(
      "first", leadership: Alternating(name: "first", next: "second", turn: turn),
      // The second commit would store that the first process doesn't send the mutation.
      onCommit: { (_) async in if commits.next() == 2 { await gate.pass() } })
    let second = makeProcess(
      "second", leadership: Alternating(name: "second", next: nil, turn: turn, lease: Lease()),
      onSend: { () async in await hang.pass() })
    _ = perform(.add("1"), first)
    notice(second)
    #expect(sent.value == ["second \(NotesMutation.add("1"))"])
    let marks = storedRecords.map(\.isMarked)
    gate.open()
    notice(first, second)
    #expect(commits.value == 2)
    #expect(marks == [true])
    #expect(storedRecords.map(\.isMarked) == marks)
    hang.open()
    executor.runUntilIdle()
    #expect(server.applied.count == 1)
  }

  @Test func `A former leader that marks a mutation too late doesn't change the next leader's mark`() async throws {
    let (isLate, gate, hang, isOffline) = (Setting(false), Gate(), Gate(), Setting(true))
    let first = makeProcess(
      "first", onCommit: { (_) async in if isLate.value { await gate.pass() } },
      onSend: { () throws(NotesFailure) in if isOffline.value { throw .offline } })
    let second = makeProcess("second", onSend: { () async in await hang.pass() })
    #expect(try await perform(.add("1"), first).value == .queued)
    notice(second)
    // The first process loses its lock when it is about to mark the mutation, that is, to store that an attempt begins.
    isLate.value = true
    _ = start { await first.repository.retryNow() }
    first.store.loseLocks()
    _ = perform(.add("2"), second)
    #expect(sent.value.last == "second \(NotesMutation.add("1"))")
    gate.open()
    notice(first, second)
    let id = try await list(first)[0].id
    #expect(try await list(first)[0].standing == .inFlight)
    #expect(storedRecords.map(\.isMarked).contains(true))
    let repository = first.repository
    await #expect(throws: PendingMutationError.alreadySent(id)) {
      try await start { try await repository.mutations.cancel(id) }.value
    }
    hang.open()
    executor.runUntilIdle()
    #expect(server.applied.map(\.mutation) == [.add("1"), .add("2")])
    #expect(storage.value(of: .notes("a")) == Notes("old", "1", "2"))
  }

  @Test func `A repository that has lost several leases in a row waits before it tries to lead again`() async throws {
    let world = LeadershipTests(orderedBy: 1)
    let leadership = Alternating(name: "only", next: nil, turn: Setting("only"))
    let process = world.makeProcess("only", leadership: leadership)
    _ = world.perform(.add("1"), process)
    // After the first loss, the repository tries again at once and gets the second lease.
    try #require(leadership.leaseCount.value == 2)
    for count in 3...6 {
      world.advance(by: .seconds(60))
      #expect(leadership.leaseCount.value == count)
    }
    #expect(world.sent.value == [])
  }

  // MARK: - Leaderships

  private struct Lease: LeadershipLease {
    func isHeld() async -> Bool { true }
  }

  /// A leadership with scripted results.
  private final class ScriptedLeadership: Leadership {
    let retryInterval = Duration.seconds(3)
    let results: Setting<[Result<LeadershipResult, StoreError>]>

    init(_ results: [Result<LeadershipResult, StoreError>]) { self.results = Setting(results) }

    func tryToLead(_ name: String, on store: any KeyValueStore) async throws(StoreError) -> LeadershipResult {
      #expect(name == "notes.mutations")
      return try results.value.removeFirst().get()
    }
  }

  @Test func `A repository whose attempt to lead fails tries again after the retry interval`() async throws {
    let leadership = ScriptedLeadership([
      .failure(SimulatedStore.disconnectedError), .failure(SimulatedStore.disconnectedError),
      .success(.leading(lease: Lease())),
    ])
    let process = makeProcess("only", leadership: leadership)
    let events = process.repository.events.subscribe()
    let call = perform(.add("1"), process)
    advance(by: .milliseconds(2_999))
    #expect(sent.value == [])
    #expect(leadership.results.value.count == 1)
    advance(by: .milliseconds(1))
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
    #expect(leadership.results.value.isEmpty)
    #expect(await process.repository.report().leadership == .following)
  }

  @Test func `Without a leader each repository sends its own mutations`() async throws {
    let first = makeProcess("first", leadership: NoLeadership())
    let second = makeProcess("second", leadership: NoLeadership())
    #expect(try await perform(.add("1"), second).value == .confirmed)
    notice(first, second)
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

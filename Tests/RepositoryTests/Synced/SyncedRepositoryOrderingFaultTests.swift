import DataStore
import Multicast
import MulticastTesting
import RepositoryTesting
import TestSupport
import Testing

@testable import Repository

/// Overlapping operations: late replies, calls during a commit, and changes that the store reports late.
@Suite(.timeLimit(.minutes(15))) struct SyncedRepositoryOrderingFaultTests: NotesSuite {
  let fixture = NotesFixture()

  // MARK: - Fetching again

  @Test func `A fetched value that may be older than another repository's is fetched again, and reported`() async throws
  {
    try await put(Notes())
    let (gate, fetches) = (Gate(), Counter())
    let repository = makeRepository(onFetch: { _ async throws(NotesFailure) in
      if fetches.next() == 1 { await gate.pass() }
    })
    let (events, values) = (repository.events.subscribe(), repository.values(of: "a").subscribe())
    let reload = Task { try await repository.reload("a") }
    await gate.arrivals()
    try await memory.save(Notes("1"), for: .notes("a"))
    #expect(await values.first(2) == [Notes(), Notes("1")])
    gate.open()
    try await reload.value
    #expect(fetches.value == 2)
    await events.reaches { $0 == .replyDiscarded(key: "a") }
    #expect(await values.first(1) == [Notes()])
  }

  // MARK: - Signing in

  @Test func `A late reply to a request with old credentials doesn't pause the user's mutations again`() async throws {
    try await put(Notes(), "a")
    try await put(Notes(), "b")
    let hasOldCredentials = Setting(true)
    let gate = Gate()
    let attempts = Counter()
    let repository = makeRepository { (mutation) async throws(NotesFailure) in
      if mutation == .add("late"), attempts.next() == 1 {
        await gate.pass()
        throw .signedOut
      }
      if hasOldCredentials.value { throw .signedOut }
    }
    let lateCall = Task { try await repository.perform(.add("late"), on: "b") }
    await gate.arrivals()
    #expect(try await repository.perform(.add("1"), on: "a") == .queued)
    hasOldCredentials.value = false
    await repository.credentialsChanged(userID: nil)
    gate.open()
    try #require(await finishes { try await repository.waitForPendingMutations() })
    #expect(try await lateCall.value == .confirmed)
    #expect(server.value(of: "a") == Notes("1"))
    #expect(server.value(of: "b") == Notes("late"))
  }

  @Test func `A call whose mutation waits behind one in flight returns when the user has to sign in again`()
    async throws
  {
    try await put(Notes(), "a")
    try await put(Notes(), "b")
    let gate = Gate()
    let repository = makeRepository { (mutation) async throws(NotesFailure) in
      if mutation != .add("1") { throw .signedOut }
      await gate.pass()
    }
    let events = repository.events.subscribe()
    let firstCall = Task { try await repository.perform(.add("1"), on: "a") }
    await gate.arrivals()
    #expect(try await repository.perform(.add("x"), on: "b") == .queued)
    await events.reaches { if case .signInRequired(_, reason: "signedOut") = $0 { true } else { false } }
    let secondCall = Task { try await repository.perform(.add("2"), on: "a") }
    for _ in 1...1 { await events.reaches { if case .mutationEnqueued = $0 { true } else { false } } }
    gate.open()
    #expect(try await firstCall.value == .confirmed)
    try #require(await finishes { _ = try await secondCall.value })
    #expect(try await secondCall.value == .queued)
    #expect(try await repository.mutations.list().map(\.standing) == [.needsSignIn, .needsSignIn])
  }

  // MARK: - Refusals

  @Test func `A call throws the refusal even if it is cancelled while the record of its mutation is removed`()
    async throws
  {
    try await put(Notes())
    let repository = makeRepository { (_) throws(NotesFailure) in throw .refused }
    let gate = Gate()
    store.set {
      $0.onCommit = { (keys) async in if keys.hasNotesMutation, !keys.addsNotesMutation { await gate.pass() } }
    }
    let call = Task { try await repository.perform(.add("1"), on: "a") }
    await gate.arrivals()
    call.cancel()
    gate.open()
    await #expect(throws: NotesError.server(.refused)) { try await call.value }
    try await #expect(repository.mutations.list() == [])
  }

  // MARK: - Conflicts

  @Test(arguments: [NotesFailure.offline, .brokenConnection, .signedOut])
  func `A mutation that becomes impossible during its attempt is in conflict if the attempt fails`(
    failure: NotesFailure
  ) async throws {
    try await put(Notes("old"))
    let gate = Gate()
    let repository = makeRepository { (_) async throws(NotesFailure) in
      await gate.pass()
      throw failure
    }
    let values = repository.values(of: "a").subscribe()
    let call = Task { try await repository.perform(.replace("old", with: "new"), on: "a") }
    await gate.arrivals()
    try await memory.save(Notes(), for: .notes("a"))
    for await value in values where value == Notes() { break }
    gate.open()
    let result = try await call.value
    let list = try await repository.mutations.list()
    let id = try #require(list.first?.id)
    #expect(result == .conflicted(id))
    #expect(list.map(\.standing) == [.conflicted(MutationConflict("There is no old."))])
    // The conflict can be resolved.
    #expect(try await repository.mutations.resolve(id, .discard) == nil)
    try await #expect(repository.mutations.list() == [])
  }

  // MARK: - Empty values

  @Test func `A mutation of an empty value is rolled back when the server refuses it`() async throws {
    let gate = Gate()
    let repository = SyncedRepository(
      UnfetchableNotesSource { () async throws(NotesFailure) in
        await gate.pass()
        throw .refused
      }, store: store, configuration: configuration)
    let values = repository.values(of: "a").subscribe()
    let call = Task { try await repository.perform(.add("1"), on: "a") }
    #expect(await values.first(1) == [Notes("1")])
    gate.open()
    await #expect(throws: NotesError.server(.refused)) { try await call.value }
    let laterValues = Setting<[Notes]>([])
    #expect(await finishes { laterValues.value = await values.first(1) })
    #expect(laterValues.value == [Notes()])
  }

  @Test func `A mutation of an empty value is rolled back when it is cancelled`() async throws {
    let repository = SyncedRepository(
      UnfetchableNotesSource { () throws(NotesFailure) in throw .offline }, store: store, configuration: configuration)
    let values = repository.values(of: "a").subscribe()
    #expect(try await repository.perform(.add("1"), on: "a") == .queued)
    #expect(await values.first(1) == [Notes("1")])
    try await repository.mutations.cancel(try #require(try await repository.mutations.list().first?.id))
    let laterValues = Setting<[Notes]>([])
    #expect(await finishes { laterValues.value = await values.first(1) })
    #expect(laterValues.value == [Notes()])
    // Nothing is stored, so the next mutation is applied to the empty value again.
    #expect(try await repository.perform(.add("2"), on: "a") == .queued)
    #expect(await values.first(1) == [Notes("2")])
    try await #expect(memory.load(.notes("a")) == nil)
  }

  // MARK: - Requeueing

  /// Makes a mutation, waits until it is refused after two attempts, and returns its id.
  ///
  /// The reply to the first attempt must be lost. At the second attempt, either the server refuses the mutation, or the
  /// reply is lost too and the retry policy allows no third attempt.
  private func performUntilRefused(_ mutation: NotesMutation, in repository: NotesRepository) async throws
    -> MutationID
  {
    #expect(try await repository.perform(mutation, on: "a") == .queued)
    await repository.retryNow()
    for await list in repository.mutations.changes {
      for item in list { if case .refused = item.standing { return item.id } }
    }
    throw CancellationError()
  }

  private var twoAttempts: RepositoryConfiguration {
    RepositoryConfiguration(
      retryPolicy: RetryPolicy(maximumAttempts: 2), clock: clock, now: fixture.now, leadership: NoLeadership())
  }

  @Test func `A mutation that the server may have applied is requeued under the same id`() async throws {
    let sumServer = SumServer(empty: Sum())
    let key = StoreKey<Sum>("tally", id: "a")
    try await memory.save(Sum(count: 5), for: key)
    sumServer.edit("a") { $0 = Sum(count: 5) }
    let isBroken = Setting(true)
    let repository = SyncedRepository(
      ScriptedSource<String, Sum, SumMutation, NotesFailure>(
        "tally", fetch: { sumServer.value(of: $0) },
        send: { (mutation, key, id) throws(NotesFailure) in
          guard let reply = try? sumServer.apply(mutation, to: key, id: id) else { throw .conflict }
          if isBroken.value { throw .brokenConnection }
          return .value(reply)
        }, disposition: { $0.disposition }), store: store, configuration: twoAttempts)
    #expect(try await repository.perform(.increment, on: "a") == .queued)
    await repository.retryNow()
    var refusedID: MutationID?
    for await list in repository.mutations.changes {
      for item in list { if case .refused = item.standing { refusedID = item.id } }
      if refusedID != nil { break }
    }
    let id = try #require(refusedID)
    isBroken.value = false
    #expect(try await repository.mutations.requeue(id) == id)
    try await repository.waitForPendingMutations()
    #expect(sumServer.value(of: "a") == Sum(count: 6))
    #expect(sumServer.received == [id, id, id])
    try await #expect(memory.load(key)?.value == Sum(count: 6))
    try await #expect(repository.mutations.list() == [])
  }

  @Test func `A mutation that the server refused after a lost reply is requeued under a new id`() async throws {
    try await put(Notes())
    let attempts = Counter()
    let repository = makeRepository { (_) throws(NotesFailure) in
      switch attempts.next() {
      case 1: throw .brokenConnection
      case 2: throw .refused
      default: break
      }
    }
    let id = try await performUntilRefused(.add("1"), in: repository)
    let newID = try await repository.mutations.requeue(id)
    #expect(newID != id)
    try await repository.waitForPendingMutations()
    #expect(server.received == [newID])
    try await #expect(repository.mutations.list() == [])
  }

  @Test func `A conflicted mutation that the server may have applied is retried under the same id`() async throws {
    try await put(Notes("x"))
    let isBroken = Setting(true)
    let repository = makeRepository(losingReplies: isBroken)
    let values = repository.values(of: "a").subscribe()
    #expect(await values.first(1) == [Notes("x")])
    #expect(try await repository.perform(.replace("x", with: "y"), on: "a") == .queued)
    let id = try #require(try await repository.mutations.list().first?.id)
    try await memory.save(Notes("z"), for: .notes("a"))
    await repository.waitForConflict()
    try await memory.save(Notes("x", "z"), for: .notes("a"))
    for await notes in values where notes == Notes("x", "z") { break }
    isBroken.value = false
    #expect(try await repository.mutations.resolve(id, .retry) == id)
    try await repository.waitForPendingMutations()
    #expect(server.received == [id, id])
    try await #expect(repository.mutations.list() == [])
  }

  @Test func `A mutation that the server finds in conflict after a lost reply is retried under a new id`() async throws
  {
    try await put(Notes())
    let attempts = Counter()
    let repository = makeRepository { (_) throws(NotesFailure) in
      switch attempts.next() {
      case 1: throw .brokenConnection
      case 2: throw .conflict
      default: break
      }
    }
    #expect(try await repository.perform(.add("1"), on: "a") == .queued)
    let id = try #require(try await repository.mutations.list().first?.id)
    await repository.retryNow()
    await repository.waitForConflict()
    let newID = try await repository.mutations.resolve(id, .retry)
    #expect(newID != id)
    try await repository.waitForPendingMutations()
    #expect(server.received == [newID])
    try await #expect(repository.mutations.list() == [])
  }

  @Test func `If a requeue under the same id can't be stored, it changes nothing`() async throws {
    try await put(Notes())
    let isBroken = Setting(true)
    let repository = makeRepository(losingReplies: isBroken, configuration: twoAttempts)
    let id = try await performUntilRefused(.add("1"), in: repository)
    isBroken.value = false
    let listBefore = try await repository.mutations.list()
    store.set {
      $0.onCommit = { (keys) throws(StoreError) in
        if keys.addsNotesMutation { throw .writeFailed(InterceptedStore.error) }
      }
    }
    await #expect(throws: PendingMutationError.store(.writeFailed(InterceptedStore.error))) {
      try await repository.mutations.requeue(id)
    }
    try await #expect(repository.mutations.list() == listBefore)
    store.set { $0.onCommit = { _ in } }
    #expect(try await repository.mutations.requeue(id) == id)
    try await repository.waitForPendingMutations()
    try await #expect(repository.mutations.list() == [])
    #expect(server.received == [id, id, id])
  }

  @Test func `A mutation that is requeued under the same id is sent by the next process`() async throws {
    try await put(Notes())
    let isBroken = Setting(true)
    let id: MutationID
    do {
      let repository = makeRepository(losingReplies: isBroken, configuration: twoAttempts)
      id = try await performUntilRefused(.add("1"), in: repository)
      #expect(try await repository.mutations.requeue(id) == id)
    }
    isBroken.value = false
    let repository = makeRepository()
    try await repository.waitForPendingMutations()
    try await #expect(repository.mutations.list() == [])
    #expect(Set(server.received) == [id])
    #expect(server.value(of: "a") == Notes("1"))
  }

  @Test func `A mutation that is requeued under the same id is visible in other repositories again`() async throws {
    try await put(Notes())
    let repository = makeRepository(losingReplies: Setting(true), configuration: twoAttempts)
    let id = try await performUntilRefused(.add("1"), in: repository)
    let other = makeRepository(store: memory)
    // Until the refusal is stored, the list of `other` says that the mutation is in flight.
    for await list in other.mutations.changes where list.first?.standing != .inFlight { break }
    let values = other.values(of: "a").subscribe()
    #expect(await values.first(1) == [Notes()])
    #expect(try await repository.mutations.requeue(id) == id)
    let laterValues = Setting<[Notes]>([])
    #expect(await finishes { laterValues.value = await values.first(1) })
    #expect(laterValues.value == [Notes("1")])
    try await #expect(other.mutations.list().map(\.id) == [id])
  }

  // MARK: - Offline

  @Test func `A mutation that waits for the network doesn't count as being sent`() async throws {
    let network = ManualNetworkMonitor()
    var configuration = configuration
    configuration.network = network
    let repository = makeRepository(configuration: configuration)
    try await #expect(repository.mutations.list() == [])
    let addGate = Gate()
    store.set { $0.onCommit = { (_) async in await addGate.pass() } }
    let call = Task { try await repository.perform(.add("1"), on: "a") }
    // The record that is being stored is already marked, which means that an attempt may begin soon.
    await addGate.arrivals()
    let events = repository.events.subscribe()
    network.status = .offline
    await events.reaches { $0 == .networkChanged(.offline) }
    addGate.open()
    #expect(try await call.value == .queued)
    let id = try #require(try await repository.mutations.list().first?.id)
    try #require(await finishes { try await waitUntilUnmarked(id) })
    try await repository.mutations.cancel(id)
    try await #expect(repository.mutations.list() == [])
    #expect(server.received == [])
  }

  @Test func `A mutation whose mark is being removed is sent only after a mark is stored again`() async throws {
    let network = ManualNetworkMonitor()
    var configuration = configuration
    configuration.network = network
    let keys = MutationKeys(repository: "notes")
    // A record is marked while an attempt may begin soon or is in progress.
    let (sendGate, isReachable, marksAtSend) = (Gate(), Setting(false), Setting<[Bool?]>([]))
    let secondID = Setting<MutationID?>(nil)
    let repository = makeRepository(configuration: configuration) { [memory] (mutation) async throws(NotesFailure) in
      guard isReachable.value else { throw .offline }
      if mutation == .add("1") { return await sendGate.pass() }
      guard let id = secondID.value else { return }
      marksAtSend.value.append(try? await memory.load(keys.record(id))?.value.isMarked)
    }
    for text in ["1", "2"] { #expect(try await repository.perform(.add(text), on: "a") == .queued) }
    let id = try #require(try await repository.mutations.list().last?.id)
    secondID.value = id
    isReachable.value = true
    await repository.retryNow()
    await sendGate.arrivals()
    let removalGate = Gate()
    store.set {
      $0.onCommit = { (names) async in if names == [keys.record(id).keyName] { await removalGate.pass() } }
    }
    network.status = .offline
    await removalGate.arrivals()
    let events = repository.events.subscribe()
    network.status = .online
    await events.reaches { $0 == .networkChanged(.online) }
    sendGate.open()
    // The first mutation is confirmed, and the second one is sent only after its mark is stored again.
    await repository.mutations.changes.reaches { $0.map(\.id) == [id] }
    removalGate.open()
    try await repository.waitForPendingMutations()
    #expect(marksAtSend.value == [true])
  }

  @Test func `When the network becomes unavailable, only the mutation in flight still counts as being sent`()
    async throws
  {
    let network = ManualNetworkMonitor()
    var configuration = configuration
    configuration.network = network
    let (sendGate, isUnreachable) = (Gate(), Setting(true))
    let repository = makeRepository(configuration: configuration) { _ async throws(NotesFailure) in
      if isUnreachable.value { throw .offline }
      await sendGate.pass()
      throw .offline
    }
    for text in ["1", "2", "3"] { #expect(try await repository.perform(.add(text), on: "a") == .queued) }
    let ids = try await repository.mutations.list().map(\.id)
    isUnreachable.value = false
    await repository.retryNow()
    await sendGate.arrivals()
    let keys = MutationKeys(repository: "notes")
    for id in ids { try await #expect(memory.load(keys.record(id))?.value.isMarked == true) }
    network.status = .offline
    for id in ids.dropFirst() { try #require(await finishes { try await waitUntilUnmarked(id) }) }
    try await #expect(memory.load(keys.record(ids[0]))?.value.isMarked == true)
    sendGate.open()
    try #require(await finishes { try await waitUntilUnmarked(ids[0]) })
  }

  // MARK: - Confirmation without a value

  @Test func `A mutation that is answered after the fetch for another has begun isn't refused after many relaunches`()
    async throws
  {
    var ids: [MutationID] = []
    // After five interrupted attempts in a row, a mutation would be refused. The interrupted attempts of the third
    // mutation don't count, because it isn't the first of its lane.
    for launch in 0..<7 {
      fixture.passHour()
      let (fetchGate, lastSendGate) = (Gate(), Gate())
      // This gate only signals that a fetch has begun.
      fetchGate.open()
      let repository = NotesRepository(
        NotesSource(
          "notes",
          fetch: { (_) async throws(NotesFailure) in
            await fetchGate.pass()
            throw .offline
          },
          send: { [server] (mutation, key, id) async throws(NotesFailure) in
            switch mutation {
            case .add("2"): await fetchGate.arrivals()
            case .add("2, later"):
              await lastSendGate.pass()
              throw .offline
            default: break
            }
            _ = try server.take(mutation, key, id)
            return .patch { _ = try? mutation.apply(to: &$0) }
          }, disposition: { $0.disposition },
          lane: { mutation, _ in if case .add(let text) = mutation { String(text.prefix(1)) } else { "" } }),
        store: store, configuration: configuration)
      if launch == 0 {
        let events = repository.events.subscribe()
        for text in ["1", "2", "2, later"] {
          Task { try? await repository.perform(.add(text), on: "a") }
          await events.reaches { if case .mutationEnqueued = $0 { true } else { false } }
        }
        ids = try await repository.mutations.list().map(\.id)
      }
      let list = try await repository.mutations.list()
      #expect(list.filter { if case .refused = $0.standing { true } else { false } } == [])
      // Once the third mutation is sent, the reply to the second one has arrived.
      try #require(await finishes { await lastSendGate.arrivals() })
      for id in ids.prefix(2) { try #require(await finishes { try await waitUntilUnmarked(id) }) }
      withExtendedLifetime(repository) {}
    }
  }

  @Test func `A mutation is confirmed if the server refuses to return the value with its change`() async throws {
    try await put(Notes("x"))
    let attempts = Counter()
    let repository = NotesRepository(
      NotesSource(
        fetch: { (_) throws(NotesFailure) in throw .refused },
        send: { [server] (mutation, key, id) throws(NotesFailure) in
          _ = try server.take(mutation, key, id)
          if attempts.next() == 1 { throw .brokenConnection }
          return .done
        }), store: store, configuration: configuration)
    let values = repository.values(of: "a").subscribe()
    #expect(await values.first(1) == [Notes("x")])
    #expect(try await repository.perform(.remove("x"), on: "a") == .queued)
    await repository.retryNow()
    try #require(await finishes { try await repository.waitForPendingMutations() })
    try await #expect(repository.mutations.list() == [])
    // The value with the change is stored and stays visible.
    try await #expect(memory.load(.notes("a"))?.value == Notes())
    #expect(await repository.values(of: "a").subscribe().first(1) == [Notes()])
  }

  // MARK: - Two repositories on one store

  // MARK: - Cancellation

  @Test func `A mutation that is being confirmed can't be cancelled`() async throws {
    try await put(Notes())
    let source = NotesSource(
      fetch: { [server] in server.value(of: $0) },
      send: { [server] (mutation, key, id) throws(NotesFailure) in
        _ = try server.take(mutation, key, id)
        return .withoutValue
      })
    let repository = NotesRepository(source, store: store, configuration: configuration)
    let commitGate = Gate()
    store.set {
      $0.onCommit = { (keys) async in
        if keys.contains(StoreKey<Notes>.notes("a").keyName) { await commitGate.pass() }
      }
    }
    // The commit of the fetched value confirms the mutation.
    let call = Task { try await repository.perform(.add("1"), on: "a") }
    await commitGate.arrivals()
    let id = try #require(try await repository.mutations.list().first?.id)
    await #expect(throws: PendingMutationError.alreadySent(id)) { try await repository.mutations.cancel(id) }
    commitGate.open()
    #expect(try await call.value == .confirmed)
    try await #expect(repository.mutations.list() == [])
  }

  /// Makes a mutation in a repository that is offline, and creates another repository, which sends the mutation.
  ///
  /// The request waits at a gate.
  private func queueMutation(
    in repository: NotesRepository, sentElsewhereThrough gate: Gate
  ) async throws -> (id: MutationID, other: NotesRepository) {
    try await put(Notes())
    #expect(try await repository.perform(.add("1"), on: "a") == .queued)
    let id = try #require(try await repository.mutations.list().first?.id)
    try await waitUntilUnmarked(id)
    let other = makeRepository(store: memory) {
      (_) async throws(NotesFailure) in await gate.pass()
    }
    return (id, other)
  }

  @Test func `A mutation that another repository sends can't be cancelled`() async throws {
    let sendGate = Gate()
    let repository = makeRepository { (_) throws(NotesFailure) in throw .offline }
    let (id, other) = try await queueMutation(in: repository, sentElsewhereThrough: sendGate)
    await sendGate.arrivals()
    for await list in repository.mutations.changes where list.map(\.standing) == [.inFlight] { break }
    await #expect(throws: PendingMutationError.alreadySent(id)) { try await repository.mutations.cancel(id) }
    sendGate.open()
    try await other.waitForPendingMutations()
    #expect(server.value(of: "a") == Notes("1"))
  }

  @Test func `A mutation that another repository sends can't be cancelled, even if the attempt isn't reported yet`()
    async throws
  {
    let reportGate = Gate()
    let sendGate = Gate()
    let repository = makeRepository { (_) throws(NotesFailure) in throw .offline }
    store.set {
      $0.onElement = { (element) async in
        guard case .committed(let transaction) = element, transaction.ownTag == nil else { return }
        await reportGate.pass()
      }
      $0.onCatchUp = { reportGate.open() }
    }
    let (id, other) = try await queueMutation(in: repository, sentElsewhereThrough: sendGate)
    await sendGate.arrivals()
    await #expect(throws: PendingMutationError.alreadySent(id)) { try await repository.mutations.cancel(id) }
    sendGate.open()
    try await other.waitForPendingMutations()
    #expect(server.value(of: "a") == Notes("1"))
  }
}

/// A source of notes that can't be fetched, and that are empty while nothing is stored.
struct UnfetchableNotesSource: MutableSource {
  static var empty: Notes? { Notes() }

  let name = "notes"
  private let onSend: @Sendable () async throws(NotesFailure) -> Void

  init(onSend: @escaping @Sendable () async throws(NotesFailure) -> Void) {
    self.onSend = onSend
  }

  func fetch(_ key: String) async throws(NotesFailure) -> Notes { throw .offline }

  func send(
    _ mutation: NotesMutation, to key: String, id: MutationID
  ) async throws(NotesFailure) -> MutationReply<Notes> {
    try await onSend()
    return .done
  }

  func disposition(of failure: NotesFailure) -> FailureDisposition { failure.disposition }
}

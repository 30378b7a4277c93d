import DataStore
import Foundation
import Multicast
import MulticastTesting
import RepositoryTesting
import TestRounds
import TestSupport
import Testing

@testable import Repository

@Suite(.timeLimit(.minutes(15))) struct SyncedRepositoryFaultTests: NotesSuite {
  let fixture = NotesFixture()

  /// Makes a mutation in an offline repository, waits until the failure of its first attempt is stored, and returns its
  /// id.
  ///
  /// Also makes a mutation of the key `b`.
  private func enqueueOffline(_ mutation: NotesMutation, in repository: NotesRepository) async throws -> MutationID {
    let deliveries = Gate()
    deliveries.open()
    store.set { $0.onElement = { (_) async in await deliveries.pass() } }
    #expect(try await repository.perform(mutation, on: "a") == .queued)
    // The store delivers the new record, and then the record with the failure.
    await deliveries.arrivals(2)
    store.set { $0.onElement = { _ in } }
    // Once this second mutation is queued, the repository has processed the changed record of the first one.
    _ = try await repository.perform(.add("b"), on: "b")
    return try #require(try await repository.mutations.list().first?.id)
  }

  // MARK: - Lanes

  @Test func `A mutation whose reply was lost is sent again, even if a fetched value shows its change`() async throws {
    try await put(Notes())
    let isBroken = Setting(true)
    let repository = makeRepository(losingReplies: isBroken)
    #expect(try await repository.perform(.add("1"), on: "a") == .queued)
    isBroken.value = false
    try await repository.reload("a")
    #expect(await finishes { try await repository.perform(.add("2"), on: "a") })
    #expect(server.value(of: "a") == Notes("1", "2"))
    #expect(server.received.count == 3)
  }

  @Test func `A late request doesn't undo a later change, although a fetched value showed what it asks for`()
    async throws
  {
    try await put(Notes("1"))
    let late = Setting<(NotesMutation, MutationID)?>(nil)
    let source = NotesSource(
      fetch: { [server] in server.value(of: $0) },
      send: { [server] (mutation, key, id) async throws(NotesFailure) in
        if case .remove = mutation, late.value == nil {
          late.value = (mutation, id)
          throw .brokenConnection
        }
        return .value(try server.take(mutation, key, id))
      })
    let repository = NotesRepository(source, store: store, configuration: configuration)
    #expect(try await repository.perform(.remove("1"), on: "a") == .queued)
    // Another device makes the same change.
    server.edit("a") { $0 = Notes() }
    try await repository.reload("a")
    #expect(try await repository.perform(.add("1"), on: "a") == .confirmed)
    let (mutation, id) = try #require(late.value)
    _ = try server.take(mutation, "a", id)
    #expect(server.value(of: "a") == Notes("1"))
  }

  @Test func `A mutation whose reply was lost doesn't count as in flight`() async throws {
    let isBroken = Setting(true)
    let repository = makeRepository(losingReplies: isBroken)
    // At most four mutations are in flight, so a fifth one would wait if the ended attempts of these four counted.
    for key in ["a", "b", "c", "d"] {
      try await put(Notes(), key)
      #expect(try await repository.perform(.add("1"), on: key) == .queued)
      try await repository.reload(key)
    }
    isBroken.value = false
    try await put(Notes(), "e")
    #expect(await finishes { try await repository.perform(.add("1"), on: "e") })
  }

  @Test func `A mutation that another repository cancels before its next attempt doesn't block its lane`() async throws
  {
    try await put(Notes())
    let network = ManualNetworkMonitor()
    var configuration = configuration
    configuration.network = network
    let other = makeRepository(configuration: configuration) { (_) throws(NotesFailure) in throw .offline }
    let id = try await enqueueOffline(.add("1"), in: other)
    #expect(try await other.perform(.add("2"), on: "a") == .queued)
    // Keeps the other repository from sending the second mutation after it cancels the first one.
    let events = other.events.subscribe()
    network.status = .offline
    await events.reaches { $0 == .networkChanged(.offline) }
    // The other repository cancels the first mutation just after the new repository has read the queue.
    store.set { $0.onFollowed = { (_) in try await other.mutations.cancel(id) } }
    let repository = makeRepository()
    #expect(await finishes { try await repository.waitForPendingMutations() })
    #expect(server.value(of: "a") == Notes("2"))
  }

  @Test func `A fetch whose reply arrives while a commit fails doesn't wait for a retry of the commit`() async throws {
    try await put(Notes())
    let (commitGate, isFirstCommit) = (Gate(), Setting(true))
    store.set {
      $0.onCommit = { (keys) async throws(StoreError) in
        guard keys.contains(StoreKey<Notes>.notes("a").keyName), isFirstCommit.value else { return }
        isFirstCommit.value = false
        await commitGate.pass()
        throw .writeFailed(InterceptedStore.error)
      }
    }
    let repository = makeRepository()
    async let result = repository.perform(.add("1"), on: "a")
    await commitGate.arrivals()
    async let reload: Void = repository.reload("a")
    while await !repository.engine.hasReplies(of: "a") { await Task.yield() }
    commitGate.open()
    // No time passes, so nothing is retried.
    try await reload
    #expect(try await result == .queued)
    #expect(try await memory.load(.notes("a"))?.value == Notes("1"))
  }

  @Test func `If a mutation that waits for Retry-After conflicts, the next mutation of its lane is sent`() async throws
  {
    try await put(Notes("old"))
    let sent = Gate()
    sent.open()
    let repository = makeRepository { (mutation) async throws(NotesFailure) in
      if case .replace = mutation { throw .busy(retryAfter: .seconds(3600)) }
      await sent.pass()
    }
    #expect(try await repository.perform(.replace("old", with: "new"), on: "a") == .queued)
    #expect(try await repository.perform(.add("2"), on: "a") == .queued)
    try await memory.save(Notes(), for: .notes("a"))
    await repository.waitForConflict()
    #expect(await finishes { await sent.arrivals() })
  }

  @Test func `If two users share an ordering key, only the mutation of the signed-out user waits`() async throws {
    struct UserKey: RepositoryKey {
      let user: String
      var storeID: String { user }
      var userID: String? { user }
      init(_ user: String) { self.user = user }
      init?(storeID: String) { user = storeID }
    }
    let isSignedOut = Setting(true)
    let isOffline = Setting(true)
    let source = ScriptedSource<UserKey, Notes, NotesMutation, NotesFailure>(
      "notes", fetch: { (_) throws(NotesFailure) in throw .offline },
      send: { (_, key, _) throws(NotesFailure) in
        if isOffline.value { throw .offline }
        if key.user == "2", isSignedOut.value { throw .signedOut }
        return .value(Notes(key.user))
      }, disposition: { $0.disposition }, lane: { _, _ in "all" })
    let repository = SyncedRepository(source, store: store, configuration: configuration)
    #expect(try await repository.perform(.add("1"), on: UserKey("1")) == .queued)
    #expect(try await repository.perform(.add("2"), on: UserKey("2")) == .queued)
    isOffline.value = false
    await repository.retryNow()
    for await list in repository.mutations.changes where list.map(\.standing) == [.needsSignIn] { break }
    isSignedOut.value = false
    await repository.credentialsChanged(userID: "2")
    #expect(await finishes { try await repository.waitForPendingMutations() })
  }

  @Test func `The lanes of two users are separate, even if a report shows both lanes under the same name`() async throws
  {
    struct UserKey: RepositoryKey {
      let user: String
      var storeID: String { user }
      var userID: String? { user }
      init(_ user: String) { self.user = user }
      init?(storeID: String) { user = storeID }
    }
    let source = ScriptedSource<UserKey, Notes, NotesMutation, NotesFailure>(
      "notes", fetch: { (_) throws(NotesFailure) in throw .offline },
      send: { (_, key, _) throws(NotesFailure) in
        if key.user == "a" { throw .signedOut }
        return .value(Notes(key.user))
      }, disposition: { $0.disposition }, lane: { _, key in key.user == "a" ? "b/c" : "c" })
    let repository = SyncedRepository(source, store: store, configuration: configuration)
    #expect(try await repository.perform(.add("1"), on: UserKey("a")) == .queued)
    // The lane `c` of the user `a/b` would be reported under this name too.
    #expect(await repository.report().lanes.map(\.lane) == ["a/b/c"])
    #expect(try await repository.perform(.add("2"), on: UserKey("a/b")) == .confirmed)
  }

  // MARK: - Relaunch

  @Test func `A fetched value after a relaunch doesn't confirm a mutation that was never sent`() async throws {
    try await put(Notes())
    let isOffline = Setting(true)
    let sendingOfX = Gate()
    let sendingAfterRelaunch = Gate()
    do {
      let repository = makeRepository { (mutation) async throws(NotesFailure) in
        if isOffline.value { throw .offline }
        if mutation == .add("x") {
          await sendingOfX.pass()
          throw .offline
        }
      }
      #expect(try await repository.perform(.add("1"), on: "a") == .queued)
      #expect(try await repository.perform(.add("x"), on: "a") == .queued)
      #expect(try await repository.perform(.remove("x"), on: "a") == .queued)
      isOffline.value = false
      await repository.retryNow()
      await sendingOfX.arrivals()
    }
    let repository = makeRepository { (_) async throws(NotesFailure) in await sendingAfterRelaunch.pass() }
    try #require(await finishes { await sendingAfterRelaunch.arrivals() })
    // The fetched value lacks "x", as after `remove("x")`, which was never sent.
    try await repository.reload("a")
    sendingAfterRelaunch.open()
    #expect(await finishes { try await repository.waitForPendingMutations() })
    #expect(server.applied.map(\.mutation) == [.add("1"), .add("x"), .remove("x")])
    #expect(server.value(of: "a") == Notes("1"))
  }

  @Test func `Store failures before an attempt don't count as crashes during the attempt`() async throws {
    try await put(Notes())
    let isOffline = Setting(true)
    let gate = Gate()
    do {
      let repository = makeRepository { (_) async throws(NotesFailure) in
        if isOffline.value { throw .offline }
        await gate.pass()
        throw .offline
      }
      let deliveries = Gate()
      deliveries.open()
      store.set { $0.onElement = { (_) async in await deliveries.pass() } }
      #expect(try await repository.perform(.add("1"), on: "a") == .queued)
      // The store delivers the new record, and then the record with the failure of the first attempt.
      await deliveries.arrivals(2)
      isOffline.value = false
      let events = repository.events.subscribe()
      store.set {
        $0.onCommit = { (keys) throws(StoreError) in
          if keys.hasNotesMutation { throw .writeFailed(InterceptedStore.error) }
        }
      }
      // After five crashes in a row, the mutation would be refused.
      for _ in 1...5 {
        await repository.retryNow()
        await events.reaches { if case .storeFailed = $0 { true } else { false } }
      }
      store.set { $0.onCommit = { _ in } }
      await repository.retryNow()
      await gate.arrivals()
      try await #expect(repository.mutations.list().map(\.attempts) == [2])
    }
    let repository = makeRepository { (_) throws(NotesFailure) in throw .offline }
    try await #expect(
      repository.mutations.list().filter { if case .refused = $0.standing { true } else { false } } == [])
  }

  @Test func `The release of a repository during an attempt doesn't count as a crash`() async throws {
    try await put(Notes())
    do {
      let repository = makeRepository { (_) throws(NotesFailure) in throw .offline }
      #expect(try await repository.perform(.add("1"), on: "a") == .queued)
    }
    // After five crashes in a row, the mutation would be refused.
    for _ in 1...5 {
      let gate = Gate()
      let repository = makeRepository { (_) async throws(NotesFailure) in
        await gate.pass()
        throw .offline
      }
      await gate.arrivals()
      withExtendedLifetime(repository) {}
    }
    let repository = makeRepository()
    #expect(await finishes { try await repository.waitForPendingMutations() })
    #expect(server.value(of: "a") == Notes("1"))
  }

  @Test func `A mutation that the server applied isn't refused, even if each launch fails to fetch the changed value`()
    async throws
  {
    // After five interrupted attempts in a row, the mutation would be refused.
    for _ in 1...6 {
      fixture.passHour()
      let fetches = Gate()
      fetches.open()
      let repository = NotesRepository(
        NotesSource(
          fetch: { (_) async throws(NotesFailure) in
            await fetches.pass()
            throw .offline
          },
          send: { [server] (mutation, key, id) throws(NotesFailure) in
            _ = try server.take(mutation, key, id)
            // There is no stored value that the patch could change.
            return .patch { $0.texts.append("1") }
          }), store: store, configuration: configuration)
      if server.applied.isEmpty { #expect(try await repository.perform(.add("1"), on: "a") == .queued) }
      try #require(await finishes { await fetches.arrivals() })
      let id = try #require(server.applied.first?.id)
      try #require(await finishes { try await waitUntilUnmarked(id) })
      withExtendedLifetime(repository) {}
    }
    let repository = makeRepository { (_) throws(NotesFailure) in throw .offline }
    try await #expect(
      repository.mutations.list().filter { if case .refused = $0.standing { true } else { false } } == [])
  }

  @Test func `A refused mutation isn't sent again after a relaunch`() async throws {
    try await put(Notes())
    let removals = Counter()
    do {
      let repository = makeRepository { (mutation) throws(NotesFailure) in
        if mutation == .add("1") { throw .refused }
      }
      store.set {
        $0.onCommit = { (keys) throws(StoreError) in
          guard keys.hasNotesMutation, !keys.addsNotesMutation else { return }
          if removals.next() == 1 { throw .removeFailed(InterceptedStore.error) }
        }
      }
      await #expect(throws: NotesError.server(.refused)) { try await repository.perform(.add("1"), on: "a") }
      // The store works again, and later mutations give the repository the opportunity to save the refusal.
      for text in ["2", "3"] {
        #expect(try await repository.perform(.add(text), on: "a") == .confirmed)
        clock.advance(by: .seconds(600))
      }
    }
    let repository = makeRepository()
    #expect(await finishes { try await repository.waitForPendingMutations() })
    #expect(server.applied.map(\.mutation) == [.add("2"), .add("3")])
  }

  // MARK: - Cancellation

  @Test func `A cancelled mutation isn't sent`() async throws {
    try await put(Notes())
    let isOffline = Setting(true)
    let sent = Gate()
    sent.open()
    let repository = makeRepository { (mutation) async throws(NotesFailure) in
      guard mutation == .add("1") else { return }
      if isOffline.value { throw .offline }
      await sent.pass()
    }
    let id = try await enqueueOffline(.add("1"), in: repository)
    isOffline.value = false
    let (marking, removing) = (Gate(), Gate())
    let commits = Counter()
    store.set {
      $0.onCommit = { (keys) async in
        guard keys.hasNotesMutation else { return }
        await (commits.next() == 1 ? marking : removing).pass()
      }
    }
    await repository.retryNow()
    // Before it sends, this second attempt stores a mark in the mutation's record. That commit waits at the gate.
    await marking.arrivals()
    let executor = SteppingExecutor()
    let cancelling = Task(executorPreference: executor) { () -> Bool in
      do {
        try await repository.mutations.cancel(id)
        return true
      } catch {
        return false
      }
    }
    executor.runUntilIdle()
    executor.open()
    marking.open()
    // Gives the attempt time to send the mutation before its removal is stored.
    _ = await finishes(within: .seconds(1)) { await sent.arrivals() }
    removing.open()
    let isCancelled = await cancelling.value
    #expect(await finishes { try await repository.waitForPendingMutations() })
    #expect(!isCancelled || !server.received.contains(id))
  }

  @Test func `A cancellation that can't be stored keeps the order of the lane`() async throws {
    try await put(Notes())
    let isOffline = Setting(true)
    let repository = makeRepository { (_) throws(NotesFailure) in if isOffline.value { throw .offline } }
    for text in ["1", "2", "3"] { #expect(try await repository.perform(.add(text), on: "a") == .queued) }
    isOffline.value = false
    let gate = Gate()
    let commits = Counter()
    store.set {
      $0.onCommit = { (keys) async throws(StoreError) in
        guard keys.hasNotesMutation, commits.next() == 1 else { return }
        await gate.pass()
        throw .removeFailed(InterceptedStore.error)
      }
    }
    let id = try #require(try await repository.mutations.list().first?.id)
    let cancelling = Task { try await repository.mutations.cancel(id) }
    await gate.arrivals()
    await repository.retryNow()
    gate.open()
    await #expect(throws: PendingMutationError.self) { try await cancelling.value }
    #expect(await finishes { try await repository.waitForPendingMutations() })
    #expect(server.applied.map(\.mutation) == [.add("1"), .add("2"), .add("3")])
  }

  @Test func `A conflict during a cancellation doesn't restore the mutation`() async throws {
    try await put(Notes("old"))
    let repository = makeRepository { (_) throws(NotesFailure) in throw .offline }
    let id = try await enqueueOffline(.replace("old", with: "new"), in: repository)
    let gate = Gate()
    let commits = Counter()
    store.set {
      $0.onCommit = { (keys) async in if keys.hasNotesMutation, commits.next() == 1 { await gate.pass() } }
    }
    // Occupies the store, so that the following changes become one commit.
    let otherCall = Task { try await repository.perform(.add("other"), on: "c") }
    await gate.arrivals()
    let executor = SteppingExecutor()
    let cancelling = Task(executorPreference: executor) { try await repository.mutations.cancel(id) }
    executor.runUntilIdle()
    executor.open()
    try await memory.save(Notes(), for: .notes("a"))
    await repository.waitForConflict()
    gate.open()
    try await cancelling.value
    _ = try await otherCall.value
    let nextRepository = makeRepository { (_) throws(NotesFailure) in throw .offline }
    try await #expect(nextRepository.mutations.list().filter { $0.id == id } == [])
  }

  @Test func `Cancelling a mutation during two changes of its record doesn't crash`() async throws {
    await #expect(processExitsWith: .success) {
      let memory = InMemoryStore()
      let store = InterceptedStore(memory)
      try await memory.save(Notes("old"), for: .notes("a"))
      let gate = Gate()
      let commits = Counter()
      // The first commit stores the mutation, and the second one records that its first attempt has failed.
      store.set {
        $0.onCommit = { (keys) async in if keys.hasNotesMutation, commits.next() == 2 { await gate.pass() } }
      }
      let repository = NotesRepository(
        NotesSource(
          fetch: { (_) throws(NotesFailure) in throw .offline },
          send: { (_, _, _) throws(NotesFailure) in throw .offline }), store: store,
        configuration: RepositoryConfiguration(clock: ManualClock()))
      _ = try await repository.perform(.replace("old", with: "new"), on: "a")
      await gate.arrivals()
      let id = try #require(try await repository.mutations.list().first?.id)
      let executor = SteppingExecutor()
      let cancelling = Task(executorPreference: executor) { try await repository.mutations.cancel(id) }
      executor.runUntilIdle()
      executor.open()
      try await memory.save(Notes(), for: .notes("a"))
      await repository.waitForConflict()
      gate.open()
      try await cancelling.value
    }
  }

  @Test func `A conflict can be resolved while an earlier record of its mutation is being stored`() async throws {
    try await put(Notes("old"))
    let (gate, commits) = (Gate(), Counter())
    // The first commit stores the mutation, and the second one that its first attempt has failed.
    store.set {
      $0.onCommit = { (keys) async in if keys.hasNotesMutation, commits.next() == 2 { await gate.pass() } }
    }
    let repository = makeRepository { (_) throws(NotesFailure) in throw .offline }
    #expect(try await repository.perform(.replace("old", with: "new"), on: "a") == .queued)
    await gate.arrivals()
    try await memory.save(Notes(), for: .notes("a"))
    let id = try #require(await repository.waitForConflict())
    let executor = SteppingExecutor()
    let resolving = Task(executorPreference: executor) {
      try await repository.mutations.resolve(id, .replace(with: .add("new")))
    }
    executor.runUntilIdle()
    executor.open()
    gate.open()
    let resolvedID = try await resolving.value
    try await #expect(repository.mutations.list().map(\.id) == [resolvedID])
  }

  @Test func `Of two resolutions of a conflict only one takes effect`() async throws {
    try await put(Notes("old"))
    let repository = makeRepository { (_) throws(NotesFailure) in throw .offline }
    #expect(try await repository.perform(.replace("old", with: "new"), on: "a") == .queued)
    try await memory.save(Notes(), for: .notes("a"))
    let conflictedID = try #require(await repository.waitForConflict())
    let gate = Gate()
    store.set { $0.onCommit = { (keys) async in if keys.addsNotesMutation { await gate.pass() } } }
    let first = Task { try? await repository.mutations.resolve(conflictedID, .replace(with: .add("new"))) }
    await gate.arrivals()
    let executor = SteppingExecutor()
    let second = Task(executorPreference: executor) {
      try? await repository.mutations.resolve(conflictedID, .replace(with: .add("new")))
    }
    executor.runUntilIdle()
    executor.open()
    gate.open()
    let ids = await [first.value, second.value].compactMap { $0 }
    #expect(ids.count == 1)
    try await #expect(repository.mutations.list().count == 1)
  }

  // MARK: - Conflicts

  @Test func `A mutation that conflicts while it is being stored is either confirmed or not sent`() async throws {
    try await put(Notes("old"))
    let repository = makeRepository()
    let values = repository.values(of: "a").subscribe()
    #expect(await values.first(1) == [Notes("old")])
    let gate = Gate()
    let commits = Counter()
    store.set {
      $0.onCommit = { (keys) async in if keys.hasNotesMutation, commits.next() == 1 { await gate.pass() } }
    }
    let call = Task { try await repository.perform(.replace("old", with: "new"), on: "a") }
    #expect(await values.first(1) == [Notes("new")])
    await gate.arrivals()
    try await memory.save(Notes(), for: .notes("a"))
    #expect(await values.first(1) == [Notes()])
    gate.open()
    let result = try await call.value
    guard case .conflicted = result else { return #expect(result == .confirmed) }
    #expect(await finishes { try await repository.waitForPendingMutations() })
    #expect(server.received == [])
    let standings = try await repository.mutations.list().map(\.standing)
    #expect(standings == [.conflicted(MutationConflict("There is no old."))])
  }

  @Test func `A new observer receives the stored value after an impossible mutation`() async throws {
    try await put(Notes("stored"))
    let repository = makeRepository()
    let values = repository.values(of: "a").subscribe()
    #expect(await values.first(1) == [Notes("stored")])
    await #expect(throws: NotesError.self) { try await repository.perform(.replace("x", with: "y"), on: "a") }
    let states = repository.states(of: "a").subscribe()
    for await state in states {
      #expect(state.value == Notes("stored"))
      break
    }
  }

  @Test func `If many mutations conflict at once, the number of apply calls grows linearly`() async throws {
    let repository = SyncedRepository(
      ScriptedSource<String, Notes, CountedMutation, NotesFailure>(
        "counted", fetch: { (_) throws(NotesFailure) in throw .offline },
        send: { (_, _, _) throws(NotesFailure) in throw .offline }), store: store, configuration: configuration)
    let key = StoreKey<Notes>("counted", id: "a")
    try await memory.save(Notes("needed"), for: key)
    let count = 400
    for index in 1...count {
      _ = try await repository.perform(CountedMutation(isPossible: index <= count / 2), on: "a")
    }
    let values = repository.values(of: "a").subscribe()
    _ = await values.first(1)
    CountedMutation.applications.reset()
    try await memory.save(Notes(), for: key)
    _ = await values.first(1)
    #expect(CountedMutation.applications.value < 10 * count)
  }

  // MARK: - Store

  @Test func `A write is retried with a delay if the stored value has changed and can't be read`() async throws {
    try await put(Notes("stored"))
    server.edit("a") { $0 = Notes("newer") }
    let repository = makeRepository()
    let states = repository.states(of: "a").subscribe()
    _ = await states.first(1)
    let commits = Counter()
    // From this commit on the store works, so that the test ends even if commits are retried without a delay.
    let commitLimit = 1000
    let keyName = StoreKey<Notes>.notes("a").keyName
    store.set {
      $0.onLoad = { (name) throws(StoreError) in
        if name == keyName, commits.value < commitLimit { throw .readFailed(InterceptedStore.error) }
      }
      // Simulates another process that has stored a value, which this process doesn't know yet.
      $0.onCommit = { (keys) throws(StoreError) in
        if keys.contains(keyName), commits.next() < commitLimit { throw .preconditionFailed(keyName) }
      }
    }
    _ = await finishes { try await repository.reload("a") }
    #expect(commits.value < 100)
  }

  @Test func `Waiting for mutations continues while the queue can't be read`() async throws {
    try await put(Notes())
    do {
      let repository = makeRepository { (_) throws(NotesFailure) in throw .offline }
      #expect(try await repository.perform(.add("1"), on: "a") == .queued)
    }
    let observations = Counter()
    store.set {
      $0.onObserve = { (_) throws(StoreError) in
        if observations.next() <= 2 { throw .readFailed(InterceptedStore.error) }
      }
    }
    let repository = makeRepository()
    let waiting = Task { try await repository.waitForPendingMutations() }
    // Lets time pass, because a failed read of the queue is repeated after a delay.
    let advancing = Task {
      while !Task.isCancelled {
        clock.advance(by: .seconds(60))
        await Task.yield()
      }
    }
    try await waiting.value
    advancing.cancel()
    #expect(server.value(of: "a") == Notes("1"))
  }

  @Test func `A queue that couldn't be read at first is sent later without another call`() async throws {
    try await put(Notes())
    do {
      let repository = makeRepository { (_) throws(NotesFailure) in throw .offline }
      #expect(try await repository.perform(.add("1"), on: "a") == .queued)
    }
    let observations = Counter()
    store.set {
      $0.onObserve = { (_) throws(StoreError) in
        if observations.next() == 1 { throw .readFailed(InterceptedStore.error) }
      }
    }
    let sent = Gate()
    sent.open()
    let repository = makeRepository { (_) async throws(NotesFailure) in await sent.pass() }
    await repository.events.subscribe().reaches { if case .storeFailed = $0 { true } else { false } }
    let isRetryScheduled = await finishes { [clock] in await clock.sleepers() }
    #expect(isRetryScheduled)
    clock.advance(by: .seconds(600))
    #expect(await finishes { await sent.arrivals() })
  }

  @Test func `Mutations are sent in the order they were made, regardless of their callers' priorities`() async throws {
    try await put(Notes())
    let sending = Gate()
    let repository = makeRepository { (_) async throws(NotesFailure) in await sending.pass() }
    let values = repository.values(of: "a").subscribe()
    _ = await values.first(1)
    let storing = Gate()
    store.set { $0.onCommit = { (keys) async in if keys.addsNotesMutation { await storing.pass() } } }
    let count = 60
    let events = repository.events.subscribe()
    var calls: [Task<Void, any Error>] = []
    for index in 0..<count {
      calls.append(
        Task.detached(priority: index.isMultiple(of: 2) ? .background : .high) {
          _ = try await repository.perform(.add("\(index)"), on: "a")
        })
      for await value in values where value.texts.count == index + 1 { break }
    }
    storing.open()
    var enqueuedCount = 0
    while enqueuedCount < count {
      await events.reaches { if case .mutationEnqueued = $0 { true } else { false } }
      enqueuedCount += 1
    }
    try await #expect(repository.mutations.list().map(\.mutation) == (0..<count).map { .add("\($0)") })
    sending.open()
    for call in calls { try await call.value }
    #expect(server.applied.map(\.mutation) == (0..<count).map { .add("\($0)") })
  }

  @Test func `A mutation that waits for an earlier one has no attempts`() async throws {
    try await put(Notes())
    let isOffline = Setting(true)
    let gate = Gate()
    let repository = makeRepository { (mutation) async throws(NotesFailure) in
      if isOffline.value { throw .offline }
      if mutation == .add("2") { await gate.pass() }
    }
    for text in ["1", "2", "3"] { #expect(try await repository.perform(.add(text), on: "a") == .queued) }
    isOffline.value = false
    await repository.retryNow()
    await gate.arrivals()
    let list = try await repository.mutations.list()
    #expect(list.last?.mutation == .add("3"))
    #expect(list.last?.attempts == 0)
    gate.open()
  }

  @Test func `A mutation that the server acknowledges without a value is confirmed even if no value is stored`()
    async throws
  {
    let repository = NotesRepository(
      NotesSource(
        fetch: { (_) throws(NotesFailure) in throw .offline },
        send: { [server] (mutation, key, id) throws(NotesFailure) in
          _ = try server.take(mutation, key, id)
          return .done
        }), store: store, configuration: configuration)
    #expect(try await repository.perform(.add("1"), on: "a") == .confirmed)
    try await #expect(memory.load(.notes("a")) == nil)
    try await #expect(repository.mutations.list() == [])
  }

  @Test func `While a long queue drains, the value never shows more changes than were made`() async throws {
    let isOffline = Setting(true)
    let repository = SyncedRepository(
      ScriptedSource<String, Sum, SumMutation, NotesFailure>(
        "tally", fetch: { (_) throws(NotesFailure) in throw .offline },
        send: { (_, _, _) throws(NotesFailure) in
          if isOffline.value { throw .offline }
          return .done
        }, disposition: { $0.disposition }), store: memory, configuration: configuration)
    try await memory.save(Sum(), for: StoreKey("tally", id: "a"))
    let highestCount = Setting(0)
    let values = repository.values(of: "a").subscribe()
    let observing = Task { for await value in values { highestCount.value = max(highestCount.value, value.count) } }
    let count = Rounds.count(500, full: 2000)
    for _ in 1...count { _ = try await repository.perform(.increment, on: "a") }
    isOffline.value = false
    await repository.retryNow()
    try await repository.waitForPendingMutations()
    try await #expect(repository.mutations.list().count == 0)
    observing.cancel()
    await observing.value
    #expect(highestCount.value <= count)
  }

  @Test func `If a long queue drains and replies are values, the number of apply calls grows linearly`() async throws {
    let serverCount = Setting(0)
    let isOffline = Setting(true)
    let repository = SyncedRepository(
      ScriptedSource<String, Sum, CountedIncrement, NotesFailure>(
        "tally", fetch: { (_) throws(NotesFailure) in throw .offline },
        send: { (_, _, _) throws(NotesFailure) in
          if isOffline.value { throw .offline }
          serverCount.value += 1
          return .value(Sum(count: serverCount.value))
        }, disposition: { $0.disposition }), store: memory, configuration: configuration)
    try await memory.save(Sum(), for: StoreKey("tally", id: "a"))
    let count = Rounds.count(500, full: 2000)
    for _ in 1...count { _ = try await repository.perform(CountedIncrement(), on: "a") }
    CountedIncrement.applications.reset()
    isOffline.value = false
    await repository.retryNow()
    try await repository.waitForPendingMutations()
    #expect(CountedIncrement.applications.value < 20 * count)
  }

  // MARK: - Two repositories on one store

  @Test func `Another repository can't cancel a mutation in flight`() async throws {
    try await put(Notes())
    let gate = Gate()
    let repository = makeRepository { (_) async throws(NotesFailure) in await gate.pass() }
    let call = Task { try await repository.perform(.add("1"), on: "a") }
    await gate.arrivals()
    let other = NotesRepository(
      NotesSource(
        fetch: { (_) throws(NotesFailure) in throw .offline },
        send: { (_, _, _) throws(NotesFailure) in throw .offline }),
      store: memory, configuration: configuration)
    let id = try #require(try await other.mutations.list().first?.id)
    await #expect(throws: PendingMutationError.alreadySent(id)) { try await other.mutations.cancel(id) }
    gate.open()
    _ = try? await call.value
    #expect(server.value(of: "a") == Notes("1"))
  }

  @Test func `A mutation that another repository cancels isn't reported as confirmed`() async throws {
    try await put(Notes())
    let gate = Gate()
    let repository = makeRepository { (_) async throws(NotesFailure) in await gate.pass() }
    let first = Task { try await repository.perform(.add("1"), on: "a") }
    await gate.arrivals()
    let events = repository.events.subscribe()
    let second = Task { try await repository.perform(.add("2"), on: "a") }
    await events.waitForEnqueued(2)
    let other = NotesRepository(
      NotesSource(
        fetch: { (_) throws(NotesFailure) in throw .offline },
        send: { (_, _, _) throws(NotesFailure) in throw .offline }),
      store: memory, configuration: configuration)
    let list = try await other.mutations.list()
    let id = try #require(list.first { $0.mutation == .add("2") }?.id)
    try await other.mutations.cancel(id)
    let result = try? await second.value
    #expect(result != .confirmed)
    gate.open()
    _ = try await first.value
    #expect(server.value(of: "a") == Notes("1"))
  }

  @Test func `The length of the queue is reported when a dead letter is discarded`() async throws {
    try await put(Notes())
    let repository = makeRepository { (_) throws(NotesFailure) in throw .conflict }
    let events = repository.events.subscribe()
    guard case .conflicted(let id) = try await repository.perform(.add("1"), on: "a") else {
      Issue.record("The mutation isn't in conflict.")
      return
    }
    await events.reaches { $0 == .queueLength(waiting: 0, dead: 1) }
    try await repository.mutations.discard(id)
    await events.reaches { $0 == .queueLength(waiting: 0, dead: 0) }
  }

  @Test func `Mutations that another repository sends count neither as waiting nor as dead letters`() async throws {
    let repository = makeRepository()
    _ = try await repository.mutations.list()
    let other = makeRepository { (_) throws(NotesFailure) in throw .offline }
    #expect(try await other.perform(.add("1"), on: "a") == .queued)
    await repository.mutations.changes.reaches { !$0.isEmpty }
    let events = repository.events.subscribe()
    #expect(try await repository.perform(.add("2"), on: "b") == .confirmed)
    // Only this second mutation counts, because the other repository sends the first one, which stays in the queue.
    var lengths: [RepositoryEvent] = []
    for await event in events {
      if case .queueLength = event { lengths.append(event) }
      if event == .queueLength(waiting: 0, dead: 0) { break }
    }
    #expect(lengths.contains(.queueLength(waiting: 1, dead: 0)))
    #expect(await repository.report().undecidedCount == 0)
  }

  @Test func `If two repositories send the same mutation, its change is stored only once`() async throws {
    let sumServer = SumServer(empty: Sum())
    let key = StoreKey<Sum>("tally", id: "a")
    try await memory.save(Sum(count: 5), for: key)
    sumServer.edit("a") { $0 = Sum(count: 5) }
    let isOffline = Setting(true)
    let repository = SyncedRepository(
      SumSource(
        sumServer, onFetch: { () throws(NotesFailure) in throw .offline },
        onSend: { () throws(NotesFailure) in if isOffline.value { throw .offline } }), store: store,
      configuration: configuration)
    #expect(try await repository.perform(.increment, on: "a") == .queued)
    let gate = Gate()
    store.set {
      $0.onCommit = { (keys) async in if keys.contains(key.keyName) { await gate.pass() } }
    }
    isOffline.value = false
    await repository.retryNow()
    await gate.arrivals()
    // The other repository, which found the mutation in the store, commits first.
    fixture.passHour()
    let other = SyncedRepository(SumSource(sumServer), store: memory, configuration: configuration)
    try await other.waitForPendingMutations()
    // Once this mutation of a third repository is listed, the first repository has received all earlier changes of the
    // queue.
    let offlineRepository = SyncedRepository(
      SumSource(sumServer, onSend: { () throws(NotesFailure) in throw .offline }), store: memory,
      configuration: configuration)
    #expect(try await offlineRepository.perform(.increment, on: "z") == .queued)
    for await list in repository.mutations.changes where list.contains(where: { $0.key == "z" }) { break }
    let values = repository.values(of: "a").subscribe()
    gate.open()
    let isDone = await finishes {
      for await list in repository.mutations.changes where !list.contains(where: { $0.key == "a" }) { break }
    }
    #expect(isDone)
    // During its own commit, the first repository shows 5 with the mutation applied, which equals the stored value.
    #expect(await values.first(1) == [Sum(count: 6)])
    #expect(await repository.values(of: "a").first(1) == [Sum(count: 6)])
  }

  // MARK: - Limits and lifetimes

  @Test func `A delay of any length is a delay`() async throws {
    try await put(Notes())
    let isBusy = Setting(true)
    let configuration = RepositoryConfiguration(leadership: NoLeadership())
    let repository = makeRepository(configuration: configuration) { (_) throws(NotesFailure) in
      if isBusy.value { throw .busy(retryAfter: .seconds(Int64.max)) }
    }
    let every = repository.values(of: "a", loading: .whileObserved(every: .seconds(Int64.max))).subscribe()
    #expect(try await repository.perform(.add("1"), on: "a") == .queued)
    for await notes in every where notes == Notes("1") { break }
    isBusy.value = false
    #expect(try await repository.perform(.add("1"), on: "b") == .confirmed)
  }

  @Test func `A value of the queue that outlives its repository doesn't keep the next one from sending`() async throws {
    try await put(Notes())
    let storeWithLocks = InMemoryStore(storage: InMemoryStorage())
    let isOffline = Setting(true)
    let configuration = RepositoryConfiguration(clock: clock, now: fixture.now)
    var repository: NotesRepository? = makeRepository(configuration: configuration, store: storeWithLocks) {
      (_) throws(NotesFailure) in if isOffline.value { throw .offline }
    }
    #expect(try await repository?.perform(.add("1"), on: "a") == .queued)
    let mutations = repository!.mutations
    let id = try #require(try await mutations.list().first?.id)
    repository = nil
    isOffline.value = false
    let next = makeRepository(configuration: configuration, store: storeWithLocks)
    #expect(await finishes { try await next.waitForPendingMutations() })
    try await #expect(mutations.list().isEmpty)
    await #expect(throws: PendingMutationError.unknown(id)) { try await mutations.cancel(id) }
    #expect(await mutations.changes.first(1).isEmpty)
  }

  @Test func `Resuming all mutations returns while the store can't be read, and sends them when it can`() async throws {
    try await put(Notes())
    let isOffline = Setting(true)
    do {
      let repository = makeRepository { (_) throws(NotesFailure) in if isOffline.value { throw .offline } }
      #expect(try await repository.perform(.add("1"), on: "a") == .queued)
    }
    isOffline.value = false
    let isUnreadable = Setting(true)
    store.set {
      $0.onObserve = { (_) throws(StoreError) in
        if isUnreadable.value { throw .readFailed(SystemError(code: 5, operation: "testing", path: "memory")) }
      }
    }
    let repository = makeRepository()
    let events = repository.events.subscribe()
    await repository.resumeAll()
    await events.reaches { if case .storeFailed = $0 { true } else { false } }
    isUnreadable.value = false
    await repository.resumeAll()
    try await repository.waitForPendingMutations()
    #expect(server.value(of: "a") == Notes("1"))
  }

  @Test func `A refused mutation doesn't count toward the age limit of the queue`() async throws {
    try await put(Notes())
    let now = Setting(Date(timeIntervalSince1970: 0))
    let isOffline = Setting(true)
    let repository = makeRepository(
      configuration: RepositoryConfiguration(
        queueLimits: QueueLimits(maximumAge: .seconds(100)), clock: clock, now: { now.value })
    ) { (mutation) throws(NotesFailure) in
      if isOffline.value { throw .offline }
      if mutation == .add("1") { throw .refused }
    }
    #expect(try await repository.perform(.add("1"), on: "a") == .queued)
    isOffline.value = false
    await repository.retryNow()
    try await repository.waitForPendingMutations()
    now.value += 200
    #expect(try await repository.perform(.add("2"), on: "a") == .confirmed)
  }

  @Test func `A released repository doesn't send the rest of its queue`() async throws {
    try await put(Notes())
    let isOffline = Setting(true)
    let gate = Gate()
    do {
      let repository = makeRepository { (_) async throws(NotesFailure) in
        if isOffline.value { throw .offline }
        await gate.pass()
      }
      for index in 1...20 { _ = try await repository.perform(.add("\(index)"), on: "a") }
      isOffline.value = false
      await repository.retryNow()
      await gate.arrivals()
    }
    // The attempt in progress ends with the repository, and no other attempt begins.
    #expect(await !finishes(within: .seconds(2)) { await gate.arrivals(2) })
  }

  @Test func `A key whose only mutation is in conflict can be released`() async throws {
    try await put(Notes())
    let repository = makeRepository { (_) throws(NotesFailure) in throw .conflict }
    let loads = Counter()
    let keyName = StoreKey<Notes>.notes("a").keyName
    store.set { $0.onLoad = { (name) in if name == keyName { loads.next() } } }
    guard case .conflicted = try await repository.perform(.add("1"), on: "a") else {
      Issue.record("The mutation isn't in conflict.")
      return
    }
    #expect(loads.value == 1)
    // Only the most recently used keys stay open, so using other keys releases the key `a`.
    for number in 1...20 { try await repository.reload("\(number)") }
    #expect(await repository.values(of: "a").subscribe().first(1) == [Notes()])
    #expect(loads.value == 2)
  }

  @Test func `Requesting a page that doesn't exist doesn't reset the backoff`() async throws {
    let sent = Gate()
    sent.open()
    let repository = SyncedRepository(PagesSource(sent: sent), store: store, configuration: configuration)
    try await memory.save(PagesSource.Value([PagesSource.Item(id: 1)]), for: StoreKey("pages", id: "a"))
    #expect(try await repository.perform(.add(2), on: "a") == .queued)
    try await repository.loadMore("a")
    #expect(await !finishes(within: .seconds(2)) { await sent.arrivals(2) })
  }

  @Test @MainActor func `Observing values doesn't keep the observing object alive`() async throws {
    try await put(Notes("stored"))
    let repository = makeRepository()
    var observed: Observed<Notes>? = Observed(repository.values(of: "a"))
    weak let weakObserved = observed
    let observing = Task { [weak observed] in await observed?.run() }
    while observed?.value == nil { await Task.yield() }
    observed = nil
    await Task.yield()
    #expect(weakObserved == nil)
    // The task ends although no other value is stored.
    await observing.value
  }
}

/// A mutation that counts its applications.
struct CountedMutation: RepositoryMutation {
  static let applications = Counter()

  /// Whether the mutation is possible even on a value without texts.
  let isPossible: Bool

  func apply(to value: inout Notes) throws(MutationConflict) {
    Self.applications.next()
    if value.texts.isEmpty, !isPossible { throw MutationConflict("There is no text.") }
  }
}

/// An increment that counts its applications.
struct CountedIncrement: RepositoryMutation {
  static let applications = Counter()

  func apply(to value: inout Sum) throws(MutationConflict) {
    Self.applications.next()
    value.count += 1
  }
}

/// A source of pages of numbers, whose server can't be reached for mutations.
struct PagesSource: PagedSource, MutableSource {
  struct Item: Codable, Equatable, Identifiable, Sendable {
    let id: Int
  }

  typealias Key = String
  typealias Value = Paged<Item>
  typealias Failure = NotesFailure

  enum Mutation: RepositoryMutation {
    case add(Int)

    func apply(to value: inout Paged<Item>) throws(MutationConflict) {
      switch self {
      case .add(let id): value.upsertFirst(Item(id: id))
      }
    }
  }

  let name = "pages"
  let sent: Gate
  var onFetch: @Sendable (_ cursor: String?) throws(NotesFailure) -> Paged<Item> = { (_) throws(NotesFailure) in
    throw .offline
  }

  func fetch(_ key: String, after cursor: String?, limit: Int) async throws(NotesFailure) -> Paged<Item> {
    try onFetch(cursor)
  }

  func send(_ mutation: Mutation, to key: String, id: MutationID) async throws(NotesFailure) -> MutationReply<
    Paged<Item>
  > {
    await sent.pass()
    throw .offline
  }

  func disposition(of failure: NotesFailure) -> FailureDisposition { failure.disposition }
}

extension SyncEngine {
  /// Returns whether replies for a key wait to be judged.
  fileprivate func hasReplies(of key: Key) -> Bool { core.keys[key]?.state.hasReplies ?? false }
}

extension AsyncSequence where Element == RepositoryEvent, Failure == Never {
  /// Waits until a number of mutations were added to the queue.
  fileprivate func waitForEnqueued(_ count: Int) async {
    var found = 0
    for await event in self {
      if case .mutationEnqueued = event { found += 1 }
      if found == count { return }
    }
  }
}

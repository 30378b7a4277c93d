import DataStore
import Foundation
import Multicast
import MulticastTesting
import RepositoryTesting
import TestSupport
import Testing

@testable import Repository

/// After a sign-out, no data of the user remains and none returns.
@Suite(.timeLimit(.minutes(15))) struct SignOutTests: UsersSuite {
  let fixture = UsersFixture()

  // MARK: - Erased data

  @Test func `The values and mutations of the user are erased, and those of other users stay`() async throws {
    let repository = makeRepository()
    for key in [jake, mary] {
      server.edit(key) { $0 = Notes("1") }
      try await repository.reload(key)
    }
    isOffline.value = true
    #expect(try await repository.perform(.add("2"), on: jake) == .queued)
    #expect(try await repository.perform(.add("3"), on: mary) == .queued)
    try await repository.signOut(userID: "jake", unsent: .discard)
    #expect(try await stored(jake) == nil)
    #expect(try await stored(mary) == Notes("1"))
    let list = try await repository.mutations.list()
    #expect(list.map(\.key) == [mary])
    #expect(try await storedMutationIDs == list.map(\.id))
    isOffline.value = false
    await repository.retryNow()
    try await repository.waitForPendingMutations()
    #expect(server.value(of: mary) == Notes("1", "3"))
    #expect(server.value(of: jake) == Notes("1"))
  }

  @Test func `No data of the user is left in the folder or in the events that a new subscriber receives`()
    async throws
  {
    let temporaryFolder = TemporaryFolder()
    let repository = makeRepository(store: FileStore(folder: temporaryFolder.url))
    for key in [jake, mary] {
      server.edit(key) { $0 = Notes("of \(key.storeID)") }
      try await repository.reload(key)
    }
    isOffline.value = true
    #expect(try await repository.perform(.add("jake's"), on: jake) == .queued)
    let earlierEvents = repository.events.subscribe()
    // Two records that can't be decoded, one of each user.
    let folder = temporaryFolder.url
    try Data("rot \"key\":\"jake\\/b\" rot".utf8).write(to: folder.appending(path: "notes%2emutations.rot.value"))
    try Data("rot \"key\":\"mary\\/b\" rot".utf8).write(to: folder.appending(path: "notes%2emutations.kept.value"))
    await earlierEvents.reaches { if case .mutationUnreadable = $0 { true } else { false } }
    try await repository.signOut(userID: "jake", unsent: .discard)
    let texts = try temporaryFolder.namesAndBytes.map { String(decoding: $0, as: UTF8.self) }
    #expect(texts.filter { $0.contains("jake") } == [])
    #expect(texts.contains { $0.contains("of mary") })
    #expect(texts.contains { $0.contains("rot \"key\":\"mary") })
    try await repository.reload(mary)
    // The sign-out has discarded the replayed events, so a new subscriber receives only later ones.
    var descriptions: [String] = []
    await repository.events.subscribe().reaches { event in
      descriptions.append(event.description)
      if case .requestFinished(let key) = event { return key.contains("mary") } else { return false }
    }
    #expect(!descriptions.isEmpty && descriptions.filter { $0.contains("jake") } == [])
  }

  @Test func `Another user's mutation that contains the user's id stays, even if it is added during the erasure`()
    async throws
  {
    isOffline.value = true
    let other = makeRepository(store: memory)
    let key = mary
    store.set { $0.onErase = { () async in _ = try? await other.perform(.add("jake"), on: key) } }
    let repository = makeRepository()
    try await repository.signOut(userID: "jake", unsent: .discard)
    #expect(try await other.mutations.list().map(\.key) == [mary])
    #expect(try await storedMutationIDs.count == 1)
  }

  @Test func `A read-only repository erases the mutations of the user, but not those of other users`() async throws {
    isOffline.value = true
    do {
      let repository = makeRepository()
      #expect(try await repository.perform(.add("jake"), on: mary) == .queued)
      #expect(try await repository.perform(.add("1"), on: jake) == .queued)
    }
    let readOnly = SyncedRepository("notes", store: memory) { (_: UserKey) async throws(NotesFailure) in Notes() }
    try await readOnly.signOut(userID: "jake", unsent: .discard)
    let repository = makeRepository(store: memory)
    #expect(try await repository.mutations.list().map(\.key) == [mary])
    #expect(try await storedMutationIDs.count == 1)
  }

  @Test func `Mutations whose records have a future schema are erased if their keys belong to the user`() async throws {
    let newerStore = makeOtherStore()
    for (id, key) in [("1", jake), ("2", mary)] {
      try await newerStore.save(
        NewerMutationRecord(key: key.storeID, text: "jake"), for: StoreKey("notes.mutations", id: id))
    }
    let repository = makeRepository()
    try await repository.signOut(userID: "jake", unsent: .discard)
    #expect(try await newerStore.load(StoreKey<NewerMutationRecord>("notes.mutations", id: "1")) == nil)
    #expect(try await newerStore.load(StoreKey<NewerMutationRecord>("notes.mutations", id: "2")) != nil)
  }

  @Test func `A record that can't be decoded is erased even if the user's id needs escaping in JSON`() async throws {
    let temporaryFolder = TemporaryFolder()
    let repository = makeRepository(store: FileStore(folder: temporaryFolder.url))
    try await repository.reload(mary)
    let events = repository.events.subscribe()
    let folder = temporaryFolder.url
    for (name, key) in [("a", #"CORP\\jake\/b"#), ("b", #"CORP\\\u006aake\/b"#), ("c", #"say \"jake\""#)] {
      try Data("rot \"key\":\"\(key)\" rot".utf8).write(to: folder.appending(path: "notes%2emutations.\(name).value"))
    }
    await events.reaches { if case .mutationUnreadable = $0 { true } else { false } }
    try await repository.signOut(userID: #"CORP\jake"#, unsent: .discard)
    let texts = try temporaryFolder.namesAndBytes.map { String(decoding: $0, as: UTF8.self) }
    #expect(texts.filter { $0.contains("CORP") } == [])
    // The key of the third record doesn't belong to the user `jake`.
    try await repository.signOut(userID: "jake", unsent: .discard)
    #expect(try temporaryFolder.namesAndBytes.contains { String(decoding: $0, as: UTF8.self).contains("say") })
  }

  @Test func `Values and mutations that this program can't decode are erased if they belong to the user`() async throws
  {
    let otherStore = makeOtherStore()
    for key in [jake, mary] {
      try await otherStore.save(7, for: StoreKey<Int>("notes", id: key.storeID))
      try await otherStore.save(
        UndecodableMutationRecord(key: key.storeID), for: StoreKey("notes.mutations", id: key.user))
    }
    let repository = makeRepository()
    let events = repository.events.subscribe()
    try await #expect(repository.mutations.list().isEmpty)
    await events.reaches { if case .mutationUnreadable(_, movedTo: nil, _) = $0 { true } else { false } }
    #expect(storageNames.count == 4)
    try await repository.signOut(userID: "jake", unsent: .discard)
    #expect(storageNames.filter { $0.contains("jake") } == [])
    #expect(storageNames.filter { $0.contains("mary") }.count == 2)
  }

  /// The names of the stored values and mutations.
  private var storageNames: [String] {
    fixture.storage.names.filter { !$0.hasPrefix("notes%2eusers.") }
  }

  @Test func `A user whose record this program can't decode can use the repository, and sign out and in`() async throws
  {
    let user = UserDigest("jake")
    try await makeOtherStore().save(7, for: StoreKey<Int>("notes.users", id: user.text))
    let repository = makeRepository()
    try await repository.reload(jake)
    try await #expect(repository.perform(.add("1"), on: jake) == .confirmed)
    try await repository.signOut(userID: "jake", unsent: .refuse)
    #expect(try await stored(jake) == nil)
    await repository.credentialsChanged(userID: "jake")
    try await repository.reload(jake)
    #expect(try await stored(jake) == Notes("1"))
  }

  @Test func `After a sign-out, observers of all values don't get the user's value, even if its key isn't in use`()
    async throws
  {
    let repository = makeRepository(onFetch: { [isOffline] (_) throws(NotesFailure) in
      if isOffline.value { throw .offline }
    })
    server.edit(jake) { $0 = Notes("jake's") }
    try await repository.reload(jake)
    // After failed requests for other keys, Jake's value is still the newest, although its key is no longer in use.
    isOffline.value = true
    for number in 0..<20 { try? await repository.reload(UserKey("mary", "\(number)")) }
    try await repository.signOut(userID: "jake", unsent: .refuse)
    let values = repository.everyValue.subscribe()
    isOffline.value = false
    server.edit(mary) { $0 = Notes("mary's") }
    try await repository.reload(mary)
    #expect(await values.first(1) == [Notes("mary's")])
  }

  @Test func `An erasure that has lost its lock fails, and is repeated later`() async throws {
    let isLockHeld = Setting(true)
    let lockingStore = InterceptedStore(memory, supportsLocks: true)
    lockingStore.set { $0.isHeld = { isLockHeld.value } }
    let repository = makeRepository(store: lockingStore)
    try await repository.reload(jake)
    isLockHeld.value = false
    let failure = await Result { () async throws(SignOutError) in
      try await repository.signOut(userID: "jake", unsent: .discard)
    }.failure
    let lostLock = SystemError(
      code: POSIXErrorCode.ENOLCK.rawValue, operation: "keeping the lock", path: "notes.sign-out")
    #expect(failure == .store(.eraseFailed(lostLock)))
    #expect(try await stored(jake) == Notes())
    await #expect(throws: NotesError.signedOut) { try await repository.reload(jake) }
    isLockHeld.value = true
    let userChanges = try await memory.observe(collection: "notes.users", as: UserRecord.self).changes
    clock.advance(by: .seconds(60))
    for await changes in userChanges where changes.last?.stored?.value.phase == .signedOut { break }
    #expect(try await stored(jake) == nil)
  }

  @Test func `A user whose record is lost can use the repository, and sign out and in`() async throws {
    let repository = makeRepository()
    await repository.credentialsChanged(userID: "jake")
    try await memory.removeAll(in: "notes.users")
    let isUsable = await finishes { [jake] in
      try await repository.reload(jake)
      _ = try await repository.perform(.add("1"), on: jake)
      try await memory.removeAll(in: "notes.users")
      try await repository.signOut(userID: "jake", unsent: .refuse)
      try await memory.removeAll(in: "notes.users")
      await repository.credentialsChanged(userID: "jake")
      try await repository.reload(jake)
      _ = try await repository.perform(.add("2"), on: jake)
    }
    #expect(isUsable)
    #expect(server.value(of: jake) == Notes("1", "2"))
  }

  @Test func `A call isn't confirmed but fails if a sign-out in another process erases its mutation`() async throws {
    let sendGate = Gate()
    let repository = makeRepository(
      store: InterceptedStore(memory, supportsLocks: true), onSend: { (_) async in await sendGate.pass() })
    let call = Task { [jake] in try await repository.perform(.add("1"), on: jake) }
    await sendGate.arrivals()
    // With locks, `repository` leads, so `other` doesn't send the mutation.
    let other = makeRepository(store: InterceptedStore(memory, supportsLocks: true))
    try await other.signOut(userID: "jake", unsent: .discard)
    await #expect(throws: NotesError.signedOut) { try await call.value }
    sendGate.open()
  }

  // MARK: - Unsent mutations

  @Test func `Mutations that this program can't decode count as unsent`() async throws {
    let newerStore = makeOtherStore()
    for (id, key) in [("1", jake), ("2", mary)] {
      try await newerStore.save(
        NewerMutationRecord(key: key.storeID, text: "1"), for: StoreKey("notes.mutations", id: id))
    }
    let otherStore = makeOtherStore()
    try await otherStore.save(UndecodableMutationRecord(key: jake.storeID), for: StoreKey("notes.mutations", id: "3"))
    let repository = makeRepository()
    let policies: [UnsentPolicy] = [.refuse, .send(within: .zero)]
    for policy in policies {
      await #expect(throws: SignOutError.unsent(2)) { try await repository.signOut(userID: "jake", unsent: policy) }
    }
    try await repository.reload(jake)
    try await repository.signOut(userID: "jake", unsent: .discard)
    #expect(try await stored(jake) == nil)
    await repository.credentialsChanged(userID: "jake")
    try await repository.signOut(userID: "jake", unsent: .refuse)
  }

  @Test func `A read-only repository counts unsent mutations, and signs out users who have none`() async throws {
    isOffline.value = true
    do {
      let repository = makeRepository()
      #expect(try await repository.perform(.add("1"), on: jake) == .queued)
    }
    let readOnly = SyncedRepository("notes", store: memory) { (_: UserKey) async throws(NotesFailure) in Notes() }
    #expect(
      await finishes {
        await #expect(throws: SignOutError.unsent(1)) { try await readOnly.signOut(userID: "jake", unsent: .refuse) }
        try await readOnly.signOut(userID: "mary", unsent: .refuse)
      })
    #expect(try await storedMutationIDs.count == 1)
  }

  @Test func `The policy 'refuse' keeps a user with unsent mutations signed in, and the mutations can still be sent`()
    async throws
  {
    let repository = makeRepository()
    isOffline.value = true
    for text in ["1", "2"] { #expect(try await repository.perform(.add(text), on: jake) == .queued) }
    #expect(try await repository.perform(.add("3"), on: mary) == .queued)
    await #expect(throws: SignOutError.unsent(2)) { try await repository.signOut(userID: "jake", unsent: .refuse) }
    isOffline.value = false
    #expect(try await repository.mutations.list().map(\.key) == [jake, jake, mary])
    await repository.retryNow()
    try await repository.waitForPendingMutations()
    #expect(server.value(of: jake) == Notes("1", "2"))
    try await repository.signOut(userID: "jake", unsent: .refuse)
    #expect(try await stored(jake) == nil)
  }

  @Test func `A sign-out with a time limit first sends the user's mutations`() async throws {
    let repository = makeRepository()
    isOffline.value = true
    #expect(try await repository.perform(.add("1"), on: jake) == .queued)
    isOffline.value = false
    try await repository.signOut(userID: "jake", unsent: .send(within: .seconds(10)))
    #expect(server.value(of: jake) == Notes("1"))
    #expect(try await stored(jake) == nil)
  }

  @Test func `A waiting sign-out continues as soon as another repository has sent the user's mutations`() async throws {
    let repository = makeRepository()
    _ = try await repository.mutations.list()
    let sendGate = Gate()
    let other = makeRepository { (_) async in await sendGate.pass() }
    async let result = Result { () async throws(NotesError) in try await other.perform(.add("1"), on: jake) }
    await repository.mutations.changes.reaches { !$0.isEmpty }
    await sendGate.arrivals()
    async let signOut = Result { () async throws(SignOutError) in
      try await repository.signOut(userID: "jake", unsent: .send(within: .seconds(10)))
    }
    await clock.sleepers(1)
    sendGate.open()
    // No time passes, so the sign-out doesn't reach its limit.
    #expect(await signOut.failure == nil)
    _ = await result
    #expect(server.value(of: jake) == Notes("1"))
    #expect(try await stored(jake) == nil)
  }

  @Test func `A requeue that fails after a sign-out doesn't bring the mutation back`() async throws {
    let repository = makeRepository(retryPolicy: RetryPolicy(maximumAttempts: 2)) { (_) throws(NotesFailure) in
      throw .brokenConnection
    }
    #expect(try await repository.perform(.add("1"), on: jake) == .queued)
    await repository.retryNow()
    await repository.mutations.changes.reaches { if case .refused = $0.first?.standing { true } else { false } }
    let id = try #require(try await repository.mutations.list().first?.id)
    let commitGate = Gate()
    store.set {
      $0.onCommit = { (keys) async throws(StoreError) in
        guard keys.addsNotesMutation else { return }
        await commitGate.pass()
        throw .writeFailed(InterceptedStore.error)
      }
    }
    async let requeue = Result { () async throws(PendingMutationError) in try await repository.mutations.requeue(id) }
    await commitGate.arrivals()
    try await repository.signOut(userID: "jake", unsent: .discard)
    commitGate.open()
    #expect(await requeue.failure == .store(.writeFailed(InterceptedStore.error)))
    try await #expect(repository.mutations.list() == [])
    #expect(try await storedMutationIDs == [])
  }

  @Test func `A user isn't signed out if mutations are unsent at the time limit, and new calls fail until then`()
    async throws
  {
    let repository = makeRepository()
    isOffline.value = true
    #expect(try await repository.perform(.add("1"), on: jake) == .queued)
    async let result = Result { () async throws(SignOutError) in
      try await repository.signOut(userID: "jake", unsent: .send(within: .seconds(10)))
    }
    // The lane's backoff and the sign-out both sleep.
    await clock.sleepers(2)
    await #expect(throws: NotesError.signedOut) { try await repository.perform(.add("2"), on: jake) }
    await #expect(throws: NotesError.signedOut) { try await repository.reload(jake) }
    clock.advance(by: .seconds(10))
    #expect(await result.failure == .unsent(1))
    isOffline.value = false
    // Either result shows that the user is still signed in.
    #expect([.confirmed, .queued].contains(try await repository.perform(.add("2"), on: jake)))
  }

  @Test func `A call that waits for its mutation fails when the user signs out`() async throws {
    let sendGate = Gate()
    let repository = makeRepository { (_) async in await sendGate.pass() }
    async let result = Result { () async throws(NotesError) in try await repository.perform(.add("1"), on: jake) }
    await sendGate.arrivals()
    try await repository.signOut(userID: "jake", unsent: .discard)
    #expect(await result.failure == .signedOut)
    sendGate.open()
    // The server's reply to the first mutation no longer matters.
    #expect(try await repository.perform(.add("2"), on: mary) == .confirmed)
    #expect(try await stored(jake) == nil)
    #expect(try await storedMutationIDs == [])
  }

  // MARK: - Concurrent calls

  @Test func `The reply to a fetch that began before the sign-out isn't stored`() async throws {
    let fetchGate = Gate()
    let key = jake
    let repository = makeRepository(onFetch: { (fetchedKey) async in if fetchedKey == key { await fetchGate.pass() } })
    async let result = Result { () async throws(NotesError) in try await repository.reload(jake) }
    await fetchGate.arrivals()
    try await repository.signOut(userID: "jake", unsent: .refuse)
    #expect(await result.failure == .signedOut)
    fetchGate.open()
    try await repository.reload(mary)
    #expect(try await stored(jake) == nil)
  }

  @Test func `A repository that hasn't noticed the sign-out stores no value of the user`() async throws {
    let (repository, fetchGate, usersGate) = (makeRepository(), Gate(), Gate())
    let lateStore = InterceptedStore(memory)
    lateStore.set {
      $0.onElement = { (element) async in if element.collections.contains("notes.users") { await usersGate.pass() } }
      // The commit of the value has failed, so the repository reads what is stored.
      $0.onCatchUp = { () in usersGate.open() }
    }
    let key = jake
    let other = makeRepository(
      store: lateStore, onFetch: { (fetchedKey) async in if fetchedKey == key { await fetchGate.pass() } })
    async let result = Result { () async throws(NotesError) in try await other.reload(jake) }
    await fetchGate.arrivals()
    try await repository.signOut(userID: "jake", unsent: .refuse)
    fetchGate.open()
    #expect(await result.failure == .signedOut)
    #expect(try await stored(jake) == nil)
    await #expect(throws: NotesError.signedOut) { try await other.perform(.add("1"), on: jake) }
    #expect(try await storedMutationIDs == [])
  }

  @Test func `A repository that hasn't noticed the sign-out stores no mutation of the user`() async throws {
    let (repository, usersGate) = (makeRepository(), Gate())
    let lateStore = InterceptedStore(memory)
    lateStore.set {
      $0.onElement = { (element) async in if element.collections.contains("notes.users") { await usersGate.pass() } }
      // The commit of the mutation has failed, so the repository reads what is stored.
      $0.onCatchUp = { () in usersGate.open() }
    }
    let other = makeRepository(store: lateStore)
    try await other.reload(jake)
    try await repository.signOut(userID: "jake", unsent: .refuse)
    await #expect(throws: NotesError.signedOut) { try await other.perform(.add("1"), on: jake) }
    #expect(try await storedMutationIDs == [])
  }

  @Test func `A mutation that another repository adds during the sign-out is counted as unsent`() async throws {
    isOffline.value = true
    let other = makeRepository(store: memory)
    let (key, isFirstUserCommit) = (jake, Setting(true))
    store.set {
      $0.onCommit = { (keys) async throws(StoreError) in
        guard keys.contains(where: { $0.collection == "notes.users" }), isFirstUserCommit.value else { return }
        isFirstUserCommit.value = false
        _ = try? await other.perform(.add("1"), on: key)
      }
    }
    let repository = makeRepository()
    await #expect(throws: SignOutError.unsent(1)) { try await repository.signOut(userID: "jake", unsent: .refuse) }
  }

  @Test func `Every repository forgets a user who signs out`() async throws {
    isOffline.value = true
    let (repository, other) = (makeRepository(), makeRepository(store: memory))
    try await other.reload(jake)
    let states = other.states(of: jake).subscribe()
    async let call = Result { () async throws(NotesError) in try await other.perform(.add("1"), on: jake) }
    await other.mutations.changes.reaches { !$0.isEmpty }
    try await repository.signOut(userID: "jake", unsent: .discard)
    await states.reaches { $0.failure == .signedOut && $0.value == nil }
    _ = await call
    try await #expect(other.mutations.list() == [])
    await #expect(throws: NotesError.signedOut) { try await other.refresh(jake) }
  }

  // MARK: - Observers and signing in again

  @Test func `After a sign-out, observers get no values until the user signs in again`() async throws {
    let repository = makeRepository()
    server.edit(jake) { $0 = Notes("1") }
    let states = repository.states(of: jake).subscribe()
    let values = repository.values(of: jake, loading: .whileObserved()).subscribe()
    var (stateIterator, valueIterator) = (states.makeAsyncIterator(), values.makeAsyncIterator())
    #expect(await valueIterator.next() == Notes("1"))
    while let next = await stateIterator.next(), next.value != Notes("1") {}
    try await repository.signOut(userID: "jake", unsent: .refuse)
    while let next = await stateIterator.next(), next.failure != .signedOut {}
    for await state in repository.states(of: jake) {
      #expect(state == RepositoryState(failure: .signedOut))
      #expect(state.presence == .notRead)
      break
    }
    await #expect(throws: NotesError.signedOut) { try await repository.refresh(jake) }
    await #expect(throws: NotesError.signedOut) { try await repository.value(of: jake) }
    #expect(await repository.state(of: jake) == RepositoryState(failure: .signedOut))
    await #expect(throws: NotesError.signedOut) { try await repository.perform(.add("2"), on: jake) }
    server.edit(jake) { $0 = Notes("new") }
    await repository.credentialsChanged(userID: "jake")
    #expect(await valueIterator.next() == Notes("new"))
    #expect(try await repository.perform(.add("2"), on: jake) == .confirmed)
    #expect(try await stored(jake) == Notes("new", "2"))
  }

  @Test func `A user who signs in through one repository can also use another one on the same store`() async throws {
    let (repository, other) = (makeRepository(), makeRepository(store: memory))
    try await other.reload(jake)
    let states = other.states(of: jake).subscribe()
    try await repository.signOut(userID: "jake", unsent: .refuse)
    await states.reaches { $0.failure == .signedOut }
    await repository.credentialsChanged(userID: "jake")
    await states.reaches { $0.failure == nil }
    try await other.reload(jake)
    #expect(try await stored(jake) == Notes())
  }

  @Test func `A late erasure doesn't sign out a user who has signed in again`() async throws {
    let erasureGate = Gate()
    // Without locks, both repositories erase. The erasure of `other` begins before that of `repository` ends, and ends
    // later.
    let slowStore = InterceptedStore(memory)
    slowStore.set { $0.onErase = { await erasureGate.pass() } }
    store.set { $0.onErase = { await erasureGate.arrivals() } }
    let (repository, other) = (makeRepository(), makeRepository(store: slowStore))
    let states = other.states(of: jake).subscribe()
    _ = await states.first(1)
    try await repository.signOut(userID: "jake", unsent: .discard)
    await states.reaches { $0.failure == .signedOut }
    await repository.credentialsChanged(userID: "jake")
    await states.reaches { $0.failure == nil }
    erasureGate.open()
    // A repository makes one erasure at a time, so this sign-out waits for the pending one.
    try await other.signOut(userID: "ann", unsent: .discard)
    try await repository.reload(jake)
    try await other.reload(jake)
  }

  @Test func `Signing out twice, or without any data, succeeds`() async throws {
    let repository = makeRepository()
    for _ in 0..<2 { try await repository.signOut(userID: "jake", unsent: .refuse) }
    await #expect(throws: NotesError.signedOut) { try await repository.reload(jake) }
    await repository.credentialsChanged(userID: "jake")
    try await repository.reload(jake)
    try await repository.signOut(userID: "jake", unsent: .refuse)
    #expect(try await stored(jake) == nil)
  }

  // MARK: - Interrupted sign-outs

  @Test func `A sign-out that a process began is completed by the next process`() async throws {
    let erasureGate = Gate()
    do {
      let repository = makeRepository()
      try await repository.reload(jake)
      store.set {
        $0.onErase = { () async throws(StoreError) in
          await erasureGate.pass()
          throw .removeFailed(InterceptedStore.error)
        }
      }
      let call = Task { try? await repository.signOut(userID: "jake", unsent: .discard) }
      await erasureGate.arrivals()
      call.cancel()
    }
    #expect(try await stored(jake) == Notes())
    let next = makeRepository(store: memory)
    // A sign-in first completes the sign-out that has begun.
    await next.credentialsChanged(userID: "jake")
    #expect(try await stored(jake) == nil)
    try await next.reload(jake)
    erasureGate.open()
  }

  @Test func `Data that couldn't be erased is erased later`() async throws {
    let repository = makeRepository()
    try await repository.reload(jake)
    let erasureFails = Setting(true)
    store.set {
      $0.onErase = { () throws(StoreError) in if erasureFails.value { throw .removeFailed(InterceptedStore.error) } }
    }
    let error = SignOutError.store(.removeFailed(InterceptedStore.error))
    await #expect(throws: error) { try await repository.signOut(userID: "jake", unsent: .discard) }
    await #expect(throws: NotesError.signedOut) { try await repository.reload(jake) }
    erasureFails.value = false
    let userChanges = try await memory.observe(collection: "notes.users", as: UserRecord.self).changes
    clock.advance(by: .seconds(60))
    for await changes in userChanges where changes.last?.stored?.value.phase == .signedOut { break }
    #expect(try await stored(jake) == nil)
  }

  // MARK: - Credentials

  @Test func `The leader learns from another repository that the credentials have changed`() async throws {
    let needsSignIn = Setting(true)
    let leader = makeRepository(store: memory) { (_) throws(NotesFailure) in if needsSignIn.value { throw .signedOut } }
    #expect(try await leader.perform(.add("1"), on: jake) == .queued)
    let follower = makeRepository(store: memory)
    _ = try await follower.mutations.list()
    needsSignIn.value = false
    await follower.credentialsChanged(userID: "jake")
    try await leader.waitForPendingMutations()
    #expect(server.value(of: jake) == Notes("1"))
  }
}

/// The record of a mutation in a future schema.
private struct NewerMutationRecord: VersionedValue {
  static let schema = StoreSchema(
    version: 2, migrations: [StoreMigration(from: 1) { $0 }])
  let key: String
  let text: String
}

/// The record of a mutation that this program can't decode.
private struct UndecodableMutationRecord: Codable {
  let key: String
}

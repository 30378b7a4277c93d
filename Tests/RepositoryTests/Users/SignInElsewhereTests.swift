import DataStore
import MulticastTesting
import RepositoryTesting
import TestSupport
import Testing

@testable import Repository

/// A user who signs in with one repository can use all repositories on the store, and no mutation or value is lost.
///
/// The store reports users, mutations and values separately, so a repository may learn of a mutation or a value before
/// it learns of the sign-in.
@Suite(.timeLimit(.minutes(15))) struct SignInElsewhereTests: UsersSuite {
  let fixture = UsersFixture()

  @Test func `The leader sends a mutation that it noticed before it learned of the sign-in`() async throws {
    let (usersGate, holdsUsers) = (Gate(), Setting(false))
    let leader = makeRepository(store: makeStore(holdingUsersAt: usersGate, while: holdsUsers))
    try await leader.signOut(userID: "jake", unsent: .refuse)
    let follower = makeRepository(store: memory)
    _ = try await follower.mutations.list()
    holdsUsers.value = true
    await follower.credentialsChanged(userID: "jake")
    let call = Task { [jake] in try await follower.perform(.add("1"), on: jake) }
    await follower.mutations.changes.reaches { !$0.isEmpty }
    // Once Mary's mutation is confirmed, the leader has also received Jake's earlier one.
    #expect(try await follower.perform(.add("2"), on: mary) == .confirmed)
    usersGate.open()
    #expect(await finishes { _ = try await call.value })
    #expect(server.value(of: jake) == Notes("1"))
  }

  @Test func `Mutations made before and after the leader learns of the sign-in are sent in order`() async throws {
    let (usersGate, readGate) = (Gate(), Gate())
    let (holdsUsers, holdsReads) = (Setting(false), Setting(false))
    let leaderStore = makeStore(holdingUsersAt: usersGate, while: holdsUsers)
    leaderStore.set {
      $0.onObserve = { (collection) async in
        if collection == "notes.mutations", holdsReads.value { await readGate.pass() }
      }
    }
    let leader = makeRepository(store: leaderStore)
    try await leader.signOut(userID: "jake", unsent: .refuse)
    let follower = makeRepository(store: memory)
    _ = try await follower.mutations.list()
    holdsUsers.value = true
    await follower.credentialsChanged(userID: "jake")
    async let first = Result { () async throws(NotesError) in try await follower.perform(.add("1"), on: jake) }
    await follower.mutations.changes.reaches { !$0.isEmpty }
    #expect(try await follower.perform(.add("0"), on: mary) == .confirmed)
    // The leader has ignored the first mutation. It learns of the sign-in, begins to read the mutations again, and
    // receives the second one before that read finds the first.
    holdsReads.value = true
    usersGate.open()
    await readGate.arrivals()
    async let second = Result { () async throws(NotesError) in try await follower.perform(.add("2"), on: jake) }
    await leader.mutations.changes.reaches { $0.contains { $0.mutation == .add("2") } }
    holdsReads.value = false
    readGate.open()
    #expect(await first == .success(.confirmed))
    #expect(await second == .success(.confirmed))
    #expect(server.value(of: jake) == Notes("1", "2"))
  }

  @Test func `A mutation made after a new sign-in is sent even if the leader doesn't know of the sign-out yet`()
    async throws
  {
    let (usersGate, sendGate) = (Gate(), Gate())
    let leaderStore = makeStore(holdingUsersAt: usersGate)
    let leader = makeRepository(store: leaderStore) { (_) async in await sendGate.pass() }
    let states = leader.states(of: jake).subscribe()
    _ = await states.first(1)
    let follower = makeRepository(store: memory)
    try await follower.signOut(userID: "jake", unsent: .refuse)
    await follower.credentialsChanged(userID: "jake")
    let call = Task { [jake] in try await follower.perform(.add("1"), on: jake) }
    await sendGate.arrivals()
    usersGate.open()
    await states.reaches { $0.failure == .signedOut }
    sendGate.open()
    #expect(await finishes { _ = try await call.value })
    #expect(server.value(of: jake) == Notes("1"))
    #expect(try await storedMutationIDs == [])
  }

  @Test func `Observers of all values get a value that their repository noticed before it learned of the sign-in`()
    async throws
  {
    let (usersGate, holdsUsers) = (Gate(), Setting(false))
    let repository = makeRepository(store: makeStore(holdingUsersAt: usersGate, while: holdsUsers))
    try await repository.signOut(userID: "jake", unsent: .refuse)
    let values = repository.everyValue.subscribe()
    let other = makeRepository(store: memory)
    server.edit(mary) { $0 = Notes("mary's") }
    try await other.reload(mary)
    await values.reaches { $0 == Notes("mary's") }
    holdsUsers.value = true
    await other.credentialsChanged(userID: "jake")
    server.edit(jake) { $0 = Notes("jake's") }
    try await other.reload(jake)
    // Once Mary's second value is observed, the repository has also noticed Jake's earlier one.
    server.edit(mary) { $0 = Notes("mary's second") }
    try await other.reload(mary)
    await values.reaches { $0 == Notes("mary's second") }
    usersGate.open()
    #expect(await finishes { await values.reaches { $0 == Notes("jake's") } })
  }

  @Test func `A request that began with old credentials is repeated after a sign-in elsewhere`() async throws {
    let (sendGate, isFirstSend) = (Gate(), Setting(true))
    let leader = makeRepository(store: memory) { (_) async throws(NotesFailure) in
      guard isFirstSend.value else { return }
      isFirstSend.value = false
      await sendGate.pass()
      throw .signedOut
    }
    async let result = Result { () async throws(NotesError) in try await leader.perform(.add("1"), on: jake) }
    await sendGate.arrivals()
    let follower = makeRepository(store: memory)
    _ = try await follower.mutations.list()
    let states = leader.states(of: mary).subscribe()
    _ = await states.first(1)
    await follower.credentialsChanged(userID: "jake")
    // Once the leader has noticed Mary's sign-out, it has also noticed Jake's earlier sign-in.
    try await follower.signOut(userID: "mary", unsent: .refuse)
    await states.reaches { $0.failure == .signedOut }
    sendGate.open()
    #expect(await result == .success(.confirmed))
    #expect(server.value(of: jake) == Notes("1"))
  }

  @Test func `A change of the credentials takes effect even in a cancelled task`() async throws {
    let repository = makeRepository()
    try await repository.signOut(userID: "jake", unsent: .refuse)
    await Task {
      withUnsafeCurrentTask { $0?.cancel() }
      await repository.credentialsChanged(userID: "jake")
    }.value
    try await repository.reload(jake)
  }
}

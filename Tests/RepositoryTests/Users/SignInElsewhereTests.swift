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

  @Test func `The leader sends a mutation that it noticed before the sign-in`() async throws {
    let (learns, isHeld) = (Gate(), Setting(false))
    let leader = makeRepository(store: makeStore(holdingUsersAt: learns, while: isHeld))
    try await leader.signOut(userID: "jake", unsent: .refuse)
    let follower = makeRepository(store: memory)
    _ = try await follower.mutations.list()
    isHeld.value = true
    await follower.credentialsChanged(userID: "jake")
    let call = Task { [jake] in try await follower.perform(.add("1"), on: jake) }
    await follower.mutations.changes.reaches { !$0.isEmpty }
    // Once Mary's mutation is confirmed, the leader has also received Jake's earlier one.
    #expect(try await follower.perform(.add("2"), on: mary) == .confirmed)
    learns.open()
    #expect(await finishes { _ = try await call.value })
    #expect(server.value(of: jake) == Notes("1"))
  }

  @Test func `Mutations made before and after the leader learns of the sign-in are sent in order`() async throws {
    let (learns, reads) = (Gate(), Gate())
    let (isHeld, isReadingHeld) = (Setting(false), Setting(false))
    let late = makeStore(holdingUsersAt: learns, while: isHeld)
    late.set {
      $0.onObserve = { (collection) async in
        if collection == "notes.mutations", isReadingHeld.value { await reads.pass() }
      }
    }
    let leader = makeRepository(store: late)
    try await leader.signOut(userID: "jake", unsent: .refuse)
    let follower = makeRepository(store: memory)
    _ = try await follower.mutations.list()
    isHeld.value = true
    await follower.credentialsChanged(userID: "jake")
    async let first = Result { () async throws(NotesError) in try await follower.perform(.add("1"), on: jake) }
    await follower.mutations.changes.reaches { !$0.isEmpty }
    #expect(try await follower.perform(.add("0"), on: mary) == .confirmed)
    // The leader learns of the sign-in, and receives the second mutation before it has read the first.
    isReadingHeld.value = true
    learns.open()
    await reads.arrivals()
    async let second = Result { () async throws(NotesError) in try await follower.perform(.add("2"), on: jake) }
    await leader.mutations.changes.reaches { $0.contains { $0.mutation == .add("2") } }
    isReadingHeld.value = false
    reads.open()
    #expect(await first == .success(.confirmed))
    #expect(await second == .success(.confirmed))
    #expect(server.value(of: jake) == Notes("1", "2"))
  }

  @Test func `A mutation made after a new sign-in is sent even if the leader doesn't know of the sign-out yet`()
    async throws
  {
    let (learns, sends) = (Gate(), Gate())
    let late = makeStore(holdingUsersAt: learns)
    let leader = makeRepository(store: late) { (_) async in await sends.pass() }
    let states = leader.states(of: jake).subscribe()
    _ = await states.first(1)
    let follower = makeRepository(store: memory)
    try await follower.signOut(userID: "jake", unsent: .refuse)
    await follower.credentialsChanged(userID: "jake")
    let call = Task { [jake] in try await follower.perform(.add("1"), on: jake) }
    await sends.arrivals()
    learns.open()
    await states.reaches { $0.failure == .signedOut }
    sends.open()
    #expect(await finishes { _ = try await call.value })
    #expect(server.value(of: jake) == Notes("1"))
    #expect(try await records == [])
  }

  @Test func `Observers of all values get a value that their repository noticed before the sign-in`() async throws {
    let (learns, isHeld) = (Gate(), Setting(false))
    let repository = makeRepository(store: makeStore(holdingUsersAt: learns, while: isHeld))
    try await repository.signOut(userID: "jake", unsent: .refuse)
    let values = repository.everyValue.subscribe()
    let other = makeRepository(store: memory)
    server.edit(mary) { $0 = Notes("mary's") }
    try await other.reload(mary)
    await values.reaches { $0 == Notes("mary's") }
    isHeld.value = true
    await other.credentialsChanged(userID: "jake")
    server.edit(jake) { $0 = Notes("jake's") }
    try await other.reload(jake)
    // Once Mary's second value is observed, the repository has also noticed Jake's earlier one.
    server.edit(mary) { $0 = Notes("mary's second") }
    try await other.reload(mary)
    await values.reaches { $0 == Notes("mary's second") }
    learns.open()
    #expect(await finishes { await values.reaches { $0 == Notes("jake's") } })
  }

  @Test func `A request that began with old credentials is repeated after a sign-in elsewhere`() async throws {
    let (sends, isFirst) = (Gate(), Setting(true))
    let leader = makeRepository(store: memory) { (_) async throws(NotesFailure) in
      guard isFirst.value else { return }
      isFirst.value = false
      await sends.pass()
      throw .signedOut
    }
    async let result = Result { () async throws(NotesError) in try await leader.perform(.add("1"), on: jake) }
    await sends.arrivals()
    let follower = makeRepository(store: memory)
    _ = try await follower.mutations.list()
    let states = leader.states(of: mary).subscribe()
    _ = await states.first(1)
    await follower.credentialsChanged(userID: "jake")
    // Once the leader has noticed Mary's sign-out, it has also noticed Jake's earlier sign-in.
    try await follower.signOut(userID: "mary", unsent: .refuse)
    await states.reaches { $0.failure == .signedOut }
    sends.open()
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

import DataStore
import MulticastTesting
import RepositoryTesting
import TestSupport
import Testing

@testable import Repository

/// A user who signs in with one repository can use all repositories on the store, and no mutation or value is lost.
@Suite(.timeLimit(.minutes(15))) struct SignInElsewhereTests: UsersSuite {
  let fixture = UsersFixture()

  @Test func `The leader sends what a user does who has signed in elsewhere, and shows it`() async throws {
    let leader = makeRepository(store: memory)
    try await leader.signOut(userID: "jake", unsent: .refuse)
    let values = leader.values(of: jake).subscribe()
    let follower = makeRepository(store: memory)
    _ = try await follower.mutations.list()
    await follower.credentialsChanged(userID: "jake")
    #expect(try await follower.perform(.add("1"), on: jake) == .confirmed)
    #expect(try await follower.perform(.add("2"), on: jake) == .confirmed)
    #expect(server.value(of: jake) == Notes("1", "2"))
    #expect(await finishes { await values.reaches { $0 == Notes("1", "2") } })
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

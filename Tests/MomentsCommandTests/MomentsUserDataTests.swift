import DataStore
import Moments
import Multicast
import SignIn
import Testing

@testable import MomentsCommand

@Suite(.timeLimit(.minutes(15))) struct MomentsUserDataTests {
  @Test func `A sign-out that is cancelled while it waits for the server leaves the data usable`() async throws {
    let demonstration = try await Demonstration.open(PersistentDataStore(InMemoryStore()), serverStore: nil)
    let (answeringStates, requestCounts) = (CurrentValueRelay(true), CurrentValueRelay(0))
    let session = InMemorySignInSession(
      accounts: [.init(uid: "0", username: "jake", password: Password("low-level"))],
      answering: {
        requestCounts.update { $0 += 1 }
        for await isAnswering in answeringStates.stream where isAnswering { return }
      })
    let service = UserService(
      session: session, userData: [MomentsUserData(repo: demonstration.repo, sendingTime: .zero)])
    let user = try await service.performSignin(username: "jake", password: Password("low-level"))
    try await demonstration.repo.getMoments(userID: user.uid)
    answeringStates.send(false)
    let signOut = Task { try await service.performSignout() }
    // The second request is that of the sign-out.
    for await count in requestCounts.stream where count == 2 { break }
    signOut.cancel()
    await #expect(throws: SignInError.cancelled) { try await signOut.value }
    #expect(service.signState == .signed(user))
    try await demonstration.repo.getMoments(userID: user.uid)
  }
}

import DataStore
import Moments
import Multicast
import SignIn
import Testing

@testable import MomentsCommand

@Suite(.timeLimit(.minutes(15))) struct MomentsUserDataTests {
  @Test func `A sign-out that is cancelled while it waits for the server leaves the data usable`() async throws {
    let demonstration = try await Demonstration.open(PersistentDataStore(InMemoryStore()), server: nil)
    let (isAnswering, requestCount) = (CurrentValueRelay(true), CurrentValueRelay(0))
    let session = InMemorySignInSession(
      accounts: [.init(uid: "0", username: "jake", password: Password("low-level"))],
      answering: {
        requestCount.update { $0 += 1 }
        for await isAnswering in isAnswering.stream where isAnswering { return }
      })
    let service = UserService(
      session: session, userData: [MomentsUserData(repo: demonstration.repo, sendingTime: .zero)])
    let user = try await service.performSignin(username: "jake", password: Password("low-level"))
    try await demonstration.repo.getMoments(userID: user.uid)
    isAnswering.send(false)
    let call = Task { try await service.performSignout() }
    // The second request is that of the sign-out.
    for await count in requestCount.stream where count == 2 { break }
    call.cancel()
    await #expect(throws: SignInError.cancelled) { try await call.value }
    #expect(service.signState == .signed(user))
    try await demonstration.repo.getMoments(userID: user.uid)
  }
}

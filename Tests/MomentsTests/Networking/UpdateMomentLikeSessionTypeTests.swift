import GraphQLClient
import Moments
import Testing

struct UpdateMomentLikeSessionTypeTests {
  @Test func `A session that ignores idempotency keys has to implement only the method without one`() async throws {
    struct KeylessSession: UpdateMomentLikeSessionType {
      func updateLike(
        _ isLiked: Bool, momentID: String, fromUserID userID: String
      ) async throws(APISessionError) -> MomentsDetails {
        // The reply repeats the arguments, so that the test can compare them.
        .init(userDetails: .init(id: userID, name: momentID, avatar: "\(isLiked)", backgroundImage: ""), moments: [])
      }
    }
    let session: any UpdateMomentLikeSessionType = KeylessSession()
    let details = try await session.updateLike(true, momentID: "m", fromUserID: "u", idempotencyKey: "k")
    #expect(details.userDetails == .init(id: "u", name: "m", avatar: "true", backgroundImage: ""))
  }
}

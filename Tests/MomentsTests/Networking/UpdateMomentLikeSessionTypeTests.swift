import GraphQLClient
import Moments
import Testing

struct UpdateMomentLikeSessionTypeTests {
  @Test func `A session that doesn't use keys only needs to implement the method without a key`() async throws {
    struct Fake: UpdateMomentLikeSessionType {
      func updateLike(
        _ isLiked: Bool, momentID: String, fromUserID userID: String
      ) async throws(APISessionError) -> MomentsDetails {
        .init(userDetails: .init(id: userID, name: momentID, avatar: "\(isLiked)", backgroundImage: ""), moments: [])
      }
    }
    let session: any UpdateMomentLikeSessionType = Fake()
    let details = try await session.updateLike(true, momentID: "m", fromUserID: "u", idempotencyKey: "k")
    #expect(details.userDetails == .init(id: "u", name: "m", avatar: "true", backgroundImage: ""))
  }
}

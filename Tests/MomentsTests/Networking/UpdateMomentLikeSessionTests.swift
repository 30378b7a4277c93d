import Foundation
import Moments
import Testing

@Suite(.requiresBFF, .timeLimit(.minutes(1)))
struct UpdateMomentLikeSessionTests {
  @Test func `A like changes the server's data, an unlike changes it back`() async throws {
    try await BFFServer.run { server in
      let apiSession = APISession(url: server.url)
      let fetching = GetMomentsByUserIDSession(apiSession: apiSession)
      let updating = UpdateMomentLikeSession(apiSession: apiSession)
      let before = try await fetching.getMoments(userID: "0")
      var liked = before
      liked.moments[1].isLiked = true
      liked.moments[1].likes?.append(.init(id: "0", avatar: before.userDetails.avatar))

      #expect(try await updating.updateLike(true, momentID: "1", fromUserID: "0") == liked)
      #expect(try await fetching.getMoments(userID: "0") == liked)
      #expect(try await updating.updateLike(false, momentID: "1", fromUserID: "0") == before)
      #expect(try await fetching.getMoments(userID: "0") == before)

      let updates = try await server.requests().filter { $0.operation == "updateMomentLike" }
      #expect(
        updates.map(\.variables) == [
          ["momentID": "1", "userID": "0", "isLiked": true], ["momentID": "1", "userID": "0", "isLiked": false],
        ])
    }
  }

  @Test func `Each change has a key of its own, and keeps the key it is given`() async throws {
    try await BFFServer.run { server in
      let session: any UpdateMomentLikeSessionType = UpdateMomentLikeSession(apiSession: APISession(url: server.url))
      for isLiked in [true, false] {
        _ = try await session.updateLike(isLiked, momentID: "1", fromUserID: "0")
        _ = try await session.updateLike(isLiked, momentID: "1", fromUserID: "0", idempotencyKey: "key-\(isLiked)")
      }
      let keys = try await server.requests().map(\.idempotencyKey)
      #expect([keys[1], keys[3]] == ["key-true", "key-false"])
      let made = try [keys[0], keys[2]].map { try #require($0) }
      #expect(made.compactMap(UUID.init).count == 2)
      #expect(made[0] != made[1])
    }
  }

  @Test func `An unknown moment is the server's error`() async throws {
    try await BFFServer.run { server in
      let session = UpdateMomentLikeSession(apiSession: APISession(url: server.url))
      let error = GraphQLError(
        message: #"The timeline of user "0" has no moment with the id "100"."#, path: [.field("updateMomentLike")])
      await #expect(throws: APISessionError.graphQL([error])) {
        try await session.updateLike(true, momentID: "100", fromUserID: "0")
      }
    }
  }

  @Test func `A change whose reply is lost was made, and the caller is told that the reply is missing`() async throws {
    try await BFFServer.run { server in
      let apiSession = APISession(url: server.url)
      try await server.arm(.init(fault: "drop-after-headers"))
      let error = await #expect(throws: APISessionError.self) {
        try await UpdateMomentLikeSession(apiSession: apiSession).updateLike(true, momentID: "1", fromUserID: "0")
      }
      #expect(error?.isTransient == true)
      let details = try await GetMomentsByUserIDSession(apiSession: apiSession).getMoments(userID: "0")
      #expect(details.moments[1].isLiked == true)
    }
  }
}

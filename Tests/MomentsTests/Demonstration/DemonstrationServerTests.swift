import Foundation
import GraphQLClient
import Moments
import Testing

@testable import MomentsTesting

struct DemonstrationServerTests {
  private static func refusal(_ message: String, field: String) -> APISessionError {
    .graphQL([GraphQLError(message: message, path: [.field(field)])])
  }

  @Test func `A timeline has likes, and isLiked derived from them`() async throws {
    let details = try await DemonstrationServer().getMoments(userID: "0")
    #expect(details.userDetails.name == "Jake Lin")
    #expect(details.moments.map(\.id) == (0...15).map { "\($0)" })
    #expect(
      details.moments.map { $0.isLiked }
        == DemonstrationData.timelines[0].moments.map { $0.likes?.contains { $0.id == "0" } })
    #expect(details.moments[0].isLiked == true)
    #expect(details.moments[1].isLiked == false)
    #expect(details.moments[7].likes == [])
  }

  @Test func `If likes are excluded, a timeline has neither likes nor isLiked, but the reply to a like has isLiked`()
    async throws
  {
    let backend = DemonstrationServer(withLikes: { false })
    let details = try await backend.getMoments(userID: "1")
    #expect(details.moments.map(\.isLiked) == [nil, nil, nil])
    #expect(details.moments.map(\.likes) == [nil, nil, nil])
    #expect(try await backend.updateLike(true, momentID: "101", fromUserID: "1").moments[1].isLiked == true)
  }

  @Test func `A like is appended to the other likes, and is kept`() async throws {
    let backend = DemonstrationServer()
    let before = try await backend.getMoments(userID: "0")
    var expected = before
    expected.moments[1].isLiked = true
    expected.moments[1].likes?.append(.init(id: "0", avatar: before.userDetails.avatar))
    #expect(try await backend.updateLike(true, momentID: "1", fromUserID: "0") == expected)
    #expect(try await backend.getMoments(userID: "0") == expected)
    #expect(try await backend.updateLike(true, momentID: "1", fromUserID: "0") == expected)
    #expect(try await backend.updateLike(false, momentID: "1", fromUserID: "0") == before)
  }

  @Test func `A user's likes don't change the timelines of other users`() async throws {
    let backend = DemonstrationServer()
    let before = try await backend.getMoments(userID: "1")
    _ = try await backend.updateLike(false, momentID: "0", fromUserID: "0")
    #expect(try await backend.getMoments(userID: "1") == before)
  }

  @Test func `An unknown user or moment is refused with the same error as on the GraphQL server`() async throws {
    let backend = DemonstrationServer()
    await #expect(throws: Self.refusal(#"No user has the id "9"."#, field: "getMomentsDetailsByUserID")) {
      try await backend.getMoments(userID: "9")
    }
    await #expect(throws: Self.refusal(#"No user has the id "9"."#, field: "updateMomentLike")) {
      try await backend.updateLike(true, momentID: "0", fromUserID: "9")
    }
    let message = #"The timeline of user "0" has no moment with the id "100"."#
    await #expect(throws: Self.refusal(message, field: "updateMomentLike")) {
      try await backend.updateLike(true, momentID: "100", fromUserID: "0")
    }
  }

  @Test func `A cancelled request changes nothing`() async throws {
    let backend = DemonstrationServer(latency: .seconds(3600))
    let request = Task { try await backend.updateLike(true, momentID: "1", fromUserID: "0") }
    request.cancel()
    await #expect(throws: APISessionError.cancelled) { try await request.value }

    let immediateServer = DemonstrationServer()
    // This task is cancelled before its request begins.
    let cancelledRequest = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await immediateServer.updateLike(true, momentID: "1", fromUserID: "0")
    }
    await #expect(throws: APISessionError.cancelled) { try await cancelledRequest.value }
    let details = try await immediateServer.getMoments(userID: "0")
    #expect(details.moments[1].isLiked == false)
  }

  @Test func `A like fails while the server is offline, and changes nothing`() async throws {
    let backend = DemonstrationServer()
    await backend.setOnline(false)
    await #expect(throws: APISessionError.transport(URLError(.notConnectedToInternet))) {
      try await backend.updateLike(true, momentID: "1", fromUserID: "0")
    }
    await backend.setOnline(true)
    #expect(try await backend.getMoments(userID: "0").moments[1].isLiked == false)
    #expect(try await backend.updateLike(true, momentID: "1", fromUserID: "0").moments[1].isLiked == true)
  }
}

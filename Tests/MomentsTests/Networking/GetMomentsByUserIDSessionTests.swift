import Foundation
import Moments
import Multicast
import Testing

@Suite(.requiresBFF, .timeLimit(.minutes(5)))
struct GetMomentsByUserIDSessionTests {
  @Test func `A timeline arrives whole, a moment of unknown type in its place`() async throws {
    try await BFFServer.run { server in
      let session = GetMomentsByUserIDSession(apiSession: APISession(url: server.url))
      let details = try await session.getMoments(userID: "0")
      #expect(
        details.userDetails
          == .init(
            id: "0", name: "Jake Lin", avatar: "https://example.com/avatars/jake-lin.png",
            backgroundImage: "https://example.com/backgrounds/jake-lin.jpg"))
      #expect(details.moments.map(\.id) == (0...15).map(String.init))
      #expect(
        details.moments[0]
          == .init(
            id: "0",
            userDetails: .init(name: "Taylor Swift", avatar: "https://example.com/avatars/taylor-swift.png"),
            type: .photos,
            title: "the pic is awesome",
            photos: ["https://example.com/photos/taylor-stage.jpg"],
            createdDate: "1605521360",
            isLiked: true,
            likes: [.init(id: "0", avatar: "https://example.com/avatars/jake-lin.png")]))
      #expect(details.moments[3].type == .url)
      #expect(details.moments[3].url == "https://example.com/articles/structured-concurrency")
      #expect(details.moments[5].type == .unknown("VIDEO"))
      #expect(details.moments[7].likes == [])
      #expect(details.moments[12].title == nil)
    }
  }

  @Test func `Likes are asked for by the toggle of the moment, anew at each request`() async throws {
    try await BFFServer.run { server in
      let answers = Lock([true, false, true])
      let session = GetMomentsByUserIDSession(
        apiSession: APISession(url: server.url), withLikes: { answers.withLock { $0.removeFirst() } })
      var isLiked: [Bool?] = []
      var likeCounts: [Int?] = []
      for _ in 0..<3 {
        let details = try await session.getMoments(userID: "0")
        isLiked.append(details.moments[0].isLiked)
        likeCounts.append(details.moments[0].likes?.count)
      }
      #expect(isLiked == [true, nil, true])
      #expect(likeCounts == [1, nil, 1])
      let requests = try await server.received()
      #expect(requests.map(\.operation) == Array(repeating: "getMomentsDetailsByUserID", count: 3))
      #expect(
        requests.map(\.variables) == [
          ["userID": "0", "withLikes": true], ["userID": "0", "withLikes": false], ["userID": "0", "withLikes": true],
        ])
      #expect(requests.map(\.idempotencyKey) == [nil, nil, nil])
    }
  }

  @Test func `An unknown user is the server's error`() async throws {
    try await BFFServer.run { server in
      let session = GetMomentsByUserIDSession(apiSession: APISession(url: server.url))
      let error = GraphQLError(
        message: #"No user has the id "\" } 用户"."#, path: [.field("getMomentsDetailsByUserID")])
      await #expect(throws: APISessionError.graphQL([error])) {
        try await session.getMoments(userID: #"\" } 用户"#)
      }
    }
  }

  @Test func `Cancelling the caller cancels the request`() async throws {
    try await BFFServer.run { server in
      try await server.arm(.init(fault: "slow", delay: 3600))
      let session = GetMomentsByUserIDSession(apiSession: APISession(url: server.url))
      let call = Task { try await session.getMoments(userID: "0") }
      _ = try await server.received(count: 1)
      call.cancel()
      await #expect(throws: APISessionError.cancelled) { try await call.value }
      let requests = try await server.received(left: 1)
      #expect(requests.map(\.outcome) == ["client-went-away"])
      #expect(requests.map(\.executions) == [0])
    }
  }
}

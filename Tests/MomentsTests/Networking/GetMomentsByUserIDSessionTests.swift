import Foundation
import GraphQLClient
import Moments
import Multicast
import TestSupport
import Testing

@Suite(.requiresBFF, .timeLimit(.minutes(15)))
struct GetMomentsByUserIDSessionTests {
  @Test(arguments: ServerSchema.allCases)
  func `A timeline arrives complete and in order, including a moment of an unknown type`(schema: ServerSchema)
    async throws
  {
    try await BFFServer.run(options: schema.options) { server in
      let session = GetMomentsByUserIDSession(apiSession: server.apiSession)
      let details = try await session.getMoments(userID: "0")
      #expect(
        details.userDetails
          == .init(
            id: "0", name: "Jake Lin", avatar: "https://example.com/avatars/jake-lin.png",
            backgroundImage: "https://example.com/backgrounds/jake-lin.jpg"))
      #expect(details.moments.map(\.id) == (0...15).map { "\($0)" })
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
      // Only the query of a page requests URLs.
      #expect(details.moments.allSatisfy { $0.url == nil })
      #expect(details.pageInfo == nil)
      #expect(details.moments[5].type == .unknown("VIDEO"))
      #expect(details.moments[7].likes == [])
      #expect(details.moments[12].title == nil)
    }
  }

  @Test(arguments: ServerSchema.allCases)
  func `Whether a timeline includes likes is decided for each request`(schema: ServerSchema) async throws {
    try await BFFServer.run(options: schema.options) { server in
      let withLikesResults = Lock([true, false, true])
      let session = GetMomentsByUserIDSession(
        apiSession: server.apiSession, withLikes: { withLikesResults.withLock { $0.removeFirst() } })
      var isLikedValues: [Bool?] = []
      var likeCounts: [Int?] = []
      for _ in 0..<3 {
        let details = try await session.getMoments(userID: "0")
        isLikedValues.append(details.moments[0].isLiked)
        likeCounts.append(details.moments[0].likes?.count)
      }
      #expect(isLikedValues == [true, nil, true])
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

  @Test(arguments: ServerSchema.allCases)
  func `A request for an unknown user throws the server's error`(schema: ServerSchema) async throws {
    try await BFFServer.run(options: schema.options) { server in
      let session = GetMomentsByUserIDSession(apiSession: server.apiSession)
      // The id contains characters that a query or JSON must escape.
      let error = GraphQLError(
        message: #"No user has the id "\" } 用户"."#, path: [.field("getMomentsDetailsByUserID")])
      await #expect(throws: APISessionError.graphQL([error])) {
        try await session.getMoments(userID: #"\" } 用户"#)
      }
    }
  }

  @Test(arguments: ServerSchema.allCases)
  func `Cancelling the caller cancels the request`(schema: ServerSchema) async throws {
    try await BFFServer.run(options: schema.options) { server in
      try await server.arm(.init(fault: "slow", delay: 3600))
      let session = GetMomentsByUserIDSession(apiSession: server.apiSession)
      let call = Task { try await session.getMoments(userID: "0") }
      _ = try await server.received(count: 1)
      call.cancel()
      await #expect(throws: APISessionError.cancelled) { try await call.value }
      let requests = try await server.received(disconnected: 1)
      #expect(requests.map(\.outcome) == ["client-went-away"])
      #expect(requests.map(\.executions) == [0])
    }
  }

  // MARK: - Pages

  @Test func `A page has its page info and the URLs of links`() async throws {
    try await BFFServer.run { server in
      let session = GetMomentsByUserIDSession(apiSession: server.apiSession)
      let first = try await session.getMoments(userID: "0", first: 4, after: nil)
      #expect(first.moments.map(\.id) == ["0", "1", "2", "3"])
      #expect(first.moments[3].url == "https://example.com/articles/structured-concurrency")
      #expect(first.pageInfo?.hasNextPage == true)
      let second = try await session.getMoments(userID: "0", first: 100, after: first.pageInfo?.endCursor)
      #expect(second.moments.map(\.id) == (4...15).map { "\($0)" })
      #expect(second.pageInfo?.hasNextPage == false)
      let requests = try await server.received()
      #expect(requests.map(\.operation) == ["getMomentsPage", "getMomentsPage"])
      #expect(requests.map { $0.variables["first"] } == [4, 100])
    }
  }

  @Test(arguments: [["--media-type", "json"], ["--media-type", "graphql-response"]])
  func `A server without pages is asked for one page, and for complete timelines from then on`(
    mediaTypeOptions: [String]
  ) async throws {
    try await BFFServer.run(options: ServerSchema.lecture.options + mediaTypeOptions) { server in
      let session = GetMomentsByUserIDSession(apiSession: server.apiSession)
      // Copies of a session share the knowledge of whether the server has pages.
      let copy = session
      for session in [session, copy, session] {
        let details = try await session.getMoments(userID: "0", first: 4, after: nil)
        #expect(details.moments.map(\.id) == (0...15).map { "\($0)" })
        #expect(details.pageInfo == nil)
      }
      #expect(
        try await server.received().map(\.operation)
          == ["getMomentsPage"] + Array(repeating: "getMomentsDetailsByUserID", count: 3))
    }
  }

  @Test func `A server that fails the first request for a page is asked for a page again`() async throws {
    try await BFFServer.run { server in
      let session = GetMomentsByUserIDSession(apiSession: server.apiSession)
      try await server.arm(.init(fault: "status", count: 1, value: 503))
      await #expect(throws: APISessionError.self) { try await session.getMoments(userID: "0", first: 4, after: nil) }
      #expect(try await session.getMoments(userID: "0", first: 4, after: nil).moments.count == 4)
    }
  }

  @Test(arguments: ServerSchema.allCases)
  func `A page request for an unknown user throws the server's error, and pages are still requested later`(
    schema: ServerSchema
  ) async throws {
    try await BFFServer.run(options: schema.options) { server in
      let session = GetMomentsByUserIDSession(apiSession: server.apiSession)
      let error = GraphQLError(
        message: #"No user has the id "nobody"."#, path: [.field("getMomentsDetailsByUserID")])
      await #expect(throws: APISessionError.graphQL([error])) {
        try await session.getMoments(userID: "nobody", first: 4, after: nil)
      }
      let details = try await session.getMoments(userID: "0", first: 4, after: nil)
      // The session asks for a page again, because no complete timeline has arrived yet. A server without pages refuses
      // this request too, so the session then fetches the complete timeline.
      #expect(details.moments.count == (schema == .paging ? 4 : 16))
    }
  }

  @Test func `A request with an unknown cursor throws an error that isn't transient, and pages can still be fetched`()
    async throws
  {
    try await BFFServer.run { server in
      let session = GetMomentsByUserIDSession(apiSession: server.apiSession)
      _ = try await session.getMoments(userID: "0", first: 4, after: nil)
      let error = await #expect(throws: APISessionError.self) {
        try await session.getMoments(userID: "0", first: 4, after: "gone")
      }
      #expect(error?.isTransient == false)
      #expect(try await session.getMoments(userID: "0", first: 4, after: nil).moments.count == 4)
    }
  }
}

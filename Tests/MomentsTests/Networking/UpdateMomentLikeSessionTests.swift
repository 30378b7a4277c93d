import Foundation
import GraphQLClient
import Moments
import TestSupport
import Testing

@Suite(.requiresBFF, .timeLimit(.minutes(15)))
struct UpdateMomentLikeSessionTests {
  @Test(arguments: ServerSchema.allCases)
  func `A like changes the server's data, and an unlike changes it back`(schema: ServerSchema) async throws {
    try await BFFServer.run(options: schema.options) { server in
      let apiSession = server.apiSession
      let fetchSession = GetMomentsByUserIDSession(apiSession: apiSession)
      let updateSession = UpdateMomentLikeSession(apiSession: apiSession)
      let before = try await fetchSession.getMoments(userID: "0")
      var liked = before
      liked.moments[1].isLiked = true
      liked.moments[1].likes?.append(.init(id: "0", avatar: before.userDetails.avatar))

      #expect(try await updateSession.updateLike(true, momentID: "1", fromUserID: "0") == liked)
      #expect(try await fetchSession.getMoments(userID: "0") == liked)
      #expect(try await updateSession.updateLike(false, momentID: "1", fromUserID: "0") == before)
      #expect(try await fetchSession.getMoments(userID: "0") == before)

      let updates = try await server.received().filter { $0.operation == "updateMomentLike" }
      #expect(
        updates.map(\.variables) == [
          ["momentID": "1", "userID": "0", "isLiked": true], ["momentID": "1", "userID": "0", "isLiked": false],
        ])
    }
  }

  @Test(arguments: ServerSchema.allCases)
  func `Each change has a new key unless the caller passes one`(schema: ServerSchema) async throws {
    try await BFFServer.run(options: schema.options) { server in
      let session: any UpdateMomentLikeSessionType = UpdateMomentLikeSession(apiSession: server.apiSession)
      for isLiked in [true, false] {
        _ = try await session.updateLike(isLiked, momentID: "1", fromUserID: "0")
        _ = try await session.updateLike(isLiked, momentID: "1", fromUserID: "0", idempotencyKey: "key-\(isLiked)")
      }
      let keys = try await server.received().map(\.idempotencyKey)
      #expect([keys[1], keys[3]] == ["key-true", "key-false"])
      let generatedKeys = try [keys[0], keys[2]].map { try #require($0) }
      #expect(generatedKeys.compactMap { UUID(uuidString: $0) }.count == 2)
      #expect(generatedKeys[0] != generatedKeys[1])
    }
  }

  @Test(arguments: ServerSchema.allCases)
  func `The server makes a change once per key, and repeats its first reply`(schema: ServerSchema)
    async throws
  {
    try await BFFServer.run(keepsState: true, options: schema.options) { server in
      let apiSession = server.apiSession
      let session = UpdateMomentLikeSession(apiSession: apiSession)
      let firstReply = try await session.updateLike(true, momentID: "1", fromUserID: "0", idempotencyKey: "key")
      let unliked = try await session.updateLike(false, momentID: "1", fromUserID: "0", idempotencyKey: "other")
      #expect(firstReply != unliked)
      #expect(try await session.updateLike(true, momentID: "1", fromUserID: "0", idempotencyKey: "key") == firstReply)
      await server.kill()
      try await server.start()
      #expect(try await session.updateLike(true, momentID: "1", fromUserID: "0", idempotencyKey: "key") == firstReply)
      #expect(try await GetMomentsByUserIDSession(apiSession: apiSession).getMoments(userID: "0") == unliked)

      let received = try await server.received()
      #expect(received.map(\.idempotencyKey) == ["key", "other", "key", "key", nil])
      #expect(received.map(\.effect) == [.applied, .applied, .replayed, .replayed, .read])
    }
  }

  @Test(arguments: ServerSchema.allCases)
  func `A change whose reply was lost is made once, and the next attempt gets the lost reply`(schema: ServerSchema)
    async throws
  {
    try await BFFServer.run(options: schema.options) { server in
      let session = UpdateMomentLikeSession(apiSession: server.apiSession)
      try await server.arm(.init(fault: "drop-after"))
      let error = await #expect(throws: APISessionError.self) {
        try await session.updateLike(true, momentID: "1", fromUserID: "0", idempotencyKey: "key")
      }
      #expect(error?.isTransient == true)
      let details = try await session.updateLike(true, momentID: "1", fromUserID: "0", idempotencyKey: "key")
      #expect(details.moments[1].likes?.map(\.id) == ["4", "0"])
      let received = try await server.received()
      #expect(received.map(\.effect) == [.applied, .replayed])
      #expect(received.map(\.executions) == [1, 0])
    }
  }

  @Test(arguments: ServerSchema.allCases)
  func `Concurrent attempts at one change make it once, and get the same reply`(schema: ServerSchema)
    async throws
  {
    try await BFFServer.run(options: schema.options) { server in
      let session = UpdateMomentLikeSession(apiSession: server.apiSession)
      try await server.arm(.init(fault: "hold", count: 2, gate: "both"))
      async let one = session.updateLike(true, momentID: "1", fromUserID: "0", idempotencyKey: "key")
      async let other = session.updateLike(true, momentID: "1", fromUserID: "0", idempotencyKey: "key")
      try await server.waits(at: "both", count: 2)
      try await server.open(gate: "both")
      let replies = try await [one, other]
      #expect(replies[0] == replies[1])
      let received = try await server.received()
      #expect(received.map(\.executions).reduce(0, +) == 1)
      #expect(Set(received.map(\.effect)) == [.applied, .replayed])
    }
  }

  @Test(arguments: ServerSchema.allCases)
  func `A key that belongs to another change is refused permanently`(schema: ServerSchema) async throws {
    try await BFFServer.run(options: schema.options) { server in
      let session = UpdateMomentLikeSession(apiSession: server.apiSession)
      _ = try await session.updateLike(true, momentID: "1", fromUserID: "0", idempotencyKey: "key")
      let error = await #expect(throws: APISessionError.self) {
        try await session.updateLike(true, momentID: "3", fromUserID: "0", idempotencyKey: "key")
      }
      let message = #"The Idempotency-Key "key" belongs to another request. Give each change its own key."#
      #expect(error == .graphQL([GraphQLError(message: message)], status: 422))
      #expect(error?.isTransient == false)
      #expect(try await server.received().map(\.effect) == [.applied, .refused])
    }
  }

  @Test(arguments: ServerSchema.allCases)
  func `A like of an unknown moment throws the server's error`(schema: ServerSchema) async throws {
    try await BFFServer.run(options: schema.options) { server in
      let session = UpdateMomentLikeSession(apiSession: server.apiSession)
      let error = GraphQLError(
        message: #"The timeline of user "0" has no moment with the id "100"."#, path: [.field("updateMomentLike")])
      await #expect(throws: APISessionError.graphQL([error])) {
        try await session.updateLike(true, momentID: "100", fromUserID: "0")
      }
    }
  }

  @Test(arguments: ServerSchema.allCases)
  func `If the reply to a change is lost, the call throws a transient error although the change was made`(
    schema: ServerSchema
  ) async throws {
    try await BFFServer.run(options: schema.options) { server in
      let apiSession = server.apiSession
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

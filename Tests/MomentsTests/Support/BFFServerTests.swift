import Foundation
import GraphQLClient
import Moments
import TestSupport
import Testing

/// Tests the behavior that other tests expect of the GraphQL server.
@Suite(.requiresBFF, .timeLimit(.minutes(15)))
struct BFFServerTests {
  private struct PageVariables: Encodable {
    let userID = "0"
    let first: Int
    let after: String?
  }

  private struct PageReply: Decodable {
    struct Page: Decodable {
      struct Moment: Decodable {
        let id: String
      }
      struct PageInfo: Decodable {
        let endCursor: String?
        let hasNextPage: Bool
      }
      let moments: [Moment]
      let pageInfo: PageInfo
    }
    let getMomentsDetailsByUserID: Page
  }

  private static func fetchPage(
    first: Int, after: String? = nil, from server: BFFServer
  ) async throws -> PageReply.Page {
    let document = """
      query page($userID: ID!, $first: Int, $after: String) {
        getMomentsDetailsByUserID(userID: $userID, first: $first, after: $after) {
          moments { id }
          pageInfo { endCursor hasNextPage }
        }
      }
      """
    return try await server.apiSession.post(
      document: document, operationName: "page", variables: PageVariables(first: first, after: after),
      as: PageReply.self
    ).getMomentsDetailsByUserID
  }

  private static func isTransportError(_ error: (any Error)?) -> Bool {
    if case .transport = error as? APISessionError { true } else { false }
  }

  @Test(arguments: [true, false])
  func `A server restarts on its port, and keeps its state only if keepsState is true`(keepsState: Bool) async throws {
    try await BFFServer.run(keepsState: keepsState) { server in
      let apiSession = server.apiSession
      let momentsSession = GetMomentsByUserIDSession(apiSession: apiSession)
      let likeSession = UpdateMomentLikeSession(apiSession: apiSession)
      _ = try await likeSession.updateLike(true, momentID: "1", fromUserID: "0", idempotencyKey: "key")

      await server.stop()
      let error = await #expect(throws: APISessionError.self) { try await momentsSession.getMoments(userID: "0") }
      #expect(Self.isTransportError(error))
      try await server.start()
      #expect(try await momentsSession.getMoments(userID: "0").moments[1].isLiked == keepsState)

      let received = try await server.received()
      #expect(received.map(\.idempotencyKey) == (keepsState ? ["key", nil] : [nil]))
      #expect(received.map(\.effect) == (keepsState ? [.applied, .read] : [.read]))
    }
  }

  @Test func `A request that is interrupted by a kill is still listed after the restart`() async throws {
    try await BFFServer.run(keepsState: true) { server in
      try await server.arm(.init(fault: "hold-after", gate: "reply"))
      let session = UpdateMomentLikeSession(apiSession: server.apiSession)
      let call = Task { try await session.updateLike(true, momentID: "1", fromUserID: "0", idempotencyKey: "key") }
      try await server.waits(at: "reply")
      await server.kill()
      let error = await #expect(throws: (any Error).self) { try await call.value }
      #expect(Self.isTransportError(error))
      try await server.start()
      let received = try await server.received()
      #expect(received.map(\.outcome) == ["server-stopped"])
      #expect(received.map(\.effect) == [.applied])
    }
  }

  @Test func `Connections are refused until the server accepts them again`() async throws {
    try await BFFServer.run { server in
      let session = GetMomentsByUserIDSession(apiSession: server.apiSession)
      _ = try await session.getMoments(userID: "0")
      try await server.refuseConnections()
      for _ in 0..<2 {
        let error = await #expect(throws: APISessionError.self) { try await session.getMoments(userID: "0") }
        #expect(Self.isTransportError(error))
      }
      // Control requests, such as that of `received()`, aren't refused, because they go to another port.
      #expect(try await server.received().map(\.outcome) == ["answered"])
      try await server.acceptConnections()
      _ = try await session.getMoments(userID: "0")
      #expect(try await server.received().map(\.outcome) == ["answered", "answered"])
    }
  }

  @Test func `A held request is answered once its gate opens`() async throws {
    try await BFFServer.run { server in
      try await server.arm(.init(fault: "hold", gate: "first"))
      let session = GetMomentsByUserIDSession(apiSession: server.apiSession)
      let call = Task { try await session.getMoments(userID: "0") }
      try await server.waits(at: "first")
      #expect(try await server.received().map(\.outcome) == [nil])
      #expect(try await server.open(gate: "first") == 1)
      #expect(try await call.value.userDetails.name == "Jake Lin")
      // The outcome of an answered request with a fault is the name of the fault instead of "answered".
      #expect(try await server.received().map(\.outcome) == ["hold"])
    }
  }

  @Test func `A cancelled call leaves the gate at which it waits`() async throws {
    try await BFFServer.run { server in
      try await server.arm(.init(fault: "hold", gate: "never"))
      let session = UpdateMomentLikeSession(apiSession: server.apiSession)
      let call = Task { try await session.updateLike(true, momentID: "1", fromUserID: "0") }
      try await server.waits(at: "never")
      call.cancel()
      await #expect(throws: APISessionError.cancelled) { try await call.value }
      let received = try await server.received(disconnected: 1)
      #expect(received.map(\.outcome) == ["client-went-away"])
      #expect(received.map(\.effect) == [nil])
      #expect(try await server.open(gate: "never") == 0)
    }
  }

  @Test func `A fault applies to as many requests as its count, and to no later ones`() async throws {
    try await BFFServer.run { server in
      try await server.arm(.init(fault: "status", count: 2, value: 503))
      let session = GetMomentsByUserIDSession(apiSession: server.apiSession)
      for _ in 0..<2 {
        await #expect(throws: APISessionError.statusCode(503, bodyExcerpt: "Injected status 503. ")) {
          try await session.getMoments(userID: "0")
        }
      }
      _ = try await session.getMoments(userID: "0")
      #expect(try await server.received().map(\.outcome) == ["status", "status", "answered"])
      try await server.clearReceived()
      #expect(try await server.received().isEmpty)
    }
  }

  @Test func `Moments inserted at the head don't change the page after a cursor`() async throws {
    try await BFFServer.run { server in
      let firstPage = try await Self.fetchPage(first: 10, from: server)
      #expect(firstPage.moments.map(\.id) == (0..<10).map { "\($0)" })
      #expect(firstPage.pageInfo.hasNextPage)
      try await server.insertMoment(id: "new", title: "Just now", userID: "0")
      let secondPage = try await Self.fetchPage(first: 10, after: firstPage.pageInfo.endCursor, from: server)
      #expect(secondPage.moments.map(\.id) == (10..<16).map { "\($0)" })
      #expect(!secondPage.pageInfo.hasNextPage)
      #expect(try await Self.fetchPage(first: 2, from: server).moments.map(\.id) == ["new", "0"])
      let variables = try await server.received()[0].variables
      #expect(variables == ["userID": "0", "first": 10])
    }
  }
}

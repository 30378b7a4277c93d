import Foundation
import GraphQLClient
import TestSupport
import Testing

@Suite(.requiresBFF, .timeLimit(.minutes(15)))
struct APISessionTests {
  private struct Variables: Encodable {
    var userID = "0"
  }

  private struct NameReply: Decodable, Equatable {
    struct Details: Decodable, Equatable {
      struct User: Decodable, Equatable {
        let name: String
      }
      let userDetails: User
    }
    let getMomentsDetailsByUserID: Details
  }

  private static func fetchName(
    from session: APISession, userID: String = "0", headers: [String: String] = [:]
  ) async throws(APISessionError) -> String {
    try await session.post(
      document: """
        query name($userID: ID!) { getMomentsDetailsByUserID(userID: $userID) { userDetails { name } } }
        """,
      operationName: "name",
      variables: Variables(userID: userID),
      headers: headers,
      as: NameReply.self
    ).getMomentsDetailsByUserID.userDetails.name
  }

  @Test func `A reply's data is decoded`() async throws {
    try await BFFServer.run { server in
      let session = APISession(url: server.url)
      #expect(try await Self.fetchName(from: session) == "Jake Lin")
      #expect(try await Self.fetchName(from: session, userID: "1") == "Mei Zhou")
      let requests = try await server.received()
      #expect(requests.map(\.operation) == ["name", "name"])
      #expect(requests.map(\.variables) == [["userID": "0"], ["userID": "1"]])
    }
  }

  @Test func `Every request has the default headers`() async throws {
    try await BFFServer.run { server in
      _ = try await Self.fetchName(from: APISession(url: server.url))
      let headers = try #require(try await server.received().first?.headers)
      for (name, value) in APISession.defaultHeaders() {
        #expect(headers[name] == value)
      }
      #expect(headers["content-type"] == "application/json")
      #expect(headers["accept"] == "application/graphql-response+json, application/json;q=0.9")
    }
  }

  @Test func `A request's headers override the session's, which override the default ones, regardless of their case`()
    async throws
  {
    try await BFFServer.run { server in
      let session = APISession(url: server.url, headers: ["X-App-Version": "2.0", "X-Session": "1", "X-Both": "1"])
      _ = try await Self.fetchName(from: session, headers: ["X-APP-PLATFORM": "toaster", "x-both": "2"])
      let headers = try #require(try await server.received().first?.headers)
      #expect(headers["x-app-version"] == "2.0")
      #expect(headers["x-app-platform"] == "toaster")
      #expect(headers["x-session"] == "1")
      #expect(headers["x-both"] == "2")
    }
  }

  @Test(arguments: ["drop", "drop-after", "drop-after-headers"])
  func `A connection that is lost during the exchange is a transport error`(fault: String) async throws {
    try await BFFServer.run { server in
      try await server.arm(.init(fault: fault))
      let error = await #expect(throws: APISessionError.self) {
        try await Self.fetchName(from: APISession(url: server.url))
      }
      guard case .transport = error else {
        Issue.record("expected a transport error, got \(String(describing: error))")
        return
      }
    }
  }

  @Test func `A refused connection is a transport error`() async throws {
    // `run` stops the server before it returns.
    let stoppedServerURL = try await BFFServer.run { $0.url }
    let error = await #expect(throws: APISessionError.self) {
      try await Self.fetchName(from: APISession(url: stoppedServerURL))
    }
    guard case .transport(let urlError) = error else {
      Issue.record("expected a transport error, got \(String(describing: error))")
      return
    }
    #expect(urlError.code == .cannotConnectToHost)
  }

  @Test(arguments: [429, 500, 503])
  func `A status that means the same from the server and from a gateway becomes a status error that quotes the body`(
    status: Int
  ) async throws {
    try await BFFServer.run { server in
      try await server.arm(.init(fault: "status", value: status))
      await #expect(throws: APISessionError.statusCode(status, bodyExcerpt: "Injected status \(status). ")) {
        try await Self.fetchName(from: APISession(url: server.url))
      }
    }
  }

  @Test(arguments: [400, 403, 404])
  func `If a status may mean something else from a gateway, a response that isn't GraphQL counts as not from the API`(
    status: Int
  ) async throws {
    try await BFFServer.run { server in
      try await server.arm(.init(fault: "status", value: status))
      await #expect(
        throws: APISessionError.notAnAPIResponse(status: status, bodyExcerpt: "Injected status \(status). ")
      ) {
        try await Self.fetchName(from: APISession(url: server.url))
      }
    }
  }

  @Test func `If the server requests a wait before the next attempt, the error contains that wait`() async throws {
    try await BFFServer.run { server in
      try await server.arm(.init(fault: "retry-after", value: 30))
      let error = await #expect(throws: APISessionError.self) {
        try await Self.fetchName(from: APISession(url: server.url))
      }
      #expect(error?.status == 503)
      #expect(error?.retryAfter == .seconds(30))
      #expect(error?.description.hasSuffix("Try again in 30 seconds.") == true)
    }
  }

  private static let mediaTypeOptions = [["--media-type", "json"], ["--media-type", "graphql-response"]]

  @Test(arguments: mediaTypeOptions)
  func `A response with partial data has the errors and the extensions`(options: [String]) async throws {
    try await BFFServer.run(options: options) { server in
      let session = APISession(url: server.url)
      let document = "query name($userID: ID!) { getMomentsDetailsByUserID(userID: $userID) { userDetails { name } } }"
      try await server.arm(.init(fault: "graphql-error-partial"))
      let partialResponse = try await session.response(
        to: document, operationName: "name", variables: Variables(), as: NameReply.self)
      #expect(partialResponse.data.getMomentsDetailsByUserID.userDetails.name == "Jake Lin")
      #expect(
        partialResponse.errors
          == [GraphQLError(message: "Injected partial failure.", path: [.field("getMomentsDetailsByUserID")])])
      #expect(partialResponse.extensions == ["trace": .string("t-1")])

      // `fetchName` calls `post`, which throws the errors instead.
      try await server.arm(.init(fault: "graphql-error-partial"))
      await #expect(throws: APISessionError.graphQL(partialResponse.errors)) { try await Self.fetchName(from: session) }
      let completeResponse = try await session.response(
        to: document, operationName: "name", variables: Variables(), as: NameReply.self)
      #expect(completeResponse.errors.isEmpty && completeResponse.extensions.isEmpty)
    }
  }

  @Test(arguments: mediaTypeOptions)
  func `With either media type, a document that the server rejects is a GraphQL error without a path`(
    options: [String]
  ) async throws {
    try await BFFServer.run(options: options) { server in
      let error = await #expect(throws: APISessionError.self) {
        _ = try await APISession(url: server.url).post(
          document: "{ nothing }", operationName: "", variables: [String: String](), as: NameReply.self)
      }
      guard case .graphQL(let errors, let status, _) = error else {
        Issue.record("expected errors, got \(String(describing: error))")
        return
      }
      #expect(errors.map(\.path) == [nil])
      let mediaType = options[1]
      #expect(status == (mediaType == "json" ? 200 : 422))
      #expect(error?.isTransient == false)
    }
  }

  @Test func `The server's errors are reported with their messages and paths`() async throws {
    try await BFFServer.run { server in
      let expected = GraphQLError(
        message: #"No user has the id "nobody"."#, path: [.field("getMomentsDetailsByUserID")])
      await #expect(throws: APISessionError.graphQL([expected])) {
        try await Self.fetchName(from: APISession(url: server.url), userID: "nobody")
      }
    }
  }

  @Test func `An empty reply is an error`() async throws {
    try await BFFServer.run { server in
      try await server.arm(.init(fault: "empty"))
      await #expect(throws: APISessionError.emptyReply) {
        try await Self.fetchName(from: APISession(url: server.url))
      }
    }
  }

  @Test(arguments: ["malformed", "wrong-shape"])
  func `The error for an undecodable reply quotes the reply`(fault: String) async throws {
    try await BFFServer.run { server in
      try await server.arm(.init(fault: fault))
      let error = await #expect(throws: APISessionError.self) {
        try await Self.fetchName(from: APISession(url: server.url))
      }
      guard case .undecodable(let reason, let excerpt) = error else {
        Issue.record("expected an undecodable reply, got \(String(describing: error))")
        return
      }
      #expect(!reason.isEmpty)
      #expect(excerpt.hasPrefix(#"{"data":{"getMomentsDetailsByUserID":"#))
    }
  }

  @Test func `A slow reply times out, and the server sees the client close the connection`() async throws {
    try await BFFServer.run { server in
      try await server.arm(.init(fault: "slow", delay: 3600))
      await #expect(throws: APISessionError.timedOut) {
        try await Self.fetchName(from: APISession(url: server.url, timeout: .milliseconds(200)))
      }
      let requests = try await server.received(disconnected: 1)
      #expect(requests.map(\.outcome) == ["client-went-away"])
    }
  }

  @Test func `A reply larger than the limit is an error`() async throws {
    try await BFFServer.run { server in
      try await server.arm(.init(fault: "oversized", size: 64 << 20))
      await #expect(throws: APISessionError.replyTooLarge(limit: 100_000)) {
        try await Self.fetchName(from: APISession(url: server.url, maximumReplySize: 100_000))
      }
    }
  }

  @Test func `A reply of exactly the maximum size is decoded`() async throws {
    try await BFFServer.run { server in
      try await server.arm(.init(fault: "oversized", count: 2, size: 100_000))
      #expect(try await Self.fetchName(from: APISession(url: server.url, maximumReplySize: 100_000)) == "Jake Lin")
      await #expect(throws: APISessionError.replyTooLarge(limit: 99_999)) {
        try await Self.fetchName(from: APISession(url: server.url, maximumReplySize: 99_999))
      }
    }
  }

  @Test func `Cancelling the calling task cancels the exchange with the server`() async throws {
    try await BFFServer.run { server in
      try await server.arm(.init(fault: "slow", delay: 3600))
      let session = APISession(url: server.url)
      let call = Task { try await Self.fetchName(from: session) }
      _ = try await server.received(count: 1)
      call.cancel()
      await #expect(throws: APISessionError.cancelled) { try await call.value }
      let requests = try await server.received(disconnected: 1)
      #expect(requests.map(\.outcome) == ["client-went-away"])
    }
  }

  @Test func `A call from a cancelled task sends nothing`() async throws {
    try await BFFServer.run { server in
      let session = APISession(url: server.url)
      let call = Task { () async throws -> String in
        withUnsafeCurrentTask { $0?.cancel() }
        return try await Self.fetchName(from: session)
      }
      await #expect(throws: APISessionError.cancelled) { try await call.value }
      let requests = try await server.received()
      #expect(requests.isEmpty)
      #expect(try await Self.fetchName(from: session) == "Jake Lin")
    }
  }

  @Test func `A call cancelled at any time returns its reply or throws the cancellation, and the session stays usable`()
    async throws
  {
    try await BFFServer.run { server in
      let session = APISession(url: server.url)
      for yieldCount in 0..<200 {
        let call = Task { try await Self.fetchName(from: session) }
        // The number of yields varies, so that the cancellation reaches the call at different stages.
        for _ in 0..<yieldCount { await Task.yield() }
        call.cancel()
        switch await call.result {
        case .success(let name): #expect(name == "Jake Lin")
        case .failure(let error): #expect(error as? APISessionError == .cancelled)
        }
      }
      let name = try await Self.fetchName(from: session)
      #expect(name == "Jake Lin")
    }
  }

  @Test func `Each of many concurrent calls receives its own reply`() async throws {
    try await BFFServer.run { server in
      let session = APISession(url: server.url)
      let names = try await withThrowingTaskGroup { group in
        for index in 0..<40 {
          group.addTask { (index, try await Self.fetchName(from: session, userID: String(index % 2))) }
        }
        return try await group.reduce(into: [Int: String]()) { $0[$1.0] = $1.1 }
      }
      #expect(names == Dictionary(uniqueKeysWithValues: (0..<40).map { ($0, $0 % 2 == 0 ? "Jake Lin" : "Mei Zhou") }))
    }
  }
}

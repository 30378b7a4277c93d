import Foundation
import Testing

@testable import Moments

/// What servers do that a well-behaved one does not.
@Suite(.timeLimit(.minutes(5)))
struct HTTPTransportTests {
  private struct Nothing: Codable {}

  private static func post(
    to url: URL, headers: [String: String] = [:], maximumReplySize: Int = 1000
  ) async throws(APISessionError) {
    let session = APISession(url: url, headers: headers, timeout: .seconds(20), maximumReplySize: maximumReplySize)
    _ = try await session.post(document: "{ a }", operationName: "a", variables: Nothing(), as: Nothing.self)
  }

  private static func error(
    answering script: ScriptedServer.Script, maximumReplySize: Int = 1000
  ) async throws -> APISessionError? {
    let (result, _) = try await ScriptedServer.run(script) { url in
      try await post(to: url, maximumReplySize: maximumReplySize)
    }
    guard case .failure(let error) = result else { return nil }
    return try #require(error as? APISessionError)
  }

  @Test(arguments: [
    "Bearer", "Bearer realm=\"moments\"", "Basic realm=\"moments\"", "Digest realm=\"moments\", nonce=\"1\"",
  ])
  func `A reply that asks for credentials is a status`(challenge: String) async throws {
    let error = try await Self.error(
      answering: .init(
        head: ["HTTP/1.1 401 Unauthorized", "WWW-Authenticate: \(challenge)", "Content-Length: 2"], body: "no"))
    #expect(error == .statusCode(401, bodyExcerpt: "no"))
  }

  @Test(arguments: [301, 302, 303, 307, 308])
  func `A redirection is not followed`(status: Int) async throws {
    let error = try await Self.error(
      answering: .init(
        head: ["HTTP/1.1 \(status) Elsewhere", "Location: http://127.0.0.1:1/graphql", "Content-Length: 5"],
        body: "there"))
    #expect(error == .statusCode(status, bodyExcerpt: "there"))
  }

  @Test func `A reply that never ends is given up at the limit`() async throws {
    let error = try await Self.error(
      answering: .init(head: ["HTTP/1.1 200 OK"], body: String(repeating: " ", count: 1001), staysOpen: true))
    #expect(error == .replyTooLarge(limit: 1000))
  }

  @Test func `A chunked reply that never ends is given up at the limit`() async throws {
    let error = try await Self.error(
      answering: .init(
        head: ["HTTP/1.1 200 OK", "Transfer-Encoding: chunked"],
        body: String(repeating: "A\r\n          \r\n", count: 101), staysOpen: true))
    #expect(error == .replyTooLarge(limit: 1000))
  }

  @Test func `A reply that announces too much is given up at its first byte`() async throws {
    let error = try await Self.error(
      answering: .init(head: ["HTTP/1.1 200 OK", "Content-Length: 1001"], body: " ", staysOpen: true))
    #expect(error == .replyTooLarge(limit: 1000))
  }

  @Test func `A reply that trickles in times out as a whole`() async throws {
    let (result, _) = try await ScriptedServer.run(.init(head: ["HTTP/1.1 200 OK"], trickles: true)) { url in
      let session = APISession(url: url, timeout: .milliseconds(200))
      _ = try await session.post(document: "{ a }", operationName: "a", variables: Nothing(), as: Nothing.self)
    }
    #expect(throws: APISessionError.timedOut) { try result.get() }
  }

  @Test func `A reply shorter than it announces is a transport error`() async throws {
    let error = try await Self.error(
      answering: .init(head: ["HTTP/1.1 200 OK", "Content-Length: 100"], body: #"{"data":{}}"#))
    guard case .transport = error else {
      Issue.record("expected a transport error, got \(String(describing: error))")
      return
    }
  }

  @Test func `A refusal that never ends is quoted`() async throws {
    let error = try await Self.error(
      answering: .init(head: ["HTTP/1.1 500 Broken"], body: String(repeating: "no! ", count: 513), staysOpen: true))
    let quoted = String(String(repeating: "no! ", count: 128).dropLast()) + "…"
    #expect(error == .statusCode(500, bodyExcerpt: quoted))
  }

  @Test func `A refusal cut short is quoted all the same`() async throws {
    let error = try await Self.error(
      answering: .init(head: ["HTTP/1.1 503 Busy", "Content-Length: 100"], body: "busy"))
    #expect(error == .statusCode(503, bodyExcerpt: "busy"))
  }

  @Test func `A reply without a body is empty`() async throws {
    #expect(try await Self.error(answering: .init(head: ["HTTP/1.1 204 No Content"])) == .emptyReply)
    #expect(try await Self.error(answering: .init(head: ["HTTP/1.1 200 OK", "Content-Length: 0"])) == .emptyReply)
  }

  @Test func `A session that nobody holds closes its connections`() async throws {
    let body = #"{"data":{}}"#
    // The server keeps its end open until the client closes the other; until then this does not return.
    let (result, _) = try await ScriptedServer.run(
      .init(head: ["HTTP/1.1 200 OK", "Content-Length: \(body.utf8.count)"], body: body, staysOpen: true)
    ) { url in
      try await Self.post(to: url)
    }
    try result.get()
  }

  @Test func `Data with errors is an error`() async throws {
    let body = #"{"data":{"a":1},"errors":[{"message":"half"}]}"#
    let error = try await Self.error(
      answering: .init(head: ["HTTP/1.1 200 OK", "Content-Length: \(body.utf8.count)"], body: body))
    #expect(error == .graphQL([GraphQLError(message: "half")]))
  }

  @Test func `A header reaches the server as given`() async throws {
    let body = #"{"data":{}}"#
    let (result, request) = try await ScriptedServer.run(
      .init(head: ["HTTP/1.1 200 OK", "Content-Length: \(body.utf8.count)"], body: body)
    ) { url in
      try await Self.post(to: url, headers: ["X-Name": "值 a: b", "x-app-version": "7"])
    }
    try result.get()
    let lines = request.components(separatedBy: "\r\n")
    #expect(lines.first == "POST /graphql HTTP/1.1")
    #expect(lines.filter { $0.lowercased().hasPrefix("x-app-version:") }.count == 1)
    #expect(lines.contains { $0.lowercased() == "x-app-version: 7" })
    #expect(lines.contains("X-Name: 值 a: b"))
  }

  @Test(arguments: [
    "X-Name": "a\r\nX-Smuggled: b", "X Name": "a", "": "a", "X-Nul": "a\0b", "X-Näme": "a", "X-Colon:": "a",
  ])
  func `A header that would break the request is refused`(name: String, value: String) async throws {
    let url = try #require(URL(string: "http://127.0.0.1:1/graphql"))
    await #expect(throws: APISessionError.invalidHeader(name: name)) {
      try await Self.post(to: url, headers: [name: value])
    }
  }

  @Test(arguments: ["file:///etc/hosts", "ftp://127.0.0.1/graphql", "data:,hello", "graphql", "http:///graphql"])
  func `An address that is not of HTTP is refused`(address: String) async throws {
    let url = try #require(URL(string: address))
    await #expect(throws: APISessionError.unsupportedURL(address)) {
      try await Self.post(to: url)
    }
  }

  @Test func `Variables that are no JSON are refused`() async throws {
    let session = APISession(url: try #require(URL(string: "http://127.0.0.1:1/graphql")))
    let error = await #expect(throws: APISessionError.self) {
      _ = try await session.post(
        document: "{ a }", operationName: "a", variables: ["x": Double.nan], as: Nothing.self)
    }
    guard case .unencodableVariables(let reason) = error else {
      Issue.record("expected unencodable variables, got \(String(describing: error))")
      return
    }
    #expect(reason.hasSuffix("at variables.x"))
  }
}

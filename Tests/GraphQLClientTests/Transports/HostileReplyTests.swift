import Foundation
import GraphQLClient
import TestSupport
import Testing

/// A session with a server that sends arbitrary bytes.
@Suite(.timeLimit(.minutes(15)))
struct HostileReplyTests {
  private struct Payload: Codable, Equatable {
    let a: Int
  }

  private static func ask(
    _ reply: HostileReply, at url: URL, transport: (any HTTPTransport)? = nil
  ) async -> Result<Payload, APISessionError> {
    // If a response is expected, the timeout is long, because the machine may be busy with other tests.
    let timeout: Duration = if case .transportOrTimeout = reply.outcome { .seconds(2) } else { .seconds(1_000) }
    let session = APISession(
      url: url, timeout: timeout, maximumReplySize: HostileReply.maximumReplySize, transport: transport)
    do throws(APISessionError) {
      return .success(
        try await session.post(
          document: "{ a }", operationName: "", variables: ScriptedServer.RequestedScript(reply.script),
          as: Payload.self))
    } catch {
      return .failure(error)
    }
  }

  private static func isExpected(_ result: Result<Payload, APISessionError>, _ outcome: HostileReply.Outcome) -> Bool {
    switch (outcome, result) {
    case (.anything, _), (.value, .success(Payload(a: 1))), (.emptyReply, .failure(.emptyReply)),
      (.replyTooLarge, .failure(.replyTooLarge(limit: HostileReply.maximumReplySize))),
      (.undecodable, .failure(.undecodable)), (.graphQL, .failure(.graphQL)),
      (.notAnAPIResponse, .failure(.notAnAPIResponse)), (.transportOrTimeout, .failure(.transport)),
      (.transportOrTimeout, .failure(.timedOut)):
      true
    case (.statusCode(let expected), .failure(.statusCode(let status, _, _))): status == expected
    default: false
    }
  }

  @Test func `There are more than sixty hostile replies, each with a unique name`() {
    #expect(HostileReply.all.count > 60)
    #expect(Set(HostileReply.all.map(\.name)).count == HostileReply.all.count)
  }

  #if os(Linux)
    @Test func `Each hostile reply has the expected outcome, and the transport stays usable`()
      async throws
    {
      let server = try ScriptedServer()
      Thread.detachNewThread { server.serveRequestedScripts() }
      let validReply = HostileReply(
        name: "valid", script: .json(HostileReply.validBody, ending: .keepAlive), outcome: .value)
      try await withThrowingTaskGroup { group in
        for reply in HostileReply.all {
          // A separate transport per reply, because a request may be lost on a connection that another reply has used.
          let transport = try #require(CurlTransport(maximumConnectionsPerHost: 1))
          group.addTask {
            let result = await Self.ask(reply, at: server.url, transport: transport)
            #expect(Self.isExpected(result, reply.outcome), "\(reply.name): \(result)")
            if case .failure(let error) = result {
              #expect(error.description.utf8.count < 10_000, "\(reply.name)")
              #expect(
                !error.description.unicodeScalars.contains { $0.properties.generalCategory == .control },
                "\(reply.name)")
            }
            // The server may close the connection while the next request is in flight. The transport doesn't send a
            // request twice, so the test sends it again.
            var nextResult = await Self.ask(validReply, at: server.url, transport: transport)
            if case .failure(.transport) = nextResult {
              nextResult = await Self.ask(validReply, at: server.url, transport: transport)
            }
            #expect(nextResult == .success(Payload(a: 1)), "after \(reply.name)")
          }
        }
      }
    }

    // The documentation of `URLSessionTransport` lists these replies. If one of them no longer crashes the process, the
    // bug has been fixed in Foundation, and the documentation should be updated.
    @Test(arguments: ["a truncated head", "length 9223372036854775807", "trailers", "a redirection to “//%00/”"])
    func `Some replies crash the process inside URLSession on Linux`(name: String) async throws {
      let server = try ScriptedServer()
      Thread.detachNewThread { server.serveRequestedScripts() }
      let reply = try #require(HostileReply.all.first { $0.name == name })
      let script = String(decoding: try JSONEncoder().encode(reply.script), as: UTF8.self)
      var child = try ChildProcess(
        "ask-by-url-session", FileManager.default.temporaryDirectory, [server.url.absoluteString, script])
      // The child prints "asking" before it sends the request, and would print the error of a call that fails.
      #expect(await child.allLines() == ["asking"])
      guard case .signal = await child.end() else {
        Issue.record("URLSession survives \(name).")
        return
      }
    }
  #endif

  @Test func `The replies that are safe for every transport have the expected outcome with URLSession`() async throws {
    let server = try ScriptedServer()
    Thread.detachNewThread { server.serveRequestedScripts() }
    #expect(Self.safeReplyNames.isSubset(of: HostileReply.all.map(\.name)))
    for reply in HostileReply.all where Self.safeReplyNames.contains(reply.name) {
      let result = await Self.ask(reply, at: server.url, transport: URLSessionTransport())
      #expect(Self.isExpected(result, reply.outcome), "\(reply.name): \(result)")
    }
  }

  private static let safeReplyNames: Set = [
    "a body shorter than its length", "a body longer than its length", "no length", "a chunk of size “zz”",
    "a content type with a control character", "204 with a body", "403 with HTML", "401 that asks for “Digest”",
    "407", "invalid gzip", "an empty body", "null", "a list", "an object of another API",
    "a login page", "a login page that says it is JSON", "no data", "data of another shape", "90,000 levels of lists",
    "an extension with too many values", "too many errors", "escape sequences", "302",
    "a redirection to “http://127.0.0.1:1/”",
  ]
}

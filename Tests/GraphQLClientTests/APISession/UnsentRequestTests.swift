import Foundation
import GraphQLClient
import Multicast
import MulticastTesting
import TestSupport
import Testing

/// Requests that end before they were sent.
struct UnsentRequestTests {
  private struct Payload: Decodable, Sendable {}

  private static let url = URL(string: "https://api.example/graphql")!

  private static func post(
    by transport: any HTTPTransport, authorization: (@Sendable () async -> String?)? = nil,
    clock: any Clock<Duration> = ManualClock()
  ) async throws(APISessionError) {
    let session = APISession(url: url, authorization: authorization, transport: transport, clock: clock)
    _ = try await session.post(document: "{ a }", operationName: "a", variables: [String: Int](), as: Payload.self)
  }

  @Test func `A code or the creation of an error says whether the server received nothing`() {
    for code in [URLError.Code.timedOut, .cancelled, .networkConnectionLost, .unknown] {
      #expect(!URLError(code).impliesUnsentRequest)
      #expect(URLError.unsentRequest(code).impliesUnsentRequest)
      #expect(URLError.unsentRequest(code).code == code)
    }
    #expect(URLError(.cannotConnectToHost).impliesUnsentRequest)
    #expect(URLError.unsentRequest(.timedOut, "waited").localizedDescription == "waited")
  }

  @Test func `If the timeout expires before the request is sent, the error says so`() async throws {
    let clock = ManualClock()
    let gate = Gate()
    // The transport never begins the exchange, as if all connections were busy.
    let transport = ScriptedTransport { _ throws(URLError) in
      await gate.pass()
      throw .unsentRequest(.cancelled)
    }
    let call = Task { () async throws in try await Self.post(by: transport, clock: clock) }
    await gate.arrivals()
    await clock.sleepers()
    clock.advance(by: .seconds(30))
    let error = await #expect(throws: APISessionError.self) { try await call.value }
    guard case .transport(let failure) = error else {
      Issue.record("expected a transport error, got \(String(describing: error))")
      return
    }
    #expect(failure.code == .timedOut && failure.impliesUnsentRequest)
    #expect(error?.isTransient == true)
  }

  @Test(arguments: [URLError.Code.timedOut, .cancelled, .unknown])
  func `A transport's error that nothing was sent stays one, also if its description is sanitized`(
    code: URLError.Code
  ) async throws {
    let transport = ScriptedTransport { _ throws(URLError) in throw .unsentRequest(code, "a\u{1B}b") }
    let error = await #expect(throws: APISessionError.self) { try await Self.post(by: transport) }
    guard case .transport(let failure) = error else {
      Issue.record("expected a transport error, got \(String(describing: error))")
      return
    }
    #expect(failure.code == code && failure.impliesUnsentRequest)
    #expect(failure.localizedDescription == "a b")
  }

  #if os(Linux)
    @Test func `A request that waits for a connection until its timeout was not sent`() async throws {
      let transport = try #require(CurlTransport(maximumConnectionsPerHost: 1))
      // The first response has a head, but no complete body, so its exchange keeps the only connection.
      let head = ["HTTP/1.1 200 OK", "Content-Type: application/json", "Content-Length: 10"]
      _ = try await ScriptedServer.run(.init(head: head, ending: .waitForClient)) { url in
        let firstResponse = try await transport.send(HTTPRequest(url: url, method: "POST"))
        let clock = ManualClock()
        let session = APISession(url: url, transport: transport, clock: clock)
        let call = Task { () async throws in
          _ = try await session.post(
            document: "{ a }", operationName: "a", variables: [String: Int](), as: Payload.self)
        }
        await clock.sleepers()
        clock.advance(by: .seconds(30))
        let error = await #expect(throws: APISessionError.self) { try await call.value }
        guard case .transport(let failure) = error else {
          Issue.record("expected a transport error, got \(String(describing: error))")
          return
        }
        #expect(failure.code == .timedOut && failure.impliesUnsentRequest)

        let cancelled = Task { () async throws in try await transport.send(HTTPRequest(url: url, method: "POST")) }
        cancelled.cancel()
        let cancellation = await #expect(throws: URLError.self) { try await cancelled.value }
        #expect(cancellation?.code == .cancelled && cancellation?.impliesUnsentRequest == true)
        _ = firstResponse.status
      }
    }
  #endif

  // MARK: - Authorization

  @Test func `Every request has the authorization that the closure returns at that time`() async throws {
    let count = Lock(0)
    let transport = ScriptedTransport { _ in .json(#"{"data":{}}"#) }
    let session = APISession(
      url: Self.url, headers: ["authorization": "Basic a"],
      authorization: {
        let number = count.withLock { count in
          count += 1
          return count
        }
        return number == 3 ? nil : "Bearer \(number)"
      },
      transport: transport)
    func post(_ headers: [String: String] = [:]) async throws {
      _ = try await session.post(
        document: "{ a }", operationName: "a", variables: [String: Int](), headers: headers, as: Payload.self)
    }
    for _ in 0..<3 { try await post() }
    try await post(["AUTHORIZATION": "Bearer own"])
    try await post()
    #expect(
      transport.requests.map { $0.headers["Authorization"] } == ["Bearer 1", "Bearer 2", nil, "Bearer own", "Bearer 4"])
  }

  @Test func `The authorization isn't sent to another origin`() async throws {
    let transport = ScriptedTransport { request in
      request.url.host() == "api.example" ? .redirect(307, to: "https://other.example/") : .json(#"{"data":{}}"#)
    }
    let session = APISession(
      url: Self.url, authorization: { "Bearer 1" }, redirects: .hosts(["other.example"]), transport: transport)
    _ = try await session.post(document: "{ a }", operationName: "a", variables: [String: Int](), as: Payload.self)
    #expect(transport.requests.map { $0.headers["Authorization"] } == ["Bearer 1", nil])
  }

  @Test func `An authorization that would corrupt the request is an error`() async throws {
    let transport = ScriptedTransport { _ in .json(#"{"data":{}}"#) }
    await #expect(throws: APISessionError.invalidHeader(name: "Authorization")) {
      try await Self.post(by: transport, authorization: { "a\r\nb: c" })
    }
    #expect(transport.requests.isEmpty)
  }

  @Test func `If the timeout expires while the closure runs, nothing was sent`() async throws {
    let clock = ManualClock()
    let gate = Gate()
    let transport = ScriptedTransport { _ in .json(#"{"data":{}}"#) }
    let call = Task { () async throws in
      try await Self.post(
        by: transport,
        authorization: {
          await gate.pass()
          return "Bearer 1"
        }, clock: clock)
    }
    await gate.arrivals()
    await clock.sleepers()
    clock.advance(by: .seconds(30))
    let error = await #expect(throws: APISessionError.self) { try await call.value }
    guard case .transport(let failure) = error else {
      Issue.record("expected a transport error, got \(String(describing: error))")
      return
    }
    #expect(failure.impliesUnsentRequest)
    #expect(transport.requests.isEmpty)
  }
}

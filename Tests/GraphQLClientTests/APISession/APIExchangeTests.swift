import Foundation
import GraphQLClient
import Multicast
import MulticastTesting
import Testing

/// The exchanges of a session with its transport, without a network.
@Suite(.timeLimit(.minutes(15)))
struct APIExchangeTests {
  private struct Payload: Codable, Equatable {
    let a: Int
  }

  private static let url = URL(string: "https://api.example/graphql")!
  private static let validResponse = HTTPResponse.json(#"{"data":{"a":1}}"#)

  private static func post(
    by transport: ScriptedTransport, headers: [String: String] = [:], maximumReplySize: Int = 1000,
    redirects: RedirectPolicy = .sameOrigin, clock: any Clock<Duration> = ContinuousClock()
  ) async throws(APISessionError) -> Payload {
    let session = APISession(
      url: url, headers: ["Authorization": "Bearer secret", "X-Tenant": "7"], maximumReplySize: maximumReplySize,
      redirects: redirects, transport: transport, clock: clock)
    return try await session.post(
      document: "{ a }", operationName: "a", variables: ["x": 1], headers: headers, as: Payload.self)
  }

  // MARK: - Request

  @Test func `A request posts JSON, and accepts the GraphQL media type and plain JSON`() async throws {
    let transport = ScriptedTransport { _ in Self.validResponse }
    #expect(try await Self.post(by: transport) == Payload(a: 1))
    let request = try #require(transport.requests.first)
    #expect(request.url == Self.url)
    #expect(request.method == "POST")
    #expect(request.headers["Accept"] == "application/graphql-response+json, application/json;q=0.9")
    #expect(request.headers["Content-Type"] == "application/json")
    #expect(request.headers["authorization"] == "Bearer secret")
    #expect(request.timeout == .seconds(30))
    let body = try JSONDecoder().decode([String: JSONValue].self, from: request.body)
    #expect(
      body == ["query": .string("{ a }"), "operationName": .string("a"), "variables": .object(["x": .integer(1)])])
  }

  // MARK: - Redirections

  @Test(arguments: [307, 308])
  func `The target of a redirection to the same origin receives the whole request`(status: Int) async throws {
    let transport = ScriptedTransport { request in
      request.url.path() == "/v2" ? Self.validResponse : .redirect(status, to: "/v2")
    }
    #expect(try await Self.post(by: transport, headers: ["Idempotency-Key": "k"]) == Payload(a: 1))
    let (first, second) = (transport.requests[0], transport.requests[1])
    #expect(second.url.absoluteString == "https://api.example/v2")
    #expect(second.method == "POST")
    #expect(second.body == first.body)
    #expect(second.headers == first.headers)
  }

  @Test func `After a redirection, an allowed host receives none of the caller's headers except the idempotency key`()
    async throws
  {
    let transport = ScriptedTransport { request in
      request.url.host() == "api.example" ? .redirect(308, to: "https://other.example/graphql") : Self.validResponse
    }
    let payload = try await Self.post(
      by: transport, headers: ["Idempotency-Key": "k", "Cookie": "c"], redirects: .hosts(["other.example"]))
    #expect(payload == Payload(a: 1))
    let secrets = transport.requests.map { [$0.headers["Authorization"], $0.headers["X-Tenant"]] }
    #expect(secrets == [["Bearer secret", "7"], [nil, nil]])
    let otherHostHeaders = transport.requests[1].headers
    #expect(otherHostHeaders["Cookie"] == nil)
    #expect(otherHostHeaders["Idempotency-Key"] == "k")
    #expect(otherHostHeaders["Content-Type"] == "application/json")
    #expect(otherHostHeaders["x-app-platform"] == APISession.defaultHeaders()["x-app-platform"])
  }

  @Test(arguments: [
    (301, "https://api.example/v2"), (302, "/login"), (303, "/v2"), (307, "https://evil.example/graphql"),
    (307, "http://api.example/graphql"), (308, "https://api.example:444/graphql"), (307, "javascript:1"), (307, ""),
  ])
  func `A redirection that is not followed is reported as a response that is not from the API`(
    status: Int, location: String
  ) async throws {
    let transport = ScriptedTransport { _ in .redirect(status, to: location) }
    await #expect(throws: APISessionError.notAnAPIResponse(status: status, location: location, bodyExcerpt: "")) {
      try await Self.post(by: transport)
    }
    #expect(transport.requests.count == 1)
  }

  @Test func `A redirection loop ends after five redirections, or before the first under the policy 'never'`()
    async throws
  {
    let transport = ScriptedTransport { _ in .redirect(307, to: "/graphql") }
    await #expect(throws: APISessionError.notAnAPIResponse(status: 307, location: "/graphql", bodyExcerpt: "")) {
      try await Self.post(by: transport)
    }
    // The original request, and one for each redirection.
    #expect(transport.requests.count == 6)
    let secondTransport = ScriptedTransport { _ in .redirect(307, to: "/graphql") }
    await #expect(throws: APISessionError.self) { try await Self.post(by: secondTransport, redirects: .never) }
    #expect(secondTransport.requests.count == 1)
  }

  // MARK: - Timeout

  @Test func `If the transport does not answer, the call times out and cancels the exchange`() async throws {
    let clock = ManualClock()
    let gate = Gate()
    let transport = ScriptedTransport { _ throws(URLError) in
      // Nothing opens the gate, so this wait ends only when the exchange is cancelled.
      await gate.pass()
      throw URLError(Task.isCancelled ? .cancelled : .unknown)
    }
    let call = Task { () async throws in try await Self.post(by: transport, clock: clock) }
    await gate.arrivals()
    await clock.sleepers()
    clock.advance(by: .seconds(29))
    // The timeout is the only sleep.
    #expect(clock.pendingSleeps == [.seconds(1)])
    clock.advance(by: .seconds(1))
    await #expect(throws: APISessionError.timedOut) { try await call.value }
    #expect(transport.requests.count == 1)
  }

  @Test func `The timeout covers the body and the redirections`() async throws {
    let clock = ManualClock()
    let redirectionGate = Gate()
    let (chunks, chunkContinuation) = AsyncStream<Data>.makeStream()
    let transport = ScriptedTransport { request in
      if request.url.path() == "/graphql" { return .redirect(307, to: "/v2") }
      redirectionGate.open()
      return HTTPResponse(
        status: 200, headers: ["Content-Type": "application/json"],
        body: HTTPBody(chunks, translatingErrors: { _ in URLError(.unknown) }))
    }
    let call = Task { () async throws in try await Self.post(by: transport, clock: clock) }
    await redirectionGate.pass()
    await clock.sleepers()
    chunkContinuation.yield(Data(#"{"data""#.utf8))
    clock.advance(by: .seconds(30))
    await #expect(throws: APISessionError.timedOut) { try await call.value }
    #expect(transport.requests.count == 2)
  }

  // MARK: - Transport failures

  @Test(arguments: [URLError.Code.timedOut, .cancelled, .notConnectedToInternet])
  func `A transport failure is reported as a timeout or as a transport error`(code: URLError.Code) async throws {
    let transport = ScriptedTransport { _ throws(URLError) in throw URLError(code) }
    // The system cancels requests too. Only a cancellation by the caller is reported as `.cancelled`.
    let expected: APISessionError = code == .timedOut ? .timedOut : .transport(URLError(code))
    await #expect(throws: expected) { try await Self.post(by: transport) }
  }

  @Test func `A transport failure that quotes the server is sanitized`() async throws {
    let transport = ScriptedTransport { _ throws(URLError) in
      throw URLError(
        .badServerResponse, userInfo: [NSLocalizedDescriptionKey: "bad \u{1B}[2J" + String(repeating: "x", count: 4000)]
      )
    }
    let error = await #expect(throws: APISessionError.self) { try await Self.post(by: transport) }
    guard case .transport(let failure) = error else {
      Issue.record("expected a transport error, got \(String(describing: error))")
      return
    }
    #expect(failure.code == .badServerResponse)
    #expect(failure.localizedDescription.hasPrefix("bad  [2Jxxx"))
    #expect(failure.localizedDescription.count == 512)  // `APISessionError.excerptLength`
  }

  @Test func `If the connection is lost during the body of a failure, the error still has the status`() async throws {
    let transport = ScriptedTransport { _ in
      let (chunks, chunkContinuation) = AsyncThrowingStream<Data, any Error>.makeStream()
      chunkContinuation.yield(Data("half of the wor".utf8))
      chunkContinuation.finish(throwing: URLError(.networkConnectionLost))
      return HTTPResponse(
        status: 503, headers: ["Content-Type": "text/plain", "Retry-After": "7"],
        body: HTTPBody(chunks, translatingErrors: { $0 as? URLError ?? URLError(.unknown) }))
    }
    await #expect(throws: APISessionError.statusCode(503, bodyExcerpt: "half of the wor", retryAfter: .seconds(7))) {
      try await Self.post(by: transport)
    }
  }

  // MARK: - Sizes

  @Test func `A body is read up to the first chunk that exceeds the limit`() async throws {
    let readCount = Lock(0)
    let transport = ScriptedTransport { _ in
      let chunks = AsyncStream { () -> Data? in
        readCount.withLock { $0 += 1 }
        return Data(repeating: UInt8(ascii: " "), count: 100)
      }
      return HTTPResponse(
        status: 200, headers: ["Content-Type": "application/json"],
        body: HTTPBody(chunks, translatingErrors: { _ in URLError(.unknown) }))
    }
    await #expect(throws: APISessionError.replyTooLarge(limit: 1000)) { try await Self.post(by: transport) }
    // Ten chunks of 100 bytes reach the limit, and the eleventh exceeds it.
    #expect(readCount.withLock { $0 } == 11)
  }

  @Test func `A body with a declared length beyond the limit is not read`() async throws {
    let readCount = Lock(0)
    let transport = ScriptedTransport { _ in
      let chunks = AsyncStream { () -> Data? in
        readCount.withLock { $0 += 1 }
        return nil
      }
      return HTTPResponse(
        status: 200, headers: ["Content-Type": "application/json", "Content-Length": "1001"],
        body: HTTPBody(chunks, translatingErrors: { _ in URLError(.unknown) }))
    }
    await #expect(throws: APISessionError.replyTooLarge(limit: 1000)) { try await Self.post(by: transport) }
    #expect(readCount.withLock { $0 } == 0)
  }

  // MARK: - Long responses

  /// The number of responses that are decoded at the same time.
  private static let decoderCount = 16

  private static let rendezvous = Rendezvous(count: decoderCount)

  /// Blocks threads until a given number of them are blocked.
  private final class Rendezvous: Sendable {
    private let count: Int
    private let arrivalCount = Lock(0)
    private let completion = DispatchSemaphore(value: 0)

    init(count: Int) {
      self.count = count
    }

    func meet() {
      let arrivalNumber = arrivalCount.withLock { arrivalCount in
        arrivalCount += 1
        return arrivalCount
      }
      if arrivalNumber == count { for _ in 1..<count { completion.signal() } } else { completion.wait() }
    }
  }

  /// A payload whose decoding blocks until `decoderCount` payloads are being decoded at the same time.
  private struct BlockingPayload: Decodable {
    init(from decoder: any Decoder) throws {
      APIExchangeTests.rendezvous.meet()
    }
  }

  @Test func `A long response is decoded outside the threads of Swift concurrency`() async throws {
    let padding = String(repeating: " ", count: 64 * 1024)
    let transport = ScriptedTransport { _ in .json(#"{"data":{"a":1}}"# + padding) }
    let session = APISession(url: Self.url, transport: transport)
    // Swift concurrency has one thread per core. On fewer than `decoderCount` cores, its threads would never run all
    // decoders at the same time.
    await withTaskGroup { group in
      for _ in 0..<Self.decoderCount {
        group.addTask {
          await #expect(throws: Never.self) {
            _ = try await session.post(
              document: "{ a }", operationName: "a", variables: [String: Int](), as: BlockingPayload.self)
          }
        }
      }
    }
  }

  // MARK: - Invalid requests

  @Test(arguments: [
    "X-Name": "a\r\nX-Smuggled: b", "X Name": "a", "": "a", "X-Nul": "a\0b", "X-Näme": "a", "X-Colon:": "a",
  ])
  func `A header that would corrupt the request is an error`(name: String, value: String) async throws {
    let transport = ScriptedTransport { _ in Self.validResponse }
    await #expect(throws: APISessionError.invalidHeader(name: name)) {
      try await Self.post(by: transport, headers: [name: value])
    }
    #expect(transport.requests.isEmpty)
  }

  @Test(arguments: ["file:///etc/hosts", "ftp://127.0.0.1/graphql", "data:,hello", "graphql", "http:///graphql"])
  func `A URL that is not an HTTP URL with a host is an error`(address: String) async throws {
    let transport = ScriptedTransport { _ in Self.validResponse }
    let session = APISession(url: try #require(URL(string: address)), transport: transport)
    await #expect(throws: APISessionError.unsupportedURL(address)) {
      _ = try await session.post(document: "{ a }", operationName: "a", variables: [String: Int](), as: Payload.self)
    }
    #expect(transport.requests.isEmpty)
  }

  @Test func `Variables that cannot be encoded as JSON are an error`() async throws {
    let transport = ScriptedTransport { _ in Self.validResponse }
    let session = APISession(url: Self.url, transport: transport)
    let error = await #expect(throws: APISessionError.self) {
      _ = try await session.post(
        document: "{ a }", operationName: "a", variables: ["x": Double.nan], as: Payload.self)
    }
    guard case .unencodableVariables(let reason) = error else {
      Issue.record("expected unencodable variables, got \(String(describing: error))")
      return
    }
    #expect(reason.hasSuffix("at variables.x"))
    #expect(transport.requests.isEmpty)
  }
}

import Foundation
import GraphQLClient
import MulticastTesting
import TestSupport
import Testing

/// The requirements of `HTTPTransport`, checked over real sockets for every transport that can meet them.
///
/// `URLSessionTransport` on Linux doesn't meet all of them.
@Suite(.timeLimit(.minutes(15)))
struct HTTPTransportTests {
  private static func request(_ url: URL, headers: HTTPHeaders = [:], body: String = "{}") -> HTTPRequest {
    // The timeout is very long, because the machine may be busy with other tests.
    HTTPRequest(url: url, method: "POST", headers: headers, body: Data(body.utf8), timeout: .seconds(1_000))
  }

  /// Sends a request to a server that answers with `script`, and reads the whole response.
  private static func performExchange(
    _ kind: TransportKind, _ script: ScriptedServer.Script, headers: HTTPHeaders = [:]
  ) async throws -> (status: Int, headers: HTTPHeaders, body: String, requestHead: String) {
    let transport = try kind.makeTransport()
    let (result, requestHead) = try await ScriptedServer.run(script) { url in
      let response = try await transport.send(Self.request(url, headers: headers))
      var body = Data()
      for try await chunk in response.body { body += chunk }
      return (response.status, response.headers, String(decoding: body, as: UTF8.self))
    }
    let (status, headers, body) = try result.get()
    return (status, headers, body, requestHead)
  }

  /// A script that closes the connection without a response.
  private static let noResponse = ScriptedServer.Script(Data())

  /// Performs an exchange, and returns its error; `nil` if it succeeds.
  private static func exchangeError(_ kind: TransportKind, _ script: ScriptedServer.Script) async throws -> URLError? {
    do {
      _ = try await performExchange(kind, script)
      return nil
    } catch let error as URLError {
      return error
    }
  }

  @Test(arguments: TransportKind.allCases)
  func `The server receives the request, and the caller receives the status, the headers and the body`(
    kind: TransportKind
  ) async throws {
    let (status, headers, body, requestHead) = try await Self.performExchange(
      kind, .init(head: ["HTTP/1.1 418 Teapot", "X-A: 1", "x-b:  2 ", "Content-Length: 5"], body: "short"),
      headers: ["X-Name": "值 a: b", "X-Empty": "", "User-Agent": "test"])
    #expect(status == 418)
    #expect(headers["X-a"] == "1")
    #expect(headers["X-B"] == "2")
    #expect(body == "short")
    let requestLines = requestHead.components(separatedBy: "\r\n")
    #expect(requestLines.first == "POST /graphql HTTP/1.1")
    #expect(requestLines.contains("X-Name: 值 a: b"))
    #expect(requestLines.contains { $0.lowercased().trimmingCharacters(in: .whitespaces) == "x-empty:" })
    #expect(requestLines.contains { $0.lowercased() == "content-length: 2" })
    #expect(requestLines.contains { $0.lowercased() == "user-agent: test" })
    #expect(!requestLines.contains { $0.lowercased().hasPrefix("expect:") })
  }

  @Test(arguments: TransportKind.allCases, [301, 302, 303, 307, 308])
  func `A redirection is returned as a response`(kind: TransportKind, status: Int) async throws {
    let response = try await Self.performExchange(
      kind,
      .init(
        head: ["HTTP/1.1 \(status) Elsewhere", "Location: http://127.0.0.1:1/graphql", "Content-Length: 5"],
        body: "there"))
    #expect(response.status == status)
    #expect(response.headers["Location"] == "http://127.0.0.1:1/graphql")
  }

  @Test(
    arguments: TransportKind.allCases,
    ["Bearer", "Bearer realm=\"moments\"", "Basic realm=\"moments\"", "Digest realm=\"moments\", nonce=\"1\""])
  func `An authentication challenge is returned as a response`(kind: TransportKind, challenge: String) async throws {
    let response = try await Self.performExchange(
      kind,
      .init(head: ["HTTP/1.1 401 Unauthorized", "WWW-Authenticate: \(challenge)", "Content-Length: 2"], body: "no"))
    #expect(response.status == 401)
    #expect(response.body == "no")
  }

  @Test(arguments: TransportKind.allCases, [100, 102, 103])
  func `Interim responses are skipped`(kind: TransportKind, status: Int) async throws {
    let interim = "HTTP/1.1 \(status) Wait\r\nX-A: 1\r\n\r\n"
    let final = "HTTP/1.1 200 OK\r\nX-B: 2\r\nContent-Length: 4\r\n\r\ndone"
    let response = try await Self.performExchange(kind, .init(Data((interim + interim + final).utf8)))
    #expect(response.status == 200)
    #expect(response.headers["X-B"] == "2")
    #expect(response.body == "done")
  }

  @Test(arguments: TransportKind.allCases)
  func `The chunks of a body are joined, and a compressed body is decompressed`(kind: TransportKind) async throws {
    let trailers = kind.survivesHostileServers ? "X-T: 1\r\n" : ""
    let chunked = try await Self.performExchange(
      kind,
      .init(
        head: ["HTTP/1.1 200 OK", "Transfer-Encoding: chunked"],
        body: "3\r\none\r\n4\r\n two\r\n0\r\n\(trailers)\r\n"))
    #expect(chunked.body == "one two")
    // `gzip -n` of "done".
    let zipped = try #require(Data(base64Encoded: "H4sIAAAAAAAAA0vJz0sFAKvgLRAEAAAA"))
    let head = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: \(zipped.count)\r\n\r\n"
    #expect(try await Self.performExchange(kind, .init(Data(head.utf8) + zipped)).body == "done")
  }

  @Test(arguments: TransportKind.allCases)
  func `An invalid request throws, and the server receives nothing`(kind: TransportKind) async throws {
    let transport = try kind.makeTransport()
    let (result, requestHead) = try await ScriptedServer.run(.json("{}")) { url in
      var requestWithInvalidMethod = Self.request(url)
      requestWithInvalidMethod.method = "POST /other HTTP/1.1\r\nX:"
      let requests = [
        (Self.request(url, headers: ["X-A": "1\r\nX-B: 2"]), URLError.Code.badURL),
        (requestWithInvalidMethod, .badURL),
        (Self.request(URL(filePath: "/etc/hosts")), .unsupportedURL),
      ]
      for (request, code) in requests {
        let error = await #expect(throws: URLError.self) { _ = try await transport.send(request) }
        #expect(error?.code == code)
      }
    }
    try result.get()
    #expect(requestHead.isEmpty)
  }

  @Test(arguments: TransportKind.allCases)
  func `The response to a HEAD request has no body`(kind: TransportKind) async throws {
    // The server keeps the connection open until the transport is released.
    let script = ScriptedServer.Script(head: ["HTTP/1.1 200 OK", "Content-Length: 16"], ending: .waitForClient)
    let (result, requestHead) = try await ScriptedServer.run(script) { url in
      let response = try await kind.makeTransport().send(
        HTTPRequest(url: url, method: "HEAD", timeout: .seconds(1_000)))
      #expect(response.headers["Content-Length"] == "16")
      for try await _ in response.body { Issue.record("There is a body.") }
    }
    try result.get()
    #expect(requestHead.hasPrefix("HEAD /graphql HTTP/1.1\r\n"))
  }

  @Test(arguments: TransportKind.allCases)
  func `A transport can be released while a cancelled call begins`(kind: TransportKind) async throws {
    let url = try #require(URL(string: "http://127.0.0.1:1/graphql"))
    for _ in 0..<200 {
      var transport: (any HTTPTransport)? = try kind.makeTransport()
      let call = Task { [transport] () async throws in _ = try await transport?.send(Self.request(url)) }
      // After this, only the call's task refers to the transport, and the task may end before the exchange begins.
      transport = nil
      call.cancel()
      _ = await call.result
    }
  }

  // On Linux, `URLSession` uses libcurl, which resends the request if a reused connection closes without a response.
  // `CurlTransport` forbids this.
  @Test(arguments: TransportKind.allCases.filter(\.survivesHostileServers))
  func `A request is sent only once, even if a reused connection is closed without a response`(
    kind: TransportKind
  ) async throws {
    let transport = try kind.makeTransport()
    let server = try ScriptedServer()
    Thread.detachNewThread { server.serveRequestedScripts() }
    func ask(_ script: ScriptedServer.Script) async throws -> String {
      let requestBody = try JSONEncoder().encode(["variables": ScriptedServer.RequestedScript(script)])
      let response = try await transport.send(
        HTTPRequest(url: server.url, method: "POST", body: requestBody, timeout: .seconds(1_000)))
      var body = Data()
      for try await chunk in response.body { body += chunk }
      return String(decoding: body, as: UTF8.self)
    }
    #expect(try await ask(.json("1", ending: .keepAlive)) == "1")
    let error = await #expect(throws: URLError.self) { _ = try await ask(Self.noResponse) }
    #expect(error?.code == .networkConnectionLost)
    #expect(server.servedCount == 2)
    #expect(try await ask(.json("2")) == "2")
  }

  @Test(arguments: TransportKind.allCases)
  func `A refused connection is reported as cannotConnectToHost`(kind: TransportKind) async throws {
    let transport = try kind.makeTransport()
    // No server listens on port 1.
    let url = try #require(URL(string: "http://127.0.0.1:1/graphql"))
    let error = await #expect(throws: URLError.self) { _ = try await transport.send(Self.request(url)) }
    #expect(error?.code == .cannotConnectToHost)
  }

  @Test(arguments: TransportKind.allCases)
  func `A truncated response fails`(kind: TransportKind) async throws {
    #expect(try await Self.exchangeError(kind, Self.noResponse) != nil)
    #expect(
      try await Self.exchangeError(kind, .init(head: ["HTTP/1.1 200 OK", "Content-Length: 9"], body: "short")) != nil)
    if kind.survivesHostileServers {
      #expect(try await Self.exchangeError(kind, .init(Data("HTTP/1.1 200 OK\r\nX-A: 1\r\n".utf8))) != nil)
    }
  }

  @Test(arguments: TransportKind.allCases)
  func `Releasing a transport closes its connections`(kind: TransportKind) async throws {
    // This call returns only after the client has closed the connection.
    let (result, _) = try await ScriptedServer.run(.json("{}", ending: .waitForClient)) { url in
      let response = try await kind.makeTransport().send(Self.request(url))
      for try await _ in response.body {}
    }
    try result.get()
  }

  @Test(arguments: TransportKind.allCases)
  func `Releasing a response and its iterator before the end of the body closes the connection`(kind: TransportKind)
    async throws
  {
    let transport = try kind.makeTransport()
    let script = ScriptedServer.Script(head: ["HTTP/1.1 200 OK"], body: "begun", ending: .trickle)
    let (result, _) = try await ScriptedServer.run(script) { url in
      var response: HTTPResponse? = try await transport.send(Self.request(url))
      var chunks = response?.body.makeAsyncIterator()
      response = nil
      #expect(try await chunks?.next() != nil)
      chunks = nil
    }
    try result.get()
    // Releasing the transport earlier would close the connection, too.
    withExtendedLifetime(transport) {}
  }

  @Test(arguments: TransportKind.allCases)
  func `Cancelling a call before the head arrives ends the call, and leaves no connection open`(kind: TransportKind)
    async throws
  {
    let transport = try kind.makeTransport()
    let (result, _) = try await ScriptedServer.run(.init(Data("HTTP/1.1 200 OK\r\n".utf8), ending: .waitForClient)) {
      url in
      let call = Task { () async throws in _ = try await transport.send(Self.request(url)) }
      call.cancel()
      let error = await #expect(throws: URLError.self) { try await call.value }
      #expect(error?.code == .cancelled)
    }
    try result.get()
  }

  @Test(arguments: TransportKind.allCases)
  func `Cancelling ends the wait for a chunk, and closes the connection`(kind: TransportKind) async throws {
    let transport = try kind.makeTransport()
    let script = ScriptedServer.Script(head: ["HTTP/1.1 200 OK"], body: "begun", ending: .waitForClient)
    let (result, _) = try await ScriptedServer.run(script) { url in
      let response = try await transport.send(Self.request(url))
      let firstChunkGate = Gate()
      let call = Task { () async throws -> Int in
        var byteCount = 0
        for try await chunk in response.body {
          byteCount += chunk.count
          firstChunkGate.open()
        }
        return byteCount
      }
      await firstChunkGate.pass()
      call.cancel()
      let error = await #expect(throws: URLError.self) { _ = try await call.value }
      #expect(error?.code == .cancelled)
    }
    try result.get()
    // Releasing the transport earlier would close the connection, too.
    withExtendedLifetime(transport) {}
  }

  @Test(arguments: TransportKind.allCases)
  func `A call from a task that is already cancelled sends nothing`(kind: TransportKind) async throws {
    let transport = try kind.makeTransport()
    let (result, requestHead) = try await ScriptedServer.run(.json("{}")) { url in
      let call = Task { () async throws in
        withUnsafeCurrentTask { $0?.cancel() }
        _ = try await transport.send(Self.request(url))
      }
      let error = await #expect(throws: URLError.self) { try await call.value }
      #expect(error?.code == .cancelled)
    }
    try result.get()
    #expect(requestHead.isEmpty)
  }

  // On Linux, `URLSessionTransport` can't pause a response.
  @Test(arguments: TransportKind.allCases.filter(\.survivesHostileServers))
  func `A body that is not consumed takes only limited memory`(kind: TransportKind) async throws {
    let transport = try kind.makeTransport()
    let flood = ScriptedServer.Script(
      head: ["HTTP/1.1 200 OK"], ending: .flood(Data(repeating: UInt8(ascii: " "), count: 65536)))
    let server = try ScriptedServer()
    Thread.detachNewThread { server.serveRequestedScripts() }
    let requestBody = try JSONEncoder().encode(["variables": ScriptedServer.RequestedScript(flood)])
    let response = try await transport.send(
      HTTPRequest(url: server.url, method: "POST", body: requestBody, timeout: .seconds(1_000)))
    let initialMemory = try Self.residentMemory()
    // Other transports can perform exchanges while this body isn't consumed.
    for _ in 0..<20 {
      let otherResponse = try await Self.performExchange(kind, .json("{}"))
      #expect(otherResponse.body == "{}")
    }
    var chunks = response.body.makeAsyncIterator()
    #expect(try await chunks.next() != nil)
    // A transport that didn't pause would hold gigabytes by now. The limit of 1 GiB is generous, because other tests
    // run in the same process.
    #expect(try Self.residentMemory() - initialMemory < 1 << 30)
  }

  @Test(arguments: TransportKind.allCases)
  func `Each of 100 concurrent exchanges receives its own response`(
    kind: TransportKind
  ) async throws {
    let transport = try kind.makeTransport()
    let server = try ScriptedServer()
    Thread.detachNewThread { server.serveRequestedScripts() }
    let bodies = try await withThrowingTaskGroup { group in
      for index in 0..<100 {
        group.addTask {
          let requestBody = try JSONEncoder().encode([
            "variables": ScriptedServer.RequestedScript(.json("\(index)", ending: .keepAlive))
          ])
          let response = try await transport.send(
            HTTPRequest(url: server.url, method: "POST", body: requestBody, timeout: .seconds(1_000)))
          var body = Data()
          for try await chunk in response.body { body += chunk }
          return (index, String(decoding: body, as: UTF8.self))
        }
      }
      return try await group.reduce(into: [Int: String]()) { $0[$1.0] = $1.1 }
    }
    #expect(bodies == Dictionary(uniqueKeysWithValues: (0..<100).map { ($0, "\($0)") }))
  }

  /// Returns the resident memory in bytes, assuming pages of 4 KiB; 0 if the system doesn't report it.
  private static func residentMemory() throws -> Int {
    guard let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8) else { return 0 }
    let pages = text.split(separator: " ").dropFirst().first.flatMap { Int($0) }
    return try #require(pages) * 4096
  }
}

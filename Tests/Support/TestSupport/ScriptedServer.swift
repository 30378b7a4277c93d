package import Foundation
internal import Multicast

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// An HTTP server on the loopback interface that answers with given bytes, whether or not they are well-formed.
package struct ScriptedServer {
  /// The response to a request.
  package struct Script: Codable, Sendable {
    /// The action after the bytes are sent.
    package enum Ending: Codable, Sendable {
      case close
      /// Wait until the client closes the connection.
      case waitForClient
      /// Send a space every 10 milliseconds until the client closes the connection.
      case trickle
      /// Send the given bytes repeatedly until the client closes the connection.
      case flood(Data)
      /// Answer the next request on the same connection.
      case keepAlive
    }

    package var bytes: Data
    /// The bytes that are sent `repetitionCount` times after `bytes`.
    package var repeated: Data
    package var repetitionCount: Int
    package var ending: Ending

    package init(_ bytes: Data, repeating repeated: Data = Data(), count: Int = 0, ending: Ending = .close) {
      self.bytes = bytes
      self.repeated = repeated
      repetitionCount = count
      self.ending = ending
    }

    /// Creates a script from a body and the lines of a head.
    ///
    /// - Parameters:
    ///   - head: The status line and the headers, without the empty line that follows them.
    ///   - body: The body, as it is sent.
    ///   - ending: The action after the response is sent.
    package init(head: [String], body: String = "", ending: Ending = .close) {
      self.init(Data((head.map { $0 + "\r\n" }.joined() + "\r\n" + body).utf8), ending: ending)
    }

    /// Returns a response with the status 200, a JSON body, and its length.
    package static func json(_ body: String, ending: Ending = .close) -> Script {
      Script(
        head: ["HTTP/1.1 200 OK", "Content-Type: application/json", "Content-Length: \(body.utf8.count)"], body: body,
        ending: ending)
    }
  }

  /// The variables of a GraphQL request that contains the script of its own response.
  package struct RequestedScript: Codable, Sendable {
    package let script: Script

    package init(_ script: Script) {
      self.script = script
    }
  }

  package struct SocketFailure: Error {
    let operation: String
    let code: Int32
  }

  private let listener: Int32
  private let servedRequests = Counter()

  /// The number of requests with a script that ``serveRequestedScripts()`` has received.
  package var servedCount: Int { servedRequests.count.withLock { $0 } }

  private final class Counter: Sendable {
    let count = Lock(0)
  }

  /// The URL for requests.
  package let url: URL

  /// Listens on a free port.
  package init() throws {
    listener = try Self.listen()
    url = URL(string: "http://127.0.0.1:\(try Self.port(of: listener))/graphql")!
  }

  /// Calls `body` with the server's URL, answers one request, and returns the result of `body` and the head of the
  /// request.
  ///
  /// The connection is then closed, even after ``Script/Ending/keepAlive``. The head is empty if no complete request
  /// arrived. The call returns only after the answer has ended; with some endings, the client must first close the
  /// connection.
  package static func run<Result>(
    _ script: Script,
    isolation: isolated (any Actor)? = #isolation,
    _ body: (URL) async throws -> sending Result
  ) async throws -> (result: Swift.Result<Result, any Error>, request: String) {
    let server = try ScriptedServer()
    let (requestHeads, headContinuation) = AsyncStream<String>.makeStream()
    Thread.detachNewThread {
      headContinuation.yield(server.answerOneRequest(with: script))
      headContinuation.finish()
    }
    let result: Swift.Result<Result, any Error>
    do {
      result = .success(try await body(server.url))
    } catch {
      result = .failure(error)
    }
    try server.wakeUp()
    var requestHead = ""
    for await head in requestHeads { requestHead = head }
    close(server.listener)
    return (result, requestHead)
  }

  /// Serves any number of connections until the process ends, and answers each request with its ``RequestedScript``.
  package func serveRequestedScripts() -> Never {
    while true {
      let connection = acceptConnection()
      guard connection >= 0 else { continue }
      Thread.detachNewThread { serveRequestedScripts(on: connection) }
    }
  }

  private func serveRequestedScripts(on connection: Int32) {
    struct Request: Decodable {
      let variables: RequestedScript
    }
    defer { Self.end(connection) }
    var unprocessed: [UInt8] = []
    while let request = Self.readRequest(from: connection, &unprocessed) {
      guard let script = try? JSONDecoder().decode(Request.self, from: Data(request.body)).variables.script
      else { return }
      servedRequests.count.withLock { $0 += 1 }
      guard Self.answer(with: script, on: connection) else { return }
    }
  }

  /// Reads a request, answers it, and returns its head, or an empty string if no complete request arrived.
  private func answerOneRequest(with script: Script) -> String {
    let connection = acceptConnection()
    guard connection >= 0 else { return "" }
    defer { Self.end(connection) }
    var unprocessed: [UInt8] = []
    guard let request = Self.readRequest(from: connection, &unprocessed) else { return "" }
    _ = Self.answer(with: script, on: connection)
    return request.head
  }

  /// Answers a request, and returns whether to read another one from the connection.
  private static func answer(with script: Script, on connection: Int32) -> Bool {
    guard send(script.bytes, to: connection),
      send(repetition(of: script.repeated, count: script.repetitionCount), to: connection)
    else { return false }
    switch script.ending {
    case .close:
      break
    case .waitForClient:
      var byte: UInt8 = 0
      while recv(connection, &byte, 1, 0) > 0 {}
    case .trickle:
      while send(Data(" ".utf8), to: connection) { Thread.sleep(forTimeInterval: 0.01) }
    case .flood(let bytes):
      // A block has more than 64 KiB, so that a call sends many bytes.
      let block = repetition(of: bytes, count: 65_536 / bytes.count + 1)
      while send(block, to: connection) {}
    case .keepAlive:
      return true
    }
    return false
  }

  private static func repetition(of bytes: Data, count: Int) -> Data {
    var repeated = Data(capacity: bytes.count * count)
    for _ in 0..<count { repeated.append(bytes) }
    return repeated
  }

  // MARK: - Sockets

  /// Ends a connection, even if a child process that started in the meantime has inherited it.
  private static func end(_ connection: Int32) {
    shutdown(connection, Int32(SHUT_WR))
    close(connection)
  }

  private func acceptConnection() -> Int32 {
    let connection = accept(listener, nil, nil)
    // On Darwin, `SO_NOSIGPIPE` must be set before the first response, because setting it fails once the client has
    // closed the connection.
    if connection >= 0 { StreamSocket.disableSIGPIPE(of: connection) }
    return connection
  }

  private static func listen() throws -> Int32 {
    let descriptor = socket(AF_INET, StreamSocket.type, 0)
    guard descriptor >= 0 else { throw SocketFailure(operation: "socket", code: errno) }
    let bindResult = withAddress(port: 0) { bind(descriptor, $0, $1) }
    #if canImport(Darwin)
      let listenResult = Darwin.listen(descriptor, 128)
    #elseif canImport(Glibc)
      let listenResult = Glibc.listen(descriptor, 128)
    #else
      let listenResult = Musl.listen(descriptor, 128)
    #endif
    guard bindResult == 0, listenResult == 0 else {
      defer { close(descriptor) }
      throw SocketFailure(operation: "bind and listen", code: errno)
    }
    return descriptor
  }

  /// Connects to the server and closes the connection, so that a thread that still waits for a client continues.
  ///
  /// On Linux, a shutdown of the listener would be enough. On Darwin, it doesn't affect a waiting thread.
  private func wakeUp() throws {
    let connection = socket(AF_INET, StreamSocket.type, 0)
    guard connection >= 0 else { throw SocketFailure(operation: "socket", code: errno) }
    defer { Self.end(connection) }
    let connectResult = Self.withAddress(port: try Self.port(of: listener)) { connect(connection, $0, $1) }
    guard connectResult == 0 else { throw SocketFailure(operation: "connect", code: errno) }
  }

  /// Calls `body` with the address of a port on the loopback interface, 127.0.0.1.
  private static func withAddress<Result>(
    port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
  ) -> Result {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return withUnsafeBytes(of: &address) {
      body($0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t(MemoryLayout<sockaddr_in>.size))
    }
  }

  private static func port(of listener: Int32) throws -> UInt16 {
    var address = sockaddr_in()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = withUnsafeMutableBytes(of: &address) {
      getsockname(listener, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), &length)
    }
    guard result == 0 else { throw SocketFailure(operation: "getsockname", code: errno) }
    return UInt16(bigEndian: address.sin_port)
  }

  /// Reads the next request; `nil` if the client has closed the connection.
  ///
  /// - Parameters:
  ///   - connection: The descriptor of the connection.
  ///   - unprocessed: The bytes that were received after the end of the previous request; updated for the next call.
  private static func readRequest(
    from connection: Int32, _ unprocessed: inout [UInt8]
  ) -> (head: String, body: [UInt8])? {
    var buffer = [UInt8](repeating: 0, count: 65536)
    let separator = Array("\r\n\r\n".utf8)
    while true {
      if let separatorRange = unprocessed.firstRange(of: separator) {
        let head = String(decoding: unprocessed[..<separatorRange.lowerBound], as: UTF8.self)
        let bodyStart = separatorRange.upperBound
        let bodyLength = head.firstMatch(of: /(?i)content-length: (\d+)/).flatMap { Int($0.output.1) } ?? 0
        if unprocessed.count - bodyStart >= bodyLength {
          let body = Array(unprocessed[bodyStart..<bodyStart + bodyLength])
          unprocessed.removeFirst(bodyStart + bodyLength)
          return (head, body)
        }
      }
      let count = recv(connection, &buffer, buffer.count, 0)
      guard count > 0 else { return nil }
      unprocessed += buffer[..<count]
    }
  }

  /// Sends all bytes, and returns false if the client has closed the connection.
  private static func send(_ bytes: Data, to connection: Int32) -> Bool {
    bytes.withUnsafeBytes { bytes in
      var sent = 0
      while sent < bytes.count {
        let count = StreamSocket.send(UnsafeRawBufferPointer(rebasing: bytes[sent...]), to: connection)
        guard count > 0 else { return false }
        sent += count
      }
      return true
    }
  }
}

import Foundation

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// An HTTP server on loopback that answers its first request with the bytes it is given, well formed or not.
struct ScriptedServer {
  /// What to send.
  struct Script: Sendable {
    /// The status line and headers, without the empty line after them.
    var head: [String]
    /// The body, as sent.
    var body = ""
    /// Whether to leave the reply unfinished, and wait for the client to close the connection.
    var staysOpen = false
    /// Whether to send spaces after the body, a hundred in a second, until the client closes the connection.
    var trickles = false

    fileprivate var bytes: [UInt8] {
      Array((head.map { $0 + "\r\n" }.joined() + "\r\n" + body).utf8)
    }
  }

  struct SocketFailure: Error {
    let operation: String
    let code: Int32
  }

  /// Serves one connection while `body` runs; gives the result of `body` and the request's head as received.
  static func run<Result>(
    _ script: Script,
    isolation: isolated (any Actor)? = #isolation,
    _ body: (URL) async throws -> sending Result
  ) async throws -> (result: Swift.Result<Result, any Error>, request: String) {
    let listener = try listen()
    let (requests, request) = AsyncStream<String>.makeStream()
    Thread.detachNewThread {
      request.yield(serve(script, on: listener))
      request.finish()
    }
    let result: Swift.Result<Result, any Error>
    do {
      let url = URL(string: "http://127.0.0.1:\(try port(of: listener))/graphql")!
      result = .success(try await body(url))
    } catch {
      result = .failure(error)
    }
    shutdown(listener, Int32(SHUT_RDWR))
    var received = ""
    for await request in requests { received = request }
    close(listener)
    return (result, received)
  }

  private static func listen() throws -> Int32 {
    #if canImport(Darwin)
      let stream = SOCK_STREAM
    #else
      let stream = Int32(SOCK_STREAM.rawValue)
    #endif
    let descriptor = socket(AF_INET, stream, 0)
    guard descriptor >= 0 else { throw SocketFailure(operation: "socket", code: errno) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let bound = withUnsafeBytes(of: &address) {
      bind(
        descriptor, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self),
        socklen_t(MemoryLayout<sockaddr_in>.size))
    }
    #if canImport(Darwin)
      let listening = Darwin.listen(descriptor, 8)
    #elseif canImport(Glibc)
      let listening = Glibc.listen(descriptor, 8)
    #else
      let listening = Musl.listen(descriptor, 8)
    #endif
    guard bound == 0, listening == 0 else {
      defer { close(descriptor) }
      throw SocketFailure(operation: "bind and listen", code: errno)
    }
    return descriptor
  }

  private static func port(of listener: Int32) throws -> UInt16 {
    var address = sockaddr_in()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let found = withUnsafeMutableBytes(of: &address) {
      getsockname(listener, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), &length)
    }
    guard found == 0 else { throw SocketFailure(operation: "getsockname", code: errno) }
    return UInt16(bigEndian: address.sin_port)
  }

  /// Reads a request, answers it, and gives its head; empty if no client came.
  private static func serve(_ script: Script, on listener: Int32) -> String {
    let connection = accept(listener, nil, nil)
    guard connection >= 0 else { return "" }
    defer { close(connection) }
    let head = readRequest(from: connection)
    guard send(script.bytes, to: connection) else { return head }
    while script.trickles && send([UInt8(ascii: " ")], to: connection) {
      Thread.sleep(forTimeInterval: 0.01)
    }
    if script.staysOpen {
      var byte: UInt8 = 0
      while recv(connection, &byte, 1, 0) > 0 {}
    }
    return head
  }

  private static func readRequest(from connection: Int32) -> String {
    var received = [UInt8]()
    var buffer = [UInt8](repeating: 0, count: 4096)
    while true {
      let text = String(decoding: received, as: UTF8.self)
      if let end = text.range(of: "\r\n\r\n") {
        let head = String(text[..<end.lowerBound])
        let length = head.firstMatch(of: /(?i)content-length: (\d+)/).flatMap { Int($0.output.1) } ?? 0
        if text[end.upperBound...].utf8.count >= length { return head }
      }
      let count = recv(connection, &buffer, buffer.count, 0)
      guard count > 0 else { return text }
      received += buffer[..<count]
    }
  }

  /// Sends all bytes; false when the client has left.
  private static func send(_ bytes: [UInt8], to connection: Int32) -> Bool {
    #if canImport(Darwin)
      var isOn: Int32 = 1
      setsockopt(connection, SOL_SOCKET, SO_NOSIGPIPE, &isOn, socklen_t(MemoryLayout<Int32>.size))
      let flags: Int32 = 0
    #else
      let flags = Int32(MSG_NOSIGNAL)
    #endif
    var sent = 0
    while sent < bytes.count {
      let count = bytes[sent...].withUnsafeBytes { unsafeSend(connection, $0.baseAddress, $0.count, flags) }
      guard count > 0 else { return false }
      sent += count
    }
    return true
  }
}

/// The system's `send`, which the method of the same name hides.
private func unsafeSend(_ connection: Int32, _ bytes: UnsafeRawPointer?, _ count: Int, _ flags: Int32) -> Int {
  send(connection, bytes, count, flags)
}

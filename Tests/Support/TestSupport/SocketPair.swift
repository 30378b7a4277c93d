internal import Foundation

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// Creates the connection to a child process.
///
/// The connection is a pair of sockets, because a second child that starts at the same time can inherit the ends of the
/// first child's `Pipe`. The second child would then keep the first one's output open, and two such children would wait
/// for each other. On Linux, other children can't inherit the sockets, because `SOCK_CLOEXEC` marks them when they are
/// created.
enum SocketPair {
  #if canImport(Darwin)
    private static let type = StreamSocket.type
  #elseif canImport(Glibc)
    private static let type = StreamSocket.type | CInt(SOCK_CLOEXEC.rawValue)
  #else
    private static let type = StreamSocket.type | SOCK_CLOEXEC
  #endif

  /// Creates a connection, and returns the descriptors of its two ends.
  static func make() throws -> (own: CInt, child: CInt) {
    var sockets: [CInt] = [-1, -1]
    guard socketpair(AF_UNIX, type, 0, &sockets) == 0 else {
      throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EINVAL)
    }
    #if canImport(Darwin)
      for socket in sockets { _ = fcntl(socket, F_SETFD, FD_CLOEXEC) }
    #endif
    StreamSocket.disableSIGPIPE(of: sockets[0])
    return (sockets[0], sockets[1])
  }

  /// Calls `body` with each complete line, until the other end is closed.
  static func forEachLine(from socket: CInt, _ body: (String) -> Void) {
    var unprocessed: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = read(socket, &buffer, buffer.count)
      if count == -1, errno == EINTR { continue }
      if count <= 0 { return }
      unprocessed += buffer[..<count]
      while let lineEnd = unprocessed.firstIndex(of: UInt8(ascii: "\n")) {
        body(String(decoding: unprocessed[..<lineEnd], as: UTF8.self))
        unprocessed.removeSubrange(...lineEnd)
      }
    }
  }
}

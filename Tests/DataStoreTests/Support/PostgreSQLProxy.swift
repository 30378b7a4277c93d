#if PostgreSQL
  import Foundation
  import Synchronization
  import TestSupport

  #if canImport(Darwin)
    import Darwin
  #elseif canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #endif

  /// A way to a server's socket that breaks at a `COMMIT`, when a test says so.
  final class PostgreSQLProxy: Sendable {
    /// Where the way breaks.
    enum Cut: CaseIterable {
      /// The server gets no `COMMIT`.
      case before
      /// The server commits, and the client gets no answer.
      case after
    }

    private static let fileName = ".s.PGSQL.5432"

    private let folder = TemporaryFolder()
    private let target: String
    private let listener: CInt
    private let nextCut = Mutex<Cut?>(nil)

    /// Opens a way to the server whose socket is in a folder.
    init(to serverFolder: String) throws {
      try FileManager.default.createDirectory(at: folder.url, withIntermediateDirectories: true)
      target = serverFolder + "/" + Self.fileName
      listener = Self.makeSocket()
      let path = folder.url.appending(path: Self.fileName).path(percentEncoded: false)
      guard Self.withAddress(path, { bind(listener, $0, $1) }) == 0, listen(listener, 64) == 0 else {
        throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
      }
      Thread.detachNewThread { [weak self, accepting = listener] in
        while case let client = accept(accepting, nil, nil), client >= 0 {
          guard let self else {
            close(client)
            break
          }
          connect(client)
        }
        close(accepting)
      }
    }

    deinit {
      shutdown(listener, CInt(SHUT_RDWR))
    }

    /// The folder of the proxy's socket.
    var host: String { folder.url.path(percentEncoded: false) }

    /// Breaks the way of the connection that is the next one to commit.
    func cutNextCommit(_ cut: Cut) {
      nextCut.withLock { $0 = cut }
    }

    /// Whether the way has broken since ``cutNextCommit(_:)``.
    var hasCut: Bool { nextCut.withLock { $0 == nil } }

    private func connect(_ client: CInt) {
      let server = Self.makeSocket()
      guard Self.withAddress(target, { Glibc.connect(server, $0, $1) }) == 0 else {
        close(client)
        close(server)
        return
      }
      let pair = Pair(client: client, server: server)
      Thread.detachNewThread { [weak self] in
        Self.copy(from: client, to: server) { bytes in
          // A query of this text alone is one write of libpq's.
          guard bytes.suffix(7).elementsEqual("COMMIT\0".utf8), let cut = self?.takeCut() else { return true }
          pair.isCut.store(true, ordering: .sequentiallyConsistent)
          return cut == .after
        }
        pair.end()
      }
      Thread.detachNewThread {
        Self.copy(from: server, to: client) { _ in !pair.isCut.load(ordering: .sequentiallyConsistent) }
        pair.end()
      }
    }

    private func takeCut() -> Cut? {
      nextCut.withLock { cut in
        defer { cut = nil }
        return cut
      }
    }

    /// The two sockets of a connection, closed when both directions have ended.
    private final class Pair: Sendable {
      let isCut = Atomic(false)
      private let client: CInt
      private let server: CInt
      private let endCount = Atomic(0)

      init(client: CInt, server: CInt) {
        (self.client, self.server) = (client, server)
      }

      func end() {
        shutdown(client, CInt(SHUT_RDWR))
        shutdown(server, CInt(SHUT_RDWR))
        guard endCount.add(1, ordering: .sequentiallyConsistent).newValue == 2 else { return }
        close(client)
        close(server)
      }
    }

    private static func makeSocket() -> CInt {
      socket(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0)
    }

    private static func withAddress<Result>(
      _ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
    ) -> Result {
      var address = sockaddr_un()
      address.sun_family = sa_family_t(AF_UNIX)
      withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
      return withUnsafePointer(to: address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
      }
    }

    /// Copies until an end of the connection, or until `passes` returns `false`.
    private static func copy(from source: CInt, to target: CInt, while passes: (ArraySlice<UInt8>) -> Bool) {
      var buffer = [UInt8](repeating: 0, count: 65_536)
      while case let count = read(source, &buffer, buffer.count), count > 0, passes(buffer[..<count]) {
        var written = 0
        while written < count {
          let result = buffer[written..<count].withUnsafeBytes {
            send(target, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL))
          }
          if result <= 0 { return }
          written += result
        }
      }
    }
  }
#endif

#if PostgreSQL
  import Dispatch
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

  /// Relays connections to the Unix-domain socket of a server, and cuts them or falls silent on demand.
  final class PostgreSQLProxy: Sendable {
    /// The moment at which a connection is cut.
    enum Cut: CaseIterable {
      /// Before the server gets the commit.
      case before
      /// After the server has committed, and before the client gets the answer.
      case after
    }

    /// The kind of a commit.
    enum Commit: CaseIterable {
      /// The statement of a change that is a transaction by itself.
      case change
      /// The `COMMIT` of a transaction that has locked the store.
      case transaction
    }

    private static let fileName = ".s.PGSQL.5432"

    private let folder = TemporaryFolder()
    private let serverPath: String
    private let listener: CInt
    private let nextCut = Mutex<(cut: Cut, commit: Commit, isSilent: Bool)?>(nil)
    private let gate = Gate()
    private let pairs = Mutex<[Pair]>([])

    /// Starts a proxy for the server whose socket is in a folder.
    init(to serverFolder: String) throws {
      try folder.create()
      serverPath = serverFolder + "/" + Self.fileName
      listener = Self.makeSocket()
      let path = folder.url.appending(path: Self.fileName).path(percentEncoded: false)
      guard Self.withAddress(path, { bind(listener, $0, $1) }) == 0, listen(listener, 64) == 0 else {
        throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
      }
      Thread.detachNewThread { [weak self, listener = listener] in
        while case let client = accept(listener, nil, nil), client >= 0 {
          guard let self else {
            close(client)
            break
          }
          relay(client)
        }
        close(listener)
      }
    }

    deinit {
      gate.open()
      shutdown(listener, CInt(SHUT_RDWR))
    }

    /// The folder of the proxy's socket.
    var host: String { folder.url.path(percentEncoded: false) }

    /// Cuts the connection that makes the next commit of the given kind, before or after that commit.
    func cutNext(_ commit: Commit, _ cut: Cut) {
      nextCut.withLock { $0 = (cut, commit, false) }
    }

    /// Relays nothing from now on, and leaves all connections open.
    ///
    /// Clients can still connect to the proxy, as they can to a process that hangs.
    func fallSilent() { gate.close() }

    /// Falls silent in the middle of the next message from the server.
    func fallSilentInNextAnswer() { gate.closeInNextAnswer() }

    /// Falls silent before or after the next commit of the given kind reaches the server.
    func fallSilentAtNext(_ commit: Commit, _ cut: Cut) {
      nextCut.withLock { $0 = (cut, commit, true) }
    }

    /// Relays again, also what was held back.
    func speak() { gate.open() }

    /// Blocks the threads that relay while the proxy is silent.
    private final class Gate: Sendable {
      private struct State {
        var isClosed = false
        var closesInNextAnswer = false
        var waiting: [DispatchSemaphore] = []
      }

      private let state = Mutex(State())

      func close() { state.withLock { $0.isClosed = true } }

      func closeInNextAnswer() { state.withLock { $0.closesInNextAnswer = true } }

      func open() {
        let waiting = state.withLock { state in
          defer { state = State() }
          return state.waiting
        }
        for semaphore in waiting { semaphore.signal() }
      }

      func pass() {
        while let semaphore = semaphoreIfClosed() { semaphore.wait() }
      }

      private func semaphoreIfClosed() -> DispatchSemaphore? {
        state.withLock { state in
          guard state.isClosed else { return nil }
          let semaphore = DispatchSemaphore(value: 0)
          state.waiting.append(semaphore)
          return semaphore
        }
      }

      /// Returns whether the proxy falls silent in the middle of this message from the server.
      func closesInAnswer() -> Bool {
        state.withLock { state in
          guard state.closesInNextAnswer else { return false }
          (state.isClosed, state.closesInNextAnswer) = (true, false)
          return true
        }
      }
    }

    /// Whether the cut that ``cutNext(_:_:)`` last requested was made; also `true` if none was requested.
    var hasNoPendingCut: Bool { nextCut.withLock { $0 == nil } }

    /// Makes it impossible to send requests on the present connections, although messages from the server still arrive.
    ///
    /// The proxy sends each client a message as if from the server. A client that then sends a request fails to write
    /// it, and reads that message, which doesn't answer the request.
    func refuseRequests() {
      for pair in pairs.withLock({ $0 }) { pair.refuseRequests() }
    }

    /// Connects to the server, and relays the bytes between the client and the server.
    private func relay(_ client: CInt) {
      let server = Self.makeSocket()
      guard Self.withAddress(serverPath, { connect(server, $0, $1) }) == 0 else {
        close(client)
        close(server)
        return
      }
      let pair = Pair(client: client, server: server)
      pairs.withLock { $0.append(pair) }
      Thread.detachNewThread { [weak self, gate] in
        var recognizer = CommitRecognizer()
        Self.copy(from: client, to: server) { bytes in
          gate.pass()
          guard let commit = recognizer.commit(in: bytes), let (cut, isSilent) = self?.takeCut(of: commit) else {
            return true
          }
          if isSilent {
            gate.close()
            if cut == .before { gate.pass() }
            return true
          }
          pair.isCut.store(true, ordering: .sequentiallyConsistent)
          return cut == .after
        }
        pair.waitForEndOfClient()
        pair.endDirection()
      }
      Thread.detachNewThread { [gate] in
        Self.copy(from: server, to: client) { bytes in
          gate.pass()
          if gate.closesInAnswer() {
            _ = bytes.prefix(bytes.count / 2).withUnsafeBytes { StreamSocket.send($0, to: client) }
            gate.pass()
            // The client has closed the connection by then.
            return false
          }
          return !pair.isCut.load(ordering: .sequentiallyConsistent)
        }
        pair.endDirection()
      }
    }

    private func takeCut(of commit: Commit) -> (cut: Cut, isSilent: Bool)? {
      nextCut.withLock { next in
        guard let (cut, nextCommit, isSilent) = next, nextCommit == commit else { return nil }
        next = nil
        return (cut, isSilent)
      }
    }

    /// Recognizes the commits among the requests of a connection.
    ///
    /// The bytes of one read are one request, because libpq makes one write for each request.
    private struct CommitRecognizer {
      /// The name of the prepared statement of a change, with its terminating zero byte.
      private var changeName: ArraySlice<UInt8>?

      /// Returns the kind of the commit that a request makes, or `nil` if it makes none.
      mutating func commit(in bytes: ArraySlice<UInt8>) -> Commit? {
        if bytes.suffix(7).elementsEqual("COMMIT\0".utf8) { return .transaction }
        // A message has a type, four bytes of length, and zero-terminated texts.
        let texts = bytes.dropFirst(5)
        switch bytes.first.map({ UnicodeScalar($0) }) {
        // A Parse message: the name of a prepared statement, then its SQL.
        case "P" where texts.firstRange(of: "INSERT INTO datastore_change".utf8) != nil:
          changeName = texts.prefix { $0 != 0 } + [0]
          return nil
        // A Bind message: the name of a portal, which is empty, then the name of a prepared statement.
        case "B":
          guard let changeName else { return nil }
          return texts.dropFirst().starts(with: changeName) ? .change : nil
        default: return nil
        }
      }
    }

    /// The two sockets of a connection, closed when both directions have ended.
    private final class Pair: Sendable {
      let isCut = Atomic(false)
      private let client: CInt
      private let server: CInt
      private let state = Mutex<(endedDirectionCount: Int, refusesRequests: Bool)>((0, false))

      init(client: CInt, server: CInt) {
        (self.client, self.server) = (client, server)
      }

      func refuseRequests() {
        state.withLock { state in
          guard state.endedDirectionCount == 0 else { return }
          state.refusesRequests = true
          // The server's message that a setting has a new value: its type, its length, and two zero-terminated texts.
          let message = [UInt8(ascii: "S"), 0, 0, 0, 8] + "a\0b\0".utf8
          _ = message.withUnsafeBytes { StreamSocket.send($0, to: client) }
          shutdown(client, CInt(SHUT_RD))
        }
      }

      /// Waits for the client to close the connection, if its requests are refused.
      ///
      /// Until then, messages from the server still arrive.
      func waitForEndOfClient() {
        guard state.withLock({ $0.refusesRequests }) else { return }
        var descriptor = pollfd(fd: client, events: 0, revents: 0)
        poll(&descriptor, 1, -1)
      }

      /// Stops both directions after one of them has ended, and closes the sockets after both have.
      func endDirection() {
        shutdown(client, CInt(SHUT_RDWR))
        shutdown(server, CInt(SHUT_RDWR))
        state.withLock { state in
          state.endedDirectionCount += 1
          guard state.endedDirectionCount == 2 else { return }
          close(client)
          close(server)
        }
      }
    }

    /// The descriptors of this process that are connected to the proxy.
    ///
    /// Descriptors from 4,096 on aren't examined.
    var clientSockets: [CInt] {
      let path = folder.url.appending(path: Self.fileName).path(percentEncoded: false)
      return (0..<4_096).filter { descriptor in
        var address = sockaddr_un()
        var length = socklen_t(MemoryLayout<sockaddr_un>.size)
        let result = withUnsafeMutablePointer(to: &address) {
          $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(descriptor, $0, &length) }
        }
        guard result == 0, address.sun_family == sa_family_t(AF_UNIX) else { return false }
        return withUnsafeBytes(of: address.sun_path) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) } == path
      }
    }

    private static func makeSocket() -> CInt {
      socket(AF_UNIX, StreamSocket.type, 0)
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

    /// Copies bytes until the connection ends or `passes` returns `false`.
    private static func copy(from source: CInt, to target: CInt, while passes: (ArraySlice<UInt8>) -> Bool) {
      var buffer = [UInt8](repeating: 0, count: 65_536)
      while case let count = read(source, &buffer, buffer.count), count > 0, passes(buffer[..<count]) {
        var written = 0
        while written < count {
          let result = buffer[written..<count].withUnsafeBytes { StreamSocket.send($0, to: target) }
          if result <= 0 { return }
          written += result
        }
      }
    }
  }
#endif

#if PostgreSQL
  internal import Multicast

  /// The locks that a ``PostgreSQLBackend`` has on its server.
  ///
  /// **A lock and its commits.** A lock of a session ends with the connection, and the process that had it doesn't notice: the
  /// network is away, the server gives the lock to another client, and when the network is back both believe that they have
  /// it. So the locks belong to the connection that makes the commits. Whatever is committed is committed while the lock
  /// is held. A new connection takes the locks again, and each lock has a token in a table: if another client has had it
  /// meanwhile, the token is another one, and this store commits nothing more until the lost lock is released.
  final class PostgreSQLLocks: Sendable {
    private struct State {
      var tokens: [String: Int64] = [:]
      var lost: Set<String> = []
      /// The connection that has the locks; `nil` before there is one, and while it is being replaced.
      var connection: PostgreSQLConnection?
    }

    /// Has an element whenever a lock was released in this process.
    private static let releases = MulticastRelay<Void>(buffering: .latest)

    private let state = Lock(State())

    /// A lock that another client has had since it was acquired.
    var lostName: String? { state.withLock { $0.lost.min() } }

    /// Takes a lock, unless it is held.
    func acquire(_ name: String, on connection: PostgreSQLConnection) throws(SystemError) -> StoreLockResult {
      let isHeld = state.withLock { $0.tokens[name] != nil }
      guard !isHeld, try connection.tryToLock(name) else { return .held(releases: Self.releases.stream) }
      let token = Int64.random(in: 1 ... .max)
      try connection.run(PostgreSQLLayout.recordLock, .text(name), .integer(token))
      state.withLock { $0.tokens[name] = token }
      return .acquired(StoreLock { self.release(name) })
    }

    private func release(_ name: String) {
      let connection = state.withLock { state in
        state.tokens[name] = nil
        return state.lost.remove(name) == nil ? state.connection : nil
      }
      // If this fails, the connection is lost, and the lock with it.
      connection?.unlock(name)
      Self.releases.send(())
    }

    /// Takes all locks on a new connection.
    func move(to connection: PostgreSQLConnection) throws(SystemError) {
      let tokens = state.withLock { $0.tokens }
      for (name, token) in tokens {
        let isLocked = try connection.tryToLock(name)
        let found = try connection.first(PostgreSQLLayout.lockToken, .text(name)) { $0.integer(0) }
        if isLocked, found == token { continue }
        if isLocked { connection.unlock(name) }
        state.withLock { state in
          if state.tokens[name] == token { state.lost.insert(name) }
        }
      }
      // What was released meanwhile would stay locked.
      let released = state.withLock { state in
        state.connection = connection
        return tokens.keys.filter { state.tokens[$0] == nil }
      }
      for name in released { connection.unlock(name) }
    }
  }
#endif

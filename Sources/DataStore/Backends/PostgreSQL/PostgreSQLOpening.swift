#if PostgreSQL
  internal import CPostgreSQL
  internal import Dispatch
  internal import Foundation

  #if canImport(Darwin)
    internal import Darwin
  #elseif canImport(Glibc)
    internal import Glibc
  #elseif canImport(Musl)
    internal import Musl
  #endif

  /// Opens connections with libpq's asynchronous functions, within a limit of time.
  enum PostgreSQLOpening {
    /// Opens a connection.
    ///
    /// libpq resolves the names of hosts while it connects, which can't be interrupted. So it connects on a thread of its
    /// own, which closes the connection if the caller has given up.
    ///
    /// - Parameters:
    ///   - options: The names and values of libpq's settings.
    ///   - limit: The time at which the call gives up.
    /// - Returns: A connection in libpq's nonblocking mode.
    /// - Throws: An error with ``SystemError/noConnectionState``.
    static func open(
      _ options: [(String, String)], until limit: ContinuousClock.Instant
    ) throws(SystemError) -> OpaquePointer {
      let start = ContinuousClock.now
      let attempt = Attempt()
      Thread.detachNewThread {
        attempt.finish(with: Result { () throws(SystemError) in try connect(options, until: limit) })
      }
      // The thread ends by itself at the limit, unless it resolves a name.
      guard let result = attempt.result(until: limit + .milliseconds(50)) else { throw silence(since: start) }
      return try result.get().pointer
    }

    /// The result of an attempt on another thread.
    private final class Attempt: @unchecked Sendable {
      // Unchecked: all mutable state is used only under the lock.

      /// A connection, which one thread at a time uses.
      struct Handle: @unchecked Sendable {
        // Unchecked: the thread that has opened the connection hands it over, and doesn't use it afterwards.
        let pointer: OpaquePointer
      }

      private let lock = NSLock()
      private let hasFinished = DispatchSemaphore(value: 0)
      private var connected: Result<Handle, SystemError>?
      private var isAbandoned = false

      func finish(with result: Result<OpaquePointer, SystemError>) {
        lock.withLock {
          if isAbandoned {
            if case .success(let pointer) = result { PQfinish(pointer) }
          } else {
            connected = result.map(Handle.init)
          }
        }
        hasFinished.signal()
      }

      /// Waits for the result; `nil` if there is none by the limit.
      func result(until limit: ContinuousClock.Instant) -> Result<Handle, SystemError>? {
        _ = hasFinished.wait(timeout: .now() + max(.zero, limit - .now) / .seconds(1))
        return lock.withLock {
          isAbandoned = connected == nil
          return connected
        }
      }
    }

    private static func connect(
      _ options: [(String, String)], until limit: ContinuousClock.Instant
    ) throws(SystemError) -> OpaquePointer {
      var hosts: PostgreSQLHosts?
      while true {
        let start = ContinuousClock.now
        let handle = try begin(options + (hosts?.options ?? []))
        var remainingHosts = hosts ?? self.hosts(of: handle)
        // A silent host leaves a share of the time to each of the others.
        let share = start + (limit - start) / max(1, remainingHosts.hosts.count)
        if try finishConnecting(handle, until: share) {
          // From here on, a function that would have to wait for the server returns instead.
          PQsetnonblocking(handle, 1)
          return handle
        }
        remainingHosts.remove(host: string(PQhost(handle)), port: string(PQport(handle)))
        PQfinish(handle)
        if remainingHosts.hosts.isEmpty { throw silence(since: start) }
        hosts = remainingHosts
      }
    }

    private static func begin(_ options: [(String, String)]) throws(SystemError) -> OpaquePointer {
      let handle = withCStrings(options.map(\.0)) { names in
        withCStrings(options.map(\.1)) { values in PQconnectStartParams(names, values, 1) }
      }
      guard let handle else {
        throw SystemError(code: ENOMEM, operation: "PQconnectStartParams", path: "PostgreSQL")
      }
      return handle
    }

    /// Connects, and authenticates both sides.
    ///
    /// - Returns: `false`, and the handle is still to be closed, if the present host is silent until the limit.
    /// - Throws: An error, after the handle was closed, if no host accepts the connection.
    private static func finishConnecting(
      _ handle: OpaquePointer, until limit: ContinuousClock.Instant
    ) throws(SystemError) -> Bool {
      // As if `PQconnectPoll` had asked for it; see libpq's documentation.
      var status = PQstatus(handle) == CONNECTION_BAD ? PGRES_POLLING_FAILED : PGRES_POLLING_WRITING
      while true {
        switch status {
        case PGRES_POLLING_OK: return true
        case PGRES_POLLING_READING, PGRES_POLLING_WRITING:
          let events = status == PGRES_POLLING_READING ? POLLIN : POLLOUT
          if PostgreSQLSocket.wait(PQsocket(handle), for: Int16(events), until: limit) == 0 { return false }
          status = PQconnectPoll(handle)
        default:
          let message = PostgreSQLConnection.message(string(PQerrorMessage(handle)))
          PQfinish(handle)
          throw noConnection(message)
        }
      }
    }

    private static func hosts(of handle: OpaquePointer) -> PostgreSQLHosts {
      var settings: [String: String] = [:]
      if let options = PQconninfo(handle) {
        defer { PQconninfoFree(options) }
        var option = options
        while let keyword = option.pointee.keyword {
          if let value = option.pointee.val { settings[String(cString: keyword)] = String(cString: value) }
          option += 1
        }
      }
      return PostgreSQLHosts(
        host: settings["host"] ?? "", address: settings["hostaddr"] ?? "", port: settings["port"] ?? "")
    }

    private static func silence(since start: ContinuousClock.Instant) -> SystemError {
      noConnection(PostgreSQLConnection.silence(since: start))
    }

    private static func noConnection(_ message: String) -> SystemError {
      SystemError(
        code: 0, operation: "connecting", path: "PostgreSQL",
        source: .postgreSQL(state: SystemError.noConnectionState, message: message))
    }

    private static func string(_ text: UnsafePointer<CChar>?) -> String { text.map { String(cString: $0) } ?? "" }

    /// Calls `body` with a null-terminated array of C strings.
    private static func withCStrings<Result>(
      _ strings: [String], _ body: (UnsafePointer<UnsafePointer<CChar>?>) -> Result
    ) -> Result {
      let copies = strings.map { strdup($0) }
      defer { for copy in copies { free(copy) } }
      return body(copies.map { UnsafePointer($0) } + [nil])
    }
  }

  /// Waits for libpq's sockets.
  enum PostgreSQLSocket {
    /// Whether the other side still accepts requests; `true` also if that isn't known.
    static func canSend(_ socket: CInt) -> Bool {
      #if canImport(Darwin)
        // libpq has set `SO_NOSIGPIPE`.
        let flags: CInt = 0
      #else
        let flags = CInt(MSG_NOSIGNAL)
      #endif
      return send(socket, nil, 0, flags) == 0 || errno != EPIPE
    }

    /// Waits until a socket is ready.
    ///
    /// - Parameters:
    ///   - socket: The socket; -1 if libpq has closed it.
    ///   - events: The events of `poll`.
    ///   - limit: The time at which the call gives up. It also looks once if this time has passed.
    /// - Returns: The events that have occurred; 0 if there were none. If the socket is closed or can't be polled, it
    ///   counts as ready, because libpq then reports the error.
    static func wait(_ socket: CInt, for events: Int16, until limit: ContinuousClock.Instant) -> Int16 {
      while true {
        let remaining = max(.zero, limit - .now).components
        // Rounded up, so that the last wait isn't a loop of waits of no time.
        let milliseconds =
          remaining.seconds * 1_000 + (remaining.attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
        let occurred = wait(socket, for: events, milliseconds: CInt(clamping: milliseconds))
        if occurred != 0 || limit <= .now { return occurred }
      }
    }

    /// Waits until a socket is ready, or for a number of milliseconds, or less if a signal interrupts the wait.
    static func wait(_ socket: CInt, for events: Int16, milliseconds: CInt) -> Int16 {
      if socket < 0 { return events }
      var descriptor = pollfd(fd: socket, events: events, revents: 0)
      let count = poll(&descriptor, 1, milliseconds)
      if count > 0 { return descriptor.revents }
      return count < 0 && errno != EINTR ? events : 0
    }
  }
#endif

#if PostgreSQL
  internal import CPostgreSQL
  internal import Foundation

  #if canImport(Darwin)
    internal import Darwin
  #elseif canImport(Glibc)
    internal import Glibc
  #elseif canImport(Musl)
    internal import Musl
  #endif

  /// A connection to a PostgreSQL server, and its prepared statements.
  ///
  /// Values are parameters of statements, never a part of their text.
  package final class PostgreSQLConnection: @unchecked Sendable {
    // Unchecked: every use of `handle` and of mutable state holds `callLock`, except in `init`, `deinit` and `socket`.
    // Each result of libpq is used by a single call. libpq calls the notice receiver, which writes to `ending`, only
    // while `handle` is in use. So any thread may release or check an advisory lock while another one makes a call.

    /// The server and the database, without a password, for error messages.
    let place: String
    /// The number that identifies this connection in the log of changes.
    ///
    /// Each connection has a different number. If the server executes a commit of a lost connection late, the new
    /// connection sees it as the change of another writer.
    let writer = Int64.random(in: 1 ... .max)
    private let handle: OpaquePointer
    private let ending = Ending()
    private var statements: [String: String] = [:]
    private var lockedNames: Set<String> = []
    /// Serializes the calls to libpq.
    private let callLock = NSLock()

    /// The error with which the server has ended the connection, if libpq has read it between two statements.
    private final class Ending {
      var message: String?
    }

    /// Opens a connection.
    ///
    /// - Parameters:
    ///   - address: A connection string or URI in libpq's format. Missing settings come from the environment.
    ///   - timeout: The timeout of the store's calls, which determines ``longestSilence(within:)``.
    /// - Throws: An error with ``SystemError/noConnectionState`` if the server can't be reached or refuses the
    ///   connection.
    package init(_ address: String, timeout: Duration) throws(SystemError) {
      let seconds = Self.longestSilence(within: timeout)
      // Later options override earlier ones. libpq expands the address at the position of `dbname`, so the settings in
      // the address override all others.
      let options: [(String, String)] = [
        ("client_encoding", "UTF8"), ("application_name", "DataStore"), ("connect_timeout", "\(seconds)"),
        ("keepalives_idle", "\(seconds)"), ("keepalives_interval", "1"), ("keepalives_count", "\(seconds)"),
        ("tcp_user_timeout", "\(seconds * 1_000)"), ("dbname", address),
      ]
      let handle = Self.withCStrings(options.map(\.0)) { names in
        Self.withCStrings(options.map(\.1)) { values in PQconnectdbParams(names, values, 1) }
      }
      guard let handle else {
        throw SystemError(code: ENOMEM, operation: "PQconnectdbParams", path: "PostgreSQL")
      }
      guard PQstatus(handle) == CONNECTION_OK else {
        let message = Self.message(String(cString: PQerrorMessage(handle)))
        PQfinish(handle)
        throw SystemError(
          code: 0, operation: "connecting", path: "PostgreSQL",
          source: .postgreSQL(state: SystemError.noConnectionState, message: message))
      }
      self.handle = handle
      place = [PQhost(handle), PQport(handle), PQdb(handle)].map { $0.map { String(cString: $0) } ?? "" }
        .joined(separator: " ")
      // By default, libpq prints the server's notices to the standard error. This receiver drops them, except the error
      // with which the server ends the connection. Such an error is a notice if libpq reads it between two statements.
      PQsetNoticeReceiver(
        handle,
        { ending, result in
          let severity = PQresultErrorField(result, CInt(UInt8(ascii: "V"))).map { String(cString: $0) }
          guard let ending, severity == "FATAL" || severity == "PANIC" else { return }
          Unmanaged<Ending>.fromOpaque(ending).takeUnretainedValue().message = PostgreSQLConnection.message(
            String(cString: PQresultErrorMessage(result)))
        }, Unmanaged.passUnretained(ending).toOpaque())
    }

    /// The longest time for opening a connection, in seconds.
    ///
    /// It is also, approximately, the longest silence of the network before a connection counts as lost. The minimum is
    /// 2 seconds, because older versions of libpq support no shorter time. The maximum is 5 seconds, so that a call
    /// with a longer timeout has time to connect again.
    static func longestSilence(within timeout: Duration) -> Int64 {
      min(max(2, timeout.components.seconds), 5)
    }

    deinit {
      // Commits are durable, and the server rolls back an open transaction.
      PQfinish(handle)
    }

    /// Whether libpq has noticed that the connection has ended.
    var isLost: Bool { callLock.withLock { PQstatus(handle) != CONNECTION_OK } }

    /// The socket, which changes only when the connection is lost.
    ///
    /// Only ``PostgreSQLWatch`` uses it, before any other thread can use the connection.
    var socket: CInt { PQsocket(handle) }

    /// The number of the server's process, as the server or a connection pooler has announced it.
    var ownProcess: Int { callLock.withLock { Int(PQbackendPID(handle)) } }

    /// Asks for the number of the server's process that serves this connection.
    ///
    /// - Returns: `nil` if there is no answer within the timeout, after which the connection must not be used again.
    func serverProcess(within timeout: Duration) throws(SystemError) -> Int? {
      callLock.lock()
      defer { callLock.unlock() }
      let end = ContinuousClock.now + timeout
      guard PQsendQuery(handle, "SELECT pg_backend_pid()") == 1 else {
        throw error("running", state: SystemError.lostConnectionState, lastMessage)
      }
      while PQisBusy(handle) == 1 {
        let remaining = (end - .now).components
        let milliseconds = remaining.seconds * 1_000 + remaining.attoseconds / 1_000_000_000_000_000
        if milliseconds <= 0 { return nil }
        var descriptor = pollfd(fd: PQsocket(handle), events: Int16(POLLIN), revents: 0)
        _ = poll(&descriptor, 1, CInt(clamping: milliseconds))
        guard PQconsumeInput(handle) == 1 else {
          throw error("running", state: SystemError.lostConnectionState, lastMessage)
        }
      }
      var process: Int?
      while let result = PQgetResult(handle) {
        defer { PQclear(result) }
        try check(result, "running")
        if PQntuples(result) == 1 { process = PQgetvalue(result, 0, 0).flatMap { Int(String(cString: $0)) } }
      }
      return process
    }

    private var lastMessage: String { Self.message(String(cString: PQerrorMessage(handle))) }

    // MARK: - Statements

    /// Runs statements without parameters, in one exchange.
    package func run(script: String) throws(SystemError) {
      callLock.lock()
      defer { callLock.unlock() }
      let result = PQexec(handle, script)
      defer { PQclear(result) }
      try check(result, "running")
    }

    /// Runs a statement, and keeps it prepared for later runs.
    func run(_ sql: String, _ parameters: PostgreSQLParameter...) throws(SystemError) {
      _ = try lockedRows(of: sql, parameters) { _ in }
    }

    /// Runs a statement and returns what `read` makes of its first row, or `nil` if there is no row.
    ///
    /// It reads all rows, so the statement should return at most one.
    func first<Result>(
      _ sql: String, _ parameters: PostgreSQLParameter..., read: (PostgreSQLRow) -> Result
    ) throws(SystemError) -> Result? {
      try lockedRows(of: sql, parameters, read: read).first
    }

    /// Runs a statement and reads its rows.
    func all<Result>(
      _ sql: String, _ parameters: PostgreSQLParameter..., read: (PostgreSQLRow) -> Result
    ) throws(SystemError) -> [Result] {
      try lockedRows(of: sql, parameters, read: read)
    }

    private func lockedRows<Result>(
      of sql: String, _ parameters: [PostgreSQLParameter], read: (PostgreSQLRow) -> Result
    ) throws(SystemError) -> [Result] {
      callLock.lock()
      defer { callLock.unlock() }
      return try rows(of: sql, parameters, read: read)
    }

    /// Runs a statement and reads its rows; the caller holds `callLock`.
    private func rows<Result>(
      of sql: String, _ parameters: [PostgreSQLParameter], read: (PostgreSQLRow) -> Result
    ) throws(SystemError) -> [Result] {
      let name = try statement(sql)
      let result = Self.withArrays(of: parameters) { count, values, lengths, formats in
        PQexecPrepared(handle, name, count, values, lengths, formats, 1)
      }
      defer { PQclear(result) }
      try check(result, "running")
      guard let result else { return [] }
      return (0..<PQntuples(result)).map { read(PostgreSQLRow(result, number: $0)) }
    }

    private func statement(_ sql: String) throws(SystemError) -> String {
      if let name = statements[sql] { return name }
      let name = "s\(statements.count)"
      let result = PQprepare(handle, name, sql, 0, nil)
      defer { PQclear(result) }
      try check(result, "preparing")
      statements[sql] = name
      return name
    }

    // MARK: - Transactions

    /// Commits a transaction, durably.
    ///
    /// - Throws: An error also if the server rolled the transaction back because a statement in it had failed.
    func commit() throws(SystemError) {
      callLock.lock()
      defer { callLock.unlock() }
      let result = PQexec(handle, "COMMIT")
      defer { PQclear(result) }
      try check(result, "committing")
      guard let result, String(cString: PQcmdStatus(result)) == "COMMIT" else {
        throw .abortedTransaction(place)
      }
    }

    /// Makes a change, either alone or as part of a transaction.
    ///
    /// - Parameters:
    ///   - change: The values and parts to store and to remove.
    ///   - number: The number that the backend gave the commit: the `serial` of its entry in the log.
    ///   - known: The `id` of the last known entry of the log; `nil` in a transaction that locks the store.
    /// - Returns: The `id` of the entry that the change has added to the log; `nil`, and nothing is changed, if `known`
    ///   is given and isn't the last number taken for an entry; see ``PostgreSQLLayout/lastNumber``.
    func make(_ change: PostgreSQLChange, number: Int64, known: Int64?) throws(SystemError) -> Int64? {
      var statement = change.statement
      if PostgreSQLLayout.mayTruncateLog(after: known, adding: change.nameCount) { statement.insert(.truncateLog) }
      let parameters = [.integer(known), .integer(writer), .integer(number)] + change.parameters
      return try lockedRows(of: statement.sql, parameters) { $0.integer(0) }.first
    }

    /// Rolls back a transaction.
    ///
    /// If the connection is lost, the server rolls it back.
    func rollBack() {
      callLock.lock()
      defer { callLock.unlock() }
      PQclear(PQexec(handle, "ROLLBACK"))
    }

    // MARK: - Locks

    /// Locks a name for this connection, unless it is already locked.
    ///
    /// - Returns: Whether this call locked the name.
    func tryToLock(_ name: String) throws(SystemError) -> Bool {
      callLock.lock()
      defer { callLock.unlock() }
      if lockedNames.contains(name) {
        // The server isn't asked for the lock, because it would grant this connection the lock a second time. The ping
        // throws if the connection, and with it the lock, is lost.
        _ = try rows(of: PostgreSQLLayout.ping, []) { _ in }
        return false
      }
      guard try rows(of: PostgreSQLLayout.tryToLock, [.text(name)], read: { $0.bool(0) }).first ?? false else {
        return false
      }
      lockedNames.insert(name)
      return true
    }

    /// Releases the lock of a name, even during a transaction.
    ///
    /// If the connection is lost, the server releases the lock.
    func unlock(_ name: String) {
      callLock.lock()
      defer { callLock.unlock() }
      lockedNames.remove(name)
      do throws(SystemError) { _ = try rows(of: PostgreSQLLayout.unlock, [.text(name)]) { _ in } } catch {
        // The server may have refused the statement, for example because the current transaction has failed. So the
        // connection is closed, which releases its locks.
        if PQstatus(handle) == CONNECTION_OK { shutdown(PQsocket(handle), CInt(SHUT_RDWR)) }
      }
    }

    /// Whether the server answers on this connection, determined by an exchange.
    var isAlive: Bool {
      callLock.lock()
      defer { callLock.unlock() }
      PQclear(PQexec(handle, PostgreSQLLayout.ping))
      return PQstatus(handle) == CONNECTION_OK
    }

    // MARK: - Notifications

    /// Reads the notifications that the server has sent.
    ///
    /// - Returns: The number of notifications.
    func takeNotifications() throws(SystemError) -> Int {
      callLock.lock()
      defer { callLock.unlock() }
      // All input must be read, because a dispatch source may report input and the end of the connection together. It
      // then doesn't report the input that is left.
      repeat {
        guard PQconsumeInput(handle) == 1 else {
          let message = Self.message(String(cString: PQerrorMessage(handle)))
          // Makes libpq parse what it has read so far, which may contain the error that ended the connection.
          _ = PQisBusy(handle)
          throw error("reading notifications", state: SystemError.lostConnectionState, message)
        }
      } while isReadable
      var count = 0
      while let notification = PQnotifies(handle) {
        PQfreemem(notification)
        count += 1
      }
      return count
    }

    /// Whether there is input to read, or the connection has ended.
    private var isReadable: Bool {
      var descriptor = pollfd(fd: PQsocket(handle), events: Int16(POLLIN), revents: 0)
      return poll(&descriptor, 1, 0) > 0
    }

    // MARK: - Errors

    private func check(_ result: OpaquePointer?, _ operation: String) throws(SystemError) {
      switch PQresultStatus(result) {
      case PGRES_COMMAND_OK, PGRES_TUPLES_OK, PGRES_EMPTY_QUERY: return
      default:
        let message = Self.message(String(cString: PQerrorMessage(handle)))
        let state = PQresultErrorField(result, CInt(UInt8(ascii: "C"))).map { String(cString: $0) }
        if state == nil { endConnection() }
        throw error(operation, state: state ?? SystemError.lostConnectionState, message)
      }
    }

    /// Ends the connection after an error of libpq itself, which has no `SQLSTATE`.
    ///
    /// libpq can report that it could not send a request and still consider the connection usable. The next request
    /// might then receive the answer to an earlier one.
    private func endConnection() {
      guard PQstatus(handle) == CONNECTION_OK else { return }
      shutdown(PQsocket(handle), CInt(SHUT_RDWR))
      // libpq notices the end when it reads.
      while PQconsumeInput(handle) == 1 {}
    }

    /// Creates the error of a failed call.
    ///
    /// An error of a connection that has ended gets the `SQLSTATE` of a lost connection, because the server may have
    /// ended the connection for any reason, with any `SQLSTATE` or none. It gets the server's message, if there is one.
    private func error(_ operation: String, state: String, _ message: String) -> SystemError {
      let isLost = PQstatus(handle) != CONNECTION_OK
      return SystemError(
        code: 0, operation: operation, path: place,
        source: .postgreSQL(
          state: isLost ? SystemError.lostConnectionState : state,
          message: isLost ? ending.message ?? message : message))
    }

    /// Returns the first line of a message of the server or libpq, without the prefix `ERROR:`.
    private static func message(_ text: String) -> String {
      let line = text.split(separator: "\n").first.map(String.init) ?? "no reason given"
      return line.hasPrefix("ERROR:") ? line.dropFirst(6).trimmingCharacters(in: .whitespaces) : line
    }

    // MARK: - Memory

    /// Calls `body` with a null-terminated array of C strings.
    private static func withCStrings<Result>(
      _ strings: [String], _ body: (UnsafePointer<UnsafePointer<CChar>?>) -> Result
    ) -> Result {
      let copies = strings.map { strdup($0) }
      defer { for copy in copies { free(copy) } }
      return body(copies.map { UnsafePointer($0) } + [nil])
    }

    /// Calls `body` with the number of parameters, and arrays of their addresses, lengths and formats.
    ///
    /// The address is `nil` for `NULL`.
    private static func withArrays<Result>(
      of parameters: [PostgreSQLParameter],
      _ body: (CInt, UnsafePointer<UnsafePointer<CChar>?>, UnsafePointer<CInt>, UnsafePointer<CInt>) -> Result
    ) -> Result {
      var buffer: [UInt8] = []
      buffer.reserveCapacity(parameters.reduce(1) { $0 + $1.byteCount })
      var ranges: [Range<Int>?] = []
      ranges.reserveCapacity(parameters.count)
      for parameter in parameters {
        let start = buffer.count
        parameter.append(to: &buffer)
        ranges.append(parameter.isNull ? nil : start..<buffer.count)
      }
      // An empty buffer may have no address, which would mean `NULL`.
      buffer.append(0)
      let lengths = ranges.map { CInt($0?.count ?? 0) }
      let binary = [CInt](repeating: 1, count: ranges.count)
      return buffer.withUnsafeBytes { bytes in
        let start = bytes.assumingMemoryBound(to: CChar.self).baseAddress
        let addresses = ranges.map { range in range.flatMap { start?.advanced(by: $0.lowerBound) } }
        return body(CInt(ranges.count), addresses, lengths, binary)
      }
    }
  }
#endif

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

  /// A connection to a PostgreSQL server, and its prepared statements.
  ///
  /// Values are parameters of statements, never a part of their text.
  ///
  /// Every exchange with the server uses libpq's asynchronous functions and ends at a ``PostgreSQLDeadline``. If there is
  /// no answer by then, the connection is closed. It then counts as lost, and so do its locks, because an answer that
  /// arrives later would be taken for that of the next request.
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
    private let timeout: Duration
    /// The deadline of the store's present call, or of its last one; `nil` if the connection makes no calls of a store.
    private var deadline: PostgreSQLDeadline?
    /// Whether this object has closed the connection.
    private var hasEnded = false
    /// Whether ``hasEnded`` is set because the server was silent.
    private var wasSilent = false
    private var statements: [String: String] = [:]
    private var lockedNames: Set<String> = []
    /// The queue on which locks are checked and released, because a task must not block a shared thread.
    ///
    /// Each connection has its own. So the checks of one silent connection don't delay those of another one.
    let lockQueue = DispatchQueue(label: "DataStore.PostgreSQLLocks")
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
    ///   - timeout: The timeout of each exchange, or of the store's calls, which also determines
    ///     ``longestSilence(within:)``.
    ///   - deadline: The deadline of the store's call; `nil` if the connection makes no calls of a store.
    /// - Throws: An error with ``SystemError/noConnectionState`` if the server can't be reached, is silent, or refuses
    ///   the connection.
    package convenience init(_ address: String, timeout: Duration) throws(SystemError) {
      try self.init(address, timeout: timeout, deadline: nil)
    }

    init(_ address: String, timeout: Duration, deadline: PostgreSQLDeadline?) throws(SystemError) {
      (self.timeout, self.deadline) = (timeout, deadline)
      let seconds = Self.longestSilence(within: timeout)
      // Later options override earlier ones. libpq expands the address at the position of `dbname`, so the settings in
      // the address override all others.
      let options: [(String, String)] = [
        ("client_encoding", "UTF8"), ("application_name", "DataStore"),
        ("keepalives_idle", "\(seconds)"), ("keepalives_interval", "1"), ("keepalives_count", "\(seconds)"),
        ("tcp_user_timeout", "\(seconds * 1_000)"), ("dbname", address),
      ]
      let now = ContinuousClock.now
      let limit = (deadline ?? PostgreSQLDeadline(after: timeout, from: now)).graceEnd
      // A call with a longer timeout has time to connect again.
      handle = try PostgreSQLOpening.open(options, until: min(limit, now + Self.longestOpening))
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

    /// The longest time for opening a connection once.
    private static let longestOpening = Duration.seconds(5) + PostgreSQLDeadline.grace

    /// The longest silence of the network, in seconds, after which the system counts a connection as lost.
    ///
    /// The system notices such a silence of the network and of the other machine. It doesn't notice that a process on
    /// the other machine hangs. The minimum is 2 seconds, so that a single lost packet doesn't end the connection. The
    /// maximum is 5 seconds, so that a call with a longer timeout has time to connect again.
    static func longestSilence(within timeout: Duration) -> Int64 {
      min(max(2, timeout.components.seconds), 5)
    }

    deinit {
      // Commits are durable, and the server rolls back an open transaction. In libpq's nonblocking mode, this doesn't
      // wait for the server.
      PQfinish(handle)
    }

    /// Whether libpq has noticed that the connection has ended, or this object has closed it.
    var isLost: Bool { callLock.withLock { hasEnded || PQstatus(handle) != CONNECTION_OK } }

    /// Sets the deadline of a call of the store, for all exchanges until the next call.
    func limitCall(by deadline: PostgreSQLDeadline) {
      callLock.withLock { self.deadline = deadline }
    }

    /// Ends the call of the store, after which each exchange has a deadline of its own.
    func endCall() {
      callLock.withLock { deadline = nil }
    }

    /// Records bytes that the server must process in this call of the store, which takes it time.
    func recordWork(byteCount: Int) {
      callLock.withLock { deadline?.recordWork(byteCount: byteCount) }
    }

    /// The socket, which changes only when the connection is lost.
    ///
    /// Only ``PostgreSQLWatch`` uses it, before any other thread can use the connection.
    var socket: CInt { PQsocket(handle) }

    /// The number of the server's process, as the server or a connection pooler has announced it.
    var ownProcess: Int { callLock.withLock { Int(PQbackendPID(handle)) } }

    /// Asks for the number of the server's process that serves this connection.
    ///
    /// - Returns: `nil` if there is no answer, after which the connection is closed.
    func serverProcess() throws(SystemError) -> Int? {
      do throws(SystemError) {
        return try withDeadline { (deadline) throws(SystemError) in
          let result = try exchange("running", by: &deadline) { PQsendQuery(handle, "SELECT pg_backend_pid()") }
          defer { PQclear(result) }
          try check(result, "running")
          return PQntuples(result) == 1 ? PQgetvalue(result, 0, 0).flatMap { Int(String(cString: $0)) } : nil
        }
      } catch {
        if callLock.withLock({ wasSilent }) { return nil }
        throw error
      }
    }

    private var lastMessage: String { Self.message(String(cString: PQerrorMessage(handle))) }

    // MARK: - Exchanges

    /// Calls `body` under `callLock`, with the deadline of the store's call, or with one of its own.
    private func withDeadline<Result>(
      _ body: (inout PostgreSQLDeadline) throws(SystemError) -> Result
    ) throws(SystemError) -> Result {
      callLock.lock()
      defer { callLock.unlock() }
      var current = deadline ?? PostgreSQLDeadline(after: timeout)
      defer { if deadline != nil { deadline = current } }
      return try body(&current)
    }

    /// Sends a request, and waits for its results.
    ///
    /// The caller holds `callLock`.
    ///
    /// - Parameters:
    ///   - operation: The name of the request for errors.
    ///   - deadline: The deadline, which records the exchange.
    ///   - send: Calls a function of libpq that sends a request.
    /// - Returns: The last result, or the first one that is an error. The caller must clear it.
    /// - Throws: An error of a lost connection. If the server is silent until the deadline, the connection is then closed.
    private func exchange(
      _ operation: String, by deadline: inout PostgreSQLDeadline, _ send: () -> CInt
    ) throws(SystemError) -> OpaquePointer {
      guard !hasEnded, send() == 1 else {
        let message = lastMessage
        endConnection()
        throw error(operation, state: SystemError.lostConnectionState, message)
      }
      var silence: Silence?
      var last: OpaquePointer?
      do throws(SystemError) {
        while true {
          try waitForResult(of: operation, &silence, by: &deadline)
          guard let result = PQgetResult(handle) else { break }
          if let error = last, !Self.isSuccess(error) {
            // The server ends the request with the first error. If the connection has ended too, the error says why.
            PQclear(result)
          } else {
            PQclear(last)
            last = result
          }
        }
      } catch {
        if let last, !Self.isSuccess(last) { return last }
        PQclear(last)
        throw error
      }
      guard let last else {
        endConnection()
        throw error(operation, state: SystemError.lostConnectionState, lastMessage)
      }
      return last
    }

    /// A wait for the server that has lasted for the first pause.
    ///
    /// Most answers arrive earlier. So the usual exchange reads no clock, which takes as long as a part of the exchange.
    private struct Silence {
      let start: ContinuousClock.Instant
      var limit: ContinuousClock.Instant
    }

    /// Sends what libpq couldn't send yet, and waits until libpq has the next result, or knows that there is none.
    private func waitForResult(
      of operation: String, _ silence: inout Silence?, by deadline: inout PostgreSQLDeadline
    ) throws(SystemError) {
      // Without this, the functions of libpq that read would wait for the rest of the request to be sent.
      var isSent = PQflush(handle) != 1
      while !isSent || PQisBusy(handle) == 1 {
        let socket = PQsocket(handle)
        let events = Int16(isSent ? POLLIN : POLLIN | POLLOUT)
        let pause = isEncrypted ? Self.encryptedPause : Self.firstPause
        var occurred: Int16
        if let silence {
          let end = isEncrypted ? min(silence.limit, .now + pause) : silence.limit
          occurred = PostgreSQLSocket.wait(socket, for: events, until: end)
        } else {
          occurred = PostgreSQLSocket.wait(socket, for: events, milliseconds: CInt(pause / .milliseconds(1)))
        }
        if occurred != 0 {
          deadline.recordStep()
          if deadline.isLarge { silence?.limit = deadline.limit(at: .now) }
        } else if let known = silence {
          if known.limit <= .now {
            wasSilent = true
            throw end(operation, Self.silence(since: known.start))
          }
        } else {
          // libpq reports that it couldn't send the request only after the next input, which may never arrive.
          if !PostgreSQLSocket.canSend(socket) { throw end(operation, "the request could not be sent") }
          let start = ContinuousClock.now - pause
          silence = Silence(start: start, limit: deadline.limit(at: start))
        }
        guard PQconsumeInput(handle) == 1 else {
          let message = lastMessage
          // Makes libpq parse what it has read so far, which may contain the error that ended the connection.
          if PQisBusy(handle) == 0 { return }
          throw error(operation, state: SystemError.lostConnectionState, message)
        }
        if !isSent { isSent = PQflush(handle) != 1 }
      }
    }

    /// The time after which a wait for an answer counts as silence.
    ///
    /// It is shorter than the grace of a ``PostgreSQLDeadline``, so no exchange ends within it.
    private static let firstPause = Duration.milliseconds(100)

    /// Whether the connection is encrypted by TLS or GSSAPI.
    ///
    /// The library that decrypts may have read more than libpq has taken. The socket then isn't readable, so libpq must
    /// be asked again after ``encryptedPause``.
    private var isEncrypted: Bool { PQsslInUse(handle) == 1 || PQgssEncInUse(handle) == 1 }

    private static let encryptedPause = Duration.milliseconds(20)

    // MARK: - Statements

    /// Runs statements without parameters, in one exchange.
    package func run(script: String) throws(SystemError) {
      try withDeadline { (deadline) throws(SystemError) in
        let result = try exchange("running", by: &deadline) { PQsendQuery(handle, script) }
        defer { PQclear(result) }
        try check(result, "running")
      }
    }

    /// Begins a transaction with statements that wait for a lock, but not beyond the deadline of the call.
    func begin(_ script: String) throws(SystemError) {
      let remaining = callLock.withLock { deadline?.remaining() }
      // The server's own limit is the timeout. It must end the wait, because it keeps the connection then.
      guard let remaining, remaining + .milliseconds(250) < timeout else { return try run(script: script) }
      try run(script: PostgreSQLLayout.limitingLockWait(to: remaining, in: script))
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
      try withDeadline { (deadline) throws(SystemError) in try rows(of: sql, parameters, by: &deadline, read: read) }
    }

    /// Runs a statement and reads its rows; the caller holds `callLock`.
    private func rows<Result>(
      of sql: String, _ parameters: [PostgreSQLParameter], by deadline: inout PostgreSQLDeadline,
      read: (PostgreSQLRow) -> Result
    ) throws(SystemError) -> [Result] {
      let name = try statement(sql, by: &deadline)
      deadline.recordWork(byteCount: parameters.reduce(0) { $0 + $1.byteCount })
      let result = try exchange("running", by: &deadline) {
        Self.withArrays(of: parameters) { count, values, lengths, formats in
          PQsendQueryPrepared(handle, name, count, values, lengths, formats, 1)
        }
      }
      defer { PQclear(result) }
      try check(result, "running")
      return (0..<PQntuples(result)).map { read(PostgreSQLRow(result, number: $0)) }
    }

    private func statement(_ sql: String, by deadline: inout PostgreSQLDeadline) throws(SystemError) -> String {
      if let name = statements[sql] { return name }
      let name = "s\(statements.count)"
      let result = try exchange("preparing", by: &deadline) { PQsendPrepare(handle, name, sql, 0, nil) }
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
      try withDeadline { (deadline) throws(SystemError) in
        let result = try exchange("committing", by: &deadline) { PQsendQuery(handle, "COMMIT") }
        defer { PQclear(result) }
        try check(result, "committing")
        guard String(cString: PQcmdStatus(result)) == "COMMIT" else { throw .abortedTransaction(place) }
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
      do throws(SystemError) { try run(script: "ROLLBACK") } catch {
        // The connection is lost, or there is no transaction.
      }
    }

    // MARK: - Locks

    /// Locks a name for this connection, unless it is already locked.
    ///
    /// - Returns: Whether this call locked the name.
    func tryToLock(_ name: String) throws(SystemError) -> Bool {
      try withDeadline { (deadline) throws(SystemError) in
        if lockedNames.contains(name) {
          // The server isn't asked for the lock, because it would grant this connection the lock a second time. The ping
          // throws if the connection, and with it the lock, is lost.
          _ = try rows(of: PostgreSQLLayout.ping, [], by: &deadline) { _ in }
          return false
        }
        let isGranted = try rows(of: PostgreSQLLayout.tryToLock, [.text(name)], by: &deadline) { $0.bool(0) }.first
        guard isGranted == true else { return false }
        lockedNames.insert(name)
        return true
      }
    }

    /// Releases the lock of a name, even during a transaction.
    ///
    /// If the connection is lost, the server releases the lock. If the server is silent, the connection is closed.
    func unlock(_ name: String) {
      callLock.lock()
      defer { callLock.unlock() }
      lockedNames.remove(name)
      // Another thread may be in a call of the store, whose deadline isn't that of this exchange.
      var deadline = PostgreSQLDeadline(after: timeout)
      do throws(SystemError) { _ = try rows(of: PostgreSQLLayout.unlock, [.text(name)], by: &deadline) { _ in } } catch
      {
        // The server may have refused the statement, for example because the current transaction has failed. So the
        // connection is closed, which releases its locks.
        endConnection()
      }
    }

    /// Whether the server answers on this connection, determined by an exchange.
    ///
    /// If the server is silent, this is `false` after the timeout and a grace, and the connection is closed. It is also
    /// `false`, but the connection stays open, if a call of the store uses the connection for longer than that.
    ///
    /// - Parameter start: The time from which the timeout counts.
    func isAlive(since start: ContinuousClock.Instant) -> Bool {
      var deadline = PostgreSQLDeadline(after: timeout, from: start)
      let wait = deadline.remaining() + PostgreSQLDeadline.grace
      guard callLock.lock(before: Date(timeIntervalSinceNow: wait / .seconds(1))) else { return false }
      defer { callLock.unlock() }
      do throws(SystemError) {
        PQclear(try exchange("running", by: &deadline) { PQsendQuery(handle, PostgreSQLLayout.ping) })
      } catch {
        return false
      }
      // The current transaction may have failed, in which case the server answers with an error.
      return PQstatus(handle) == CONNECTION_OK
    }

    // MARK: - Notifications

    /// Reads the notifications that the server has sent.
    ///
    /// - Returns: The number of notifications.
    func takeNotifications() throws(SystemError) -> Int {
      callLock.lock()
      defer { callLock.unlock() }
      if hasEnded { throw error("reading notifications", state: SystemError.lostConnectionState, lastMessage) }
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
    private var isReadable: Bool { PostgreSQLSocket.wait(PQsocket(handle), for: Int16(POLLIN), until: .now) != 0 }

    // MARK: - Errors

    private static func isSuccess(_ result: OpaquePointer) -> Bool {
      switch PQresultStatus(result) {
      case PGRES_COMMAND_OK, PGRES_TUPLES_OK, PGRES_EMPTY_QUERY: true
      default: false
      }
    }

    private func check(_ result: OpaquePointer, _ operation: String) throws(SystemError) {
      if Self.isSuccess(result) { return }
      let message = Self.message(String(cString: PQresultErrorMessage(result)))
      let state = PQresultErrorField(result, CInt(UInt8(ascii: "C"))).map { String(cString: $0) }
      // Without a state, it is an error of libpq itself. libpq can report that it could not send a request and still
      // consider the connection usable. The next request might then receive the answer to an earlier one.
      if state == nil { endConnection() }
      throw error(operation, state: state ?? SystemError.lostConnectionState, message)
    }

    /// Closes the connection, so that it counts as lost.
    ///
    /// The server ends its process for the connection as soon as it notices, which rolls back a transaction and releases
    /// the locks.
    private func endConnection() {
      if !hasEnded, PQsocket(handle) >= 0 { shutdown(PQsocket(handle), CInt(SHUT_RDWR)) }
      hasEnded = true
    }

    /// Closes the connection, and returns the error of the request that was not answered.
    private func end(_ operation: String, _ message: String) -> SystemError {
      endConnection()
      ending.message = ending.message ?? message
      return error(operation, state: SystemError.lostConnectionState, message)
    }

    /// Returns the message of an error for a server that doesn't answer.
    static func silence(since start: ContinuousClock.Instant) -> String {
      let tenths = Int((ContinuousClock.now - start) / .milliseconds(100))
      return "the server has not answered for \(tenths / 10).\(tenths % 10) seconds"
    }

    /// Creates the error of a failed call.
    ///
    /// An error of a connection that has ended gets the `SQLSTATE` of a lost connection, because the server may have
    /// ended the connection for any reason, with any `SQLSTATE` or none. It gets the server's message, if there is one.
    private func error(_ operation: String, state: String, _ message: String) -> SystemError {
      let isLost = hasEnded || PQstatus(handle) != CONNECTION_OK
      return SystemError(
        code: 0, operation: operation, path: place,
        source: .postgreSQL(
          state: isLost ? SystemError.lostConnectionState : state,
          message: isLost ? ending.message ?? message : message))
    }

    /// Returns the first line of a message of the server or libpq, without the prefix `ERROR:`.
    static func message(_ text: String) -> String {
      let line = text.split(separator: "\n").first.map(String.init) ?? "no reason given"
      return line.hasPrefix("ERROR:") ? line.dropFirst(6).trimmingCharacters(in: .whitespaces) : line
    }

    // MARK: - Memory

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

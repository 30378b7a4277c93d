#if SQLite
  internal import CSQLite
  internal import Foundation

  /// A connection to an SQLite database, and its prepared statements.
  ///
  /// It must be used by one thread at a time: SQLite's multi-thread mode requires this and doesn't check it.
  final class SQLiteConnection {
    /// A value that is bound to a statement, and never becomes part of its text.
    enum Parameter {
      case integer(Int64)
      case text(String)
      case blob(Data)
    }

    /// The current row of a statement.
    struct Row {
      fileprivate let statement: OpaquePointer

      func integer(_ column: CInt) -> Int64 {
        sqlite3_column_int64(statement, column)
      }

      func text(_ column: CInt) -> String {
        // SQLite requires this order of the calls, because the first one may convert the value.
        guard let start = sqlite3_column_text(statement, column) else { return "" }
        let count = Int(sqlite3_column_bytes(statement, column))
        return String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
      }

      func blob(_ column: CInt) -> Data {
        guard let start = sqlite3_column_blob(statement, column) else { return Data() }
        return Data(bytes: start, count: Int(sqlite3_column_bytes(statement, column)))
      }
    }

    /// The path of the database.
    let path: String
    /// The busy timeout that the connection begins with; ``setBusyTimeout(_:)`` doesn't change this property.
    let busyTimeout: Duration
    private let handle: OpaquePointer
    private var isClosed = false
    private var statements: [String: OpaquePointer] = [:]
    /// Extends the write-ahead log, the file that SQLite appends each commit to.
    private var logSpace = SQLiteLogSpace()
    /// The log and its index that the connection has open; `nil` before ``recordLogFiles()``.
    private var logFiles: SQLiteLogFiles?

    /// Opens a database.
    ///
    /// - Parameters:
    ///   - path: An absolute path without symbolic links.
    ///   - permissionsPath: A file whose permissions a new database gets, or `nil` to open only an existing database.
    ///   - busyTimeout: The longest time that a statement waits for other connections.
    ///   - runsTriggers: Whether triggers run, as they do for other programs.
    ///   - isReadOnly: Whether the connection can only read, as if the file's permissions didn't allow writing.
    init(
      path: String, permissionsOf permissionsPath: String?, busyTimeout: Duration, runsTriggers: Bool = false,
      isReadOnly: Bool = false
    ) throws(SystemError) {
      self.path = path
      self.busyTimeout = busyTimeout
      let access = isReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE
      var flags = access | SQLITE_OPEN_URI | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_NOMUTEX
      var uri = "file:\(Self.escaped(path))"
      if let permissionsPath {
        flags |= SQLITE_OPEN_CREATE
        uri += "?modeof=\(Self.escaped(permissionsPath))"
      }
      var handle: OpaquePointer?
      let code = sqlite3_open_v2(uri, &handle, flags, nil)
      guard let handle, code == SQLITE_OK else {
        let error = Self.error(code, from: "sqlite3_open_v2", path: path, handle: handle)
        sqlite3_close(handle)
        throw error
      }
      self.handle = handle
      sqlite3_extended_result_codes(handle, 1)
      // A store logs its changes itself. The triggers would log them again, as changes of another program; see
      // ``SQLiteLayout``.
      if !runsTriggers { _ = csqlite_disable_triggers(handle) }
      setBusyTimeout(busyTimeout)
    }

    deinit {
      close()
    }

    /// Closes the connection, which must not be used afterwards.
    ///
    /// A connection that is opened while another one of the process is still open shares the index of its log. So one
    /// whose index was removed must be closed before, even if something still refers to this object.
    func close() {
      guard !isClosed else { return }
      isClosed = true
      for statement in statements.values { sqlite3_finalize(statement) }
      // Closing rolls back an open transaction. It loses no commit, because commits are durable.
      sqlite3_close(handle)
    }

    /// Sets the longest time that a statement waits for other connections.
    func setBusyTimeout(_ timeout: Duration) {
      // A longer timeout, in milliseconds, might not fit into SQLite's integer.
      let (seconds, attoseconds) = min(max(timeout, .zero), .milliseconds(CInt.max)).components
      sqlite3_busy_timeout(handle, CInt(seconds * 1_000 + attoseconds / 1_000_000_000_000_000))
    }

    /// Prepares a statement for later runs.
    ///
    /// - Throws: An error also if a table that the statement names doesn't exist.
    func prepare(_ sql: String) throws(SystemError) {
      _ = try preparedStatement(sql)
    }

    /// Runs a statement, and keeps it prepared for later runs.
    func run(_ sql: String, _ parameters: Parameter...) throws(SystemError) {
      _ = try readRows(of: sql, parameters) { _ in }
    }

    /// Runs a statement and returns what `read` makes of its first row, or `nil` if it has none.
    ///
    /// All rows are read, so the statement should return at most one.
    func first<Result>(
      _ sql: String, _ parameters: Parameter..., read: (Row) -> Result
    ) throws(SystemError) -> Result? {
      try readRows(of: sql, parameters, read: read).first
    }

    /// Runs a statement and reads its rows.
    func all<Result>(
      _ sql: String, _ parameters: Parameter..., read: (Row) -> Result
    ) throws(SystemError) -> [Result] {
      try readRows(of: sql, parameters, read: read)
    }

    /// The kind of a transaction, by the statement that begins it.
    enum TransactionKind: String {
      /// A transaction that reads one state of the database, and doesn't write.
      case deferred = "BEGIN"
      /// A transaction that writes.
      ///
      /// It takes the write lock at its beginning, because SQLite may refuse the lock to a transaction that has read.
      case immediate = "BEGIN IMMEDIATE"
    }

    /// Runs statements in one transaction: all of their changes are made, durably, or none.
    ///
    /// - Parameter body: Runs the statements. It returns the result, and whether to commit or to roll back.
    func transaction<Result>(
      _ kind: TransactionKind = .immediate,
      _ body: () throws(SystemError) -> (Result, commits: Bool)
    ) throws(SystemError) -> Result {
      try run(kind.rawValue)
      if kind == .immediate { logSpace.extendIfNeeded(on: handle, limit: SQLiteLayout.logSizeLimit) }
      do throws(SystemError) {
        let (result, commits) = try body()
        // A `deferred` transaction may be replaced with another one by a check for external changes in `body`. If the
        // check fails, `body` may still succeed, but the old transaction may have ended without a new one. Then there
        // is nothing to commit. If an `immediate` transaction was lost, `COMMIT` throws.
        if commits, kind == .immediate || isInTransaction { try run("COMMIT") } else { rollBack() }
        return result
      } catch {
        rollBack()
        throw error
      }
    }

    /// Rolls back the open transaction, if any; after some errors, SQLite has done so already.
    func rollBack() {
      guard isInTransaction else { return }
      do throws(SystemError) {
        try run("ROLLBACK")
      } catch {
        // SQLite ends the transaction in any case. If an earlier error led here, the caller throws that one, because it
        // is more specific.
      }
    }

    /// The id of the most recently inserted row.
    var lastInsertedID: Int64 { sqlite3_last_insert_rowid(handle) }

    /// A number that changes when any connection changes the database.
    ///
    /// Reading it takes no lock and doesn't read the database. So it reflects a change of another connection only after
    /// a statement of this connection has read the database.
    var pagerVersion: CUnsignedInt {
      var version: CUnsignedInt = 0
      // If the file doesn't support this, the version is 0, as it may be before the first change. So callers treat 0 as
      // a possible change.
      return sqlite3_file_control(handle, "main", SQLITE_FCNTL_DATA_VERSION, &version) == SQLITE_OK ? version : 0
    }

    /// Whether a transaction is open that has the write lock.
    var isWriting: Bool { sqlite3_txn_state(handle, "main") == SQLITE_TXN_WRITE }

    /// Whether a transaction is open, with or without the write lock.
    var isInTransaction: Bool { sqlite3_get_autocommit(handle) == 0 }

    /// Whether the database's path now refers to a different file, or to none.
    var hasMoved: Bool {
      var hasMoved: CInt = 0
      let code = sqlite3_file_control(handle, "main", SQLITE_FCNTL_HAS_MOVED, &hasMoved)
      return code == SQLITE_OK && hasMoved != 0
    }
  }

  extension SQLiteConnection {
    // MARK: - Log

    /// Records the log and the index that the connection has opened when it first read the database.
    func recordLogFiles() {
      logFiles = SQLiteLogFiles(of: path)
    }

    /// Whether the log or its index is no longer the one that the connection has open.
    var hasLostLog: Bool { logFiles.map { SQLiteLogFiles(of: path).haveMoved(since: $0) } ?? false }

    /// Whether the log is no longer the one that the connection has open.
    var hasOtherLog: Bool { logFiles.map { SQLiteLogFiles(of: path).hasOtherLog(than: $0) } ?? false }

    /// Lets the connection leave the files at the paths of the log and the index alone when it is closed.
    func keepLogWhenClosed() {
      _ = csqlite_keep_log(handle)
    }

    /// Waits until no other connection has the write lock.
    func waitForWriter() throws(SystemError) {
      do throws(SystemError) {
        try run(TransactionKind.immediate.rawValue)
        rollBack()
      } catch {
        // A connection that can only read need not wait.
        if error.isLockout { throw error }
      }
    }

    /// Moves all commits from the log into the database, durably, and empties the log.
    ///
    /// - Throws: An error also if other connections use the log for so long that it can't be emptied.
    func emptyLog() throws(SystemError) {
      // The checkpoint waits for other connections as any statement does, and returns 1 if they blocked it the whole
      // time.
      let wasBusy = try first("PRAGMA wal_checkpoint(TRUNCATE)") { $0.integer(0) != 0 } ?? false
      if wasBusy { throw .busyLog(path) }
    }

    // MARK: - Statements

    private func readRows<Result>(
      of sql: String, _ parameters: [Parameter], read: (Row) -> Result
    ) throws(SystemError) -> [Result] {
      let statement = try preparedStatement(sql)
      defer {
        sqlite3_reset(statement)
        sqlite3_clear_bindings(statement)
      }
      for (index, parameter) in parameters.enumerated() {
        try check(bind(parameter, to: CInt(index + 1), of: statement), from: "sqlite3_bind")
      }
      var results: [Result] = []
      while true {
        let code = sqlite3_step(statement)
        switch code {
        case SQLITE_ROW: results.append(read(Row(statement: statement)))
        case SQLITE_DONE: return results
        default: throw Self.error(code, from: "sqlite3_step", path: path, handle: handle)
        }
      }
    }

    private func preparedStatement(_ sql: String) throws(SystemError) -> OpaquePointer {
      if let statement = statements[sql] { return statement }
      var statement: OpaquePointer?
      try check(
        sqlite3_prepare_v3(handle, sql, -1, CUnsignedInt(SQLITE_PREPARE_PERSISTENT), &statement, nil),
        from: "sqlite3_prepare_v3")
      statements[sql] = statement!
      return statement!
    }

    private func bind(_ parameter: Parameter, to index: CInt, of statement: OpaquePointer) -> CInt {
      // `SQLITE_TRANSIENT`, a macro that Swift doesn't import: SQLite copies the bytes.
      let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
      switch parameter {
      case .integer(let integer):
        return sqlite3_bind_int64(statement, index, integer)
      case .text(let text):
        var text = text
        return text.withUTF8 { bytes in
          bytes.withMemoryRebound(to: CChar.self) {
            sqlite3_bind_text64(statement, index, $0.baseAddress, UInt64($0.count), transient, UInt8(SQLITE_UTF8))
          }
        }
      case .blob(let data):
        // A null pointer would bind NULL instead.
        if data.isEmpty { return sqlite3_bind_zeroblob(statement, index, 0) }
        return data.withUnsafeBytes {
          sqlite3_bind_blob64(statement, index, $0.baseAddress, UInt64($0.count), transient)
        }
      }
    }

    private func check(_ code: CInt, from operation: String) throws(SystemError) {
      if code != SQLITE_OK { throw Self.error(code, from: operation, path: path, handle: handle) }
    }

    private static func error(
      _ code: CInt, from operation: String, path: String, handle: OpaquePointer?
    ) -> SystemError {
      guard let handle else {
        return SystemError(
          code: code, operation: operation, path: path, source: .sqlite(message: String(cString: sqlite3_errstr(code))))
      }
      var message = String(cString: sqlite3_errmsg(handle))
      let systemCode = sqlite3_system_errno(handle)
      let primaryCode = code & 0xFF
      // A read that ends too early, `SQLITE_IOERR_SHORT_READ`, isn't an error of the system. The number of the last one
      // is then left over from an earlier call.
      let mayHaveSystemCause =
        [SQLITE_IOERR, SQLITE_CANTOPEN, SQLITE_FULL, SQLITE_READONLY].contains(primaryCode)
        && sqlite3_extended_errcode(handle) != SQLITE_IOERR | 2 << 8
      if mayHaveSystemCause, systemCode != 0 { message += ", because \(String(cString: strerror(systemCode)))" }
      return SystemError(
        code: sqlite3_extended_errcode(handle), operation: operation, path: path, source: .sqlite(message: message))
    }

    /// Returns a path with percent encoding, for a URI.
    private static func escaped(_ path: String) -> String {
      var escaped = ""
      for byte in path.utf8 {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "/"), UInt8(ascii: "-"), UInt8(ascii: "."),
          UInt8(ascii: "_"):
          escaped.append(Character(Unicode.Scalar(byte)))
        default:
          escaped += String(format: "%%%02x", byte)
        }
      }
      return escaped
    }
  }
#endif

#if SQLite
  internal import CSQLite

  extension SystemError {
    /// Whether the database itself is corrupt, as opposed to an error of its environment.
    ///
    /// The statements of a store never change, so if SQLite can't prepare one, the tables of the database are not
    /// intact.
    var isCorruption: Bool {
      hasSQLiteCode(in: [SQLITE_CORRUPT, SQLITE_NOTADB])
        || (operation == "sqlite3_prepare_v3" && hasSQLiteCode(in: [SQLITE_ERROR]))
    }

    /// Whether other connections blocked this one.
    ///
    /// `SQLITE_PROTOCOL` means that they changed the write-ahead log each time this connection was about to read it.
    var isBusy: Bool { hasSQLiteCode(in: [SQLITE_BUSY, SQLITE_PROTOCOL]) }

    /// Whether a statement can't be executed, usually because it doesn't match the tables of the database.
    var isStatementError: Bool { hasSQLiteCode(in: [SQLITE_ERROR]) }

    /// Whether a file could not be opened or created.
    var isOpenFailure: Bool { hasSQLiteCode(in: [SQLITE_CANTOPEN]) }

    /// Whether the database is read-only.
    var isReadOnly: Bool { hasSQLiteCode(in: [SQLITE_READONLY]) }

    /// The error of a corruption that SQLite itself doesn't report.
    static func corruption(_ path: String, _ message: String) -> SystemError {
      SystemError(code: SQLITE_CORRUPT, operation: "opening", path: path, source: .sqlite(message: message))
    }

    /// The error of a commit whose transaction is no longer open, because SQLite rolled it back after an error.
    static func lostTransaction(_ path: String) -> SystemError {
      // The code is `SQLITE_ABORT_ROLLBACK`.
      SystemError(
        code: SQLITE_ABORT | 2 << 8, operation: "committing", path: path,
        source: .sqlite(message: "the transaction was rolled back after an earlier error"))
    }

    /// The error of a write-ahead log that other connections used for so long that it could not be emptied.
    static func busyLog(_ path: String) -> SystemError {
      SystemError(
        code: SQLITE_BUSY, operation: "emptying the log", path: path,
        source: .sqlite(message: "another connection uses the database"))
    }

    private func hasSQLiteCode(in codes: [CInt]) -> Bool {
      // The lowest byte of an extended code is the primary code.
      if case .sqlite = source { codes.contains(code & 0xFF) } else { false }
    }
  }
#endif

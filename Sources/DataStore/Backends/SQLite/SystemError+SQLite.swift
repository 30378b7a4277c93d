#if SQLite
  internal import CSQLite

  extension SystemError {
    /// Whether the database itself is at fault, and not its surroundings.
    ///
    /// Statements never change, so one that SQLite cannot prepare was meant for a database that is not as it was.
    var isDamage: Bool {
      isSQLite([SQLITE_CORRUPT, SQLITE_NOTADB]) || (operation == "sqlite3_prepare_v3" && isSQLite([SQLITE_ERROR]))
    }

    /// Whether other connections are in the way.
    ///
    /// `SQLITE_PROTOCOL` means that they changed the log each time this one was about to read it.
    var isBusy: Bool { isSQLite([SQLITE_BUSY, SQLITE_PROTOCOL]) }

    /// Whether a statement and the tables of the database don't fit.
    var isStatementError: Bool { isSQLite([SQLITE_ERROR]) }

    /// Whether a file could not be opened or made.
    var isCannotOpen: Bool { isSQLite([SQLITE_CANTOPEN]) }

    /// Whether the database can only be read.
    var isReadOnly: Bool { isSQLite([SQLITE_READONLY]) }

    /// Corruption that SQLite would not report.
    static func damage(_ path: String, _ message: String) -> SystemError {
      SystemError(code: SQLITE_CORRUPT, operation: "opening", path: path, source: .sqlite(message: message))
    }

    /// The transaction of a commit that is no longer open, because SQLite rolled it back at an error.
    static func lostTransaction(_ path: String) -> SystemError {
      SystemError(
        code: SQLITE_ABORT | 2 << 8, operation: "committing", path: path,
        source: .sqlite(message: "the transaction was rolled back at an earlier error"))
    }

    /// The log of a database that could not be emptied, because other connections read it all the time.
    static func busyLog(_ path: String) -> SystemError {
      SystemError(
        code: SQLITE_BUSY, operation: "emptying the log", path: path,
        source: .sqlite(message: "another process reads the database"))
    }

    private func isSQLite(_ codes: [CInt]) -> Bool {
      if case .sqlite = source { codes.contains(code & 0xFF) } else { false }
    }
  }
#endif

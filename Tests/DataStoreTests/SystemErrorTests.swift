import DataStore
import Testing

@Suite struct SystemErrorTests {
  private func sqliteError(_ code: CInt) -> SystemError {
    SystemError(code: code, operation: "sqlite3_step", path: "/a/b.sqlite", source: .sqlite(message: "the reason"))
  }

  @Test func `An SQLite error names the operation, the file, the reason and a remedy`() {
    // Code 13 is SQLITE_FULL.
    #expect(
      sqliteError(13).description == "sqlite3_step on /a/b.sqlite failed: the reason (SQLite's code 13). "
        + "Free some space, then try again.")
  }

  @Test(arguments: [
    (5, "Another connection has locked the database"),  // SQLITE_BUSY
    (517, "Another connection has locked the database"),  // SQLITE_BUSY_SNAPSHOT
    (4_874, "Free some space"),  // SQLITE_IOERR_SHMSIZE
    (1_550, "The item is a symbolic link"),  // SQLITE_CANTOPEN_SYMLINK
    (8, "Check the owner and the permissions"),  // SQLITE_READONLY
    (1_544, "Check the owner and the permissions"),  // SQLITE_READONLY_DIRECTORY
    (14, "Check the owner and the permissions"),  // SQLITE_CANTOPEN
    (267, "Move the file away"),  // SQLITE_CORRUPT_VTAB
    (26, "Move the file away"),  // SQLITE_NOTADB
    (18, "The value is larger than SQLite allows"),  // SQLITE_TOOBIG
    (778, "Try again"),  // SQLITE_IOERR_WRITE
    (522, "A file of the database was cut off, removed or replaced"),  // SQLITE_IOERR_SHORT_READ
  ])
  func `An SQLite error gives the advice for its extended code, or for its primary code if the extended code has none`(
    code: CInt, advice: String
  ) {
    #expect(sqliteError(code).description.contains("(SQLite's code \(code)). \(advice)"))
  }

  @Test func `The error of a standby says to connect to the primary server`() {
    let error = SystemError(
      code: 0, operation: "running", path: "db", source: .postgreSQL(state: "25006", message: "read-only"))
    #expect(error.description.contains("connect to the primary server"))
  }

  @Test func `An SQLite error differs from an operating system error with the same code`() {
    #expect(sqliteError(5) != SystemError(code: 5, operation: "sqlite3_step", path: "/a/b.sqlite"))
  }
}

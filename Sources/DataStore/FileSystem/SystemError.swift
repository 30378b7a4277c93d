#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// A failed call to the operating system or to a database.
public struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The origin of the code.
  public enum Source: Hashable, Sendable {
    /// The operating system. The ``SystemError/code`` is an `errno`.
    case operatingSystem

    /// SQLite, with a message. The ``SystemError/code`` is its result code, extended if there is an extended one.
    case sqlite(message: String)

    /// PostgreSQL, with a five-character `SQLSTATE` and a message. The ``SystemError/code`` is 0.
    case postgreSQL(state: String, message: String)
  }

  /// The error number, whose meaning depends on the ``source``.
  public let code: CInt

  /// The call or the step that failed, such as `fsync` or `committing`.
  public let operation: String

  /// The file, folder or other resource of the call.
  public let path: String

  /// The origin of the code.
  public let source: Source

  /// Whether the error may concern only one stored value, and not the whole medium.
  var concernsOneEntry: Bool {
    source == .operatingSystem
      && [EINVAL, EISDIR, ELOOP, EFBIG, EIO, EACCES, EPERM, ENXIO, ENODEV, EOPNOTSUPP].contains(code)
  }

  /// Creates an error.
  ///
  /// - Parameters:
  ///   - code: The error number.
  ///   - operation: The call or the step that failed.
  ///   - path: The file, folder or other resource of the call.
  ///   - source: The origin of the code.
  public init(code: CInt, operation: String, path: String, source: Source = .operatingSystem) {
    self.code = code
    self.operation = operation
    self.path = path
    self.source = source
  }

  /// The error of a store or backend that doesn't implement `erase`.
  static func erasureUnsupported(by type: Any.Type) -> SystemError {
    SystemError(code: ENOTSUP, operation: "erase (not implemented by \(type))", path: "the store")
  }

  /// A message that says what failed, where and why, and how to resolve it.
  public var description: String {
    switch source {
    case .operatingSystem:
      "\(operation) of \(path) failed: \(String(cString: strerror(code))) (errno \(code)). \(systemAdvice)"
    case .sqlite(let message):
      "\(operation) on \(path) failed: \(message) (SQLite's code \(code)). \(sqliteAdvice)"
    case .postgreSQL(let state, let message):
      "\(operation) on \(path) failed: \(message) (SQLSTATE \(state)). \(Self.postgreSQLAdvice(state))"
    }
  }

  private var systemAdvice: String {
    switch code {
    case _ where isUnknownOutcome: Self.unknownOutcomeAdvice
    case ENOSPC, EDQUOT: "Free some space, then try again."
    case EACCES, EPERM: "Check the owner and the permissions of the folder, or choose another one."
    case EROFS: "The volume is read-only: choose a folder on another one."
    case ENOENT: "The file or folder no longer exists: restore it or choose another folder, then open the store again."
    case ENOTDIR, EEXIST: "A part of the path is not a folder: choose another folder."
    case ELOOP: "The item is a symbolic link, which a store doesn't follow: replace it with the file itself."
    case EINVAL where operation == Self.openingUserDefaults:
      "The name of a suite must not be empty, contain a slash, or be that of the app itself: choose another name."
    case EISDIR, EINVAL: "A store can't use this item: move it away or choose another folder."
    case EFBIG: "The file is larger than a store supports: split the value, or move the file away."
    case EWOULDBLOCK: "Another process or store held the lock for too long: end it, then try again."
    case ENOTSUP: "The store or its volume doesn't support this: choose another one."
    case EMFILE, ENFILE: "Too many files are open: close some, then try again."
    default: "Try again. If the error persists, check the volume or choose another folder."
    }
  }

  /// Advice by SQLite's result codes.
  ///
  /// The codes are written as numbers, because their names are available only with the trait `SQLite`. The numbers
  /// never change. The lowest byte of an extended code is the primary code.
  private var sqliteAdvice: String {
    switch (code & 0xFF, code) {
    // SQLITE_BUSY, SQLITE_LOCKED and SQLITE_PROTOCOL.
    case (5, _), (6, _), (15, _): "Another connection has locked the database: end its transaction, then try again."
    // SQLITE_FULL and SQLITE_IOERR_SHMSIZE.
    case (13, _), (_, 4874): "Free some space, then try again."
    // SQLITE_CANTOPEN_SYMLINK.
    case (_, 1550): "The item is a symbolic link, which a store doesn't follow: replace it with the file itself."
    // SQLITE_PERM, SQLITE_READONLY, SQLITE_CANTOPEN and SQLITE_AUTH.
    case (3, _), (8, _), (14, _), (23, _):
      "Check the owner and the permissions of the file and its folder, and that the volume is not read-only."
    // SQLITE_CORRUPT and SQLITE_NOTADB.
    case (11, _), (26, _):
      "Move the file away, together with the files whose names begin with its name, and restore a backup."
    // SQLITE_IOERR_SHORT_READ.
    case (_, 522):
      "A file of the database was cut off, removed or replaced while it was in use: close all connections to the "
        + "database, then open it again. If the error persists, restore a backup."
    // SQLITE_TOOBIG.
    case (18, _): "The value is larger than SQLite allows: split it."
    default: "Try again. If the error persists, check the volume or choose another folder."
    }
  }

  /// Whether the outcome of a commit is unknown, because the server's answer was lost, or because the commit could
  /// neither be made durable nor be undone.
  var isUnknownOutcome: Bool {
    switch source {
    case .operatingSystem: operation == Self.undoing
    case .sqlite: false
    case .postgreSQL(let state, _): state == Self.unknownOutcomeState
    }
  }

  /// The error of a file change that could neither be made durable nor be undone.
  ///
  /// - Parameters:
  ///   - path: The file.
  ///   - error: The reason why the change could not be undone.
  static func unknownOutcome(ofChanging path: String, because error: SystemError) -> SystemError {
    SystemError(code: error.code, operation: undoing, path: path)
  }

  /// The ``operation`` of the errors of ``unknownOutcome(ofChanging:because:)``.
  private static let undoing = "undoing the change"

  /// The ``operation`` of an error of a suite that doesn't exist.
  static let openingUserDefaults = "opening the user defaults"

  private static let unknownOutcomeAdvice =
    "Load the stored value to see whether the commit was made, then try again if necessary."

  /// The `SQLSTATE` `statement_completion_unknown`.
  static let unknownOutcomeState = "40003"

  /// Advice by the class of an `SQLSTATE`, which is its first two characters; see appendix A of PostgreSQL's
  /// documentation.
  private static func postgreSQLAdvice(_ state: String) -> String {
    switch state.prefix(2) {
    case "40" where state == unknownOutcomeState: unknownOutcomeAdvice
    case "40": "Another client's transaction was in conflict with this one: try again."
    // If the store can't open a connection, the class is always 08, whatever the reason, such as a wrong password.
    case "08", "57":
      "Check that the server is running and can be reached, and that the address, user and password are right. "
        + "Then try again."
    // read_only_sql_transaction.
    case "25" where state == "25006":
      "The server is a standby, or allows no changes: connect to the primary server, for example with "
        + "target_session_attrs=read-write, and as a user whose transactions may write."
    // The server's own classes for a refused connection, which the store replaces by 08; other code may report them.
    case "28", "3D": "Check the address, the user, the password and the name of the database."
    // feature_not_supported, invalid_sql_statement_name and duplicate_prepared_statement. A pooler that assigns the
    // processes of the server by transaction causes the last two.
    case "0A", "26",
      "42" where state.hasPrefix("0A") || state.hasPrefix("26") || state == "42P05":
      "Connect to a PostgreSQL server of version 14 or later, either directly or through a pooler in session mode, such "
        + "as PgBouncer with pool_mode = session."
    // insufficient_privilege.
    case "42" where state == "42501": "Use the role that owns the store's tables, or check the privileges of the user."
    case "42":
      "Check that the user may create and use tables in the schema, and that the existing ones are the store's."
    case "53": "The server is short of memory, connections or disk space: free some, then try again."
    case "55": "Another client has locked the store: end its transaction, then try again."
    case "54": "The value is larger than PostgreSQL allows: split it."
    default: "Try again. If the error persists, see the server's log."
    }
  }
}

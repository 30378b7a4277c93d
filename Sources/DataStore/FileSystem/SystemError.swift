#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// A call to the operating system, or to a library of it, that failed.
public struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The origin of the code.
  public enum Source: Hashable, Sendable {
    /// The operating system, by its error number, `errno`.
    case operatingSystem

    /// SQLite, by its extended result code and in its own words.
    case sqlite(message: String)

    /// PostgreSQL, by its five characters `SQLSTATE` and in its own words. The ``SystemError/code`` is 0.
    case postgreSQL(state: String, message: String)
  }

  /// The error number: what it means depends on the ``source``.
  public let code: CInt

  /// Which call failed, such as `fsync`.
  public let operation: String

  /// The file, folder or other place it was about.
  public let path: String

  /// The origin of the code.
  public let source: Source

  /// Whether one file or row is at fault, and not the place where all of them are.
  var concernsOneEntry: Bool {
    source == .operatingSystem
      && [EINVAL, EISDIR, ELOOP, EFBIG, EIO, EACCES, EPERM, ENXIO, ENODEV, EOPNOTSUPP].contains(code)
  }

  /// Creates an error.
  ///
  /// - Parameters:
  ///   - code: The error number.
  ///   - operation: Which call failed.
  ///   - path: The file, folder or other place it was about.
  ///   - source: The origin of the code.
  public init(code: CInt, operation: String, path: String, source: Source = .operatingSystem) {
    self.code = code
    self.operation = operation
    self.path = path
    self.source = source
  }

  /// A store or a backend of another package that doesn't implement `erase`.
  static func erasureUnsupported(by type: Any.Type) -> SystemError {
    SystemError(code: ENOTSUP, operation: "erase, which \(type) doesn't implement,", path: "the store")
  }

  /// Says what failed, where, why, and what helps.
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
    case ENOSPC, EDQUOT: "Free some space, then try again."
    case EACCES, EPERM: "Check the owner and the permissions of the folder, or choose another one."
    case EROFS: "The volume is read-only: choose a folder on another one."
    case ENOENT: "It has gone: put it back or choose another folder, then open the store again."
    case ENOTDIR, EEXIST: "A part of the path is not a folder: choose another folder."
    case ELOOP: "It is a symbolic link, which a store does not follow: replace it by the file itself."
    case EISDIR, EINVAL: "It is not something a store can use: move it away or choose another place."
    case EFBIG: "It is larger than a store can use: split the value, or move the file away."
    case EWOULDBLOCK: "Another process has been at work there for too long: end it, then try again."
    case EMFILE, ENFILE: "Too many files are open: close some, then try again."
    default: "Try again; if it stays, check the volume or choose another folder."
    }
  }
  /// Advice by SQLite's result codes, which never change; the lowest byte of an extended code is the general one.
  private var sqliteAdvice: String {
    switch (code & 0xFF, code) {
    case (5, _), (6, _): "Another connection holds the database: end what it does, then try again."
    case (13, _), (_, 4874): "Free some space, then try again."
    case (_, 1550): "It is a symbolic link, which a store does not follow: replace it by the file itself."
    case (3, _), (8, _), (14, _), (23, _):
      "Check the owner and the permissions of the file and its folder, and that the volume is not read-only."
    case (11, _), (26, _): "Move the file away, with those whose names begin the same, and restore it from a backup."
    case (18, _): "The value is larger than SQLite allows: split it."
    default: "Try again; if it stays, check the volume or choose another folder."
    }
  }

  /// Whether it isn't known if a commit was made, because the server's answer was lost.
  var isUnknownOutcome: Bool {
    guard case .postgreSQL(let state, _) = source else { return false }
    return state == Self.unknownOutcomeState
  }

  /// `statement_completion_unknown`.
  static let unknownOutcomeState = "40003"

  /// Advice by the class of an `SQLSTATE`, its first two characters; see appendix A of PostgreSQL's documentation.
  private static func postgreSQLAdvice(_ state: String) -> String {
    switch state.prefix(2) {
    case "40" where state == unknownOutcomeState: "Load what is stored, then try again if it must be."
    case "08", "57": "Check that the server runs and can be reached, then try again."
    case "28", "3D": "Check the address, the user, the password and the name of the database."
    case "42": "Check that the user may make and use tables in the schema, and that they are the store's."
    case "53": "The server is short of memory, connections or disk: make room, then try again."
    case "55": "Another client holds the store: end what it does, then try again."
    case "54": "The value is larger than PostgreSQL allows: split it."
    default: "Try again; if it stays, see the server's log."
    }
  }
}

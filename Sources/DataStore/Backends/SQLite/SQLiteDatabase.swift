#if SQLite
  internal import Foundation

  #if canImport(Darwin)
    internal import Darwin
  #elseif canImport(Glibc)
    internal import Glibc
  #elseif canImport(Musl)
    internal import Musl
  #endif

  /// The database file of a ``SQLiteBackend``, and the connection to it.
  ///
  /// A different file at the same path gets a new connection, and so does a database whose log was removed or replaced;
  /// see ``SQLiteLogFiles``. One connection does all the work, because a store makes
  /// one call at a time. A connection's own commits don't change its `data_version`, so the connection that writes can
  /// also detect the commits of other connections.
  struct SQLiteDatabase {
    /// The result of opening the database, or the error to throw because the store can't use it or has quarantined it.
    typealias Outcome<Success> = Result<Success, StoreError>

    let folder: String
    let fileName: String
    let fileSystem: FileSystem
    let busyTimeout: Duration
    let now: @Sendable () -> Date
    private(set) var connection: SQLiteConnection?
    /// A connection that stays open for the next attempt to connect, because its database isn't prepared yet or can't
    /// be used.
    private var keptConnection: SQLiteConnection?
    /// Whether changes of the database's files wake the store.
    ///
    /// If they do, a check must not change the files, because each change would cause another check. So a failed
    /// quarantine is remembered, and a connection to an unusable database is kept open, because closing it would change
    /// the files.
    var isWatched = false
    /// The last failed attempt to quarantine a corrupt database, until the next call that changes a value.
    var failedQuarantine: FailedQuarantine?
    /// The connection's ``SQLiteConnection/pagerVersion`` when ``checkLayout(of:)`` last returned `nil`, or after the
    /// connection's own last change if that was later; 0 if neither has happened since it was opened.
    private var pagerVersion: CUnsignedInt = 0
    /// The connection's `data_version` when it was opened, or when ``checkLayout(of:)`` last returned `nil`.
    private var dataVersion: Int64 = 0
    /// Whether the database has been opened since it was last quarantined, so that its absence is an error.
    var hasExisted = false

    /// The number of connections so far; it increases when a different file is found at the database's path.
    private(set) var connectionCount = 0

    init(file: URL, busyTimeout: Duration, fileSystem: FileSystem, now: @escaping @Sendable () -> Date) {
      let path = file.isFileURL ? file.absoluteURL.path(percentEncoded: false) : ""
      let lastSlash = path.lastIndex(of: "/") ?? path.startIndex
      fileName = String(path[lastSlash...].dropFirst())
      folder = lastSlash == path.startIndex ? "/" : String(path[..<lastSlash])
      self.fileSystem = fileSystem
      self.busyTimeout = busyTimeout
      self.now = now
    }

    /// The name of a file that exists only while the database is being created; SQLite copies its permissions.
    var permissionsName: String { "\(fileName)-mode" }

    /// Returns the open connection or opens one; `nil` if there is no database and none should be created.
    ///
    /// A file without contents counts as no database.
    mutating func connect(creating: Bool) throws(SystemError) -> Outcome<SQLiteConnection?> {
      if let connection, !connection.hasMoved {
        if !connection.hasLostLog { return .success(connection) }
        let descriptor = try fileSystem.openFolder(folder)
        try fileSystem.lock(descriptor, atMost: busyTimeout)
        _ = try leaveLostLog(in: descriptor)
        return try open(in: descriptor, creating: creating)
      }
      connection = nil
      guard let descriptor = try openFolder(creating: creating) else { return .success(nil) }
      // The lock excludes other processes that create or quarantine the database.
      try fileSystem.lock(descriptor, atMost: busyTimeout)
      return try open(in: descriptor, creating: creating)
    }

    /// Closes the connection.
    mutating func close() {
      connection?.close()
      connection = nil
    }

    /// Closes everything that is open between two calls; the next call opens it again.
    ///
    /// A connection whose log was removed stays open if its commits can't be moved into the database, because they would
    /// be lost with it.
    mutating func closeUntilNextCall() {
      keptConnection = nil
      do throws(SystemError) {
        // As everywhere, the connection to a database that is no longer at its path is only closed.
        if !hasMoved { _ = try recoverCommit() }
        close()
      } catch {
        // The next call tries again, and throws the same error.
      }
    }

    /// Checks whether another program has given the database a layout that the store can't use, such as a future one.
    ///
    /// It reads the layout only if another connection has changed the database since this connection was opened or a
    /// check last returned `nil`. In a transaction, the result is valid until the transaction ends.
    ///
    /// - Returns: The reason why the store must not use the database, or `nil` if it may.
    mutating func checkLayout(of connection: SQLiteConnection) throws(SystemError) -> StoreError? {
      let dataVersion = try connection.dataVersion
      if dataVersion != self.dataVersion, let refusal = try Self.layout(of: connection).refusal(of: path) {
        return refusal
      }
      (self.dataVersion, pagerVersion) = (dataVersion, connection.pagerVersion)
      return nil
    }

    /// Records that a connection has committed a transaction in which ``checkLayout(of:)`` returned `nil`.
    mutating func recordChange(on connection: SQLiteConnection) {
      pagerVersion = connection.pagerVersion
    }

    /// Whether another connection may have changed the database since ``checkLayout(of:)`` last returned `nil`.
    ///
    /// It reflects a change only after a statement of this store's connection has read the database.
    var mayHaveChanged: Bool { connection.map { $0.pagerVersion != pagerVersion || pagerVersion == 0 } ?? true }

    /// Whether the file at the database's path is no longer the connection's.
    var hasMoved: Bool { connection?.hasMoved ?? false }
  }

  extension SQLiteDatabase {
    /// A failed attempt to quarantine a corrupt database.
    struct FailedQuarantine {
      /// The files that existed after the attempt, by the suffixes of their names.
      let files: [String: FileSystem.Status]
      let error: SystemError
    }

    /// The layout of a database file.
    enum Layout {
      case empty
      case current
      case newer(found: Int)
      case foreign

      func refusal(of path: String) -> StoreError? {
        switch self {
        case .current: nil
        case .newer(let found): .newerStore(path: path, found: found, supported: Int(SQLiteLayout.version))
        case .empty, .foreign:
          .readFailed(SystemError(code: EINVAL, operation: "opening as a store", path: path))
        }
      }
    }

    var path: String { folder == "/" ? "/\(fileName)" : "\(folder)/\(fileName)" }

    /// Locks a file beside the database.
    ///
    /// It creates the folder if it is missing, but not the database.
    func acquireLock(_ name: String) throws(SystemError) -> StoreLockResult {
      // If `openFolder` is to create the folder, it never returns `nil`.
      guard let folder = try openFolder(creating: true) else { return .unsupported }
      return try fileSystem.acquireLock("\(fileName)-lock.\(name)", in: folder)
    }

    /// Opens the folder, or returns `nil` if the folder is missing and should not be created.
    ///
    /// - Throws: `ENOENT` if the folder is missing although the database has been opened before; `EINVAL` if the path
    ///   can't be that of a file.
    private func openFolder(creating: Bool) throws(SystemError) -> Descriptor? {
      guard !fileName.isEmpty, !fileName.utf8.contains(0) else {
        throw SystemError(code: EINVAL, operation: "open", path: path)
      }
      do throws(SystemError) {
        return try fileSystem.openFolder(folder)
      } catch {
        guard error.code == ENOENT, !hasExisted else { throw error }
      }
      guard creating else { return nil }
      try fileSystem.makeFolders(folder)
      return try fileSystem.openFolder(folder)
    }

    /// Opens the database in a locked folder.
    mutating func open(
      in folder: borrowing Descriptor, creating: Bool
    ) throws(SystemError) -> Outcome<SQLiteConnection?> {
      let databaseSize = try size(of: fileName, in: folder)
      if databaseSize == nil, hasExisted { throw SystemError(code: ENOENT, operation: "open", path: path) }
      let isMissingOrEmpty = databaseSize == nil || databaseSize == 0
      if isMissingOrEmpty {
        guard creating else { return .success(nil) }
        // SQLite would delete the log of an empty database, and with it commits that are only in the log. So the log is
        // quarantined, and the store begins with a new database.
        if let logSize = try size(of: fileName + Self.logSuffix, in: folder), logSize > 0 {
          return .failure(try replace(nil, in: folder, because: .corruption(path, "only its log is left")))
        }
      }
      let opened = try openConnection(in: folder, isNew: databaseSize == nil)
      // This comes before the first write to the database. If it fails, the database is still empty, so the next
      // attempt repeats it.
      if isMissingOrEmpty {
        try discard(permissionsName, in: folder)
        try fileSystem.makeExistingFolderDurable(self.folder)
      }
      keptConnection = isWatched ? opened : nil
      do throws(SystemError) {
        let outcome = try prepare(opened, creating: creating)
        if let outcome { return outcome }
        if isMissingOrEmpty { try fileSystem.synchronize(folder) }
        (dataVersion, pagerVersion) = (try opened.dataVersion, 0)
      } catch {
        guard error.isCorruption else { throw try specificError(for: error, in: folder) }
        return .failure(try replace(opened, in: folder, because: error))
      }
      keptConnection = nil
      opened.recordLogFiles()
      connection = opened
      hasExisted = true
      connectionCount += 1
      return .success(opened)
    }

    /// Returns an error that says that the volume is read-only, if this caused the given error; otherwise the given
    /// error.
    ///
    /// To use a database in WAL mode, SQLite creates files beside it. If that fails, SQLite reports only that it can't
    /// open a file, without the reason.
    private func specificError(
      for error: SystemError, in folder: borrowing Descriptor
    ) throws(SystemError) -> SystemError {
      guard error.isOpenFailure, try fileSystem.isOnReadOnlyVolume(folder) else { return error }
      return SystemError(code: EROFS, operation: "creating the files of WAL mode beside the database", path: path)
    }

    /// The connection that the last attempt left open, if the database is still the same file.
    private var reusableConnection: SQLiteConnection? {
      if let keptConnection, !keptConnection.hasMoved { keptConnection } else { nil }
    }

    /// Returns the connection that the last attempt left open, or opens one.
    ///
    /// - Parameter isNew: Whether to create the file of the database.
    private func openConnection(
      in folder: borrowing Descriptor, isNew: Bool
    ) throws(SystemError) -> SQLiteConnection {
      if let reusableConnection { return reusableConnection }
      let resolved = try fileSystem.resolve(folder)
      let prefix = resolved == "/" ? "/" : "\(resolved)/"
      guard isNew else {
        return try SQLiteConnection(path: prefix + fileName, permissionsOf: nil, busyTimeout: busyTimeout)
      }
      // SQLite creates files that every user can read, unless it is given a file whose permissions it copies.
      try discard(permissionsName, in: folder)
      _ = try fileSystem.create(permissionsName, in: folder)
      return try SQLiteConnection(
        path: prefix + fileName, permissionsOf: prefix + permissionsName, busyTimeout: busyTimeout)
    }

    /// Prepares a database for use: checks its layout, configures the connection, and creates the tables.
    ///
    /// - Returns: `nil` if the database is ready, and otherwise the outcome of opening it.
    private func prepare(
      _ connection: SQLiteConnection, creating: Bool
    ) throws(SystemError) -> Outcome<SQLiteConnection?>? {
      let layout = try Self.layout(of: connection)
      if case .empty = layout {
        guard creating else { return .success(nil) }
      } else if let refusal = layout.refusal(of: path) {
        return .failure(refusal)
      }
      // This comes after the check of the layout, because a database that isn't the store's must stay unchanged.
      for sql in SQLiteLayout.configuration { try connection.run(sql) }
      let mode = try connection.first("PRAGMA journal_mode = WAL") { $0.text(0) } ?? ""
      guard mode == "wal" else { throw SystemError(code: ENOTSUP, operation: "switching to WAL mode", path: path) }
      if case .empty = layout {
        try connection.transaction { () throws(SystemError) in
          for sql in SQLiteLayout.creation { try connection.run(sql) }
          return ((), commits: true)
        }
      }
      for sql in SQLiteLayout.statements { try connection.prepare(sql) }
      return nil
    }

    static func layout(of connection: SQLiteConnection) throws(SystemError) -> Layout {
      let applicationID = try connection.first("PRAGMA application_id") { $0.integer(0) } ?? 0
      let version = try connection.first("PRAGMA user_version") { $0.integer(0) } ?? 0
      if applicationID == SQLiteLayout.applicationID {
        if version > SQLiteLayout.version { return .newer(found: Int(version)) }
        if version == SQLiteLayout.version { return .current }
        if version == 1 { return .foreign }
        throw .corruption(connection.path, "layout \(version) has never existed")
      }
      let schemaObjectCount = try connection.first("SELECT count(*) FROM sqlite_master") { $0.integer(0) } ?? 0
      return applicationID == 0 && version == 0 && schemaObjectCount == 0 ? .empty : .foreign
    }

    /// Returns the size of a file in bytes, or `nil` if there is none.
    ///
    /// It opens no regular file, because closing a descriptor of the database would release the locks that other
    /// connections of this process have on it.
    func size(of name: String, in folder: borrowing Descriptor) throws(SystemError) -> Int? {
      do throws(SystemError) {
        let status = try fileSystem.status(of: name, in: folder)
        if status.isRegularFile { return status.size }
      } catch {
        if error.code == ENOENT { return nil }
        throw error
      }
      // Opening an item that isn't a file usually throws a more specific error.
      _ = try fileSystem.openFile(name, in: folder)
      throw SystemError(code: EINVAL, operation: "open", path: folder.path(of: name))
    }

    /// Removes a file, if it exists.
    private func discard(_ name: String, in folder: borrowing Descriptor) throws(SystemError) {
      do throws(SystemError) {
        try fileSystem.unlink(name, in: folder)
      } catch {
        guard error.code == ENOENT else { throw error }
      }
    }
  }

  extension SQLiteConnection {
    /// A number that changes if and only if another connection has changed the database.
    var dataVersion: Int64 {
      get throws(SystemError) { try first("PRAGMA data_version") { $0.integer(0) } ?? 0 }
    }
  }
#endif

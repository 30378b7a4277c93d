#if SQLite
  #if canImport(Darwin)
    internal import Darwin
  #elseif canImport(Glibc)
    internal import Glibc
  #elseif canImport(Musl)
    internal import Musl
  #endif

  /// The files beside a database that a connection commits to: the write-ahead log, and its index in shared memory.
  ///
  /// A connection keeps both open. If one of them is removed or replaced, the connection still commits to the file that
  /// it has open. No other process finds these commits, and they are lost when the connection ends. SQLite doesn't
  /// notice this. It never removes these files itself while a connection is open, so another program has done so.
  struct SQLiteLogFiles: Equatable {
    /// The identity of a file: its volume and its number there.
    private struct Identity: Equatable {
      let volume: dev_t
      let number: ino_t
    }

    private let log: Identity?
    private let index: Identity?

    /// Records the files that are at the paths now.
    ///
    /// - Parameter databasePath: The path of the database.
    init(of databasePath: String) {
      log = Self.identity(of: databasePath + SQLiteDatabase.logSuffix)
      index = Self.identity(of: databasePath + "-shm")
    }

    /// Whether the log is no longer the one that was recorded earlier.
    func hasOtherLog(than earlier: SQLiteLogFiles) -> Bool { earlier.log != nil && log != earlier.log }

    /// Whether the log or its index is no longer the one that was recorded earlier.
    ///
    /// A connection that can only read may have neither.
    func haveMoved(since earlier: SQLiteLogFiles) -> Bool {
      hasOtherLog(than: earlier) || (earlier.index != nil && index != earlier.index)
    }

    private static func identity(of path: String) -> Identity? {
      var status = stat()
      guard lstat(path, &status) == 0 else { return nil }
      return Identity(volume: status.st_dev, number: status.st_ino)
    }
  }

  extension SQLiteDatabase {
    /// Closes a connection whose log or index is no longer at its path, after moving its commits into the database.
    ///
    /// The commits that the connection has made since the last checkpoint are only in the log that it has open. They
    /// can be moved into the database as long as no other log exists, because then no other connection has changed the
    /// database on the basis of an older state. If there is another log, the database is what other processes see in
    /// it, as if the database itself had been replaced.
    ///
    /// The folder must be locked, so that no other store opens the database meanwhile.
    ///
    /// - Returns: Whether the commits of the connection are in the database now, or in a log that is still at its path.
    /// - Throws: The error that prevents the move. The connection then stays open, and the next call tries again.
    mutating func leaveLostLog(in folder: borrowing Descriptor) throws(SystemError) -> Bool {
      guard let connection else { return true }
      let hasOtherLog = connection.hasOtherLog
      let otherLogSize = try size(of: fileName + Self.logSuffix, in: folder) ?? 0
      if !hasOtherLog {
        // Another connection to the lost index may be in the middle of a commit to the same log. A connection with
        // another index wouldn't wait for it, and both would write to the same place in the log.
        try connection.waitForWriter()
      } else if otherLogSize == 0 {
        try connection.emptyLog()
      }
      connection.keepLogWhenClosed()
      close()
      return !hasOtherLog || otherLogSize == 0
    }

    /// Locks the folder, and leaves a log that is no longer at its path.
    ///
    /// Call it after a commit, which may have gone to that log.
    ///
    /// - Returns: Whether the commit can be found by other processes; `false` if it must be made again.
    mutating func recoverCommit() throws(SystemError) -> Bool {
      guard let connection, connection.hasLostLog else { return true }
      let path = connection.path
      do throws(SystemError) {
        let folder = try fileSystem.openFolder(folder)
        try fileSystem.lock(folder, atMost: busyTimeout)
        return try leaveLostLog(in: folder)
      } catch {
        throw .unknownOutcome(ofChanging: path, because: error)
      }
    }
  }
#endif

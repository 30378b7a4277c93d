#if SQLite
  internal import CSQLite

  /// Makes room in a database's log ahead of its commits.
  ///
  /// In WAL mode a commit writes to the end of the log and synchronises it. A file that has become longer takes about
  /// twice as long to synchronise, because its new size is written too. SQLite goes back to the start of the log, and so
  /// stops extending it, only after 1,000 pages, which few programs write while they run. So the log is extended by zeros
  /// in a few large steps, and the commits in between overwrite them.
  ///
  /// This changes nothing that SQLite relies on. It reads no page of the log without the checksums that lead to it, since
  /// what a log holds behind its end is left over from before anyway.
  ///
  /// **Invariant**: Zeros are written behind the end of the file only, and only by the connection that has the right to
  /// write, so no other one writes there. The file is the one that SQLite has open, whatever has its name by now.
  struct SQLiteLogSpace {
    /// The smallest step in bytes.
    static let minimumStep: Int64 = 64 << 10

    /// The size of the log after the last call.
    private var size: Int64 = 0

    private static let zeros = [UInt8](repeating: 0, count: Int(minimumStep))

    /// Extends the log if it has grown since the last call, at most to a limit.
    ///
    /// Each step doubles the log. The first call extends nothing, so a program that commits once writes nothing more.
    ///
    /// - Parameter connection: A connection in a transaction with the right to write.
    /// - Complexity: O(1) amortised over the bytes that are committed.
    mutating func extendIfNeeded(on connection: OpaquePointer, limit: Int64) {
      var file: UnsafeMutablePointer<sqlite3_file>?
      guard sqlite3_file_control(connection, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file) == SQLITE_OK,
        let file, let methods = file.pointee.pMethods?.pointee
      else { return }
      var found: sqlite3_int64 = 0
      guard methods.xFileSize(file, &found) == SQLITE_OK, found != size else { return }
      let hasGrown = size > 0 && found > size
      size = found
      guard hasGrown else { return }
      let end = min(found + max(found, Self.minimumStep), limit)
      while size < end {
        let count = min(end - size, Self.minimumStep)
        // Without the room everything works as well, and if the volume is full the commit itself says so.
        guard methods.xWrite(file, Self.zeros, CInt(count), size) == SQLITE_OK else { return }
        size += count
      }
    }
  }
#endif

#if SQLite
  internal import CSQLite

  /// Extends a database's write-ahead log ahead of its commits.
  ///
  /// In WAL mode a commit appends to the log and synchronizes it. If the file has grown, synchronizing it takes about
  /// twice as long, because the new size is written too. SQLite restarts the log only after 1,000 pages: it then
  /// overwrites the log from its start, and the file stops growing. Few programs write that many pages in one run. So
  /// this type extends the log with zeros in a few large steps, and the commits between two steps overwrite the zeros.
  ///
  /// SQLite doesn't depend on the bytes behind the last commit in the log: in a restarted log, they are left over from
  /// earlier commits. It reads a page only if the checksums of all pages up to it are correct.
  ///
  /// **Invariant**: Zeros are written only past the end of the file, and only by the connection that has the write
  /// lock, so no other connection writes there. The file is the one that SQLite has open, even if another file has its
  /// name by now.
  struct SQLiteLogSpace {
    /// The smallest step, in bytes, unless the limit of the log is closer.
    static let minimumStep: Int64 = 64 << 10

    /// The size of the log after the last call, in bytes.
    private var size: Int64 = 0

    private static let zeros = [UInt8](repeating: 0, count: Int(minimumStep))

    /// Extends the log, up to a limit, if it has grown since the last call.
    ///
    /// Each step doubles the log, or adds ``minimumStep`` if that is more. The first call that finds a nonempty log
    /// only records its size and doesn't extend it. So a program that commits once, after the commit that creates the
    /// tables, writes no additional bytes.
    ///
    /// - Parameters:
    ///   - connection: A connection in a transaction that has the write lock.
    ///   - limit: The largest size to which the log is extended, in bytes.
    /// - Complexity: Amortized O(1) for each committed byte, if only one connection commits. Each of several
    ///   connections also takes the zeros of the others for growth, so the log reaches its limit sooner.
    mutating func extendIfNeeded(on connection: OpaquePointer, limit: Int64) {
      var file: UnsafeMutablePointer<sqlite3_file>?
      guard sqlite3_file_control(connection, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file) == SQLITE_OK,
        let file, let methods = file.pointee.pMethods?.pointee
      else { return }
      var currentSize: sqlite3_int64 = 0
      guard methods.xFileSize(file, &currentSize) == SQLITE_OK, currentSize != size else { return }
      let hasGrown = size > 0 && currentSize > size
      size = currentSize
      guard hasGrown else { return }
      let newSize = min(currentSize + max(currentSize, Self.minimumStep), limit)
      while size < newSize {
        // One write can't be longer than `zeros`, which has the length of the smallest step.
        let byteCount = min(newSize - size, Self.minimumStep)
        // A failure does no harm: the log works at any size, and if the volume is full, the commit itself throws.
        guard methods.xWrite(file, Self.zeros, CInt(byteCount), size) == SQLITE_OK else { return }
        size += byteCount
      }
    }
  }
#endif

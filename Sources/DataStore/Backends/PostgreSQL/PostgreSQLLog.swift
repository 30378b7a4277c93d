#if PostgreSQL
  /// A backend's position in the log of changes, and the changes that it hasn't reported yet.
  struct PostgreSQLLog {
    /// The number of the last change that was read: 0 for an empty log, `nil` before the first read.
    private(set) var newest: Int64?

    /// A number that changes when a change of another writer is read, or may have been missed.
    private(set) var version: UInt64 = 0

    private var unreported = ExternalChanges.names([])

    /// Sets the position, and discards the unreported changes.
    ///
    /// The version changes, because the log may be that of another server, or have changes that were never read.
    mutating func begin(at newest: Int64) {
      self = PostgreSQLLog(newest: newest, version: version + 1)
    }

    /// Records the changes that the log contains from ``newest`` on.
    ///
    /// - Parameter rows: The changes in order, with the names of those that another writer made. The first one is
    ///   ``newest``, unless that was truncated, the log was empty, or it is a different log.
    /// - Returns: Whether another writer may have made a change.
    mutating func record(_ rows: [(id: Int64, name: String?)]) -> Bool {
      // If the log was empty at the last read, it is complete if it begins with the number 1. Otherwise it must still
      // contain the last known change.
      let isComplete = newest == 0 ? (rows.first?.id ?? 1) == 1 : rows.first?.id == newest
      let names = rows.compactMap { $0.id == newest ? nil : $0.name }
      newest = rows.last?.id ?? 0
      if isComplete, names.isEmpty { return false }
      version += 1
      if !isComplete {
        unreported = .unknown
      } else if case .names(let earlier) = unreported {
        unreported = .names(earlier + names)
      }
      return true
    }

    /// Records that all changes after ``newest`` up to a given one are this backend's own.
    mutating func advance(to newest: Int64) {
      self.newest = newest
    }

    /// Restores an earlier state, because what was read or reported since then doesn't count: the transaction failed,
    /// or the commits were not made.
    ///
    /// The version isn't restored. Two states never have the same version, because the store recognizes unchanged
    /// values by it.
    mutating func rollBack(to earlier: Self) {
      let next = version == earlier.version ? version : version + 1
      self = earlier
      version = next
    }

    /// Returns the external changes that were not reported yet.
    mutating func takeReport() -> ExternalChanges {
      defer { unreported = .names([]) }
      return unreported
    }
  }
#endif

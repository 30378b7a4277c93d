#if PostgreSQL
  /// A backend's position in the log of changes, and the changes that it hasn't reported yet.
  struct PostgreSQLLog {
    /// A row of the result of ``PostgreSQLLayout/entries``.
    ///
    /// Each name in a change of another writer has a row. A change without such names has one row without a name. Each
    /// change has taken as many numbers as it has names, but at least one.
    struct Row {
      /// The last number that the change has taken.
      var id: Int64
      /// The number before the first one that the change has taken; 0 for the first change.
      var previous: Int64
      /// Whether another writer made the change, and any name may have changed.
      var isUnknown = false
      /// The name, or `nil` if the change is this backend's own or has no names.
      var name: String?
    }

    /// The number of the last known change: 0 for an empty log, `nil` before the first read and after a lost
    /// connection.
    private(set) var newest: Int64?

    /// A number that changes when a change of another writer is read, or may have been missed.
    private(set) var version: UInt64 = 0

    private var unreported = ExternalChanges.names([])

    /// Sets the position.
    ///
    /// The version changes, because the log may have changes that were never read.
    mutating func begin(at newest: Int64) {
      self.newest = newest
      version += 1
    }

    /// Records that the connection was lost.
    ///
    /// The next connection may reach another server or an earlier state of the log, in which the numbers that this
    /// backend knows belong to other entries.
    mutating func recordConnectionLoss() {
      if newest == nil { return }
      newest = nil
      version += 1
      unreported = .unknown
    }

    /// Records the changes that the log contains from ``newest`` on, which must not be `nil`.
    ///
    /// - Parameter rows: The changes in order. The first one is ``newest``, unless that was truncated, the log was
    ///   empty, or another log has taken its place.
    /// - Returns: Whether another writer may have made a change.
    mutating func record(_ rows: [Row]) -> Bool {
      // A log that was empty at the last read has no gap if it begins with the first change of all. Any other log has
      // none if it still contains the last known change.
      let hasNoGap = newest == 0 ? (rows.first?.previous ?? 0) == 0 : rows.first?.id == newest
      let newRows = rows.filter { $0.id != newest }
      let namesAreComplete = hasNoGap && !newRows.contains(where: \.isUnknown)
      let names = newRows.compactMap(\.name)
      newest = rows.last?.id ?? 0
      if namesAreComplete, names.isEmpty { return false }
      version += 1
      if !namesAreComplete {
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
    /// The version isn't restored: if it has changed since then, the restored state gets a new one, because the store
    /// recognizes unchanged values by the version.
    mutating func rollBack(to earlier: Self) {
      let newVersion = version == earlier.version ? version : version + 1
      self = earlier
      version = newVersion
    }

    /// Returns the external changes that were not reported yet.
    mutating func takeReport() -> ExternalChanges {
      defer { unreported = .names([]) }
      return unreported
    }
  }
#endif

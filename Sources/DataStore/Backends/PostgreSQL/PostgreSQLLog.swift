#if PostgreSQL
  /// How far a backend knows the log of changes, and what it has to report of it.
  struct PostgreSQLLog {
    /// The number of the last change that is known: 0 in an empty log, `nil` before it was read.
    private(set) var newest: Int64?

    /// Another number after each change of another writer.
    private(set) var version: UInt64 = 0

    private var unreported = ExternalChanges.names([])

    /// Forgets where the log ended, as that of another server may end elsewhere.
    mutating func begin(at newest: Int64) {
      self = PostgreSQLLog(newest: newest, version: version + 1)
    }

    /// Records what the log holds from ``newest`` on.
    ///
    /// - Parameter rows: The known change first, unless it was cut, and the name of each that another writer made.
    /// - Returns: Whether another writer has changed something.
    mutating func record(_ rows: [(id: Int64, name: String?)]) -> Bool {
      let isWhole = newest == 0 || rows.first?.id == newest
      let names = rows.compactMap { $0.id == newest ? nil : $0.name }
      newest = rows.last?.id ?? 0
      if isWhole, names.isEmpty { return false }
      version += 1
      if !isWhole {
        unreported = .unknown
      } else if case .names(let earlier) = unreported {
        unreported = .names(earlier + names)
      }
      return true
    }

    /// Records that nothing but own changes come up to one.
    mutating func advance(to newest: Int64) {
      self.newest = newest
    }

    /// Goes back to where it was: what was seen since then was seen in a transaction that wasn't made.
    ///
    /// A version is never that of two states, as values may be known by it.
    mutating func rollBack(to earlier: Self) {
      let next = version == earlier.version ? version : version + 1
      self = earlier
      version = next
    }

    /// Returns what was changed externally, once.
    mutating func takeReport() -> ExternalChanges {
      defer { unreported = .names([]) }
      return unreported
    }
  }
#endif

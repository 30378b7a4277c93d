#if PostgreSQL
  internal import Foundation

  /// The two steps of an erasure: deleting the rows of items, and rewriting the tables without the bytes of these rows.
  struct PostgreSQLErasure {
    let connection: PostgreSQLConnection

    /// Deletes the rows of the selected items, and replaces all entries of the log with one without names, as part of a
    /// transaction.
    ///
    /// - Parameters:
    ///   - isErased: Returns whether to erase an item.
    ///   - number: The number of the commit.
    /// - Returns: Whether it deleted a row of an item.
    func deleteRows(where isErased: (StoredItem) -> Bool, number: Int64) throws(SystemError) -> Bool {
      var change = PostgreSQLChange()
      let keys = try itemKeys()
      func shouldErase(
        _ name: String, readBy statement: String, _ parameter: PostgreSQLParameter
      ) throws(SystemError) -> Bool {
        try StoredItem.decide(name: name, keys, isErased) { () throws(SystemError) in
          try connection.first(statement, parameter) { $0.bytes(0) } ?? Data()
        }
      }
      for (namesStatement, readStatement) in [
        (PostgreSQLLayout.names, PostgreSQLLayout.read), (PostgreSQLLayout.partNames, PostgreSQLLayout.readPart),
      ] {
        for name in try connection.all(namesStatement, read: { $0.text(0) }) {
          if try shouldErase(name, readBy: readStatement, .text(name)) { change.remove(name) }
        }
      }
      _ = try connection.make(change, number: number, known: nil)
      var hasDeletedRow = !change.isEmpty
      for (id, name) in try connection.all(PostgreSQLLayout.quarantined, read: { ($0.integer(0), $0.text(1)) }) {
        if try shouldErase(name, readBy: PostgreSQLLayout.readQuarantined, .integer(id)) {
          try connection.run(PostgreSQLLayout.removeQuarantined, .integer(id))
          hasDeletedRow = true
        }
      }
      // The log contains the names of erased items, so an entry without names is added, and all entries before it are
      // deleted. Other stores notice that and read all of their values again.
      let addedEntry = try connection.first(PostgreSQLLayout.logErasure) { $0.integer(0) } ?? 0
      try connection.run(PostgreSQLLayout.forgetEntries, .integer(addedEntry))
      return hasDeletedRow
    }

    private func itemKeys() throws(SystemError) -> StoredItemKeys {
      var keys = StoredItemKeys()
      for name in try connection.all(PostgreSQLLayout.names, read: { $0.text(0) }) {
        try keys.add(name) { () throws(SystemError) in
          try connection.first(PostgreSQLLayout.read, .text(name)) { $0.bytes(0) } ?? Data()
        }
      }
      for (id, name) in try connection.all(PostgreSQLLayout.quarantined, read: { ($0.integer(0), $0.text(1)) }) {
        try keys.add(name) { () throws(SystemError) in
          try connection.first(PostgreSQLLayout.readQuarantined, .integer(id)) { $0.bytes(0) } ?? Data()
        }
      }
      return keys
    }

    /// Rewrites the tables without the bytes of deleted rows.
    ///
    /// - Returns: The tables that the server skipped, with nothing but a warning, because the user isn't allowed to
    ///   rewrite them.
    func rewriteTables() throws(SystemError) -> [String] {
      var skipped: [String] = []
      for table in PostgreSQLLayout.erasedTables {
        let oldFileNumber = try fileNumber(of: table)
        let size = try connection.first(PostgreSQLLayout.size(of: table)) { $0.integer(0) } ?? 0
        connection.recordWork(byteCount: Int(size))
        try connection.run(script: PostgreSQLLayout.rewrite(table))
        if try fileNumber(of: table) == oldFileNumber { skipped.append(table) }
      }
      return skipped
    }

    /// Returns the number of a table's file, which each rewrite changes.
    private func fileNumber(of table: String) throws(SystemError) -> Int64? {
      try connection.first(PostgreSQLLayout.fileNumber(of: table)) { $0.integer(0) }
    }
  }
#endif

#if PostgreSQL
  internal import Foundation

  /// The two steps of an erasure: deleting the rows of items, and rewriting the tables without the bytes of these rows.
  struct PostgreSQLErasure {
    let connection: PostgreSQLConnection

    /// Deletes the rows of the selected items, and all earlier entries of the log, as part of a transaction.
    ///
    /// - Parameters:
    ///   - isErased: Returns whether to erase an item.
    ///   - number: The number of the commit.
    /// - Throws: An error of the server, or ``SystemError/notRewritable(_:of:)`` if there are rows to delete but the user
    ///   isn't allowed to rewrite the tables. The caller then rolls the transaction back.
    func deleteRows(where isErased: (StoredItem) -> Bool, number: Int64) throws(SystemError) {
      var change = PostgreSQLChange()
      func shouldErase(
        _ name: String, readBy statement: String, _ parameter: PostgreSQLParameter
      ) throws(SystemError) -> Bool {
        try StoredItem.decide(name: name, isErased) { () throws(SystemError) in
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
      if hasDeletedRow {
        for table in PostgreSQLLayout.erasedTables where try !mayRewrite(table) {
          throw .notRewritable(table, of: connection.place)
        }
      }
      // The log contains the names of erased items, so all earlier entries are deleted. Other stores notice that and
      // read all of their values again.
      let newestEntry = try connection.first(PostgreSQLLayout.logErasure) { $0.integer(0) } ?? 0
      try connection.run(PostgreSQLLayout.forgetEntries, .integer(newestEntry))
    }

    /// Rewrites the tables without the bytes of deleted rows.
    ///
    /// The server skips tables that the user isn't allowed to rewrite.
    func rewriteTables() throws(SystemError) {
      for table in PostgreSQLLayout.erasedTables { try connection.run(script: PostgreSQLLayout.rewrite(table)) }
    }

    private func mayRewrite(_ table: String) throws(SystemError) -> Bool {
      try connection.first(PostgreSQLLayout.mayRewrite(table)) { $0.bool(0) } ?? false
    }
  }
#endif

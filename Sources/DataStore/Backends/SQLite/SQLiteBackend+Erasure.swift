#if SQLite
  internal import Foundation

  extension SQLiteBackend {
    /// Deletes rows and rewrites the database, because a deleted row leaves its bytes in free pages.
    ///
    /// Also deletes those files of quarantined databases beside this one that `isErased` selects. The log of changes
    /// contains the names of the rows, so one entry without a name replaces all of its entries, including those that
    /// this call adds for the deleted rows. A store that hasn't read all of the replaced entries reads all of its
    /// values again.
    package mutating func erase(_ isErased: (StoredItem) -> Bool) throws(StoreError) {
      _ = try change(StoreError.eraseFailed, creating: false) { (backend, connection) throws(StoreError) in
        do throws(SystemError) {
          try backend.erase(isErased, on: connection)
        } catch {
          throw .eraseFailed(error)
        }
      }
      // This is done even if no row was deleted now, because an earlier call may have failed after it deleted rows.
      _ = try perform(StoreError.eraseFailed) { (_, connection) throws(SystemError) in try connection.vacuum() }
      do throws(SystemError) {
        try database.eraseQuarantine(isErased)
      } catch {
        throw .eraseFailed(error)
      }
    }

    /// Deletes the rows that `isErased` selects, and replaces all entries of the log with one new entry.
    private func erase(_ isErased: (StoredItem) -> Bool, on connection: SQLiteConnection) throws(SystemError) {
      var keys = StoredItemKeys()
      for name in try connection.all(SQLiteLayout.names, read: { $0.text(0) }) {
        try keys.add(name) { () throws(SystemError) in try connection.bytes(SQLiteLayout.read, .text(name)) }
      }
      let quarantined = try connection.all(SQLiteLayout.quarantined) { ($0.integer(0), $0.text(1)) }
      for (id, name) in quarantined {
        try keys.add(name) { () throws(SystemError) in
          try connection.bytes(SQLiteLayout.readQuarantined, .integer(id))
        }
      }
      var selectedNames: [String] = []
      for (namesQuery, bytesQuery) in [
        (SQLiteLayout.names, SQLiteLayout.read), (SQLiteLayout.partNames, SQLiteLayout.readPart),
      ] {
        for name in try connection.all(namesQuery, read: { $0.text(0) }) {
          let isSelected = try StoredItem.decide(name: name, keys, isErased) { () throws(SystemError) in
            try connection.bytes(bytesQuery, .text(name))
          }
          if isSelected { selectedNames.append(name) }
        }
      }
      var selectedQuarantineIDs: [Int64] = []
      for (id, name) in quarantined {
        let isSelected = try StoredItem.decide(name: name, keys, isErased) { () throws(SystemError) in
          try connection.bytes(SQLiteLayout.readQuarantined, .integer(id))
        }
        if isSelected { selectedQuarantineIDs.append(id) }
      }
      for name in selectedNames { try remove(name, on: connection) }
      for id in selectedQuarantineIDs { try connection.run(SQLiteLayout.removeQuarantined, .integer(id)) }
      // One entry with an empty name remains, so that the numbers of later entries continue from its number. A store
      // that hasn't read all deleted entries sees a gap in the numbers before this entry, and so knows that it missed
      // changes.
      try log("", on: connection)
      try connection.run(SQLiteLayout.truncateLog, .integer(connection.lastInsertedID - 1))
    }
  }

  extension SQLiteConnection {
    /// Returns the bytes in the first row of a statement; empty if there is none.
    fileprivate func bytes(_ sql: String, _ parameter: Parameter) throws(SystemError) -> Data {
      try first(sql, parameter) { $0.blob(0) } ?? Data()
    }

    /// Rewrites the database without its free pages, and empties its write-ahead log.
    fileprivate func vacuum() throws(SystemError) {
      try run("VACUUM")
      try emptyLog()
    }
  }
#endif

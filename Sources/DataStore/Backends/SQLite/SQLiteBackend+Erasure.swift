#if SQLite
  internal import Foundation

  extension SQLiteBackend {
    /// Deletes rows, and writes the database anew, because a deleted row leaves its bytes in free pages.
    ///
    /// The log of changes has the names, so it is cut: other stores read again what they know.
    package mutating func erase(_ isErased: (StoredItem) -> Bool) throws(StoreError) {
      _ = try change(StoreError.removeFailed, making: false) { (backend, connection) throws(StoreError) in
        do throws(SystemError) {
          try backend.erase(isErased, on: connection)
        } catch {
          throw .removeFailed(error)
        }
      }
      // Also if nothing was deleted now, because an earlier call may have failed in between.
      _ = try perform(StoreError.removeFailed) { (_, connection) throws(SystemError) in try connection.vacuum() }
      do throws(SystemError) {
        try database.eraseQuarantine(isErased)
      } catch {
        throw .removeFailed(error)
      }
    }

    /// Deletes rows.
    private func erase(_ isErased: (StoredItem) -> Bool, on connection: SQLiteConnection) throws(SystemError) {
      var erased: [String] = []
      for (names, read) in [
        (SQLiteLayout.names, SQLiteLayout.read), (SQLiteLayout.partNames, SQLiteLayout.readPart),
      ] {
        for name in try connection.all(names, read: { $0.text(0) }) {
          if isErased(StoredItem(name: name) { connection.bytes(read, .text(name)) }) { erased.append(name) }
        }
      }
      var quarantined: [Int64] = []
      for (id, name) in try connection.all(SQLiteLayout.quarantined, read: { ($0.integer(0), $0.text(1)) }) {
        if isErased(StoredItem(name: name) { connection.bytes(SQLiteLayout.readQuarantined, .integer(id)) }) {
          quarantined.append(id)
        }
      }
      for name in erased { try remove(name, on: connection) }
      for id in quarantined { try connection.run(SQLiteLayout.removeQuarantined, .integer(id)) }
      // Of no key, and behind all.
      try log("", on: connection)
      try connection.run(SQLiteLayout.cutLog, .integer(connection.lastInsertedID - 1))
    }
  }

  extension SQLiteConnection {
    /// The bytes in the first row of a statement; none if they can't be read.
    fileprivate func bytes(_ sql: String, _ parameter: Parameter) -> Data {
      do throws(SystemError) { return try first(sql, parameter) { $0.blob(0) } ?? Data() } catch { return Data() }
    }

    /// Writes the database anew without its free pages, and empties its log.
    fileprivate func vacuum() throws(SystemError) {
      try run("VACUUM")
      // Waits for other connections as any statement does, and says if they were in the way all the time.
      let wasBusy = try first("PRAGMA wal_checkpoint(TRUNCATE)") { $0.integer(0) != 0 } ?? false
      if wasBusy { throw .busyLog(path) }
    }
  }
#endif

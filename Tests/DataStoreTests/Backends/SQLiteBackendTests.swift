#if SQLite
  import Foundation
  import Multicast
  import Testing

  @testable import DataStore

  /// Reads, commits and transactions of the backend.
  @Suite struct SQLiteBackendTests {
    private let place = SQLitePlace()
    private let old = Data("old".utf8)
    private let new = Data("new".utf8)

    @Test func `A commit is synchronized, and the drive's cache is flushed`() throws {
      var backend = place.backend()
      try backend.write(old, to: "a")
      let connection = try #require(try backend.database.connect(creating: false).get())
      func setting(_ name: String) throws -> Int64? { try connection.first("PRAGMA \(name)") { $0.integer(0) } }
      #expect(try connection.first("PRAGMA journal_mode") { $0.text(0) } == "wal")
      // The setting `FULL`.
      #expect(try setting("synchronous") == 2)
      #expect(try setting("fullfsync") == 1)
      #expect(try setting("checkpoint_fullfsync") == 1)
      // The bytes of "DStr".
      #expect(try setting("application_id") == 0x4453_7472)
      // The version of the layout.
      #expect(try setting("user_version") == 2)
    }

    @Test(arguments: ["'; DROP TABLE value; --", "a\u{0}b", "\"", "?1", "%", "ü", ""])
    func `A name is never part of a statement`(name: String) throws {
      var backend = place.backend()
      try backend.write(old, to: "a")
      try backend.write(new, to: name)
      #expect(try backend.read(name) == new)
      #expect(try backend.read("a") == old)
      try backend.remove(name)
      #expect(try backend.read(name) == nil)
      #expect(try backend.read("a") == old)
    }

    @Test(arguments: [0, 1, 4_096, 5_000_000])
    func `A value of any size is read back unchanged`(byteCount: Int) throws {
      let bytes = Data((0..<byteCount).map { UInt8(truncatingIfNeeded: $0 * 7) })
      var backend = place.backend()
      try backend.write(bytes, to: "a")
      #expect(try backend.read("a") == bytes)
      var second = place.backend()
      #expect(try second.read("a") == bytes)
    }

    @Test func `A row with an invalid name isn't listed`() throws {
      var backend = place.backend()
      try backend.write(old, to: "a")
      try backend.write(old, to: "NO NAME")
      #expect(try backend.names() == ["a"])
    }

    @Test func `Quarantined bytes are kept in a separate table, beside those of earlier quarantines`() throws {
      var backend = place.backend()
      let time = Date(timeIntervalSince1970: 0)
      for _ in 1...2 {
        try backend.write(old, to: "a")
        // Bytes that aren't the stored ones aren't quarantined.
        #expect(try backend.quarantine(new, of: "a", at: time) == nil)
        #expect(try backend.read("a") == old)
        let location = try #require(try backend.quarantine(old, of: "a", at: time))
        #expect(location.hasPrefix("/") && location.contains("/store.sqlite, table quarantine, id "))
        #expect(try backend.read("a") == nil)
      }
      #expect(try backend.names() == [])
      let rows = try place.connection().all("SELECT id, name, time, bytes FROM quarantine") {
        "\($0.integer(0)) \($0.text(1)) \($0.text(2)) \(String(decoding: $0.blob(3), as: UTF8.self))"
      }
      #expect(rows == ["1 a 1970-01-01T00:00:00Z old", "2 a 1970-01-01T00:00:00Z old"])
    }

    @Test func `A commit that replaces an undecodable value moves it to a row that the event names`()
      async throws
    {
      let key = StoreKey<String>("text", id: "0")
      let otherKey = StoreKey<Int>(key.keyName)
      for number in 1...2 {
        try await SQLiteStore(file: place.file).save(number, for: otherKey)
        let store = SQLiteStore(file: place.file)
        try await store.save("new", for: key)
        var events = store.events.makeAsyncIterator()
        guard case .valueQuarantined(key.keyName, let movedTo, _) = await events.next() else {
          Issue.record("no event")
          return
        }
        let rows = try place.connection().all("SELECT name, time, bytes FROM quarantine ORDER BY id") {
          ($0.text(0), $0.text(1), $0.blob(2))
        }
        let row = try #require(rows.last)
        #expect(row.0 == "text.0" && movedTo.hasSuffix("/store.sqlite, table quarantine, name text.0, time \(row.1)"))
        #expect(row.2.suffix(2) == Data("\n\(number)".utf8))
      }
    }

    @Test func `A write to a locked database throws after the timeout, and succeeds once it is unlocked`() throws {
      var backend = place.backend(busyTimeout: .milliseconds(1))
      try backend.write(old, to: "a")
      let other = try place.connection()
      try other.run("BEGIN IMMEDIATE")
      for attempt in 1...2 {
        let error = #expect(throws: StoreError.self) { try backend.write(new, to: "a") }
        guard case .writeFailed(let systemError) = error else {
          Issue.record("\(attempt): \(String(describing: error))")
          return
        }
        #expect(systemError.code == 5 && systemError.isBusy)
        #expect(
          systemError.description == "sqlite3_step on \(place.path) failed: database is locked (SQLite's code 5). "
            + "Another connection has locked the database: end its transaction, then try again.")
        #expect(try backend.read("a") == old)
      }
      other.rollBack()
      try backend.write(new, to: "a")
      #expect(try backend.read("a") == new)
    }

    @Test func `A commit whose transaction SQLite has rolled back throws, and stores nothing`() throws {
      var backend = place.backend()
      for name in ["a", "b"] { try backend.write(old, to: name) }
      let writes = ["a", "c"].map { StoreWrite(name: $0, bytes: new) }
      let error = #expect(throws: StoreError.self) {
        _ = try backend.commit(writes) { backend in
          // SQLite itself does this after an I/O error, for example in the decision's check for external changes. A
          // decision continues after such an error.
          backend.transaction!.rollBack()
          return .proceed(removing: ["b"])
        }
      }
      #expect(error == .writeFailed(.lostTransaction(place.path)))
      for name in ["a", "b"] { #expect(try backend.read(name) == old) }
      #expect(try backend.read("c") == nil)
      _ = try backend.commit(writes) { _ in .proceed(removing: ["b"]) }
      for (name, bytes) in [("a", new), ("b", nil), ("c", new)] { #expect(try backend.read(name) == bytes) }
    }

    @Test func `A removal whose transaction SQLite has rolled back throws, and removes nothing`() throws {
      var backend = place.backend()
      for name in ["a", "b"] { try backend.write(old, to: name) }
      #expect(throws: StoreError.removeFailed(.lostTransaction(place.path))) {
        _ = try backend.commit([]) { backend in
          backend.transaction!.rollBack()
          return .proceed(removing: ["a", "b"])
        }
      }
      for name in ["a", "b"] { #expect(try backend.read(name) == old) }
    }

    @Test func `If a group loses its transaction, each commit that is reported as made is stored`() throws {
      var backend = place.backend()
      try backend.startWatching {}
      for name in ["a", "b", "c"] { try backend.write(old, to: name) }
      let group = ["a", "b", "c"].map { [StoreWrite(name: $0, bytes: new)] }
      let results = try backend.commit(group: group) { (index, backend) throws(StoreError) in
        // The rollback below ends the transaction of the group. The backend then makes each commit again, in a
        // transaction of its own, and only the second one fails again. If it continued with the group instead, the
        // check for external changes in the third commit's decision would begin another transaction, and hide that the
        // first commit is lost.
        if index > 0 { _ = try backend.takeExternalChanges() }
        guard index == 1 else { return .proceed(removing: []) }
        backend.transaction!.rollBack()
        return .abandon
      }
      #expect(results == [.success(true), .failure(.writeFailed(.lostTransaction(place.path))), .success(true)])
      for (name, bytes) in [("a", new), ("b", old), ("c", new)] { #expect(try backend.read(name) == bytes) }
    }
  }
#endif

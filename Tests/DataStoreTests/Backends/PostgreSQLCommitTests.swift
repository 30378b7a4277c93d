#if PostgreSQL
  import Foundation
  import Multicast
  import TestSupport
  import Testing

  @testable import DataStore

  /// The SQL statement that makes a commit, and the log to which it adds an entry.
  @Suite(.disabled(if: PostgreSQLPlace.isMissing, "MOMENTS_POSTGRESQL is not set."), .timeLimit(.minutes(15)))
  struct PostgreSQLCommitTests {
    private let place: PostgreSQLPlace

    init() throws {
      place = try PostgreSQLPlace()
      var backend = place.backend()
      // The first call creates the tables.
      _ = try backend.names()
    }

    @Test func `A commit that replaces an undecodable value moves it to a row that the event names`()
      async throws
    {
      let key = StoreKey<String>("text", id: "0")
      let otherKey = StoreKey<Int>(key.keyName)
      for number in 1...2 {
        try await place.store().save(number, for: otherKey)
        let store = place.store()
        // The store knows the log, so it could make another commit in one statement.
        _ = try await store.observe(collection: "other", as: String.self)
        try await store.save("new", for: key)
        var events = store.events.makeAsyncIterator()
        guard case .valueQuarantined(key.keyName, let movedTo, _) = await events.next() else {
          Issue.record("no event")
          return
        }
        let rows = try place.connection().all("SELECT name, time, bytes FROM datastore_quarantine ORDER BY id") {
          ($0.text(0), $0.text(1), $0.bytes(2))
        }
        let row = try #require(rows.last)
        #expect(row.0 == "text.0" && movedTo.hasSuffix(", table datastore_quarantine, name text.0, time \(row.1)"))
        #expect(row.2.suffix(2) == Data("\n\(number)".utf8))
      }
    }

    /// A change that another client commits while a commit of the store is already waiting for the lock.
    enum OtherChange: CaseIterable, CustomTestStringConvertible {
      case commit
      case updateByProgram
      case registration

      var testDescription: String { "\(self)" }
    }

    @Test(arguments: OtherChange.allCases)
    func `A commit isn't made if another client adds an entry to the log while the commit waits`(
      otherChange: OtherChange
    ) async throws {
      let (otherClient, waitingClient) = (try storeConnection(), try storeConnection())
      var change = PostgreSQLChange()
      change.write(StoreWrite(name: "a", bytes: Data("1".utf8)))
      let known = try #require(try otherClient.make(change, number: 1, known: nil))
      try otherClient.run(script: PostgreSQLLayout.beginChange)
      change.write(StoreWrite(name: "a", bytes: Data("2".utf8)))
      switch otherChange {
      case .commit: #expect(try otherClient.make(change, number: 2, known: known) == known + 1)
      case .updateByProgram:
        // Without the setting that marks a connection of a store, the trigger records the update as another program's.
        try otherClient.run(script: "RESET datastore.store; UPDATE datastore_value SET bytes = '2'")
      case .registration: try otherClient.run(PostgreSQLLayout.registerWatch, .integer(1))
      }
      change.write(StoreWrite(name: "a", bytes: Data("3".utf8)))
      let waitingChange = change
      async let waitingCommit: Int64? = withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread {
          continuation.resume(with: Result { try waitingClient.make(waitingChange, number: 1, known: known) })
        }
      }
      try await place.waitUntil(
        """
        EXISTS (SELECT FROM pg_locks
          WHERE locktype = 'advisory' AND objid = 'datastore_value'::regclass AND NOT granted)
        """)
      try otherClient.commit()
      #expect(try await waitingCommit == nil)
      let stored = otherChange == .registration ? "1" : "2"
      #expect(try storedTexts(on: otherClient) == ["a": stored])
      #expect(try waitingClient.make(waitingChange, number: 2, known: known + 1) == known + 2)
      #expect(try storedTexts(on: otherClient) == ["a": "3"])
    }

    /// All statements without truncation.
    ///
    /// A statement doesn't contain both steps that store values.
    private static let statements = (0..<32).map { PostgreSQLCommitStatement(rawValue: $0) }.filter {
      !$0.isSuperset(of: [.storeValue, .storeValues])
    }

    /// If `isLocked` is `true`, the commit is made as in a transaction that locks the store.
    ///
    /// Such a commit has no last known entry, so `make` can't tell whether a truncation of the log is due. It therefore
    /// always adds a step to the statement, which truncates the log if that is due.
    @Test(arguments: statements, [false, true])
    func `A commit changes exactly what its parameters name, and logs the names of the changed values`(
      statement: PostgreSQLCommitStatement, isLocked: Bool
    ) throws {
      let connection = try storeConnection()
      func partName(_ number: Int) -> String { StorePartName.encode("000000000000000\(number)", of: "v") }
      var change = PostgreSQLChange()
      for name in ["kept", "replaced", "removed", partName(1), partName(2), partName(3)] {
        change.write(StoreWrite(name: name, bytes: Data("old".utf8)))
      }
      let known = try #require(try connection.make(change, number: 1, known: nil))
      change = PostgreSQLChange()
      var expected = (
        values: ["kept": "old", "replaced": "old", "removed": "old"],
        parts: [partName(1): "old", partName(2): "old", partName(3): "old"], loggedNames: [] as [String]
      )
      if statement.contains(.removeValues) {
        for name in ["removed", "missing"] { change.remove(name) }
        expected.values["removed"] = nil
      }
      if statement.contains(.removeParts) {
        change.remove(partName(1))
        expected.parts[partName(1)] = nil
      }
      var storedNames: [String] = []
      if statement.contains(.storeValue) { storedNames = ["replaced"] }
      if statement.contains(.storeValues) { storedNames = ["new", "replaced"] }
      // A name that is both removed and stored is stored.
      if !storedNames.isEmpty { change.remove("replaced") }
      for name in storedNames {
        change.write(StoreWrite(name: name, bytes: Data("new".utf8)))
        expected.values[name] = "new"
      }
      expected.loggedNames += storedNames
      if statement.contains(.removeValues) { expected.loggedNames.append("removed") }
      if statement.contains(.storeParts) {
        change.remove(partName(2))
        change.write(StoreWrite(name: partName(2), bytes: Data("new".utf8)))
        expected.parts[partName(2)] = "new"
      }
      #expect(change.statement == statement)
      // An entry takes a number for each of its names, but at least one.
      let newest = known + Int64(max(1, expected.loggedNames.count))
      #expect(try connection.make(change, number: 2, known: isLocked ? nil : known) == newest)
      #expect(try storedTexts(on: connection) == expected.values)
      #expect(try storedTexts(on: connection, in: "datastore_part") == expected.parts)
      let names = try connection.all(
        "SELECT unnest(names) FROM datastore_change WHERE id = $1", .integer(newest)
      ) { $0.text(0) }
      #expect(names == expected.loggedNames)
    }

    @Test func `An empty commit isn't made if the log has an entry after the last known one`() throws {
      let connection = try storeConnection()
      var change = PostgreSQLChange()
      change.write(StoreWrite(name: "a", bytes: Data("1".utf8)))
      let known = try #require(try connection.make(change, number: 1, known: nil))
      #expect(try connection.make(PostgreSQLChange(), number: 2, known: known - 1) == nil)
      #expect(try connection.make(PostgreSQLChange(), number: 3, known: known) == known + 1)
    }

    /// After a crash, the last number of the server's sequence may be higher than that of the last entry.
    @Test func `A store commits although numbers of the log are missing`() async throws {
      let (store, key) = (place.store(), StoreKey<Int>("counter"))
      for number in 1...3 {
        try await store.save(number, for: key)
        try place.connection().run(script: "SELECT nextval('datastore_change_number')")
      }
      #expect(try await place.store().load(key)?.value == 3)
      #expect(try await store.load(key)?.value == 3)
    }

    @Test func `The log is truncated to a number of names, whether commits or registrations add the entries`() throws {
      let connection = try place.connection()
      func expectTruncation(afterRepeating calls: String, count: Int, namesPerEntry: Int64) throws {
        try connection.run(script: "SELECT \(calls) FROM generate_series(1, \(count))")
        let nameCount = try connection.first(
          "SELECT sum(greatest(cardinality(names), 1))::bigint FROM datastore_change"
        ) { $0.integer(0) }
        // After every 1,024 added names, the log is truncated to 4,096 names, but never within an entry.
        #expect(4_096...(5_120 + 2 * namesPerEntry) ~= (try #require(nameCount)))
      }
      try expectTruncation(
        afterRepeating: "datastore_log(array_fill('x'::text, ARRAY[500]), 1, 1)", count: 50, namesPerEntry: 500)
      // Each commit has an odd number, and each registration an even one. So only registrations reach the multiples of
      // 1,024 at which the log is truncated.
      try connection.run(script: "SELECT setval('datastore_change_number', 100000)")
      try expectTruncation(
        afterRepeating: "datastore_log('{x}', 1, 1), datastore_register_watch(1)", count: 6_000, namesPerEntry: 1)
    }

    @Test func `A commit truncates the log when the number of its entry reaches a multiple of the interval`() throws {
      let connection = try storeConnection()
      func expect(_ count: Int, storing stored: [String], removing removed: [String] = [], after known: Int64) throws {
        try connection.run(
          script: """
            TRUNCATE datastore_change; SELECT setval('datastore_change_number', \(known));
            INSERT INTO datastore_change SELECT id, '{}', 1, 1 FROM generate_series(1, \(known)) AS id
            """)
        for isLocked in [false, true] {
          var change = PostgreSQLChange()
          for name in removed { change.remove(name) }
          for name in stored { change.write(StoreWrite(name: name, bytes: Data("1".utf8))) }
          try connection.run(script: "BEGIN")
          #expect(try connection.make(change, number: 1, known: isLocked ? nil : known) != nil)
          let found = try connection.first("SELECT count(*) FROM datastore_change") { $0.integer(0) }
          #expect(found == Int64(count), "stored: \(stored), removed: \(removed), locked: \(isLocked)")
          connection.rollBack()
          // The rollback doesn't give the numbers back.
          try connection.run(script: "SELECT setval('datastore_change_number', \(known))")
        }
      }
      // The interval is 1,024, and 6,144 is a multiple of it. A truncation keeps the entries of the last 4,096 numbers
      // before the commit, and the commit's own entry.
      try expect(6_143, storing: ["a"], after: 6_142)
      try expect(4_097, storing: ["a"], after: 6_143)
      try expect(6_145, storing: ["a"], after: 6_144)
      try expect(6_141, storing: ["a", "b", "c"], after: 6_140)
      try expect(4_097, storing: ["a", "b", "c"], after: 6_141)
      // Names that were not stored aren't logged, so the entry takes one number.
      try expect(6_142, storing: [], removing: ["missing", "absent"], after: 6_141)
      try expect(6_143, storing: [], removing: ["missing", "absent"], after: 6_142)
      try expect(4_097, storing: [], removing: ["missing", "absent"], after: 6_143)
    }

    @Test func `A commit with a truncation that isn't due doesn't scan the log`() throws {
      let connection = try storeConnection()
      var change = PostgreSQLChange()
      change.write(StoreWrite(name: "a", bytes: Data("1".utf8)))
      let parameters = [.integer(nil), .integer(1), .integer(1)] + change.parameters
      let plan = try connection.all(
        "EXPLAIN (ANALYZE) \(change.statement.union(.truncateLog).sql)", parameters[0], parameters[1], parameters[2],
        parameters[3], parameters[4]
      ) { $0.text(0) }
      let scans = plan.filter { $0.contains("Scan on datastore_change") }
      #expect(!scans.isEmpty)
      #expect(scans.allSatisfy { $0.hasSuffix("(never executed)") }, "\(plan.joined(separator: "\n"))")
    }

    @Test func `Other roles can use a store if they have privileges on its tables and its sequence`() throws {
      let connection = try storeConnection()
      try place.withOtherRole(on: connection) {
        var change = PostgreSQLChange()
        for name in ["a", "b"] { change.write(StoreWrite(name: name, bytes: Data("1".utf8))) }
        let known = try #require(try connection.make(change, number: 1, known: nil))
        #expect(try connection.make(change, number: 2, known: known) == known + 2)
        #expect(try connection.make(PostgreSQLChange(), number: 3, known: known + 2) == known + 3)
        try connection.run(PostgreSQLLayout.registerWatch, .integer(2))
      }
    }

    @Test func `A change by a program with another search path is logged in the store that it changes`() async throws {
      let (otherPlace, key) = (try PostgreSQLPlace(), StoreKey<Int>("counter"))
      let store = place.store()
      let tag = try await store.save(1, for: key).tag
      try await otherPlace.store().save(1, for: key)
      try otherPlace.connection().run(script: "DELETE FROM \(place.schema).datastore_value")
      let batch = StoreBatch(saving: 2, for: key, requiring: tag)
      await #expect(throws: StoreError.preconditionFailed(key.keyName)) { try await store.commit(batch) }
      #expect(try await store.load(key) == nil)
      #expect(try await otherPlace.store().load(key)?.value == 1)
    }

    /// Opens a connection like that of a store.
    private func storeConnection() throws -> PostgreSQLConnection {
      let connection = try place.connection()
      try connection.run(script: PostgreSQLLayout.settings(timeout: .seconds(60)))
      return connection
    }

    private func storedTexts(
      on connection: PostgreSQLConnection, in table: String = "datastore_value"
    ) throws -> [String: String] {
      let rows = try connection.all("SELECT name, bytes FROM \(table)") { ($0.text(0), $0.text(1)) }
      return Dictionary(uniqueKeysWithValues: rows)
    }
  }
#endif

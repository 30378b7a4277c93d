#if SQLite
  import DataStore
  import Foundation
  import Multicast
  import Testing

  @Suite(.timeLimit(.minutes(15))) struct SQLiteStoreTests {
    private let place = SQLitePlace()
    private let key = StoreKey<String>("text", id: "0")

    private func makeStore() -> SQLiteStore { SQLiteStore(file: place.file, now: { Date(timeIntervalSince1970: 0) }) }

    /// The path of the quarantined database.
    private var quarantinePath: String {
      place.folder.path(percentEncoded: false) + "store.sqlite.corrupt-19700101T000000.000Z"
    }

    private func corruptDatabase() throws {
      try place.makeFolder()
      try Data(String(repeating: "no database", count: 100).utf8).write(to: place.file)
    }

    /// Expects a store's first event to report that the database was quarantined.
    private func expectCorruptionEvent(
      of store: SQLiteStore, because expectedReason: String = "file is not a database"
    ) async {
      var events = store.events.subscribe().makeAsyncIterator()
      guard case .storeQuarantined(let movedTo, let reason) = await events.next() else {
        Issue.record("another event")
        return
      }
      #expect(movedTo == quarantinePath)
      #expect(reason.contains(expectedReason))
      #expect(FileManager.default.fileExists(atPath: quarantinePath))
    }

    @Test func `A corrupt database is reported once by load, and by an event`() async throws {
      try corruptDatabase()
      let store = makeStore()
      let error = await #expect(throws: StoreError.self) { try await store.load(key) }
      guard case .corruptStore(let movedTo, _) = error else {
        Issue.record("\(String(describing: error))")
        return
      }
      #expect(movedTo == quarantinePath)
      #expect(try await store.load(key) == nil)
      await expectCorruptionEvent(of: store)
    }

    @Test func `A corrupt database doesn't prevent a save`() async throws {
      try corruptDatabase()
      let store = makeStore()
      let saved = try await store.save("a", for: key)
      #expect(try await store.load(key) == saved)
      await expectCorruptionEvent(of: store)
    }

    @Test func `A corrupt database doesn't prevent a subscription to the changes of a key`() async throws {
      try corruptDatabase()
      let store = makeStore()
      var changes = try await store.changes(of: key).subscribe().makeAsyncIterator()
      let saved = try await store.save("a", for: key)
      #expect(await changes.next() == .saved(key, saved))
      await expectCorruptionEvent(of: store)
    }

    @Test func `An observation of a collection in a corrupt database starts without values`() async throws {
      try corruptDatabase()
      let store = makeStore()
      #expect(try await store.observe(collection: "text", as: String.self).stored == [])
      await expectCorruptionEvent(of: store)
    }

    @Test func `A removal from a corrupt database succeeds`() async throws {
      try corruptDatabase()
      let store = makeStore()
      try await store.remove(key)
      #expect(try await store.load(key) == nil)
      await expectCorruptionEvent(of: store)
    }

    @Test func `A stream continues when its database becomes corrupt`() async throws {
      let store = makeStore()
      let earlySubscription = try await store.changes(of: key).subscribe()
      let first = try await store.save("first", for: key)
      try place.corruptSchema()
      // The commit that corrupts the database wakes the store, whose check finds the corruption.
      await expectCorruptionEvent(of: store, because: "malformed database schema")
      let lateSubscription = try await store.changes(of: key).subscribe()
      let second = try await store.save("second", for: key)
      var earlyChanges = earlySubscription.makeAsyncIterator()
      #expect(await earlyChanges.next() == .saved(key, first))
      // The quarantine of the database with the first value isn't sent as a removal.
      #expect(await earlyChanges.next() == .saved(key, second))
      var lateChanges = lateSubscription.makeAsyncIterator()
      #expect(await lateChanges.next() == .saved(key, second))
    }

    @Test func `A database of a future layout is reported by every call`() async throws {
      try await makeStore().save("a", for: key)
      try place.execute("PRAGMA user_version = 7")
      let store = makeStore()
      let error = StoreError.newerStore(path: place.path, found: 7, supported: 2)
      await #expect(throws: error) { try await store.load(key) }
      await #expect(throws: error) { try await store.save("b", for: key) }
      await #expect(throws: error) { try await store.remove(key) }
      await #expect(throws: error) { try await store.changes(of: key) }
      await #expect(throws: error) { try await store.observe(collection: "text", as: String.self) }
      #expect(error.description.hasSuffix("It was left untouched: update the app."))
      try place.execute("PRAGMA user_version = 2")
      #expect(try await store.load(key)?.value == "a")
    }

    @Test func `A save or removal is seen by another store over the same database`() async throws {
      let (ours, theirs) = (makeStore(), makeStore())
      var changes = try await ours.changes(of: key).subscribe().makeAsyncIterator()
      var collectionChanges = try await ours.observe(collection: "text", as: String.self).changes.makeAsyncIterator()
      for round in 1...5 {
        try await theirs.save("\(round)", for: key)
        let change = await changes.next()
        #expect(change?.stored?.value == "\(round)")
        #expect(await collectionChanges.next() == change.map { [$0] })
      }
      let own = try await ours.save("own", for: key)
      #expect(await changes.next() == .saved(key, own))
      #expect(await collectionChanges.next() == [.saved(key, own)])
      try await theirs.remove(key)
      #expect(await changes.next() == .removed(key, revision: own.revision + 1))
      #expect(await collectionChanges.next() == [.removed(key, revision: own.revision + 1)])
    }

    @Test(arguments: [
      "UPDATE value SET bytes = (SELECT bytes FROM value WHERE name = 'text.1') WHERE name = 'text.0'",
      "REPLACE INTO value (name, bytes) SELECT 'text.0', bytes FROM value WHERE name = 'text.1'",
      "DELETE FROM value WHERE name = 'text.0'",
      "UPDATE value SET name = 'text.2' WHERE name = 'text.0'",
    ])
    func `A change by another program is noticed, whichever statement makes it`(sql: String) async throws {
      let store = makeStore()
      try await store.save("old", for: StoreKey<String>("text", id: "0"))
      try await store.save("new", for: StoreKey<String>("text", id: "1"))
      var changes = try await store.observe(collection: "text", as: String.self).changes.makeAsyncIterator()
      try place.execute(sql)
      let firstChange = await changes.next()?.first
      #expect(firstChange?.key.id == "0")
      let removesName = sql.hasPrefix("DELETE") || sql.contains("text.2")
      if removesName {
        #expect(firstChange?.stored == nil)
      } else {
        #expect(firstChange?.stored?.value == "new")
      }
    }
  }
#endif

#if PostgreSQL
  import Foundation
  import Multicast
  import MulticastTesting
  import Testing

  @testable import DataStore

  /// What a server does that a file doesn't.
  @Suite(.disabled(if: PostgreSQLPlace.isMissing, "MOMENTS_POSTGRESQL names no server."), .timeLimit(.minutes(15)))
  struct PostgreSQLStoreTests {
    private let place: PostgreSQLPlace
    private let key = StoreKey<Int>("counter")

    init() throws {
      place = try PostgreSQLPlace()
    }

    @Test func `A connection that is ended is opened again, and nothing is lost or sent twice`() async throws {
      let (store, other) = (place.store(), place.store())
      var changes = try await store.changes(of: key).subscribe().makeAsyncIterator()
      for number in 1...20 {
        if number.isMultiple(of: 4) { try place.endConnections() }
        try await (number.isMultiple(of: 2) ? store : other).save(number, for: key)
        #expect(await changes.next()?.stored?.value == number)
      }
      #expect(try await store.load(key)?.value == 20)
    }

    @Test func `Commits of clients whose connections are ended at random are each made once, in one order`()
      async throws
    {
      let stores = (0..<4).map { _ in place.store() }
      let observer = place.store()
      let observed = try await observer.changes(of: key).subscribe()
      let ending = Task { [place] in
        while !Task.isCancelled {
          try place.endConnections()
          try await Task.sleep(for: .milliseconds(20))
        }
      }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for store in stores {
          group.addTask { [key] in
            var made = 0
            while made < 50 {
              let stored = try await store.load(key)
              var batch = StoreBatch()
              batch.save((stored?.value ?? 0) + 1, for: key)
              batch.require(stored?.tag, of: key)
              do throws(StoreError) {
                try await store.commit(batch)
                made += 1
              } catch {
                guard case .preconditionFailed = error else { throw error }
              }
            }
          }
        }
        try await group.waitForAll()
      }
      ending.cancel()
      // Each acknowledged commit counted once.
      #expect(try await observer.load(key)?.value == 200)
      var last = 0
      for await change in observed {
        let value = try #require(change.stored?.value)
        #expect(value > last)
        last = value
        if value == 200 { break }
      }
    }

    @Test func `A change of another program is noticed, also if it uses no lock`() async throws {
      let store = place.store()
      try await store.save(1, for: key)
      var changes = try await store.changes(of: key).subscribe().makeAsyncIterator()
      #expect(await changes.next()?.stored?.value == 1)
      let bytes = try #require(try place.connection().first("SELECT bytes FROM datastore_value") { $0.bytes(0) })
      try await store.save(2, for: key)
      #expect(await changes.next()?.stored?.value == 2)
      try place.connection().run("UPDATE datastore_value SET bytes = $1", .bytes(bytes))
      #expect(await changes.next()?.stored?.value == 1)
      try place.connection().run(script: "DELETE FROM datastore_value")
      #expect(await changes.next()?.stored == nil)
    }

    @Test func `A client that is idle in a transaction delays commits no longer than the timeout`() async throws {
      let store = place.store(timeout: .seconds(2))
      try await store.save(1, for: key)
      let other = try place.connection()
      try other.run(script: PostgreSQLLayout.beginChange)
      let error = await #expect(throws: StoreError.self) { try await store.save(2, for: key) }
      #expect(error?.isLockout == true)
      #expect(try await store.load(key)?.value == 1)
      other.rollBack()
      try await store.save(3, for: key)
      #expect(try await store.load(key)?.value == 3)
    }

    @Test func `A lock that another client has had is lost, and nothing is committed until it is released`()
      async throws
    {
      let (store, other) = (place.store(), place.store())
      guard case .acquired(let lock) = try await store.acquireLock("leader") else {
        Issue.record("The lock is held.")
        return
      }
      guard case .held = try await other.acquireLock("leader") else {
        Issue.record("Two have the lock.")
        return
      }
      // As long as no other client takes it, the lock survives the connection.
      try place.endConnections()
      try await store.save(1, for: key)
      guard case .held = try await other.acquireLock("leader") else {
        Issue.record("Two have the lock.")
        return
      }
      try place.endConnections()
      guard case .acquired(let otherLock) = try await other.acquireLock("leader") else {
        Issue.record("The lock of a lost connection is held.")
        return
      }
      await #expect(throws: StoreError.self) { try await store.save(2, for: key) }
      #expect(try await store.load(key)?.value == 1)
      try await other.save(3, for: key)
      extendLifetime(lock)
      extendLifetime(otherLock)
    }

    @Test func `A released lock may be taken at once`() async throws {
      let (store, other) = (place.store(), place.store())
      for _ in 0..<3 {
        for (one, another) in [(store, other), (other, store)] {
          guard case .acquired(let lock) = try await one.acquireLock("leader"),
            case .held = try await another.acquireLock("leader")
          else {
            Issue.record("Two have the lock, or none.")
            return
          }
          extendLifetime(lock)
        }
      }
    }

    @Test func `A store of a future layout is left as it is`() async throws {
      try await place.store().save(1, for: key)
      try place.connection().run(script: "UPDATE datastore_layout SET version = 2")
      let error = await #expect(throws: StoreError.self) { try await place.store().load(key) }
      guard case .newerStore(_, found: 2, supported: 1) = error else {
        Issue.record("\(String(describing: error))")
        return
      }
    }

    @Test func `A server that isn't there is an error that says what to do`() async {
      let store = PostgreSQLStore(address: "host=/nowhere", timeout: .zero)
      let error = await #expect(throws: StoreError.self) { try await store.load(key) }
      #expect(error?.description.contains("Check that the server runs and can be reached") == true)
    }
  }
#endif

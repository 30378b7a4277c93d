#if os(Linux)
  import Foundation
  import Multicast
  import TestSupport
  import Testing

  @testable import DataStore

  /// The locks and descriptors of stores, as the article about suspension lists them.
  @Suite(.timeLimit(.minutes(15))) struct HeldResourcesTests {
    private let key = StoreKey<Int>("number")

    private func lock(_ name: String, of store: some KeyValueStore) async throws -> StoreLock {
      guard case .acquired(let lock) = try await store.acquireLock(name) else {
        throw POSIXError(.EWOULDBLOCK)
      }
      return lock
    }

    @Test func `A file store holds a lock during a call, a watch while it is observed, and nothing when suspended`()
      async throws
    {
      let temporary = TemporaryFolder()
      let sample = Lock(HeldResources?.none)
      let isSampling = Lock(false)
      let fileSystem = FileSystem { call in
        if call.operation == "rename", isSampling.withLock({ $0 }) {
          do {
            let held = try HeldResources.of(temporary.url)
            sample.withLock { $0 = held }
          } catch {
            Issue.record(error)
          }
        }
        return nil
      }
      func expect(_ expected: HeldResources, sourceLocation: SourceLocation = #_sourceLocation) throws {
        let held = try HeldResources.of(temporary.url)
        #expect(held == expected, "\(held)", sourceLocation: sourceLocation)
      }
      let store = FileStore(folder: temporary.url, fileSystem: fileSystem)
      try await store.save(1, for: key)
      try expect(.nothing)

      isSampling.withLock { $0 = true }
      try await store.save(2, for: key)
      isSampling.withLock { $0 = false }
      let inCall = try #require(sample.withLock { $0 })
      #expect(inCall == HeldResources(locks: [".: FLOCK WRITE"], descriptors: ["."]), "\(inCall)")

      var observed = try await store.changes(of: key).subscribe().makeAsyncIterator()
      try expect(HeldResources(isWatched: true))
      let lockHeld = HeldResources(
        locks: [".DataStore-lock.name: FLOCK WRITE"], descriptors: [".DataStore-lock.name"])
      var lock: StoreLock? = try await lock("name", of: store)
      var lockAndWatch = lockHeld
      lockAndWatch.isWatched = true
      try expect(lockAndWatch)

      await store.suspend()
      try expect(lockHeld)
      extendLifetime(lock)
      lock = nil
      try expect(.nothing)
      for number in 3...4 {
        try await store.save(number, for: key)
        try expect(.nothing)
      }
      #expect(try await store.load(key)?.value == 4)
      let late = try await store.observe(collection: "number", as: Int.self)
      #expect(late.stored.count == 1)
      try expect(.nothing)

      await store.resume()
      try expect(HeldResources(isWatched: true))
      for number in 2...4 { #expect(await observed.next()?.stored?.value == number) }
    }

    @Test func `The last watch of a process closes the inotify instance before suspend() returns`() async {
      // In a process of its own, because the instance is shared by all stores of a process.
      await #expect(processExitsWith: .success) {
        let key = StoreKey<Int>("number")
        let (first, second) = (TemporaryFolder(), TemporaryFolder())
        let stores = [FileStore(folder: first.url), FileStore(folder: second.url), FileStore(folder: second.url)]
        var streams: [Any] = []
        for store in stores {
          try await store.save(1, for: key)
          streams.append(try await store.changes(of: key).subscribe())
        }
        func instanceCount() throws -> Int { try HeldResources.descriptors(ofKind: "anon_inode:inotify").count }
        for _ in 1...50 {
          #expect(try instanceCount() == 1)
          await stores[0].suspend()
          #expect(try !HeldResources.of(first.url).isWatched)
          await stores[1].suspend()
          // The third store watches the same folder as the second one.
          #expect(try HeldResources.of(second.url).isWatched)
          await stores[2].suspend()
          #expect(try instanceCount() == 0)
          for store in stores { await store.resume() }
        }
        withExtendedLifetime(streams) {}
      }
    }

    #if SQLite
      @Test func `A database holds two shared locks when it is idle, and nothing when suspended`() async throws {
        let place = SQLitePlace()
        func expect(_ expected: HeldResources, sourceLocation: SourceLocation = #_sourceLocation) throws {
          let held = try HeldResources.of(place.folder)
          #expect(held == expected, "\(held)", sourceLocation: sourceLocation)
        }
        let store = SQLiteStore(file: place.file)
        try await store.save(1, for: key)
        let idle = HeldResources(
          locks: ["store.sqlite-shm: POSIX READ", "store.sqlite: POSIX READ"],
          descriptors: ["store.sqlite", "store.sqlite-shm", "store.sqlite-wal"])
        try expect(idle)

        let sample = Lock(HeldResources?.none)
        try await store.erase { _ in
          do {
            let held = try HeldResources.of(place.folder)
            sample.withLock { $0 = held }
          } catch {
            Issue.record(error)
          }
          return false
        }
        let inCall = try #require(sample.withLock { $0 })
        #expect(inCall.locks.contains("store.sqlite-shm: POSIX WRITE"), "\(inCall)")
        try expect(idle)

        var observed = try await store.changes(of: key).subscribe().makeAsyncIterator()
        var watched = idle
        watched.isWatched = true
        try expect(watched)
        var lock: StoreLock? = try await lock("name", of: store)
        watched.locks.insert("store.sqlite-lock.name: FLOCK WRITE", at: 0)
        watched.descriptors.insert("store.sqlite-lock.name", at: 1)
        try expect(watched)

        await store.suspend()
        try expect(
          HeldResources(locks: ["store.sqlite-lock.name: FLOCK WRITE"], descriptors: ["store.sqlite-lock.name"]))
        extendLifetime(lock)
        lock = nil
        try expect(.nothing)
        for number in 2...3 {
          try await store.save(number, for: key)
          try expect(.nothing)
        }
        #expect(try await store.load(key)?.value == 3)
        try expect(.nothing)

        await store.resume()
        watched = idle
        watched.isWatched = true
        try expect(watched)
        for number in 1...3 { #expect(await observed.next()?.stored?.value == number) }
      }

      @Test func `Of two stores in one database, only the suspended one gives up its locks`() async throws {
        let place = SQLitePlace()
        let (store, other) = (SQLiteStore(file: place.file), SQLiteStore(file: place.file))
        try await store.save(1, for: key)
        #expect(try await other.load(key)?.value == 1)
        let streams = [try await store.changes(of: key), try await other.changes(of: key)]
        await store.suspend()
        let held = try HeldResources.of(place.folder)
        #expect(held.locks == ["store.sqlite-shm: POSIX READ", "store.sqlite: POSIX READ"])
        #expect(held.isWatched)
        // The descriptor of the suspended store can't be closed while the other one has locks.
        #expect(held.descriptors == ["store.sqlite", "store.sqlite", "store.sqlite-shm", "store.sqlite-wal"])
        await other.suspend()
        #expect(try HeldResources.of(place.folder) == .nothing)
        extendLifetime(streams)
      }
    #endif

    @Test func `Stores in memory and in user defaults open nothing, observed or not`() async {
      await #expect(processExitsWith: .success) {
        let key = StoreKey<Int>("number")
        let suites = (1...2).map { _ in "DataStoreTests-\(UUID().uuidString)" }
        // The first two stores open what Foundation and the process need once.
        let stores: [any KeyValueStore] = [
          UserDefaultsStore(suiteName: suites[0]), InMemoryStore(), UserDefaultsStore(suiteName: suites[1]),
          InMemoryStore(),
        ]
        var streams: [Any] = []
        var counts: [Int] = []
        for store in stores {
          try await store.save(1, for: key)
          streams.append(try await store.changes(of: key).subscribe())
          counts.append(try HeldResources.descriptors(ofKind: "").count)
          await store.suspend()
          counts.append(try HeldResources.descriptors(ofKind: "").count)
        }
        for suite in suites { UserDefaults.standard.removePersistentDomain(forName: suite) }
        #expect(Set(counts[3...]).count == 1, "\(counts)")
        extendLifetime(streams)
      }
    }

    #if PostgreSQL
      @Test(.disabled(if: PostgreSQLPlace.isMissing, "MOMENTS_POSTGRESQL is not set."))
      func `A store on a server has no socket when it is suspended`() async {
        // In a process of its own, because a socket doesn't say whose it is.
        await #expect(processExitsWith: .success) {
          let key = StoreKey<Int>("number")
          let place = try PostgreSQLPlace()
          func socketCount() throws -> Int { try HeldResources.descriptors(ofKind: "socket:").count }
          let before = try socketCount()
          let store = place.store()
          try await store.save(1, for: key)
          #expect(try socketCount() == before + 1)
          let stream = try await store.changes(of: key).subscribe()
          // The watch has a connection of its own, and two descriptors of its socket.
          #expect(try socketCount() == before + 3)
          var lock: StoreLockResult? = try await store.acquireLock("name")
          #expect(try socketCount() == before + 3)
          await store.suspend()
          #expect(try socketCount() == before + 1)
          // The lock is the last one that refers to its connection.
          if case .acquired(let held) = lock { #expect(await held.isHeld()) } else { Issue.record("not acquired") }
          lock = nil
          while try socketCount() > before { try await Task.sleep(for: .milliseconds(1)) }
          for number in 2...3 {
            try await store.save(number, for: key)
            #expect(try socketCount() == before)
          }
          await store.resume()
          #expect(try socketCount() == before + 3)
          withExtendedLifetime((stream, place)) {}
        }
      }

      @Test(.disabled(if: PostgreSQLPlace.isMissing, "MOMENTS_POSTGRESQL is not set."))
      func `The server has no lock and no connection of a suspended store`() async throws {
        let place = try PostgreSQLPlace()
        let store = place.store()
        try await store.save(1, for: key)
        let stream = try await store.changes(of: key).subscribe()
        let connection = try PostgreSQLConnection(try #require(PostgreSQLPlace.server), timeout: .seconds(60))
        let clients = "SELECT pid FROM pg_stat_activity WHERE application_name = '\(place.schema)'"
        func lockCount() throws -> Int64? {
          try connection.first("SELECT count(*) FROM pg_locks WHERE pid IN (\(clients))") { $0.integer(0) }
        }
        func clientCount() throws -> Int64? {
          try connection.first("SELECT count(*) FROM (\(clients)) AS c") { $0.integer(0) }
        }
        #expect(try clientCount() == 2)
        while try lockCount() != 0 { try await Task.sleep(for: .milliseconds(1)) }
        let lockCountInCall = Lock<Int64?>(nil)
        let sampler = try PostgreSQLConnection(try #require(PostgreSQLPlace.server), timeout: .seconds(60))
        try await store.erase { _ in
          do throws(SystemError) {
            let count = try sampler.first("SELECT count(*) FROM pg_locks WHERE pid IN (\(clients))") { $0.integer(0) }
            lockCountInCall.withLock { $0 = count }
          } catch {
            Issue.record(error)
          }
          return false
        }
        #expect(try #require(lockCountInCall.withLock { $0 }) > 0)
        while try lockCount() != 0 { try await Task.sleep(for: .milliseconds(1)) }
        var lock: StoreLock? = try await lock("name", of: store)
        // A check that the watch has requested may still be running.
        while try lockCount() != 1 { try await Task.sleep(for: .milliseconds(1)) }
        await store.suspend()
        // A process of the server ends a moment after its client has closed the connection.
        while try clientCount() != 1 { try await Task.sleep(for: .milliseconds(1)) }
        #expect(try lockCount() == 1)
        extendLifetime(lock)
        lock = nil
        while try clientCount() != 0 { try await Task.sleep(for: .milliseconds(1)) }
        #expect(try connection.first("SELECT count(*) FROM \(place.schema).datastore_watch") { $0.integer(0) } == 0)
        try await store.save(2, for: key)
        while try clientCount() != 0 { try await Task.sleep(for: .milliseconds(1)) }
        await store.resume()
        #expect(try clientCount() == 2)
        // A check that the watch has requested may still be running.
        while try lockCount() != 0 { try await Task.sleep(for: .milliseconds(1)) }
        extendLifetime(stream)
      }

      @Test(.disabled(if: PostgreSQLPlace.isMissing, "MOMENTS_POSTGRESQL is not set."))
      func `A watch that has lost its connection doesn't open another one while the store is suspended`() async throws {
        let place = try PostgreSQLPlace()
        let store = place.store()
        try await store.save(1, for: key)
        var changes = try await store.changes(of: key).subscribe().makeAsyncIterator()
        #expect(await changes.next()?.stored?.value == 1)
        let connection = try PostgreSQLConnection(try #require(PostgreSQLPlace.server), timeout: .seconds(60))
        let clients = "SELECT pid FROM pg_stat_activity WHERE application_name = '\(place.schema)'"
        func clientCount() throws -> Int64? {
          try connection.first("SELECT count(*) FROM (\(clients)) AS c") { $0.integer(0) }
        }
        try place.endConnections()
        await store.suspend()
        // The other store's connections have the same name.
        let other = place.store()
        try await other.save(2, for: key)
        await other.suspend()
        while try clientCount() != 0 { try await Task.sleep(for: .milliseconds(1)) }
        await store.resume()
        #expect(await changes.next()?.stored?.value == 2)
        #expect(try clientCount() == 2)
      }
    #endif
  }
#endif

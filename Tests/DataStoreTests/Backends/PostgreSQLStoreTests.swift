#if PostgreSQL
  import Foundation
  import Multicast
  import MulticastTesting
  import TestSupport
  import Testing

  @testable import DataStore

  /// The behavior of a store on a server, also when connections are lost.
  @Suite(.disabled(if: PostgreSQLPlace.isMissing, "MOMENTS_POSTGRESQL is not set."), .timeLimit(.minutes(15)))
  struct PostgreSQLStoreTests {
    private let place: PostgreSQLPlace
    private let key = StoreKey<Int>("counter")

    init() throws {
      place = try PostgreSQLPlace()
    }

    @Test func `A terminated connection is opened again, and no change is lost or reported twice`() async throws {
      let (store, other) = (place.store(), place.store())
      var changes = try await store.changes(of: key).subscribe().makeAsyncIterator()
      for number in 1...20 {
        if number.isMultiple(of: 4) { try place.endConnections() }
        try await (number.isMultiple(of: 2) ? store : other).save(number, for: key)
        #expect(await changes.next()?.stored?.value == number)
      }
      #expect(try await store.load(key)?.value == 20)
    }

    @Test func `Each commit is made once and observed in order, even if connections are terminated repeatedly`()
      async throws
    {
      let stores = (0..<4).map { _ in place.store() }
      let observer = place.store()
      let observedChanges = try await observer.changes(of: key).subscribe()
      // Only commits cause terminations, so the stores make progress, no matter how slow the machine is. One task makes
      // the terminations, because each ends all other connections, even those of other terminations.
      let (terminations, continuation) = AsyncStream.makeStream(of: Void.self)
      let terminator = Task { [place] in for await _ in terminations { try place.endConnections() } }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for store in stores {
          group.addTask { [key] in
            var commitCount = 0
            while commitCount < 50 {
              let stored = try await store.load(key)
              var batch = StoreBatch()
              batch.save((stored?.value ?? 0) + 1, for: key)
              batch.require(stored?.tag, of: key)
              do throws(StoreError) {
                try await store.commit(batch)
                commitCount += 1
              } catch {
                guard case .preconditionFailed = error else { throw error }
                continue
              }
              if commitCount.isMultiple(of: 2) { continuation.yield() }
            }
          }
        }
        try await group.waitForAll()
      }
      continuation.finish()
      try await terminator.value
      // Each of the 200 acknowledged commits has incremented the counter once.
      #expect(try await observer.load(key)?.value == 200)
      var lastValue = 0
      for await change in observedChanges {
        let value = try #require(change.stored?.value)
        #expect(value > lastValue)
        lastValue = value
        if value == 200 { break }
      }
    }

    @Test(arguments: PostgreSQLProxy.Cut.allCases, PostgreSQLProxy.Commit.allCases)
    func `A commit is made once if the connection is lost before the server receives the commit or answers it`(
      cut: PostgreSQLProxy.Cut, commit: PostgreSQLProxy.Commit
    ) async throws {
      let proxy = try PostgreSQLProxy(to: try #require(place.serverFolder))
      let (store, other) = (place.store(host: proxy.host), place.store())
      var tag: StoreTag?
      for number in 1...8 {
        // A commit after a change of another writer is made in a transaction that locks the store.
        if commit == .transaction { try await other.save(number, for: StoreKey("other")) }
        if number.isMultiple(of: 2) { proxy.cutNext(commit, cut) }
        tag = try await store.commit(StoreBatch(saving: number, for: key, requiring: tag)).tag
        #expect(proxy.hasNoPendingCut)
        #expect(try await other.load(key)?.value == number)
      }
      let changeCount = try place.connection().first(
        "SELECT count(*) FROM datastore_change WHERE 'counter' = ANY (names)"
      ) { $0.integer(0) }
      #expect(changeCount == 8)
      extendLifetime(proxy)
    }

    @Test func `A connection on which requests can't be sent is replaced, even if the server still sends messages`()
      async throws
    {
      let proxy = try PostgreSQLProxy(to: try #require(place.serverFolder))
      let store = place.store(host: proxy.host)
      try await store.save(1, for: key)
      for number in 2...5 {
        proxy.refuseRequests()
        try await store.save(number, for: key)
        #expect(try await place.store().load(key)?.value == number)
      }
      extendLifetime(proxy)
    }

    @Test(arguments: [true, false])
    func `The error of a connection that the server has ended says that the connection is lost, and why`(
      readsMessageBeforeStatement: Bool
    ) async throws {
      let connection = try place.connection()
      // The server ends the connection when its transaction has been idle for 1 millisecond.
      try connection.run(script: "SET idle_in_transaction_session_timeout = 1; BEGIN")
      try await place.waitUntil(
        """
        NOT EXISTS (SELECT FROM pg_stat_activity
          WHERE application_name = current_setting('application_name') AND pid <> pg_backend_pid())
        """)
      // libpq may have read the server's message before the next statement.
      if readsMessageBeforeStatement { _ = try? connection.takeNotifications() }
      let error = #expect(throws: SystemError.self) { try connection.run(script: "SELECT") }
      #expect(error?.isLostConnection == true)
      #expect(error?.description.contains("idle-in-transaction timeout") == true, "\(String(describing: error))")
      #expect(connection.isLost)
    }

    @Test func `A commit that is the victim of a deadlock is repeated`() async throws {
      let store = place.store(timeout: .seconds(60))
      try await store.save(1, for: key)
      let (lockHolder, program) = (try place.connection(), try place.connection())
      /// Waits until a number of clients wait for the store's lock.
      func waitUntilLockIsAwaited(byClients count: Int) async throws {
        try await place.waitUntil(
          """
          \(count) = (SELECT count(*) FROM pg_locks
            WHERE locktype = 'advisory' AND objid = 'datastore_value'::regclass AND NOT granted)
          """)
      }
      // Another program locks the value, then the store. Because of its high `deadlock_timeout`, it doesn't look for
      // deadlocks itself, so the commit is the victim.
      try program.run(script: "SET deadlock_timeout = '1h'; BEGIN; SELECT FROM datastore_value FOR UPDATE")
      // A third client holds the store's lock until first the commit and then the program wait for it.
      try lockHolder.run(script: PostgreSQLLayout.beginChange)
      async let saved = store.save(2, for: key)
      try await waitUntilLockIsAwaited(byClients: 1)
      async let programLock: Void = withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread {
          continuation.resume(with: Result { try program.run(script: PostgreSQLLayout.beginChange) })
        }
      }
      try await waitUntilLockIsAwaited(byClients: 2)
      lockHolder.rollBack()
      // The commit gets the lock first, but loses it when the server rolls the commit back.
      try await programLock
      #expect(try await place.store().load(key)?.value == 1)
      program.rollBack()
      #expect(try await saved.value == 2)
      #expect(try await place.store().load(key)?.value == 2)
    }

    @Test(arguments: ["40P01", "40001"])
    func `A commit that the server rolls back because of a conflict is repeated`(state: String) async throws {
      // The states are `deadlock_detected` and `serialization_failure`.
      let store = place.store()
      var changes = try await store.changes(of: key).subscribe().makeAsyncIterator()
      try await store.save(1, for: key)
      try place.connection().run(
        script: """
          CREATE SEQUENCE attempt;
          CREATE FUNCTION conflict() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF nextval('attempt') % 3 > 0 THEN RAISE EXCEPTION USING ERRCODE = '\(state)'; END IF;
            RETURN NEW;
          END $$;
          CREATE TRIGGER conflict BEFORE UPDATE ON datastore_value FOR EACH ROW EXECUTE FUNCTION conflict();
          """)
      for number in 2...4 {
        // A commit after a change of another writer is made in a transaction that locks the store.
        if number == 3 { try await place.store().save(number, for: StoreKey("other")) }
        try await store.save(number, for: key)
      }
      // Each of the three commits was made at its third attempt.
      #expect(try place.connection().first("SELECT last_value FROM attempt") { $0.integer(0) } == 9)
      for number in 1...4 { #expect(await changes.next()?.stored?.value == number) }
    }

    @Test func `Commits in constant conflict fail after the timeout, and a group waits for it only once`() throws {
      var backend = place.backend(timeout: .milliseconds(100))
      let group = ["a", "b", "c"].map { [StoreWrite(name: $0, bytes: Data("1".utf8))] }
      // The first call creates the tables.
      #expect(try backend.names() == [])
      try place.connection().run(
        script: """
          CREATE FUNCTION conflict() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            RAISE EXCEPTION USING ERRCODE = '40001';
          END $$;
          CREATE TRIGGER conflict BEFORE INSERT ON datastore_value FOR EACH ROW EXECUTE FUNCTION conflict();
          """)
      var decidedIndices: [Int] = []
      let results = try backend.commit(group: group) { (index, _) throws(StoreError) in
        decidedIndices.append(index)
        return .proceed(removing: [])
      }
      #expect(results.count == 3)
      for result in results {
        guard case .failure(.writeFailed(let error)) = result else {
          Issue.record("\(result)")
          continue
        }
        #expect(error.isConflict)
        #expect(error.description.contains("in conflict with this one: try again"))
      }
      // The group was tried several times as a whole, and its commits were not tried singly.
      #expect(decidedIndices.count > 3)
      #expect(decidedIndices == (0..<decidedIndices.count).map { $0 % 3 })
      #expect(try backend.names() == [])
    }

    @Test func `A commit beyond the size limit stores nothing, and the other commits of its group succeed`() throws {
      var backend = PostgreSQLBackend(address: place.address, byteLimit: 1_000)
      // A commit has 20 bytes more than its value, so only the third one is too large.
      let sizes = [400, 980, 981, 500]
      for byte in [UInt8(ascii: "a"), UInt8(ascii: "b")] {
        let group = sizes.enumerated().map { index, size in
          [StoreWrite(name: "key\(index)", bytes: Data(repeating: byte, count: size))]
        }
        let results = try backend.commit(group: group) { (_, _) throws(StoreError) in .proceed(removing: []) }
        for (index, result) in results.enumerated() where index != 2 { #expect(result == .success(true)) }
        guard case .failure(.writeFailed(let error)) = results[2] else {
          Issue.record("\(results[2])")
          return
        }
        #expect(
          error.description.hasSuffix(
            "failed: the commit has 1001 bytes, and the limit is 1000 (SQLSTATE 54000). "
              + "The value is larger than PostgreSQL allows: split it."))
        #expect(try backend.read("key1") == Data(repeating: byte, count: 980))
        #expect(try backend.read("key2") == nil)
      }
    }

    @Test func `If the tables can't be created, each kind of call throws its own kind of error`() throws {
      // The creation of the tables fails, because a type has the name of a table.
      try place.connection().run(script: "CREATE TYPE datastore_value AS ENUM ()")
      var backend = place.backend()
      let bytes = Data("1".utf8)
      let readError = #expect(throws: StoreError.self) { try backend.read("a") }
      let systemError = try #require(readError?.systemError)
      // The state is `duplicate_object`.
      guard case .postgreSQL("42710", _) = systemError.source else {
        Issue.record("\(systemError)")
        return
      }
      #expect(readError == .readFailed(systemError))
      #expect(throws: StoreError.writeFailed(systemError)) { try backend.write(bytes, to: "a") }
      #expect(throws: StoreError.removeFailed(systemError)) { try backend.remove("a") }
      try place.connection().run(script: "DROP TYPE datastore_value")
      try backend.write(bytes, to: "a")
      #expect(try backend.read("a") == bytes)
    }

    @Test func `An erasure by a role that can't rewrite the tables throws if it deletes values`() async throws {
      let store = place.store()
      try await store.save(1, for: key)
      let role = try place.createRole()
      defer { place.removeRole(role) }
      let otherRoleStore = PostgreSQLStore(address: place.address + " user=\(role)")
      // Nothing is deleted, so no bytes can be left.
      try await otherRoleStore.erase { _ in false }
      let thrown = await #expect(throws: StoreError.self) { try await otherRoleStore.erase { _ in true } }
      // The state is `insufficient_privilege`.
      guard case .eraseFailed(let error) = thrown, case .postgreSQL("42501", let message) = error.source else {
        Issue.record("\(String(describing: thrown))")
        return
      }
      #expect(
        message == "bytes of deleted rows may remain, because the user can't rewrite the table datastore_value")
      #expect(try await store.load(key) == nil)
      try await store.erase { _ in true }
    }

    @Test func `The size of a change counts its names and values, and 8 more bytes for each of them`() {
      var change = PostgreSQLChange()
      #expect(change.byteCount == 0)
      change.write(StoreWrite(name: "name", bytes: Data(count: 100)))
      #expect(change.byteCount == 120)
      change.write(StoreWrite(name: "name", bytes: Data(count: 200)))
      #expect(change.byteCount == 220)
      change.remove("other")
      #expect(change.byteCount == 233)
    }

    @Test func `A failed check for changes is repeated without another notification from the server`() async throws {
      let store = place.store()
      try await store.save(1, for: key)
      var changes = try await store.changes(of: key).subscribe().makeAsyncIterator()
      #expect(await changes.next()?.stored?.value == 1)
      let other = try place.connection()
      try await place.store().save(2, for: key)
      #expect(await changes.next()?.stored?.value == 2)
      let events = store.events.subscribe()
      // The change and the reason that it can't be read become visible at the same time.
      try other.run(
        script: """
          BEGIN;
          DELETE FROM datastore_value;
          ALTER TABLE datastore_value RENAME TO hidden;
          COMMIT
          """)
      for await event in events {
        if case .watchingFailed = event { break }
      }
      try other.run(script: "ALTER TABLE hidden RENAME TO datastore_value")
      let change = try #require(await changes.next())
      #expect(change.stored == nil)
    }

    @Test func `No child process inherits a socket of a store`() async throws {
      let proxy = try PostgreSQLProxy(to: try #require(place.serverFolder))
      let store = place.store(host: proxy.host)
      let changes = try await store.changes(of: key).subscribe()
      let sockets = proxy.clientSockets
      // The connection of the store, the connection of its watch, and a copy of the watch's descriptor.
      #expect(sockets.count == 3)
      for socket in sockets { #expect(fcntl(socket, F_GETFD) & FD_CLOEXEC == FD_CLOEXEC) }
      extendLifetime((proxy, changes))
    }

    @Test func `A late commit of a lost connection changes nothing`() async throws {
      let (store, lateCommitter) = (place.store(), try place.connection())
      try await store.save(1, for: key)
      let known = try #require(try lateCommitter.first(PostgreSQLLayout.newestEntry) { $0.integer(0) })
      var change = PostgreSQLChange()
      change.write(StoreWrite(name: "counter", bytes: Data("late".utf8)))
      // `lateCommitter` simulates the lost connection. A new connection asks whether the commit was made.
      let wasMade = try place.connection().first(
        PostgreSQLLayout.wasMade, .integer(known), .integer(lateCommitter.writer), .integer(1)
      ) { $0.optionalBool(0) }
      #expect(wasMade == false)
      // The query has added an entry to the log, so the late commit is based on an outdated log.
      #expect(try lateCommitter.make(change, number: 1, known: known) == nil)
      #expect(try await store.load(key)?.value == 1)
    }

    @Test func `The outcome of a commit is unknown if the log was truncated since`() async throws {
      let store = place.store()
      try await store.save(1, for: key)
      let connection = try place.connection()
      let known = try #require(try connection.first(PostgreSQLLayout.newestEntry) { $0.integer(0) })
      try connection.run(script: "INSERT INTO datastore_value SELECT 'n' || i, '' FROM generate_series(1, 6000) AS i")
      let wasMade = try connection.first(
        PostgreSQLLayout.wasMade, .integer(known), .integer(connection.writer), .integer(1)
      ) { $0.optionalBool(0) }
      // The answer is null, because the log no longer shows whether the commit was made.
      #expect(wasMade == .some(nil))
      let entryCount = try #require(try connection.first("SELECT count(*) FROM datastore_change") { $0.integer(0) })
      // After every 1,024 added names, the log is truncated to the new entry and 4,096 older names. Each entry has one
      // name, so the log has 4,097 to 5,120 entries. The range has a margin of one entry at each end.
      #expect(4_096...5_121 ~= entryCount)
      // A store that has read only the removed beginning of the log still works.
      try await store.save(2, for: key)
      #expect(try await place.store().load(key)?.value == 2)
    }

    @Test func `The outcome of the very first commit is unknown if the log was truncated since`() throws {
      var backend = place.backend()
      // The first call creates the tables.
      #expect(try backend.names() == [])
      let connection = try place.connection()
      try connection.run(script: "INSERT INTO datastore_value SELECT 'n' || i, '' FROM generate_series(1, 6000) AS i")
      let wasMade = try connection.first(
        PostgreSQLLayout.wasMade, .integer(0), .integer(connection.writer), .integer(1)
      ) { $0.optionalBool(0) }
      #expect(wasMade == .some(nil))
    }

    @Test func `If another client locks a store while a group's commits are made singly, only one waits for the lock`()
      throws
    {
      var backend = place.backend(timeout: .milliseconds(100))
      let group = ["a", "refused", "b"].map { [StoreWrite(name: $0, bytes: Data("1".utf8))] }
      // This commit creates the tables. Because it also reads the log, the later decisions are made without a lock.
      _ = try backend.commit(group: [group[0]]) { (_, _) throws(StoreError) in .proceed(removing: []) }
      let other = try place.connection()
      try other.run(script: "ALTER TABLE datastore_value ADD CHECK (name <> 'refused')")
      var decidedIndices: [Int] = []
      let results = try backend.commit(group: group) { (index, _) throws(StoreError) in
        decidedIndices.append(index)
        // The first three calls decide about the group as a whole. The fourth is for its first commit, made singly.
        if decidedIndices.count == 4 {
          do throws(SystemError) { try other.run(script: PostgreSQLLayout.beginChange) } catch {
            throw .writeFailed(error)
          }
        }
        return .proceed(removing: [])
      }
      #expect(decidedIndices == [0, 1, 2, 0])
      for result in results {
        guard case .failure(let error) = result else {
          Issue.record("A commit was made while the store was locked.")
          continue
        }
        #expect(error.isLockout)
      }
    }

    @Test(arguments: [
      (Duration.milliseconds(500), "500ms", "1s"), (.milliseconds(2_750), "2750ms", "5500ms"),
      (.seconds(5), "5s", "10s"),
      (.zero, "1ms", "1s"), (.seconds(Int64.max), "1073741823ms", "2147483646ms"),
    ])
    func `The server waits for a lock as long as the timeout, and for an idle transaction twice as long, within limits`(
      timeout: Duration, lockTimeout: String, idleTimeout: String
    ) throws {
      let connection = try place.connection()
      try connection.run(script: PostgreSQLLayout.settings(timeout: timeout))
      for (setting, expected) in [
        ("lock_timeout", lockTimeout), ("idle_in_transaction_session_timeout", idleTimeout),
      ] {
        #expect(try connection.first("SELECT current_setting($1)", .text(setting)) { $0.text(0) } == expected)
      }
    }

    @Test func `A change by another program that uses no lock is noticed`() async throws {
      let store = place.store()
      try await store.save(1, for: key)
      var changes = try await store.changes(of: key).subscribe().makeAsyncIterator()
      #expect(await changes.next()?.stored?.value == 1)
      let oldBytes = try #require(try place.connection().first("SELECT bytes FROM datastore_value") { $0.bytes(0) })
      try await store.save(2, for: key)
      #expect(await changes.next()?.stored?.value == 2)
      try place.connection().run("UPDATE datastore_value SET bytes = $1", .bytes(oldBytes))
      #expect(await changes.next()?.stored?.value == 1)
      try place.connection().run(script: "DELETE FROM datastore_value")
      #expect(await changes.next()?.stored == nil)
    }

    @Test func `A truncation of the table by another program is noticed`() async throws {
      let store = place.store()
      try await store.save(1, for: key)
      let observation = try await store.observe(collection: "counter", as: Int.self)
      var changes = observation.changes.makeAsyncIterator()
      try place.connection().run(script: "TRUNCATE datastore_value")
      // Before this commit is made, the store reports the earlier external changes.
      try await store.save(2, for: StoreKey("counter", id: "other"))
      let externalChanges = try #require(await changes.next())
      #expect(externalChanges.map(\.key) == [key])
      #expect(externalChanges.first?.stored == nil)
    }

    @Test(arguments: ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"])
    func `After another program has truncated the table, a commit that requires an earlier tag fails`(
      isolation: String
    ) async throws {
      let (store, program) = (place.store(), try place.connection())
      try await store.save(1, for: key)
      // From here on, the transaction doesn't see later commits, unless its isolation level is `READ COMMITTED`.
      try program.run(script: "BEGIN ISOLATION LEVEL \(isolation); SELECT FROM datastore_change")
      let tag = try await store.save(2, for: key).tag
      try program.run(script: "TRUNCATE datastore_value; COMMIT")
      let batch = StoreBatch(saving: 3, for: key, requiring: tag)
      await #expect(throws: StoreError.preconditionFailed(key.keyName)) { try await store.commit(batch) }
      #expect(try await store.load(key) == nil)
    }

    /// After a failover, the server may have lost the last entries of the log, and may use their numbers again.
    @Test func `A change is noticed after a lost connection although its number was used before`() async throws {
      let (store, other) = (place.store(), place.store())
      try await store.save(1, for: key)
      let tag = try await other.save(2, for: key).tag
      var changes = try await store.changes(of: key).subscribe().makeAsyncIterator()
      #expect(await changes.next()?.stored?.value == 2)
      // With the settings of a store, the triggers ignore the deletion, so they add no entry to the log. Instead, the
      // last entry is changed, as if its number was used again.
      try place.connection().run(
        script: """
          \(PostgreSQLLayout.settings(timeout: .seconds(5)));
          DELETE FROM datastore_value;
          UPDATE datastore_change SET writer = 0, serial = 0 WHERE id = (SELECT max(id) FROM datastore_change)
          """)
      try place.endConnections()
      let batch = StoreBatch(saving: 3, for: key, requiring: tag)
      await #expect(throws: StoreError.preconditionFailed(key.keyName)) { try await store.commit(batch) }
      let change = try #require(await changes.next())
      #expect(change.stored == nil)
    }

    @Test func `A commit fails if another client locks the store for longer than the timeout`() async throws {
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

    @Test func `A lock that is lost with its connection is no longer held`() async throws {
      let (store, other) = (place.store(), place.store())
      let lock = try #require(try await store.acquireLock("leader").lock)
      #expect(try await other.acquireLock("leader").lock == nil)
      #expect(try await store.acquireLock("leader").lock == nil)
      #expect(await lock.isHeld())
      try place.endConnections()
      let otherLock = try #require(try await other.acquireLock("leader").lock)
      #expect(await !lock.isHeld())
      // The save opens a new connection, which doesn't have the lost lock.
      try await store.save(1, for: key)
      #expect(await !lock.isHeld())
      #expect(try await store.acquireLock("leader").lock == nil)
      #expect(await otherLock.isHeld())
    }

    @Test func `Releasing a lost lock doesn't release the lock that the store has acquired since`() async throws {
      let (store, other) = (place.store(), place.store())
      var lostLock = try await store.acquireLock("leader").lock
      try place.endConnections()
      let lock = try #require(try await store.acquireLock("leader").lock)
      guard case .held(let releases) = try await other.acquireLock("leader") else {
        Issue.record("Two stores have the lock.")
        return
      }
      var releaseIterator = releases.subscribe().makeAsyncIterator()
      #expect(lostLock != nil)
      lostLock = nil
      // The process reports each of its releases, also that of a lost lock.
      await releaseIterator.next()
      #expect(await lock.isHeld())
      #expect(try await other.acquireLock("leader").lock == nil)
    }

    @Test func `A lock can be acquired as soon as its release is reported`() async throws {
      let (store, other) = (place.store(), place.store())
      var lock = try await store.acquireLock("leader").lock
      for waiter in [other, store, other] {
        #expect(lock != nil)
        guard case .held(let releases) = try await waiter.acquireLock("leader") else {
          Issue.record("Two stores have the lock.")
          return
        }
        var releaseIterator = releases.subscribe().makeAsyncIterator()
        lock = nil
        repeat {
          // The stores of other tests report the releases of their locks too.
          await releaseIterator.next()
          lock = try await waiter.acquireLock("leader").lock
        } while lock == nil
      }
    }

    @Test func `A call for a store of a future layout throws an error with both layout versions`() async throws {
      try await place.store().save(1, for: key)
      try place.connection().run(script: "UPDATE datastore_layout SET version = 2")
      let error = await #expect(throws: StoreError.self) { try await place.store().load(key) }
      guard case .newerStore(_, found: 2, supported: 1) = error else {
        Issue.record("\(String(describing: error))")
        return
      }
    }

    @Test func `The error of an unreachable server says what to do`() async {
      let store = PostgreSQLStore(address: "host=/nowhere", timeout: .zero)
      let error = await #expect(throws: StoreError.self) { try await store.load(key) }
      #expect(error?.description.contains("Check that the server is running and can be reached") == true)
    }
  }

  extension StoreLockResult {
    fileprivate var lock: StoreLock? { if case .acquired(let lock) = self { lock } else { nil } }
  }
#endif

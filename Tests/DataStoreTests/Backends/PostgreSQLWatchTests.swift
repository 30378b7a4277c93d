#if PostgreSQL
  import Foundation
  import Multicast
  import MulticastTesting
  import TestSupport
  import Testing

  @testable import DataStore

  /// The registrations of watches, and the notifications that depend on them.
  @Suite(.disabled(if: PostgreSQLPlace.isMissing, "MOMENTS_POSTGRESQL is not set."), .timeLimit(.minutes(15)))
  struct PostgreSQLWatchTests {
    private let database: Database
    private let place: PostgreSQLPlace
    private let key = StoreKey<Int>("counter")

    init() throws {
      database = try Database()
      place = try database.place()
    }

    // MARK: - No change is missed

    /// The time of a change, relative to the steps of a watch that opens a new connection.
    enum Moment: CaseIterable {
      case beforeListening, beforeRegistration, afterRegistration
    }

    @Test(arguments: Moment.allCases)
    func `A change that is made while a watch opens a new connection is noticed`(moment: Moment) async throws {
      let store = place.store()
      let oldBytes = try await saveOldAndNewValue(in: store)
      var changes = try await store.changes(of: key).subscribe().makeAsyncIterator()
      #expect(await changes.next()?.stored?.value == 2)
      let other = try place.connection()
      let watchProcess = try #require(try other.first("SELECT pid FROM datastore_watch") { $0.processNumber(0) })
      func endWatchConnection() throws {
        try other.run(script: "SELECT pg_terminate_backend(\(watchProcess), 10000)")
      }
      func restoreOldValue() throws {
        try other.run("UPDATE datastore_value SET bytes = $1", .bytes(oldBytes))
      }
      // Either the test or the new registration deletes the registration of the ended connection, so only the new one
      // can cause a notification.
      switch moment {
      case .beforeListening:
        try other.run(script: "DELETE FROM datastore_watch")
        try restoreOldValue()
        try endWatchConnection()
      case .beforeRegistration:
        try other.run(script: PostgreSQLLayout.beginChange)
        try endWatchConnection()
        try await place.waitUntil(storeLockIsAwaited)
        try other.run(script: "DELETE FROM datastore_watch")
        try restoreOldValue()
        try other.commit()
      case .afterRegistration:
        try endWatchConnection()
        try await place.waitUntil("EXISTS (SELECT FROM datastore_watch WHERE pid <> \(watchProcess))")
        try restoreOldValue()
      }
      #expect(await changes.next()?.stored?.value == 1)
      #expect(try other.first("SELECT count(*) FROM datastore_watch") { $0.integer(0) } == 1)
    }

    @Test func `A watch starts although another client has locked the store, and notices that client's changes`()
      async throws
    {
      let store = place.store(timeout: .milliseconds(100))
      let oldBytes = try await saveOldAndNewValue(in: store)
      let other = try place.connection()
      try other.run(script: PostgreSQLLayout.beginChange)
      var changes = try await store.changes(of: key).subscribe().makeAsyncIterator()
      #expect(await changes.next()?.stored?.value == 2)
      try other.run("UPDATE datastore_value SET bytes = $1", .bytes(oldBytes))
      try other.commit()
      #expect(await changes.next()?.stored?.value == 1)
      // The watch has registered meanwhile, so the server notifies it of this change.
      try other.run(script: "DELETE FROM datastore_value")
      #expect(await changes.next()?.stored == nil)
    }

    @Test(arguments: ["REPEATABLE READ", "SERIALIZABLE"])
    func `A change in a transaction that began before the registration is noticed`(level: String) async throws {
      let store = place.store()
      let oldBytes = try await saveOldAndNewValue(in: store)
      let other = try place.connection()
      try other.run(script: "BEGIN ISOLATION LEVEL \(level); SELECT FROM datastore_watch")
      var changes = try await store.changes(of: key).subscribe().makeAsyncIterator()
      #expect(await changes.next()?.stored?.value == 2)
      try other.run("UPDATE datastore_value SET bytes = $1", .bytes(oldBytes))
      try other.commit()
      #expect(await changes.next()?.stored?.value == 1)
    }

    @Test(arguments: [true, false])
    func `A store notices its own commit that the server makes only after the connection was lost`(
      isMadeBeforeRegistration: Bool
    ) async throws {
      let store = place.store()
      let oldBytes = try await saveOldAndNewValue(in: store)
      var changes = try await store.changes(of: key).subscribe().makeAsyncIterator()
      #expect(await changes.next()?.stored?.value == 2)
      let lateCommitter = try place.connection()
      // The server ends a transaction that is idle for twice the timeout. With a short timeout, it could do so before a
      // busy machine has run the rest of the test.
      try lateCommitter.run(script: PostgreSQLLayout.settings(timeout: .seconds(1_000)))
      let (watchProcess, oldWriter) = try #require(
        try lateCommitter.first("SELECT pid, writer FROM datastore_watch") { ($0.processNumber(0), $0.integer(1)) })
      // A registration waits for this lock.
      if isMadeBeforeRegistration { try lateCommitter.run(script: PostgreSQLLayout.beginChange) }
      // Only the store's connection for calls is ended, so the store gets another writer number.
      try place.connection().run(
        script: """
          SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
          WHERE pid NOT IN (pg_backend_pid(), \(watchProcess), \(try #require(lateCommitter.processNumber)))
            AND application_name = current_setting('application_name')
          """)
      #expect(try await store.load(key)?.value == 2)
      try await place.waitUntil(
        isMadeBeforeRegistration
          ? storeLockIsAwaited : "EXISTS (SELECT FROM datastore_watch WHERE writer <> \(oldWriter))")
      // The commit has the store's earlier writer number, and a commit number that the store hasn't used, as if the
      // server made it late. It names no last known entry of the log, so the server makes it whatever the log contains.
      try lateCommitter.run(
        PostgreSQLCommitStatement.storeValue.sql, .integer(nil), .integer(oldWriter), .integer(1_000),
        .text("counter"), .bytes(oldBytes))
      if isMadeBeforeRegistration { try lateCommitter.commit() }
      #expect(await changes.next()?.stored?.value == 1)
    }

    // MARK: - No needless notification

    @Test func `A change sends a notification only if another store watches`() async throws {
      let (store, listener) = (place.store(), try place.connection())
      try listener.run(script: "LISTEN \(PostgreSQLLayout.channel)")
      /// Returns the number of notifications that the listener gets while `body` runs.
      func notificationCount(during body: () async throws -> Void) async throws -> Int {
        try await body()
        // Notifications arrive in the order of commits, so this one comes last. It isn't counted.
        try listener.run(script: "NOTIFY \(PostgreSQLLayout.channel), 'last'")
        return try listener.takeNotifications() - 1
      }
      #expect(try await notificationCount { try await store.save(1, for: key) } == 0)
      let bytes = try #require(try listener.first("SELECT bytes FROM datastore_value") { $0.bytes(0) })
      func overwriteValue() throws { try listener.run("UPDATE datastore_value SET bytes = $1", .bytes(bytes)) }
      #expect(try await notificationCount { try overwriteValue() } == 0)

      let changes = try await store.changes(of: key)
      #expect(try await notificationCount { try await store.save(2, for: key) } == 0)
      #expect(try await notificationCount { try await store.remove(key) } == 0)
      #expect(try await notificationCount { try await store.save(3, for: key) } == 0)
      // The store doesn't know the changes of other programs and of other stores.
      #expect(try await notificationCount { try overwriteValue() } == 1)
      #expect(try await notificationCount { try listener.run(script: "TRUNCATE datastore_value") } == 1)
      var other: PostgreSQLStore? = place.store()
      #expect(try await notificationCount { try await other?.save(4, for: key) } == 1)

      var otherChanges = try await other?.changes(of: key)
      #expect(try await notificationCount { try await store.save(5, for: key) } == 1)
      #expect(try await notificationCount { try await other?.save(6, for: key) } == 1)
      #expect(try await notificationCount { try await store.remove(key) } == 1)
      #expect(try await notificationCount { try await store.erase { $0.key == key.keyName } } == 1)

      extendLifetime(otherChanges)
      (other, otherChanges) = (nil, nil)
      try await place.waitUntil("(SELECT count(*) = 1 FROM datastore_watch)")
      #expect(try await notificationCount { try await store.save(7, for: key) } == 0)
      extendLifetime(changes)
    }

    // MARK: - Registrations that remain

    @Test func `A registration deletes the registrations of ended connections, and no others`() async throws {
      let store = place.store()
      try await store.save(1, for: key)
      let (live, hidden) = (try place.connection(), try place.connection())
      try live.run(PostgreSQLLayout.registerWatch, .integer(1))
      // This simulates the connection of another role, whose start time is hidden.
      try hidden.run(PostgreSQLLayout.registerWatch, .integer(2))
      try hidden.run(script: "UPDATE datastore_watch SET started = NULL WHERE writer = 2")
      // Two registrations simulate ended connections. The process number of writer 4 belongs to a process that started
      // later than the registration says. The process number of writer 3 is 0, which belongs to no process.
      let laterConnection = try place.connection()
      try laterConnection.run(PostgreSQLLayout.registerWatch, .integer(4))
      try laterConnection.run(
        script: """
          UPDATE datastore_watch SET started = '2000-01-01' WHERE writer = 4;
          INSERT INTO datastore_watch VALUES (0, now(), 3)
          """)
      let changes = try await store.changes(of: key)
      let writers = try live.all("SELECT writer FROM datastore_watch ORDER BY writer") { $0.integer(0) }
      #expect(writers.prefix(2) == [1, 2])
      // The third registration is that of the store's watch, whose writer number is random.
      #expect(writers.count == 3)
      #expect(writers.last.map { $0 > 4 } == true)
      extendLifetime((changes, hidden, laterConnection))
    }

    @Test func `A role that can't see when other connections started deletes none of their registrations`() throws {
      var backend = place.backend()
      // The first call creates the tables.
      #expect(try backend.names() == [])
      let (live, other) = (try place.connection(), try place.connection())
      try live.run(PostgreSQLLayout.registerWatch, .integer(1))
      try place.withOtherRole(on: other) { try other.run(PostgreSQLLayout.registerWatch, .integer(2)) }
      #expect(try live.all("SELECT writer FROM datastore_watch ORDER BY writer") { $0.integer(0) } == [1, 2])
    }

    // MARK: - Helpers

    /// An SQL condition that holds while a client waits for the store's lock.
    private let storeLockIsAwaited = """
      EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = 'datastore_value'::regclass AND NOT granted)
      """

    /// Saves 1, then 2, and returns the stored bytes of 1, for another program that stores them again.
    private func saveOldAndNewValue(in store: PostgreSQLStore) async throws -> Data {
      try await store.save(1, for: key)
      let bytes = try #require(try place.connection().first("SELECT bytes FROM datastore_value") { $0.bytes(0) })
      try await store.save(2, for: key)
      return bytes
    }

    /// A database of its own for each test, because a notification wakes the watches in all schemas of a database.
    private final class Database: Sendable {
      private let name = "test_" + UUID().uuidString.lowercased().replacing("-", with: "")
      private let server: String

      init() throws {
        server = try #require(PostgreSQLPlace.server)
        try PostgreSQLConnection(server, timeout: .seconds(60)).run(script: "CREATE DATABASE \(name)")
      }

      deinit {
        _ = try? PostgreSQLConnection(server, timeout: .seconds(5)).run(script: "DROP DATABASE \(name) WITH (FORCE)")
      }

      func place() throws -> PostgreSQLPlace { try PostgreSQLPlace(server: "\(server) dbname=\(name)") }
    }
  }

  extension PostgreSQLConnection {
    /// The number of the server process of this connection.
    fileprivate var processNumber: Int32? { try? first("SELECT pg_backend_pid()") { $0.processNumber(0) } }
  }

  extension PostgreSQLRow {
    fileprivate func processNumber(_ column: CInt) -> Int32 { Int32(truncatingIfNeeded: integer(column)) }
  }
#endif

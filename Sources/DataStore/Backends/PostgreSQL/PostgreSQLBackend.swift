#if PostgreSQL
  package import Foundation
  internal import Multicast

  /// Keeps bytes in tables of a PostgreSQL database, one row for each name.
  ///
  /// Names and bytes are parameters of prepared statements, never a part of them.
  ///
  /// **Group commit.** All commits of a group are one transaction, so they share one synchronisation of the server. If a
  /// statement fails, the transaction is rolled back, and each commit is made by itself: then only the one at fault fails.
  ///
  /// **A lost connection** is opened again, and what was under way is done again, until the timeout has passed. A commit
  /// whose answer was lost isn't done twice: the server knows by the number of the transaction what became of it.
  package struct PostgreSQLBackend: StoreBackend {
    /// Distinguishes this backend's changes from external ones.
    private let writer = Int64.random(in: 1 ... .max)
    private let address: String
    private let timeout: Duration
    private var connection: PostgreSQLConnection?
    /// The connection while a transaction is open on it.
    private var transaction: PostgreSQLConnection?
    private var watch: PostgreSQLWatch?
    /// The last change that ``takeExternalChanges()`` has seen.
    private var lastChange: Int64 = 0

    /// Creates a backend in a database, whose tables the first call makes if they are missing.
    ///
    /// - Parameters:
    ///   - address: A connection string or URI of libpq's.
    ///   - timeout: How long a call tries to reach the server, and how long it waits for other clients.
    package init(address: String, timeout: Duration = .seconds(5)) {
      (self.address, self.timeout) = (address, timeout)
    }

    // MARK: - Reading

    package mutating func read(_ name: String) throws(StoreError) -> Data? {
      let statement = StorePartName.isPart(name) ? PostgreSQLLayout.readPart : PostgreSQLLayout.read
      return try perform(StoreError.readFailed) { (_, connection) throws(SystemError) in
        try connection.first(statement, .text(name)) { $0.bytes(0) }
      }
    }

    package mutating func names() throws(StoreError) -> [String] {
      try perform(StoreError.readFailed) { (_, connection) throws(SystemError) in
        try connection.all(PostgreSQLLayout.names) { $0.text(0) }.filter { StoreKeyName(encoded: $0) != nil }
      }
    }

    package mutating func snapshot<Result>(
      _ body: (inout Self) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
      if transaction != nil { return try body(&self) }
      return try performTransaction(PostgreSQLLayout.beginSnapshot, StoreError.readFailed) {
        (backend, _) throws(StoreError) in try body(&backend)
      }
    }

    // MARK: - Committing

    package mutating func commit(
      _ writes: [StoreWrite], deciding decide: (inout Self) throws(StoreError) -> CommitDecision
    ) throws(StoreError) -> Bool {
      try makeCommits([writes]) { (_, backend) throws(StoreError) in try decide(&backend) }[0]
    }

    package mutating func commit(
      group: [[StoreWrite]], deciding decide: (Int, inout Self) throws(StoreError) -> CommitDecision
    ) throws(StoreError) -> [Result<Bool, StoreError>] {
      do throws(StoreError) {
        return try makeCommits(group, deciding: decide).map { .success($0) }
      } catch {
        if group.count == 1 || error.isLockout { return group.map { _ in .failure(error) } }
      }
      var results: [Result<Bool, StoreError>] = []
      for (index, writes) in group.enumerated() {
        do throws(StoreError) {
          let made = try makeCommits([writes]) { (_, backend) throws(StoreError) in try decide(index, &backend) }
          results.append(.success(made[0]))
        } catch {
          results.append(.failure(error))
        }
      }
      return results
    }

    /// Makes all commits of a group in one transaction.
    ///
    /// - Returns: For each whether it was made.
    private mutating func makeCommits(
      _ group: [[StoreWrite]], deciding decide: (Int, inout Self) throws(StoreError) -> CommitDecision
    ) throws(StoreError) -> [Bool] {
      let failure = group.contains { !$0.isEmpty } ? StoreError.writeFailed : StoreError.removeFailed
      return try performTransaction(PostgreSQLLayout.beginChange, failure) {
        (backend, connection) throws(StoreError) in
        var made: [Bool] = []
        for (index, writes) in group.enumerated() {
          let decision = try decide(index, &backend)
          // A decision may go on after an error, because a check for external changes that fails stops no commit. Then
          // the server has given the transaction up.
          guard connection.isInTransaction else { throw failure(.abortedTransaction(connection.place)) }
          guard case .proceed(let removals) = decision else {
            made.append(false)
            continue
          }
          do throws(SystemError) {
            for name in removals { try Self.remove(name, on: connection) }
            for write in writes { try Self.write(write, on: connection) }
          } catch {
            throw failure(error)
          }
          made.append(true)
        }
        return made
      }
    }

    private static func write(_ write: StoreWrite, on connection: PostgreSQLConnection) throws(SystemError) {
      let statement = StorePartName.isPart(write.name) ? PostgreSQLLayout.writePart : PostgreSQLLayout.write
      try connection.run(statement, .text(write.name), .bytes(write.bytes))
    }

    private static func remove(_ name: String, on connection: PostgreSQLConnection) throws(SystemError) {
      try connection.run(
        StorePartName.isPart(name) ? PostgreSQLLayout.removePart : PostgreSQLLayout.remove, .text(name))
    }

    /// Moves a row to the table `datastore_quarantine`.
    package mutating func quarantine(_ bytes: Data, of name: String, at time: Date) throws(StoreError) -> String? {
      try performTransaction(PostgreSQLLayout.beginChange, StoreError.writeFailed) {
        (_, connection) throws(StoreError) -> String? in
        do throws(SystemError) {
          let stored = try connection.first(PostgreSQLLayout.read, .text(name)) { $0.bytes(0) }
          guard stored == bytes else { return nil }
          let id = try connection.first(
            PostgreSQLLayout.quarantine, .text(name), .text(time.formatted(.iso8601)), .bytes(bytes)
          ) { $0.integer(0) }
          try Self.remove(name, on: connection)
          return "\(connection.place), table datastore_quarantine, id \(id ?? 0)"
        } catch {
          throw .writeFailed(error)
        }
      }
    }

    /// Deletes rows, and writes the tables anew.
    ///
    /// What the server keeps beside its tables, such as its write-ahead log, its replicas and backups, is its owner's.
    package mutating func erase(_ isErased: (StoredItem) -> Bool) throws(StoreError) {
      try performTransaction(PostgreSQLLayout.beginChange, StoreError.removeFailed) {
        (_, connection) throws(StoreError) in
        do throws(SystemError) {
          try Self.erase(isErased, on: connection)
        } catch {
          throw .removeFailed(error)
        }
      }
      // Also if nothing was deleted now, because an earlier call may have failed in between.
      try perform(StoreError.removeFailed) { (_, connection) throws(SystemError) in
        for statement in PostgreSQLLayout.vacuums { try connection.run(script: statement) }
      }
    }

    private static func erase(
      _ isErased: (StoredItem) -> Bool, on connection: PostgreSQLConnection
    ) throws(SystemError) {
      func bytes(_ statement: String, _ parameter: PostgreSQLConnection.Parameter) -> Data {
        do throws(SystemError) { return try connection.first(statement, parameter) { $0.bytes(0) } ?? Data() } catch {
          return Data()
        }
      }
      for (names, read) in [
        (PostgreSQLLayout.names, PostgreSQLLayout.read), (PostgreSQLLayout.partNames, PostgreSQLLayout.readPart),
      ] {
        for name in try connection.all(names, read: { $0.text(0) })
        where isErased(StoredItem(name: name, bytes: { bytes(read, .text(name)) })) {
          try remove(name, on: connection)
        }
      }
      for (id, name) in try connection.all(PostgreSQLLayout.quarantined, read: { ($0.integer(0), $0.text(1)) })
      where isErased(StoredItem(name: name, bytes: { bytes(PostgreSQLLayout.readQuarantined, .integer(id)) })) {
        try connection.run(PostgreSQLLayout.removeQuarantined, .integer(id))
      }
      // The log has the names, so it is cut: other stores read again what they know.
      try connection.run(PostgreSQLLayout.logErasure)
      let newest = try connection.first(PostgreSQLLayout.newestChange) { $0.integer(0) } ?? 0
      try connection.run(PostgreSQLLayout.forgetChanges, .integer(newest))
      try connection.run(PostgreSQLLayout.recordCut, .integer(newest - 1))
    }

    /// Takes an advisory lock of the connection.
    package mutating func acquireLock(_ name: String) throws(StoreError) -> StoreLockResult {
      try perform(StoreError.writeFailed) { (_, connection) throws(SystemError) in
        try connection.acquireLock(name)
      }
    }

    // MARK: - External changes

    package mutating func startWatching(_ onChange: @escaping @Sendable () -> Void) throws(StoreError) {
      // Makes the tables first.
      try perform(StoreError.readFailed) { (_, _) throws(SystemError) in }
      do throws(SystemError) {
        watch = try PostgreSQLWatch(address, timeout: timeout, onChange: onChange)
      } catch {
        throw .readFailed(error)
      }
      // What is changed from here on is notified.
      lastChange = try perform(StoreError.readFailed) { (_, connection) throws(SystemError) in
        try connection.first(PostgreSQLLayout.newestChange) { $0.integer(0) } ?? 0
      }
    }

    package mutating func takeExternalChanges() throws(StoreError) -> ExternalChanges {
      if watch == nil { return .names([]) }
      let (last, writer) = (lastChange, writer)
      let changes: [(id: Int64, name: String?)]
      let lastCut: Int64
      do throws(StoreError) {
        (changes, lastCut) = try perform(StoreError.readFailed) { (_, connection) throws(SystemError) in
          (
            try connection.all(PostgreSQLLayout.changes, .integer(last), .integer(writer)) { row in
              (id: row.integer(0), name: row.isNull(1) ? nil : row.text(1))
            }, try connection.first(PostgreSQLLayout.lastCut) { $0.integer(0) } ?? 0
          )
        }
      } catch {
        // An error would mean that the watch broke, which has a connection of its own. What reads next meets the same one.
        return .unknown
      }
      lastChange = changes.last?.id ?? last
      return last < lastCut ? .unknown : .names(changes.compactMap(\.name))
    }
  }

  extension PostgreSQLBackend {
    // MARK: - Connections

    private mutating func connect() throws(StoreError) -> PostgreSQLConnection {
      if let connection, !connection.isLost { return connection }
      connection = nil
      let new: PostgreSQLConnection
      do throws(SystemError) {
        new = try PostgreSQLConnection(address, timeout: timeout)
        let milliseconds = timeout.components.seconds * 1_000
        let seconds = PostgreSQLConnection.longestSilence(within: timeout)
        try new.run(
          script: "SET datastore.writer = '\(writer)'; SET lock_timeout = \(max(1, milliseconds)); "
            + "SET synchronous_commit = on; SET default_transaction_isolation = 'read committed'; "
            // A client that the network has taken away must not hold the store's lock, or its own ones, for hours.
            + "SET idle_in_transaction_session_timeout = \(max(1_000, 2 * milliseconds)); "
            + "SET tcp_keepalives_idle = \(seconds); SET tcp_keepalives_interval = 1; "
            + "SET tcp_keepalives_count = \(seconds); SET tcp_user_timeout = \(seconds * 1_000)")
        let isThere = try new.first(PostgreSQLLayout.isThere) { $0.bool(0) } ?? false
        if !isThere { try new.run(script: PostgreSQLLayout.creation) }
      } catch {
        throw .readFailed(error)
      }
      try checkLayout(on: new)
      connection = new
      return new
    }

    private func checkLayout(on connection: PostgreSQLConnection) throws(StoreError) {
      let found: Int64
      do throws(SystemError) {
        found = try connection.first(PostgreSQLLayout.foundVersion) { $0.integer(0) } ?? 0
      } catch {
        throw .readFailed(error)
      }
      guard found > PostgreSQLLayout.version else { return }
      throw .newerStore(path: connection.place, found: Int(found), supported: Int(PostgreSQLLayout.version))
    }

    /// Uses a connection, and another one if it is lost.
    ///
    /// What `body` does is done again then.
    private mutating func perform<Result>(
      _ failure: (SystemError) -> StoreError,
      _ body: (inout Self, PostgreSQLConnection) throws(SystemError) -> Result
    ) throws(StoreError) -> Result {
      if let transaction {
        do throws(SystemError) {
          return try body(&self, transaction)
        } catch {
          throw failure(error)
        }
      }
      return try retrying(failure) { (backend, connection) throws(StoreError) in
        do throws(SystemError) {
          return try body(&backend, connection)
        } catch {
          throw failure(error)
        }
      }
    }

    /// Runs a transaction, and again if the connection is lost before it is made.
    private mutating func performTransaction<R>(
      _ begin: String, _ failure: (SystemError) -> StoreError,
      _ body: (inout Self, PostgreSQLConnection) throws(StoreError) -> R
    ) throws(StoreError) -> R {
      // The number of a transaction whose commit was not answered.
      var unknown: (number: String, result: R)?
      return try retrying(failure) { (backend, connection) throws(StoreError) in
        let outcome: Result<R, StoreError>
        // What was seen in a transaction that isn't made was not seen.
        let lastChange = backend.lastChange
        do throws(SystemError) {
          if let (number, result) = unknown {
            if try connection.isCommitted(number, waitingAtMost: backend.timeout) { return result }
            unknown = nil
          }
          let number = try connection.run(script: begin).first?.first
          backend.transaction = connection
          defer { backend.transaction = nil }
          outcome = Result { () throws(StoreError) in try body(&backend, connection) }
          if case .success(let result) = outcome {
            unknown = number.map { ($0, result) }
            try connection.commit()
          }
        } catch {
          connection.rollBack()
          backend.lastChange = lastChange
          throw failure(error)
        }
        if case .failure = outcome {
          connection.rollBack()
          backend.lastChange = lastChange
        }
        return try outcome.get()
      }
    }

    /// Calls `body` with a connection, and again with another one as long as connections are lost and time is left.
    private mutating func retrying<Result>(
      _ failure: (SystemError) -> StoreError,
      _ body: (inout Self, PostgreSQLConnection) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
      let end = ContinuousClock.now + timeout
      var delay: UInt32 = 1_000
      while true {
        let thrown: StoreError
        do throws(StoreError) {
          let connection = try connect()
          do throws(StoreError) {
            return try body(&self, connection)
          } catch {
            guard connection.isLost else { throw error }
            thrown = error
          }
        } catch {
          guard case .readFailed(let error) = error, connection == nil, error.isLostConnection else { throw error }
          thrown = failure(error)
        }
        if .now >= end { throw thrown }
        usleep(delay)
        delay = min(2 * delay, 250_000)
      }
    }
  }
#endif

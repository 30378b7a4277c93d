#if PostgreSQL
  package import Foundation
  internal import Multicast

  /// A backend that keeps bytes in tables of a PostgreSQL database, one row for each name.
  ///
  /// Names and bytes are parameters of prepared statements, and never become part of their text.
  ///
  /// **Group commit.** All commits of a group are one transaction, so they share one synchronization of the server's
  /// disk. If a commit fails, the transaction is rolled back and each commit is made in a transaction of its own, so
  /// that only the faulty one fails. But if another client holds a lock for too long, or if the repetitions described
  /// below don't overcome a lost connection or a conflict, all commits fail.
  ///
  /// **One exchange.** A commit usually takes a single exchange with the server. The decisions whether to make the
  /// commits of a group rely on what the store already knows of the stored values, and read from the server only if
  /// that isn't enough. The server makes the change only if no other writer has made one that the backend hasn't read.
  /// Otherwise, or if a commit is abandoned, the decisions are made again in a transaction that locks the store. After
  /// a commit that met a change of another writer, the next commits use such a transaction too, until one of them finds
  /// no new changes of other writers.
  ///
  /// **A lost connection** is opened again, and the interrupted call is repeated, until the timeout has passed. A
  /// commit whose answer was lost isn't made twice, because the log of changes shows whether it was made. If the log no
  /// longer shows this, or the server can't be asked, the call throws an error of unknown outcome. A call that the
  /// server rolled back because of a deadlock or a conflict of transactions is repeated as well.
  ///
  /// **A silent server.** A connection whose server doesn't answer by the ``PostgreSQLDeadline`` of the call is closed,
  /// and counts as lost. Calls that have waited for their turn meanwhile would each wait as long, one after the other. So
  /// after a call that didn't reach the server, and until the server answers again, the time of a call counts from the
  /// time at which its caller began to wait. A call whose time is over by then fails without an attempt. As long as the
  /// server answers, the time of a call counts from its turn, because a long queue is then no fault of the server.
  package struct PostgreSQLBackend: PlacedBackend {
    private let byteLimit: Int
    private var database: PostgreSQLDatabase
    /// The connection that all calls of the current transaction or decision must use.
    private var current: PostgreSQLConnection?
    private var decision: Decision?
    private var log = PostgreSQLLog()
    private var watch: PostgreSQLWatch?
    /// Whether the last commit found no changes of other writers in the log.
    private var isUncontended = true
    /// The number of the last commit that was sent.
    private var commitNumber: Int64 = 0
    /// The time at which the caller of the present call began to wait; `nil` if it is unknown.
    private var callStart: ContinuousClock.Instant?
    /// Whether the last call ended because the server was silent or couldn't be reached.
    private var isUnreachable = false

    /// The state of a decision about commits.
    private struct Decision {
      /// The names of the values that the commits save.
      ///
      /// If there are several, the first read of one of them reads them all, in one exchange.
      let names: Set<String>
      /// The bytes of these values, after they were read.
      var bytes: [String: Data]?
    }

    /// Creates a backend for a database.
    ///
    /// The first call creates the tables if they are missing.
    ///
    /// - Parameters:
    ///   - address: A connection string or URI in libpq's format.
    ///   - timeout: The longest time that a call tries to reach the server, and its longest single wait for other
    ///     clients.
    package init(address: String, timeout: Duration = .seconds(5)) {
      self.init(address: address, timeout: timeout, byteLimit: PostgreSQLChange.byteLimit)
    }

    /// Creates a backend that throws an error for commits of more bytes than a limit.
    init(address: String, timeout: Duration = .seconds(5), byteLimit: Int) {
      database = PostgreSQLDatabase(address: address, timeout: timeout)
      self.byteLimit = byteLimit
    }

    package var place: StorePlace { .server(database.address) }

    package mutating func beginCall(at start: ContinuousClock.Instant) { callStart = start }

    // MARK: - Reading

    package mutating func read(_ name: String) throws(StoreError) -> Data? {
      if let decision, decision.names.count > 1, decision.names.contains(name) {
        if let bytes = decision.bytes { return bytes[name] }
        let bytes = try readSeveral(decision.names)
        self.decision?.bytes = bytes
        return bytes[name]
      }
      let statement = StorePartName.isPart(name) ? PostgreSQLLayout.readPart : PostgreSQLLayout.read
      return try perform(StoreError.readFailed) { (_, connection) throws(SystemError) in
        try connection.first(statement, .text(name)) { $0.bytes(0) }
      }
    }

    private mutating func readSeveral(_ names: Set<String>) throws(StoreError) -> [String: Data] {
      let rows = try perform(StoreError.readFailed) { (_, connection) throws(SystemError) in
        try connection.all(PostgreSQLLayout.readSeveral, .texts(Array(names))) { ($0.text(0), $0.bytes(1)) }
      }
      return Dictionary(rows) { first, _ in first }
    }

    package mutating func names() throws(StoreError) -> [String] {
      try perform(StoreError.readFailed) { (_, connection) throws(SystemError) in
        try connection.all(PostgreSQLLayout.names) { $0.text(0) }.filter(StoreKeyName.isEncoded)
      }
    }

    package mutating func snapshot<Result>(
      _ body: (inout Self) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
      if current != nil { return try body(&self) }
      let result = try retrying(StoreError.readFailed) { (backend, connection) throws(StoreError) in
        try backend.performTransaction(PostgreSQLLayout.beginSnapshot, on: connection, StoreError.readFailed, body)
      }
      // A check for changes is a snapshot, so the success of a snapshot resets the delay of repeated notifications.
      watch?.recordCheck()
      return result
    }

    /// Returns the version of the log during a decision, and `nil` otherwise.
    ///
    /// It doesn't ask the server, because the server makes no commits if that version is outdated.
    package mutating func externalVersion() throws(StoreError) -> UInt64? { decision == nil ? nil : log.version }

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
        if group.count == 1 || error.wouldFailOtherCommits { return group.map { _ in .failure(error) } }
      }
      return try commitOneByOne(group, endingAt: \.wouldFailOtherCommits, deciding: decide)
    }

    /// Makes all commits of a group in one transaction.
    ///
    /// - Returns: Whether each of them was made.
    private mutating func makeCommits(
      _ group: [[StoreWrite]], deciding decide: (Int, inout Self) throws(StoreError) -> CommitDecision
    ) throws(StoreError) -> [Bool] {
      let failure = group.contains { !$0.isEmpty } ? StoreError.writeFailed : StoreError.removeFailed
      return try change(failure) { (backend, connection, unanswered) throws(StoreError) in
        if backend.isUncontended {
          let made = try backend.makeUnlocked(group, on: connection, failure, &unanswered, deciding: decide)
          if let made { return made }
        }
        return try backend.makeLocked(group, on: connection, failure, &unanswered, deciding: decide)
      }
    }

    /// Makes commits in one exchange, unless the log has changes that this backend hasn't read.
    ///
    /// - Returns: `true` for each commit. Or `nil`, and nothing is changed, in four cases: the log has such changes, the
    ///   log hasn't been read on this connection, a decision abandoned a commit, perhaps because of outdated values, or
    ///   a commit quarantines bytes.
    private mutating func makeUnlocked(
      _ group: [[StoreWrite]], on connection: PostgreSQLConnection, _ failure: (SystemError) -> StoreError,
      _ unanswered: inout PostgreSQLSentCommit<[Bool]>?,
      deciding decide: (Int, inout Self) throws(StoreError) -> CommitDecision
    ) throws(StoreError) -> [Bool]? {
      guard let known = log.newest else { return nil }
      // If the commits aren't made, the external changes that a decision took from the log count as unreported again.
      let before = log
      current = connection
      defer { current = nil }
      do throws(StoreError) {
        let (change, made) = try decideAll(group, decide)
        // Bytes are quarantined by a statement of their own, which needs a transaction.
        if made.allSatisfy(\.self), change.quarantined.isEmpty {
          if try send(change, known: known, on: connection, failure, &unanswered, result: made) { return made }
          unanswered = nil
          isUncontended = false
        }
      } catch {
        log.rollBack(to: before)
        throw error
      }
      log.rollBack(to: before)
      return nil
    }

    /// Makes commits in a transaction that locks the store.
    private mutating func makeLocked(
      _ group: [[StoreWrite]], on connection: PostgreSQLConnection, _ failure: (SystemError) -> StoreError,
      _ unanswered: inout PostgreSQLSentCommit<[Bool]>?,
      deciding decide: (Int, inout Self) throws(StoreError) -> CommitDecision
    ) throws(StoreError) -> [Bool] {
      try performTransaction(PostgreSQLLayout.beginChange, on: connection, failure) { (backend) throws(StoreError) in
        backend.isUncontended = try backend.readLog(on: connection, failure)
        let (change, made) = try backend.decideAll(group, decide)
        if made.contains(true) {
          do throws(SystemError) {
            for row in change.quarantined {
              try connection.run(PostgreSQLLayout.quarantine, .text(row.key), .text(row.time), .bytes(row.bytes))
            }
          } catch {
            throw failure(error)
          }
          _ = try backend.send(change, known: nil, on: connection, failure, &unanswered, result: made)
        }
        return made
      }
    }

    /// Calls `decide` for each commit of a group.
    ///
    /// - Returns: The combined change, and whether each commit proceeds.
    private mutating func decideAll(
      _ group: [[StoreWrite]], _ decide: (Int, inout Self) throws(StoreError) -> CommitDecision
    ) throws(StoreError) -> (change: PostgreSQLChange, made: [Bool]) {
      decision = Decision(
        names: Set(
          group.joined().lazy.map(\.name).filter { !StorePartName.isPart($0) && QuarantineName($0) == nil }))
      defer { decision = nil }
      var change = PostgreSQLChange()
      var made: [Bool] = []
      for (index, writes) in group.enumerated() {
        guard case .proceed(let removals) = try decide(index, &self) else {
          made.append(false)
          continue
        }
        for name in removals { change.remove(name) }
        for write in writes { change.write(write) }
        made.append(true)
      }
      return (change, made)
    }

    /// Sends a change to the server.
    ///
    /// - Parameter known: The number of the last entry of the log that the backend knows; `nil` in a transaction that
    ///   locks the store.
    /// - Returns: `true` if the change was made; `false`, and nothing is changed, if the log has changes after `known`.
    /// - Throws: An error of the server or the connection, or an error for a change of more than `byteLimit` bytes,
    ///   which isn't sent.
    private mutating func send<Result>(
      _ change: PostgreSQLChange, known: Int64?, on connection: PostgreSQLConnection,
      _ failure: (SystemError) -> StoreError, _ unanswered: inout PostgreSQLSentCommit<Result>?, result: Result
    ) throws(StoreError) -> Bool {
      let byteCount = change.byteCount
      if byteCount > byteLimit {
        throw failure(.tooLarge(connection.place, byteCount: byteCount, limit: byteLimit))
      }
      commitNumber += 1
      // A commit that changes nothing, such as one that only has preconditions, can be made twice.
      if !change.isEmpty || !change.quarantined.isEmpty {
        unanswered = PostgreSQLSentCommit(
          known: log.newest ?? 0, writer: connection.writer, number: commitNumber, result: result)
      }
      do throws(SystemError) {
        guard let newest = try connection.make(change, number: commitNumber, known: known) else { return false }
        log.advance(to: newest)
        return true
      } catch {
        throw failure(error)
      }
    }

    /// Moves a row to the table `datastore_quarantine`.
    package mutating func quarantine(_ bytes: Data, of name: String, at time: Date) throws(StoreError) -> String? {
      try change(StoreError.writeFailed) { (backend, connection, unanswered) throws(StoreError) in
        try backend.performTransaction(PostgreSQLLayout.beginChange, on: connection, StoreError.writeFailed) {
          (backend) throws(StoreError) -> String? in
          _ = try backend.readLog(on: connection, StoreError.writeFailed)
          let id: Int64?
          do throws(SystemError) {
            let stored = try connection.first(PostgreSQLLayout.read, .text(name)) { $0.bytes(0) }
            guard stored == bytes else { return nil }
            id = try connection.first(
              PostgreSQLLayout.quarantine, .text(name), .text(time.formatted(.iso8601)), .bytes(bytes)
            ) { $0.integer(0) }
          } catch {
            throw .writeFailed(error)
          }
          let place = "\(connection.place), table datastore_quarantine, id \(id ?? 0)"
          var change = PostgreSQLChange()
          change.remove(name)
          _ = try backend.send(
            change, known: nil, on: connection, StoreError.writeFailed, &unanswered, result: place)
          return place
        }
      }
    }

    package func place(ofQuarantined name: String) -> String {
      guard let quarantine = QuarantineName(name) else { return name }
      return "\(database.place), table datastore_quarantine, name \(quarantine.encodedKey), time \(quarantine.time)"
    }

    /// Deletes rows, and rewrites the tables.
    ///
    /// It doesn't erase the copies that the server keeps outside the tables, such as its write-ahead log, replicas and
    /// backups. They are the responsibility of the server's owner.
    package mutating func erase(_ isErased: (StoredItem) -> Bool) throws(StoreError) {
      var hasErased = false
      // If the connection is lost, the deletion is repeated, because it is idempotent.
      try retrying(StoreError.eraseFailed) { (backend, connection) throws(StoreError) in
        try backend.performTransaction(PostgreSQLLayout.beginChange, on: connection, StoreError.eraseFailed) {
          (backend) throws(StoreError) in
          backend.commitNumber += 1
          do throws(SystemError) {
            let erasure = PostgreSQLErasure(connection: connection)
            if try erasure.deleteRows(where: isErased, number: backend.commitNumber) { hasErased = true }
          } catch {
            throw .eraseFailed(error)
          }
        }
      }
      // This is done even if no row was deleted now, because an earlier call may have failed after it deleted rows.
      try perform(StoreError.eraseFailed) { (_, connection) throws(SystemError) in
        let skipped = try PostgreSQLErasure(connection: connection).rewriteTables()
        // A skipped table is an error only if this call deleted rows, whose bytes may remain in the table.
        if hasErased, let table = skipped.first { throw .notRewritten(table, of: connection.place) }
      }
    }

    /// Acquires an advisory lock of the connection.
    package mutating func acquireLock(_ name: String) throws(StoreError) -> StoreLockResult {
      try perform(StoreError.lockFailed) { (_, connection) throws(SystemError) in
        try connection.acquireLock(name)
      }
    }

    // MARK: - External changes

    package mutating func startWatching(_ onChange: @escaping @Sendable () -> Void) throws(StoreError) {
      // The backend's own connection is opened first, which creates the tables.
      watch = try retrying(StoreError.readFailed) { (backend, connection, deadline) throws(StoreError) in
        do throws(SystemError) {
          return try PostgreSQLWatch(
            backend.database.address, timeout: backend.database.timeout, deadline: deadline,
            knowingChangesOf: connection.writer, onChange: onChange)
        } catch {
          throw .readFailed(error)
        }
      }
      // From here on, the watch notifies the store after every change of another writer.
      try perform(StoreError.readFailed) { (backend, connection) throws(SystemError) in
        try backend.beginLog(on: connection)
        _ = backend.log.takeReport()
      }
    }

    /// Ends the watch, and closes the connections.
    package mutating func close() {
      watch?.end()
      watch = nil
      database.close()
    }

    package mutating func takeExternalChanges() throws(StoreError) -> ExternalChanges {
      if watch == nil { return .names([]) }
      if decision == nil {
        do throws(StoreError) {
          try perform(StoreError.readFailed) { (backend, connection) throws(SystemError) in
            _ = try backend.readLog(on: connection)
          }
        } catch {
          // A thrown error would mean that the watch has failed, but the watch has its own connection. The next read
          // meets the same error.
          return .unknown
        }
      }
      return log.takeReport()
    }

    /// Takes the store's lock, which a commit has until the server has ended it.
    package mutating func settle() throws(StoreError) {
      try retrying(StoreError.readFailed) { (backend, connection) throws(StoreError) in
        try backend.performTransaction(PostgreSQLLayout.beginChange, on: connection, StoreError.readFailed) { _ in }
      }
    }

    /// Begins to follow the log after its last change, so that earlier changes aren't reported.
    private mutating func beginLog(on connection: PostgreSQLConnection) throws(SystemError) {
      log.begin(at: try connection.first(PostgreSQLLayout.newestEntry) { $0.integer(0) } ?? 0)
    }

    /// Reads the new changes in the log.
    ///
    /// - Returns: `false` if another writer may have made one of them; `true` otherwise, and also if the log hadn't
    ///   been read on this connection.
    private mutating func readLog(on connection: PostgreSQLConnection) throws(SystemError) -> Bool {
      // Without a watch, the store doesn't ask for the changes, so they are discarded here.
      defer { if watch == nil { _ = log.takeReport() } }
      guard let newest = log.newest else {
        try beginLog(on: connection)
        return true
      }
      func rows(from id: Int64) throws(SystemError) -> [PostgreSQLLog.Row] {
        try connection.all(PostgreSQLLayout.entries, .integer(id), .integer(connection.writer)) {
          PostgreSQLLog.Row(
            id: $0.integer(0), previous: $0.integer(1), isUnknown: $0.bool(2), name: $0.optionalText(3))
        }
      }
      var found = try rows(from: newest)
      // If the log ends before the newest known change, it is a different log, such as that of a restored server. A log
      // that is still empty is read twice, which changes nothing.
      if found.isEmpty { found = try rows(from: 0) }
      return !log.record(found)
    }

    private mutating func readLog(
      on connection: PostgreSQLConnection, _ failure: (SystemError) -> StoreError
    ) throws(StoreError) -> Bool {
      do throws(SystemError) { return try readLog(on: connection) } catch { throw failure(error) }
    }
  }

  extension PostgreSQLBackend {
    // MARK: - Connections

    /// Returns the connection, and reports a new one to the log and the watch.
    private mutating func connect(
      by deadline: PostgreSQLDeadline, _ failure: (SystemError) -> StoreError
    ) throws(StoreError) -> PostgreSQLConnection {
      let (connection, isNew) = try database.connect(by: deadline, failure)
      if isNew {
        log.recordConnectionLoss()
        watch?.replaceWriter(by: connection.writer)
      }
      return connection
    }

    /// Calls `body` with a connection, and calls it again after a lost connection or a conflict, until the timeout.
    ///
    /// During a transaction or decision, it calls `body` once, with the connection in use.
    private mutating func perform<Result>(
      _ failure: (SystemError) -> StoreError,
      _ body: (inout Self, PostgreSQLConnection) throws(SystemError) -> Result
    ) throws(StoreError) -> Result {
      if let current {
        do throws(SystemError) {
          return try body(&self, current)
        } catch {
          // If the store could not read external changes before a commit, it makes the commit anyway. The repeated
          // notification lets it read the changes later.
          watch?.repeatNotification()
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

    /// Runs a transaction.
    private mutating func performTransaction<Result>(
      _ begin: String, on connection: PostgreSQLConnection, _ failure: (SystemError) -> StoreError,
      _ body: (inout Self) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
      // If the transaction fails, the changes that it read from the log count as unread.
      let before = log
      do throws(StoreError) {
        do throws(SystemError) { try connection.begin(begin) } catch { throw failure(error) }
        current = connection
        defer { current = nil }
        let result = try body(&self)
        do throws(SystemError) { try connection.commit() } catch { throw failure(error) }
        return result
      } catch {
        connection.rollBack()
        log.rollBack(to: before)
        throw error
      }
    }

    /// Makes a change, and never makes it twice, even if the server's answer is lost.
    ///
    /// - Parameter attempt: Makes the change on a connection, and records the commit that it sends. It is called again
    ///   after a conflict, and after a lost connection if the change was not made.
    /// - Throws: The error that `attempt` throws, or an error of unknown outcome.
    private mutating func change<Result>(
      _ failure: (SystemError) -> StoreError,
      _ attempt: (inout Self, PostgreSQLConnection, inout PostgreSQLSentCommit<Result>?) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
      var unanswered: PostgreSQLSentCommit<Result>?
      do throws(StoreError) {
        return try retrying(failure) { (backend, connection) throws(StoreError) in
          if let sent = unanswered {
            if try sent.wasMade(on: connection, failure) { return sent.result }
            unanswered = nil
          }
          do throws(StoreError) {
            return try attempt(&backend, connection, &unanswered)
          } catch {
            if connection.isLost { unanswered?.loss = error.systemError } else { unanswered = nil }
            throw error
          }
        }
      } catch {
        guard let unanswered else { throw error }
        // If the commit was made, the next check finds it, because the lost connection counts as another writer.
        watch?.repeatNotification()
        throw failure(.unknownOutcome(database.place, after: unanswered.loss))
      }
    }

    /// Calls `body` with a connection, and calls it again after a lost connection or a conflict, until the timeout.
    ///
    /// It also calls `body` again if a different connection was lost, such as that of a watch that `body` starts.
    private mutating func retrying<Result>(
      _ failure: (SystemError) -> StoreError,
      _ body: (inout Self, PostgreSQLConnection) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
      try retrying(failure) { (backend, connection, _) throws(StoreError) in try body(&backend, connection) }
    }

    private mutating func retrying<Result>(
      _ failure: (SystemError) -> StoreError,
      _ body: (inout Self, PostgreSQLConnection, PostgreSQLDeadline) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
      let now = ContinuousClock.now
      let deadline = PostgreSQLDeadline(after: database.timeout, from: isUnreachable ? callStart ?? now : now)
      if isUnreachable, now >= deadline.graceEnd { throw failure(.unreachable(database.place)) }
      // In microseconds.
      var delay: UInt32 = 1_000
      while true {
        let thrown: StoreError
        do throws(StoreError) {
          let connection = try connect(by: deadline, failure)
          do throws(StoreError) {
            let result = try body(&self, connection, deadline)
            isUnreachable = false
            return result
          } catch {
            guard connection.isLost || error.isTransient else {
              watch?.repeatNotification()
              throw error
            }
            thrown = error
          }
        } catch {
          // If there is no connection, this is the error of `connect(by:_:)`, and the attempt is repeated if the server
          // couldn't be reached. All other errors, such as the one thrown above, are rethrown.
          guard !database.isConnected, error.systemError?.isLostConnection == true else {
            isUnreachable = false
            throw error
          }
          thrown = error
        }
        if deadline.hasPassed() {
          isUnreachable = thrown.isLostConnection
          watch?.repeatNotification()
          throw thrown
        }
        usleep(min(delay, UInt32(clamping: Int(deadline.remaining() / .microseconds(1)))))
        delay = min(2 * delay, 250_000)
      }
    }
  }
#endif

#if SQLite
  package import Foundation

  /// A backend that keeps bytes in an SQLite database, one row for each name.
  ///
  /// Names and bytes are bound to prepared statements, and never become part of their text.
  ///
  /// **Group commit.** All commits of a group are one transaction, so they share one synchronization. The decision
  /// about a commit comes before its writes, so an abandoned commit has changed nothing. If a commit fails, the whole
  /// transaction is rolled back, and then each commit is made in a transaction of its own, so that only the faulty one
  /// fails. But if another connection held the write lock for too long, all commits fail.
  ///
  /// **A lost transaction.** After an I/O error, or if memory runs out, SQLite may roll back the whole transaction, and
  /// would then execute the following statements without one. A decision may continue after such an error, because its
  /// check for external changes may fail without stopping the commit. So the backend verifies after each decision that
  /// the transaction is still open, and stores nothing if it isn't.
  package struct SQLiteBackend: PlacedBackend {
    /// The number that distinguishes this backend's changes from external ones in the log of changes.
    let writer = Int64.random(in: 1 ... .max)
    var database: SQLiteDatabase
    var watch: SQLiteWatch?
    /// The connection on which a transaction is open, if any.
    private(set) var transaction: SQLiteConnection?
    /// Whether there was no database when the current snapshot or decision began.
    private(set) var isMissing = false

    /// Creates a backend for a database, which the first write creates if it is missing.
    ///
    /// - Parameters:
    ///   - file: The database, as a file URL.
    ///   - busyTimeout: The limit of each wait for another process or store that uses the database. A call may wait
    ///     several times.
    ///   - now: Returns the current time, for the name of a quarantined database.
    ///   - fileSystem: Makes the system calls that SQLite doesn't.
    package init(
      file: URL, busyTimeout: Duration = .seconds(5), now: @escaping @Sendable () -> Date = { Date() },
      fileSystem: FileSystem = FileSystem()
    ) {
      database = SQLiteDatabase(file: file, busyTimeout: busyTimeout, fileSystem: fileSystem, now: now)
    }

    package var place: StorePlace { .file("\(database.folder)/\(database.fileName)") }

    package mutating func read(_ name: String) throws(StoreError) -> Data? {
      let statement = StorePartName.isPart(name) ? SQLiteLayout.readPart : SQLiteLayout.read
      return try perform(StoreError.readFailed) { (_, connection) throws(SystemError) in
        try connection.first(statement, .text(name)) { $0.blob(0) }
      } ?? nil
    }

    package mutating func externalVersion() throws(StoreError) -> UInt64? {
      try perform(StoreError.readFailed) { (backend, connection) throws(SystemError) in
        // Versions of different connections can't be compared, so the result contains the connection's number too. A
        // different file at the path gets a new connection.
        let version = UInt64(truncatingIfNeeded: try connection.dataVersion)
        return version & 0xFFFF_FFFF | UInt64(backend.database.connectionCount) << 32
      }
    }

    package mutating func names() throws(StoreError) -> [String] {
      try perform(StoreError.readFailed) { (_, connection) throws(SystemError) in
        try connection.all(SQLiteLayout.names) { $0.text(0) }.filter(StoreKeyName.isEncoded)
      } ?? []
    }

    package mutating func snapshot<Result>(
      _ body: (inout Self) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
      if transaction != nil { return try body(&self) }
      let result = try performTransaction(.deferred, StoreError.readFailed) {
        (backend, _) throws(StoreError) in try body(&backend)
      }
      if let result { return result }
      return try withoutDatabase(body)
    }

    package mutating func commit(
      _ writes: [StoreWrite], deciding decide: (inout Self) throws(StoreError) -> CommitDecision
    ) throws(StoreError) -> Bool {
      let results = try makeCommits([writes]) { (_, backend) throws(StoreError) in try decide(&backend) }
      return results[0]
    }

    package mutating func commit(
      group: [[StoreWrite]], deciding decide: (Int, inout Self) throws(StoreError) -> CommitDecision
    ) throws(StoreError) -> [Result<Bool, StoreError>] {
      do throws(StoreError) {
        return try makeCommits(group, deciding: decide).map { .success($0) }
      } catch {
        if case .corruptStore = error { throw error }
        if group.count == 1 || error.isLockout { return group.map { _ in .failure(error) } }
      }
      return try commitOneByOne(group, deciding: decide)
    }

    /// Makes all commits of a group in one transaction.
    ///
    /// - Returns: For each commit, whether it was made.
    private mutating func makeCommits(
      _ group: [[StoreWrite]], deciding decide: (Int, inout Self) throws(StoreError) -> CommitDecision
    ) throws(StoreError) -> [Bool] {
      let createsDatabase = group.contains { !$0.isEmpty }
      let failure = createsDatabase ? StoreError.writeFailed : StoreError.removeFailed
      let made = try change(failure, creating: createsDatabase) { (backend, connection) throws(StoreError) in
        var made: [Bool] = []
        for (index, writes) in group.enumerated() {
          let decision = try decide(index, &backend)
          // A lost transaction must be noticed before the next decision, whose check for external changes would begin
          // another transaction. The statements below need no such test, because a statement that fails throws. The
          // write lock isn't tested either: a transaction on a read-only database begins without the lock, and its
          // first change throws.
          guard connection.isInTransaction else { throw failure(.lostTransaction(connection.path)) }
          guard case .proceed(let removals) = decision else {
            made.append(false)
            continue
          }
          do throws(SystemError) {
            for name in removals { try backend.remove(name, on: connection) }
            for write in writes { try backend.write(write, on: connection) }
          } catch {
            throw failure(error)
          }
          made.append(true)
        }
        return made
      }
      if let made { return made }
      // There is no database, so there is nothing to remove. A commit counts as made unless it is abandoned.
      var countsAsMade: [Bool] = []
      for index in group.indices {
        let decision = try withoutDatabase { (backend: inout Self) throws(StoreError) in try decide(index, &backend) }
        countsAsMade.append(decision != .abandon)
      }
      return countsAsMade
    }

    /// Runs `body` as if there were no database, even if another process creates it meanwhile.
    private mutating func withoutDatabase<Result>(
      _ body: (inout Self) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
      let wasMissing = isMissing
      isMissing = true
      defer {
        isMissing = wasMissing
        recheckIfDatabaseAppeared()
      }
      return try body(&self)
    }

    private func write(_ write: StoreWrite, on connection: SQLiteConnection) throws(SystemError) {
      if let quarantine = QuarantineName(write.name) {
        try connection.run(
          SQLiteLayout.quarantine, .text(quarantine.encodedKey), .text(quarantine.time), .blob(write.bytes))
      } else if StorePartName.isPart(write.name) {
        try connection.run(SQLiteLayout.writePart, .text(write.name), .blob(write.bytes))
      } else {
        try connection.run(SQLiteLayout.write, .text(write.name), .blob(write.bytes))
        try log(write.name, on: connection)
      }
    }

    /// Adds a change to the log, and truncates the log at regular intervals.
    func log(_ name: String, on connection: SQLiteConnection) throws(SystemError) {
      try connection.run(SQLiteLayout.log, .text(name), .integer(writer))
      let id = connection.lastInsertedID
      if id % SQLiteLayout.truncationInterval == 0 {
        try connection.run(SQLiteLayout.truncateLog, .integer(id - SQLiteLayout.keptChangeCount))
      }
    }

    func remove(_ name: String, on connection: SQLiteConnection) throws(SystemError) {
      if StorePartName.isPart(name) { return try connection.run(SQLiteLayout.removePart, .text(name)) }
      try connection.run(SQLiteLayout.remove, .text(name))
      try log(name, on: connection)
    }

    /// Locks the file `<database>-lock.<name>` beside the database.
    package mutating func acquireLock(_ name: String) throws(StoreError) -> StoreLockResult {
      do throws(SystemError) {
        return try database.acquireLock(name)
      } catch {
        throw .lockFailed(error)
      }
    }

    /// Moves a row to the table `quarantine`.
    package mutating func quarantine(_ bytes: Data, of name: String, at time: Date) throws(StoreError) -> String? {
      try change(StoreError.writeFailed, creating: false) { (backend, connection) throws(StoreError) -> String? in
        do throws(SystemError) {
          guard try connection.first(SQLiteLayout.read, .text(name), read: { $0.blob(0) }) == bytes else { return nil }
          try connection.run(SQLiteLayout.quarantine, .text(name), .text(time.formatted(.iso8601)), .blob(bytes))
          let id = try connection.first(SQLiteLayout.lastQuarantined) { $0.integer(0) } ?? 0
          try backend.remove(name, on: connection)
          return "\(connection.path), table quarantine, id \(id)"
        } catch {
          throw .writeFailed(error)
        }
      } ?? nil
    }

    package func place(ofQuarantined name: String) -> String {
      guard let quarantine = QuarantineName(name) else { return name }
      return "\(database.path), table quarantine, name \(quarantine.encodedKey), time \(quarantine.time)"
    }
  }

  extension SQLiteBackend {
    /// Changes the database in one transaction, durably.
    ///
    /// - Returns: The result of `body`; `nil` if there is no database and none should be created.
    mutating func change<Result>(
      _ failure: (SystemError) -> StoreError, creating: Bool,
      _ body: (inout Self, SQLiteConnection) throws(StoreError) -> Result
    ) throws(StoreError) -> Result? {
      // If the quarantine of a corrupt database has failed, a call that changes a value tries it again.
      database.failedQuarantine = nil
      while true {
        let result = try performTransaction(.immediate, failure, creating: creating, body)
        // Before the change was made, another store may have quarantined the database, or another program may have
        // replaced or removed it. In that case the change is made again in the new database. If there is none, the call
        // throws, because the absence of a database that was opened before is an error.
        if database.hasMoved { continue }
        // The same holds for its log. But the commit can often be moved from the lost log into the database, and then
        // it must not be made again.
        do throws(SystemError) {
          if try database.recoverCommit() { return result }
        } catch {
          throw failure(error)
        }
      }
    }

    /// Runs a transaction, and runs it again if another database has replaced a corrupt one.
    ///
    /// - Returns: The result of `body`; `nil` if there is no database and none should be created.
    private mutating func performTransaction<Result>(
      _ kind: SQLiteConnection.TransactionKind, _ failure: (SystemError) -> StoreError, creating: Bool = false,
      _ body: (inout Self, SQLiteConnection) throws(StoreError) -> Result
    ) throws(StoreError) -> Result? {
      var thrown: StoreError?
      var hasLostLog = false
      let result = try perform(failure, creating: creating) { (backend, connection) throws(SystemError) -> Result? in
        thrown = nil
        let result = try connection.transaction(kind) { () throws(SystemError) -> (Result?, commits: Bool) in
          // Other stores leave a lost log only when no transaction has the write lock; see `leaveLostLog(in:)`. So the
          // log must be checked while this one has it.
          hasLostLog = kind == .immediate && connection.hasLostLog
          if hasLostLog { return (nil, commits: false) }
          if let refusal = try backend.database.checkLayout(of: connection) {
            thrown = refusal
            return (nil, commits: false)
          }
          backend.transaction = connection
          defer { backend.transaction = nil }
          do throws(StoreError) {
            return (try body(&backend, connection), commits: true)
          } catch {
            // An error from SQLite may mean that the database is corrupt, which `attempt` handles.
            if let systemError = error.systemError, case .sqlite = systemError.source { throw systemError }
            thrown = error
            return (nil, commits: false)
          }
        }
        // The layout was checked in this transaction, so the transaction's own change requires no other check of it. A
        // `deferred` transaction isn't recorded: it changes nothing, and a check for external changes in `body` may
        // have replaced it with a transaction in which the layout wasn't checked.
        if kind == .immediate, thrown == nil, !hasLostLog { backend.database.recordChange(on: connection) }
        return result
      }
      if let thrown { throw thrown }
      // The next attempt leaves the lost log first.
      if hasLostLog { return try performTransaction(kind, failure, creating: creating, body) }
      return result ?? nil
    }

    /// Calls `body` with the connection, and calls it again if another database has replaced a corrupt one.
    ///
    /// In a transaction, it calls `body` once, with the connection of the transaction.
    ///
    /// - Returns: The result of `body`; `nil` if there is no database and none should be created.
    mutating func perform<Result>(
      _ failure: (SystemError) -> StoreError, creating: Bool = false,
      _ body: (inout Self, SQLiteConnection) throws(SystemError) -> Result
    ) throws(StoreError) -> Result? {
      if isMissing { return nil }
      if let connection = transaction {
        do throws(SystemError) {
          return try body(&self, connection)
        } catch {
          throw failure(error)
        }
      }
      while true {
        let outcome: AttemptOutcome<Result>
        do throws(SystemError) {
          outcome = try attempt(creating: creating, body)
        } catch {
          throw failure(error)
        }
        switch outcome {
        case .done(let result): return result
        // The reason for the refusal was found by a read, but the call that fails may be a write.
        case .refused(.readFailed(let error)): throw failure(error)
        case .refused(let error): throw error
        case .alreadyReplaced: continue
        }
      }
    }

    private mutating func attempt<Result>(
      creating: Bool, _ body: (inout Self, SQLiteConnection) throws(SystemError) -> Result
    ) throws(SystemError) -> AttemptOutcome<Result> {
      defer { watch?.folderWatch.checkFolder() }
      let connection: SQLiteConnection
      switch try database.connect(creating: creating) {
      case .success(nil): return .done(nil)
      case .success(let connected?): connection = connected
      case .failure(let refusal): return .refused(refusal)
      }
      do throws(SystemError) {
        let result = try body(&self, connection)
        // The layout is checked after the body, because `mayHaveChanged` reflects a change only after a statement has
        // read the database. If it is `false`, no further statement runs, and no further lock is taken. A transaction
        // checks the layout before it changes anything.
        if database.mayHaveChanged, let refusal = try database.checkLayout(of: connection) { return .refused(refusal) }
        return .done(result)
      } catch {
        // The statement may have failed because another program has changed the layout.
        if error.isStatementError, let refusal = try database.checkLayout(of: connection) { return .refused(refusal) }
        guard error.isCorruption else { throw error }
        return try database.replace(because: error).map { .refused($0) } ?? .alreadyReplaced
      }
    }

    private enum AttemptOutcome<Result> {
      /// The result of the body; `nil` if there is no database.
      case done(Result?)
      /// The database can't be used, or was corrupt and is quarantined now.
      case refused(StoreError)
      /// The database was corrupt, but is no longer at its path.
      case alreadyReplaced
    }
  }
#endif

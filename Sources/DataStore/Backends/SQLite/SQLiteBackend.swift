#if SQLite
  package import Foundation

  /// Keeps bytes in an SQLite database, one row for each name.
  ///
  /// Names and bytes are parameters of prepared statements, never a part of them.
  ///
  /// **Group commit.** All commits of a group are one transaction, so they share one synchronisation. A commit decides
  /// before it writes, so one that is abandoned has changed nothing. If a statement fails, the whole transaction is rolled
  /// back, and each commit is made by itself: then only the one at fault fails.
  ///
  /// **A lost transaction.** At an I/O error or without memory SQLite rolls the whole transaction back, and what follows
  /// would be made statement by statement. A decision may go on after such an error, because a check for external changes
  /// that fails stops no commit. So it is checked after each decision that the transaction is still open, and nothing is
  /// stored if it isn't.
  package struct SQLiteBackend: StoreBackend {
    /// Distinguishes this backend's changes from external ones.
    let writer = Int64.random(in: 1 ... .max)
    var database: SQLiteDatabase
    var watch: SQLiteWatch?
    /// The connection while a transaction is open on it.
    private(set) var transaction: SQLiteConnection?
    /// Whether there was no database when the present snapshot began.
    private(set) var isMissing = false

    /// Creates a backend in a database, which the first write makes if it is missing.
    ///
    /// - Parameters:
    ///   - file: The database.
    ///   - busyTimeout: The longest time that a call waits for another process that uses the database.
    ///   - now: Returns the present time, for the name of a quarantined database.
    ///   - fileSystem: Makes the system calls that SQLite doesn't.
    package init(
      file: URL, busyTimeout: Duration = .seconds(5), now: @escaping @Sendable () -> Date = { Date() },
      fileSystem: FileSystem = FileSystem()
    ) {
      database = SQLiteDatabase(file: file, busyTimeout: busyTimeout, fileSystem: fileSystem, now: now)
    }

    package mutating func read(_ name: String) throws(StoreError) -> Data? {
      let statement = StorePartName.isPart(name) ? SQLiteLayout.readPart : SQLiteLayout.read
      return try perform(StoreError.readFailed) { (_, connection) throws(SystemError) in
        try connection.first(statement, .text(name)) { $0.blob(0) }
      } ?? nil
    }

    package mutating func externalVersion() throws(StoreError) -> UInt64? {
      try perform(StoreError.readFailed) { (backend, connection) throws(SystemError) in
        // Another file in the place has another connection, whose versions mean nothing to this one's.
        let version = UInt64(truncatingIfNeeded: try connection.dataVersion)
        return version & 0xFFFF_FFFF | UInt64(backend.database.connectionCount) << 32
      }
    }

    package mutating func names() throws(StoreError) -> [String] {
      try perform(StoreError.readFailed) { (_, connection) throws(SystemError) in
        try connection.all(SQLiteLayout.names) { $0.text(0) }.filter { StoreKeyName(encoded: $0) != nil }
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
      defer { checkAgainIfDatabaseAppeared() }
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
        if case .damaged = error { throw error }
        if group.count == 1 || error.isLockout { return group.map { _ in .failure(error) } }
      }
      var results: [Result<Bool, StoreError>] = []
      for (index, writes) in group.enumerated() {
        do throws(StoreError) {
          let made = try makeCommits([writes]) { (_, backend) throws(StoreError) in try decide(index, &backend) }
          results.append(.success(made[0]))
        } catch {
          if case .damaged = error { throw error }
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
      let makes = group.contains { !$0.isEmpty }
      let failure = makes ? StoreError.writeFailed : StoreError.removeFailed
      let made = try change(failure, making: makes) { (backend, connection) throws(StoreError) in
        var made: [Bool] = []
        for (index, writes) in group.enumerated() {
          let decision = try decide(index, &backend)
          // Also before the next decision, whose check for external changes would begin another transaction. A statement
          // that fails throws, so from here to the next decision, or to the end, the transaction is the one that began.
          // Its right to write isn't asked for: in a database that can only be read, the first statement says so.
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
      // There is no database, so there is nothing to remove.
      var decisions: [Bool] = []
      for index in group.indices {
        let decision = try withoutDatabase { (backend: inout Self) throws(StoreError) in try decide(index, &backend) }
        decisions.append(decision != .abandon)
      }
      return decisions
    }

    /// Runs `body` as long as there is no database, which it doesn't see even if another process makes it meanwhile.
    private mutating func withoutDatabase<Result>(
      _ body: (inout Self) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
      let wasMissing = isMissing
      isMissing = true
      defer { isMissing = wasMissing }
      return try body(&self)
    }

    private func write(_ write: StoreWrite, on connection: SQLiteConnection) throws(SystemError) {
      if StorePartName.isPart(write.name) {
        try connection.run(SQLiteLayout.writePart, .text(write.name), .blob(write.bytes))
      } else {
        try connection.run(SQLiteLayout.write, .text(write.name), .blob(write.bytes))
        try log(write.name, on: connection)
      }
    }

    /// Adds a change to the log, and cuts it now and then.
    func log(_ name: String, on connection: SQLiteConnection) throws(SystemError) {
      try connection.run(SQLiteLayout.log, .text(name), .integer(writer))
      let id = connection.lastInsertedID
      if id % SQLiteLayout.cutInterval == 0 {
        try connection.run(SQLiteLayout.cutLog, .integer(id - SQLiteLayout.changeLimit))
      }
    }

    func remove(_ name: String, on connection: SQLiteConnection) throws(SystemError) {
      if StorePartName.isPart(name) { return try connection.run(SQLiteLayout.removePart, .text(name)) }
      try connection.run(SQLiteLayout.remove, .text(name))
      try log(name, on: connection)
    }

    /// Locks a file beside the database, `<database>-lock.<name>`.
    package mutating func acquireLock(_ name: String) throws(StoreError) -> StoreLockResult {
      do throws(SystemError) {
        return try database.acquireLock(name)
      } catch {
        throw .writeFailed(error)
      }
    }

    /// Moves a row to the table `quarantine`.
    package mutating func quarantine(_ bytes: Data, of name: String, at time: Date) throws(StoreError) -> String? {
      try change(StoreError.writeFailed, making: false) { (backend, connection) throws(StoreError) -> String? in
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
  }

  extension SQLiteBackend {
    /// Changes the database in one transaction, durably.
    ///
    /// - Returns: What `body` returned; `nil` if there is no database and none is to be made.
    mutating func change<Result>(
      _ failure: (SystemError) -> StoreError, making: Bool,
      _ body: (inout Self, SQLiteConnection) throws(StoreError) -> Result
    ) throws(StoreError) -> Result? {
      database.immovable = nil
      while true {
        let result = try performTransaction(.immediate, failure, making: making, body)
        // Another store may have quarantined the database before the change was made in it.
        if !database.hasMoved { return result }
      }
    }

    /// Runs a transaction, and again if another database has taken the place of a corrupt one.
    ///
    /// - Returns: What `body` returned; `nil` if there is no database and none is to be made.
    private mutating func performTransaction<Result>(
      _ kind: SQLiteConnection.TransactionKind, _ failure: (SystemError) -> StoreError, making: Bool = false,
      _ body: (inout Self, SQLiteConnection) throws(StoreError) -> Result
    ) throws(StoreError) -> Result? {
      var thrown: StoreError?
      let result = try perform(failure, making: making) { (backend, connection) throws(SystemError) -> Result? in
        var isRefused = false
        // A layout that was refused is read again by each call.
        defer { if !isRefused { backend.database.recordTransaction(on: connection) } }
        return try connection.transaction(kind) { () throws(SystemError) -> (Result?, commits: Bool) in
          if let refusal = try backend.database.refusal(of: connection) {
            (thrown, isRefused) = (refusal, true)
            return (nil, commits: false)
          }
          backend.transaction = connection
          defer { backend.transaction = nil }
          do throws(StoreError) {
            return (try body(&backend, connection), commits: true)
          } catch {
            // An error of SQLite's may mean that the database is corrupt.
            if let systemError = error.systemError, case .sqlite = systemError.source { throw systemError }
            thrown = error
            return (nil, commits: false)
          }
        }
      }
      if let thrown { throw thrown }
      return result ?? nil
    }

    /// Uses the database, and does so again if another one has taken the place of a corrupt one.
    ///
    /// - Returns: What `body` returned; `nil` if there is no database and none is to be made.
    mutating func perform<Result>(
      _ failure: (SystemError) -> StoreError, making: Bool = false,
      _ body: (inout Self, SQLiteConnection) throws(SystemError) -> Result
    ) throws(StoreError) -> Result? {
      if isMissing { return nil }
      if let transaction {
        do throws(SystemError) {
          return try body(&self, transaction)
        } catch {
          throw failure(error)
        }
      }
      while true {
        let attempt: Attempt<Result>
        do throws(SystemError) {
          attempt = try self.attempt(making: making, body)
        } catch {
          throw failure(error)
        }
        switch attempt {
        case .done(let result): return result
        case .refused(.readFailed(let error)): throw failure(error)
        case .refused(let error): throw error
        case .replaced: continue
        }
      }
    }

    private mutating func attempt<Result>(
      making: Bool, _ body: (inout Self, SQLiteConnection) throws(SystemError) -> Result
    ) throws(SystemError) -> Attempt<Result> {
      defer { watch?.folderWatch.checkFolder() }
      let connection: SQLiteConnection
      switch try database.connect(making: making) {
      case .success(nil): return .done(nil)
      case .success(let connected?): connection = connected
      case .failure(let refusal): return .refused(refusal)
      }
      do throws(SystemError) {
        let result = try body(&self, connection)
        // Behind the body, because that takes no lock if nothing has changed. A transaction checks before it changes
        // anything.
        if database.mayHaveChanged, let refusal = try database.refusal(of: connection) { return .refused(refusal) }
        return .done(result)
      } catch {
        // A statement that this program can't run may be due to another program's layout.
        if error.isStatementError, let refusal = try database.refusal(of: connection) { return .refused(refusal) }
        guard error.isDamage else { throw error }
        return try database.replace(because: error).map { .refused($0) } ?? .replaced
      }
    }

    private enum Attempt<Result> {
      /// Without a result if there is no database.
      case done(Result?)
      case refused(StoreError)
      /// Another database has taken the place of a corrupt one.
      case replaced
    }
  }

  extension StoreError {
    fileprivate var systemError: SystemError? {
      switch self {
      case .readFailed(let error), .writeFailed(let error), .removeFailed(let error): error
      default: nil
      }
    }
  }
#endif

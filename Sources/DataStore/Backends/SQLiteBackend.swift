#if SQLite
  public import Foundation

  /// Keeps bytes in an SQLite database, one row for each name.
  ///
  /// Names and bytes are parameters of prepared statements, never a part of them.
  public struct SQLiteBackend: StoreBackend {
    /// Tells this backend's changes from those of others.
    let writer = Int64.random(in: .min ... .max)
    var database: SQLiteDatabase
    var watch: SQLiteWatch?

    /// Creates a backend in a database, which the first write makes where it is missing.
    ///
    /// - Parameters:
    ///   - file: The database.
    ///   - busyTimeout: How long a call waits for another process that is using the database before it throws.
    ///   - now: Tells the time, for the name of a damaged database that is moved aside.
    public init(file: URL, busyTimeout: Duration = .seconds(5), now: @escaping @Sendable () -> Date = { Date() }) {
      self.init(file: file, busyTimeout: busyTimeout, now: now, fileSystem: FileSystem())
    }

    package init(
      file: URL, busyTimeout: Duration, now: @escaping @Sendable () -> Date, fileSystem: FileSystem
    ) {
      database = SQLiteDatabase(file: file, busyTimeout: busyTimeout, fileSystem: fileSystem, now: now)
    }

    /// The bytes of a row.
    public mutating func read(_ name: String) throws(StoreError) -> Data? {
      try perform(StoreError.readFailed) { (connection) throws(SystemError) in
        try connection.first(SQLiteLayout.read, .text(name)) { $0.blob(0) }
      } ?? nil
    }

    /// Replaces a row.
    public mutating func write(_ bytes: Data, to name: String) throws(StoreError) {
      let writer = writer
      try change(StoreError.writeFailed, making: true) { (connection) throws(SystemError) in
        try connection.run(SQLiteLayout.write, .text(name), .integer(writer), .blob(bytes))
      }
    }

    /// Removes a row.
    public mutating func remove(_ name: String) throws(StoreError) {
      let writer = writer
      try change(StoreError.removeFailed) { (connection) throws(SystemError) in
        try Self.remove(name, by: writer, on: connection)
      }
    }

    /// Moves a row to the table `set_aside`.
    public mutating func setAside(_ bytes: Data, of name: String, at time: Date) throws(StoreError) -> String? {
      let writer = writer
      return try change(StoreError.writeFailed) { (connection) throws(SystemError) -> String? in
        guard try connection.first(SQLiteLayout.read, .text(name), read: { $0.blob(0) }) == bytes else { return nil }
        try connection.run(SQLiteLayout.setAside, .text(name), .text(time.formatted(.iso8601)), .blob(bytes))
        let id = try connection.first(SQLiteLayout.lastSetAside) { $0.integer(0) } ?? 0
        try Self.remove(name, by: writer, on: connection)
        return "\(connection.path), table set_aside, id \(id)"
      } ?? nil
    }

    /// The names of all rows.
    public mutating func names() throws(StoreError) -> [String] {
      try perform(StoreError.readFailed) { (connection) throws(SystemError) in
        try connection.all(SQLiteLayout.names) { $0.text(0) }.filter { StoreKeyName(encoded: $0) != nil }
      } ?? []
    }
  }

  extension SQLiteBackend {
    private static func remove(
      _ name: String, by writer: Int64, on connection: SQLiteConnection
    ) throws(SystemError) {
      try connection.run(SQLiteLayout.noteRemoval, .text(name), .integer(writer))
      try connection.run(SQLiteLayout.forgetRemovals)
      try connection.run(SQLiteLayout.remove, .text(name))
    }

    /// Changes the database in one transaction, durably.
    ///
    /// - Returns: What `body` returned; nil when there is no database and none is to be made.
    @discardableResult
    private mutating func change<Result>(
      _ failure: (SystemError) -> StoreError, making: Bool = false,
      _ body: (SQLiteConnection) throws(SystemError) -> Result
    ) throws(StoreError) -> Result? {
      database.immovable = nil
      while true {
        let result = try perform(failure, making: making, inTransaction: true, body)
        // Another store may have moved the database aside before the change was made in it.
        if !database.hasMoved { return result }
      }
    }

    /// Does something with the database.
    ///
    /// - Returns: What `body` returned; nil when there is no database and none is to be made.
    mutating func perform<Result>(
      _ failure: (SystemError) -> StoreError, making: Bool = false, inTransaction: Bool = false,
      _ body: (SQLiteConnection) throws(SystemError) -> Result
    ) throws(StoreError) -> Result? {
      while true {
        let attempt: Attempt<Result>
        do throws(SystemError) {
          attempt = try self.attempt(making: making, inTransaction: inTransaction, body)
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

    /// - Returns: What `body` returned, or why nothing was done; no reason means that it is worth another attempt.
    private mutating func attempt<Result>(
      making: Bool, inTransaction: Bool, _ body: (SQLiteConnection) throws(SystemError) -> Result
    ) throws(SystemError) -> Attempt<Result> {
      defer { watch?.folderWatcher.checkFolder() }
      let connection: SQLiteConnection
      switch try database.connect(making: making) {
      case .success(nil): return .done(nil)
      case .success(let connected?): connection = connected
      case .failure(let refusal): return .refused(refusal)
      }
      do throws(SystemError) {
        if !inTransaction {
          if let refusal = try database.refusal(of: connection) { return .refused(refusal) }
          return .done(try body(connection))
        }
        return try connection.transaction { () throws(SystemError) -> Attempt<Result> in
          if let refusal = try database.refusal(of: connection) { return .refused(refusal) }
          return .done(try body(connection))
        }
      } catch {
        guard error.isDamage else { throw error }
        return try database.replace(because: error).map { .refused($0) } ?? .replaced
      }
    }

    private enum Attempt<Result> {
      /// Without a result where there is no database.
      case done(Result?)
      case refused(StoreError)
      /// Another database has taken the place of a damaged one.
      case replaced
    }
  }
#endif

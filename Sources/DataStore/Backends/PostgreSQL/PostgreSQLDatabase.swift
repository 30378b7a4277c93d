#if PostgreSQL
  /// The database of a ``PostgreSQLBackend``, and the connection to it.
  ///
  /// Its connection is always to a database that the store can use: one that has the tables, in a layout that this
  /// program knows.
  struct PostgreSQLDatabase {
    let address: String
    let timeout: Duration
    private var connection: PostgreSQLConnection?

    init(address: String, timeout: Duration) {
      (self.address, self.timeout) = (address, timeout)
    }

    /// Closes the connection, unless a lock of it is still held; the next call opens another one.
    ///
    /// Each lock that is held refers to its connection, which is closed when the last lock is released.
    mutating func close() {
      connection = nil
    }

    /// Whether the last call of ``connect(by:_:)`` has returned a connection, which may be lost by now.
    var isConnected: Bool { connection != nil }

    /// The server and the database, as errors name them.
    var place: String { connection?.place ?? "PostgreSQL" }

    /// Returns the connection, and opens one if there is none or it is lost.
    ///
    /// Creates the tables if they are missing.
    ///
    /// - Parameters:
    ///   - deadline: The deadline of the call, also for later exchanges on the connection.
    ///   - failure: Creates the error of the call.
    /// - Returns: The connection, and whether this call has opened it.
    mutating func connect(
      by deadline: PostgreSQLDeadline, _ failure: (SystemError) -> StoreError
    ) throws(StoreError) -> (connection: PostgreSQLConnection, isNew: Bool) {
      if let connection, !connection.isLost {
        connection.limitCall(by: deadline)
        return (connection, isNew: false)
      }
      connection = nil
      let newConnection: PostgreSQLConnection
      let foundVersion: Int64
      do throws(SystemError) {
        newConnection = try PostgreSQLConnection(address, timeout: timeout, deadline: deadline)
        try newConnection.checkPooler(address, timeout: timeout, deadline: deadline)
        try newConnection.run(script: PostgreSQLLayout.settings(timeout: timeout))
        let tablesExist = try newConnection.first(PostgreSQLLayout.tablesExist) { $0.bool(0) } ?? false
        if !tablesExist { try newConnection.run(script: PostgreSQLLayout.creation) }
        foundVersion = try newConnection.first(PostgreSQLLayout.foundVersion) { $0.integer(0) } ?? 0
      } catch {
        throw failure(error)
      }
      if foundVersion > PostgreSQLLayout.version {
        throw .newerStore(path: newConnection.place, found: Int(foundVersion), supported: Int(PostgreSQLLayout.version))
      }
      connection = newConnection
      return (newConnection, isNew: true)
    }
  }
#endif

#if PostgreSQL
  internal import CPostgreSQL

  extension PostgreSQLConnection {
    /// Throws if a connection pooler may give this connection another process of the server for each transaction.
    ///
    /// A store needs one process of the server for as long as its connection lasts: its prepared statements, settings,
    /// locks and notifications belong to the process. A pooler in transaction mode gives the connection a free process
    /// for each transaction. The first calls may work by chance, and later ones fail with errors that don't name the
    /// cause, or take locks that no connection releases. So this is tested when a connection is opened.
    ///
    /// A pooler is noticed because it answers the connection with a number of its own, not with that of the server's
    /// process. Only then is another connection opened. If the pooler assigns processes by transaction, that connection
    /// gets the process that this one has just used, or this one gets another one.
    func checkPooler(_ address: String, timeout: Duration) throws(SystemError) {
      guard let process = try serverProcess(within: timeout), process != ownProcess else { return }
      // Other clients of the pooler may have taken the process meanwhile, so the test is repeated.
      for _ in 0..<3 {
        let other = try PostgreSQLConnection(address, timeout: timeout)
        // In session mode, the other connection may have to wait for a process until this connection ends.
        if try other.serverProcess(within: .seconds(1)) == process { throw .pooledByTransaction(place) }
        if try serverProcess(within: timeout) != process { throw .pooledByTransaction(place) }
      }
    }
  }
#endif

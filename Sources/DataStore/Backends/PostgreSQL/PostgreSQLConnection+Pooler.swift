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
    func checkPooler(
      _ address: String, timeout: Duration, deadline: PostgreSQLDeadline
    ) throws(SystemError) {
      guard let process = try serverProcess(), process != ownProcess else { return }
      // Other clients of the pooler may have taken the process meanwhile, so the test is repeated.
      for _ in 0..<3 {
        let other = try PostgreSQLConnection(address, timeout: timeout, deadline: deadline)
        // In session mode, the other connection may have to wait for a process until this connection ends.
        other.limitCall(by: PostgreSQLDeadline(after: min(.milliseconds(500), deadline.remaining() / 4)))
        let otherProcess = try other.serverProcess()
        if otherProcess == process { throw .pooledByTransaction(place) }
        if try serverProcess() != process { throw .pooledByTransaction(place) }
        if otherProcess == nil { return }
      }
    }
  }
#endif

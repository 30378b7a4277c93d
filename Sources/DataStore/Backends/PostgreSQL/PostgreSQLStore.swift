#if PostgreSQL
  public import Foundation

  /// A store in a PostgreSQL database, for processes on many machines.
  ///
  /// It is available if the package trait `PostgreSQL` is enabled, and requires the system's libpq, and PostgreSQL 14
  /// or later as the server.
  ///
  /// - **Durability**: An acknowledged change is as durable as the server's commits with `synchronous_commit = on`.
  /// - **Atomicity**: A commit is made in one transaction. Saves and commits that are pending at the same time may
  ///   share a transaction.
  /// - **Ordering**: Observers of all stores over the database receive changes in the order of the commits.
  /// - **External changes** are reported by the server immediately while the store is observed, including those of
  ///   other programs that change the table `datastore_value`.
  /// - **A silent server**: Every call ends within its timeout and a second, even if the server or a proxy stops to
  ///   answer without closing the connection. The time of a call counts from its start, also while it waits behind other
  ///   calls that a silent server doesn't answer. If the server answers them, the time counts from the turn of the call.
  ///   A call that transfers much, or makes many exchanges, ends only if nothing arrives for that time. A call that the
  ///   server must work for gets a second more for each 16 MiB. Calls that wait for the server to no avail throw an error
  ///   with the `SQLSTATE` 08006 or 08001, and a commit one of unknown outcome, 40003. The store then closes the
  ///   connection, and the next call opens another one.
  /// - **Locks** belong to a connection. ``StoreLock/isHeld()`` answers `false` within the same time if the server is
  ///   silent. Another store gets the lock when the server has ended the process of the silent connection:
  ///   - If the process that has the lock is killed or closes the connection, the server ends its own at once, or within
  ///     a second if it runs a statement.
  ///   - If the network between the two is lost, or the machine, the server notices it by TCP keepalive within 4 to 10
  ///     seconds, depending on the timeout. The store configures this for its connections, on both sides.
  ///   - If the holder or a proxy hangs, its system still answers for it, and the server keeps the lock until the process
  ///     continues or ends. Set `idle_session_timeout` of the role on the server to bound this. A lock is then lost if
  ///     the store makes no call and no `isHeld()` for that time, so set it to several times the longest pause.
  ///   - If the server itself hangs, no store gets a lock until it continues or another server takes its place.
  /// - **A lost connection** is replaced: each call tries to connect again until its timeout has passed. Observers then
  ///   receive the newest value of each key that changed meanwhile, once. A commit that the server rolled back because
  ///   of a deadlock or a conflict with another client is also repeated, until the timeout.
  /// - **Poolers**: A connection pooler must be in session mode, such as PgBouncer with `pool_mode = session`, and give
  ///   each observed store two connections. The store doesn't work through a pooler in transaction or statement mode,
  ///   because its locks, prepared statements and notifications belong to a process of the server. It recognizes such a
  ///   pooler when it connects, and throws an error with the `SQLSTATE` 0A000. This also concerns pgcat, Odyssey,
  ///   Supavisor and RDS Proxy in these modes.
  /// - **Size**: A commit may have up to 1,000,000,000 bytes. A larger one throws an error with the `SQLSTATE` 54000,
  ///   and changes nothing. The server compresses large values, with lz4 if it supports that.
  /// - **Privacy**: libpq encrypts and authenticates the connection as configured by the address, by the environment
  ///   variables whose names begin with `PG`, or by a password file.
  /// - **Roles**: The role that creates the tables owns them. Another role needs all privileges on the tables and
  ///   sequences whose names begin with `datastore_`. If the server doesn't let this role rewrite a table, an
  ///   ``erase(where:)`` that deletes items throws afterwards, because bytes of them may be left.
  public struct PostgreSQLStore: WrappingStore {
    package let base: BackedStore<PostgreSQLBackend>

    /// Creates a store in a database.
    ///
    /// The store connects at the first call, which also creates the tables if they are missing, in the first schema of
    /// the connection's `search_path`. Their names begin with `datastore_`.
    ///
    /// - Parameters:
    ///   - address: A connection string such as `host=db.example.com dbname=moments`, or a URI that begins with
    ///     `postgresql://`. Missing settings come from the environment; see libpq's documentation.
    ///   - timeout: The time for which a call tries to reach the server and waits for it, and its longest single wait for
    ///     other clients, before it throws. The call ends at most a second later.
    ///   - now: Returns the current time, for ``StoredValue/savedAt``.
    public init(
      address: String, timeout: Duration = .seconds(5), now: @escaping @Sendable () -> Date = { Date() }
    ) {
      base = BackedStore(backend: PostgreSQLBackend(address: address, timeout: timeout), now: now)
    }

    /// Erases items so that no trace of them is left in the tables.
    ///
    /// There is one exception: rows that a transaction from before the erasure can still read stay until that
    /// transaction has ended and the server vacuums the tables.
    ///
    /// It doesn't erase the copies that the server keeps outside the tables, such as its write-ahead log, replicas and
    /// backups. They are the responsibility of the server's owner.
    public func erase(where isErased: @escaping @Sendable (StoredItem) -> Bool) async throws(StoreError) {
      try await base.erase(where: isErased)
    }

    /// Locks a name, for work that only one of several processes may do.
    public func acquireLock(_ name: String) async throws(StoreError) -> StoreLockResult {
      try await base.acquireLock(name)
    }
  }
#endif

#if PostgreSQL
  public import Foundation

  /// A store in a PostgreSQL database, for processes on many machines.
  ///
  /// It is available if the package trait `PostgreSQL` is enabled, and then needs the system's libpq.
  ///
  /// - **Durability**: A change that was acknowledged is as durable as the server's commits with `synchronous_commit = on`.
  /// - **Atomicity**: A commit is one transaction. Saves and commits that wait for one another are one transaction too.
  /// - **Ordering**: Observers of all stores on the database see the changes of each other in the order of the commits.
  /// - **External changes** are notified by the server at once, also those of other programs that change the table
  ///   `datastore_value`.
  /// - **A lost connection** is opened again, for as long as the timeout of a call allows. Observers get everything that was
  ///   changed meanwhile, once.
  /// - **Privacy**: The connection is encrypted and authenticated as libpq is told to, by the address, by the environment
  ///   variables whose names begin with `PG`, or by a password file.
  public struct PostgreSQLStore: StoreFacade {
    package let base: BackedStore<PostgreSQLBackend>

    /// Creates a store in a database.
    ///
    /// Nothing happens until the first call, which makes the tables if they are missing, in the first schema of the
    /// connection's `search_path`. Their names begin with `datastore_`.
    ///
    /// - Parameters:
    ///   - address: A connection string such as `host=db.example.com dbname=moments`, or a URI that begins with
    ///     `postgresql://`. What it leaves out comes from the environment; see libpq's documentation.
    ///   - timeout: How long a call tries to reach the server, and waits for other clients, before it throws; at least two
    ///     seconds count.
    ///   - now: Returns the present time, for ``StoredValue/savedAt``.
    public init(
      address: String, timeout: Duration = .seconds(5), now: @escaping @Sendable () -> Date = { Date() }
    ) {
      base = BackedStore(backend: PostgreSQLBackend(address: address, timeout: timeout), now: now)
    }

    /// Erases what is kept of some keys, so that nothing of it is left in the tables.
    ///
    /// What the server keeps beside its tables, such as its write-ahead log, its replicas and backups, is its owner's.
    public func erase(where isErased: @escaping @Sendable (StoredItem) -> Bool) async throws(StoreError) {
      try await base.erase(where: isErased)
    }

    /// Locks a name, so that one of several processes can do what only one may do.
    public func acquireLock(_ name: String) async throws(StoreError) -> StoreLockResult {
      try await base.acquireLock(name)
    }
  }
#endif

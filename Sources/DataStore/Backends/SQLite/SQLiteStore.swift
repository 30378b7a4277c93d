#if SQLite
  public import Foundation

  /// A store in an SQLite database, for many values that change often.
  ///
  /// It is available if the package trait `SQLite` is enabled, and then needs the system's libsqlite3.
  ///
  /// - **Durability**: A change that was acknowledged survives the end of the process and a loss of power at any instant:
  ///   the database is in WAL mode with `synchronous=FULL`, and on Apple's systems with `fullfsync`.
  /// - **Atomicity**: A commit is one transaction. Saves and commits that wait for one another are one transaction too.
  /// - **Privacy**: The database is made for its owner only (permissions 0600, a new folder 0700), and so are the files
  ///   beside it whose names end in `-wal` and `-shm`. A symbolic link in its place is not followed.
  /// - **Corruption**: A database that SQLite finds corrupt is quarantined with those files, never deleted; see
  ///   ``StoreError/damaged(movedTo:reason:)``. One of a future layout or of another kind is left as it is.
  /// - **External changes** are noticed at once, also those of other programs that change the table `value`.
  public struct SQLiteStore: StoreFacade {
    package let base: BackedStore<SQLiteBackend>

    /// Creates a store in a database.
    ///
    /// Nothing happens on disk until the first call. The first save makes the database, its folder, and those above it,
    /// if they are missing. A database that vanishes later isn't made again, because its values would silently be gone:
    /// from then on calls throw.
    ///
    /// - Parameters:
    ///   - file: The database, as a file URL. It should be the store's own, on a volume of this machine: WAL mode doesn't
    ///     work on network volumes.
    ///   - busyTimeout: The longest time that a call waits for another process that uses the database before it throws.
    ///   - now: Returns the present time, for ``StoredValue/savedAt``.
    public init(
      file: URL, busyTimeout: Duration = .seconds(5), now: @escaping @Sendable () -> Date = { Date() }
    ) {
      self.init(file: file, busyTimeout: busyTimeout, now: now, fileSystem: FileSystem())
    }

    package init(
      file: URL, busyTimeout: Duration = .seconds(5), now: @escaping @Sendable () -> Date = { Date() },
      fileSystem: FileSystem
    ) {
      let backend = SQLiteBackend(file: file, busyTimeout: busyTimeout, now: now, fileSystem: fileSystem)
      base = BackedStore(backend: backend, now: now)
    }

    /// Erases what is kept of some keys, so that nothing of it is left.
    public func erase(where isErased: @escaping @Sendable (StoredItem) -> Bool) async throws(StoreError) {
      try await base.erase(where: isErased)
    }

    /// Locks a name, so that one of several processes can do what only one may do.
    public func acquireLock(_ name: String) async throws(StoreError) -> StoreLockResult {
      try await base.acquireLock(name)
    }
  }
#endif

#if SQLite
  public import Foundation

  /// A store in an SQLite database, for many values that change often.
  ///
  /// It is available if the package trait `SQLite` is enabled, and requires the system's libsqlite3.
  ///
  /// - **Durability**: An acknowledged change survives a crash or `SIGKILL` of the process and a loss of power, at any
  ///   instant. For this, the database is in WAL mode with `synchronous=FULL` and, on Apple's systems, with
  ///   `fullfsync`.
  /// - **Atomicity**: A commit is made in one transaction. Saves and commits that are pending at the same time may
  ///   share a transaction.
  /// - **Privacy**: Only the owner can access a new database, the files beside it whose names end in `-wal` and `-shm`
  ///   (permissions 0600), and new folders (0700). A symbolic link at the path of the database is not followed.
  /// - **Corruption**: A database that SQLite finds corrupt is quarantined with the files that SQLite keeps beside it,
  ///   never deleted; see ``StoreError/corruptStore(movedTo:reason:)``. A database of a future layout, or of another
  ///   program, is left unchanged.
  /// - **A lost log**: If the file whose name ends in `-wal` or `-shm` is removed or replaced while the store is open,
  ///   the store notices that before it acknowledges a change. It moves the commits of the removed log into the
  ///   database, and begins a new log. If other connections prevent that, calls throw until they are closed.
  /// - **Suspension**: An idle store holds two shared locks on the database, so call ``KeyValueStore/suspend()`` before
  ///   the system suspends the process.
  /// - **External changes** are noticed without a call while the store is observed. They include changes that other
  ///   programs make in the table `value`.
  public struct SQLiteStore: WrappingStore {
    package let base: BackedStore<SQLiteBackend>

    /// Creates a store in a database.
    ///
    /// Nothing happens on disk until the first call. The first save creates the database, and the first save or lock
    /// creates all missing folders of its path. If the database is removed later, calls throw: the store doesn't create
    /// it again, because its values would be lost silently.
    ///
    /// - Parameters:
    ///   - file: The database, as a file URL. Other programs should keep no data of their own in it. It must be on a
    ///     local volume, because WAL mode doesn't work on network volumes.
    ///   - busyTimeout: The longest time that a call waits, each time another process or store has locked the database.
    ///     If the database is still locked then, the call throws.
    ///   - now: Returns the current time, for ``StoredValue/savedAt`` and the times of quarantines.
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

    /// Erases items so that no trace of them is left in the database.
    public func erase(where isErased: @escaping @Sendable (StoredItem) -> Bool) async throws(StoreError) {
      try await base.erase(where: isErased)
    }

    /// Locks a name, for work that only one of several processes may do.
    public func acquireLock(_ name: String) async throws(StoreError) -> StoreLockResult {
      try await base.acquireLock(name)
    }
  }
#endif

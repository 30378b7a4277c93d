#if SQLite
  public import Foundation

  /// A store in an SQLite database, for many values that change often.
  ///
  /// It is there when the package trait `SQLite` is enabled, and then needs the system's libsqlite3.
  ///
  /// - **Durability**: A save that returned survives the end of the process and a loss of power at any instant: the
  ///   database is in WAL mode with `synchronous=FULL`, and on Apple's systems with `fullfsync`.
  /// - **Privacy**: The database is made for its owner only (mode 0600, a new folder 0700), and so are the files beside
  ///   it whose names end in `-wal` and `-shm`. A symbolic link in its place is not followed.
  /// - **Damage**: A database that SQLite finds damaged is moved aside with those files, never deleted; see
  ///   ``StoreError/damaged(movedTo:reason:)``. One of a newer program or of another kind is left as it is.
  public typealias SQLiteStore = BackedStore<SQLiteBackend>

  extension BackedStore where Backend == SQLiteBackend {
    /// Creates a store in a database.
    ///
    /// Nothing happens on disk until the first call. The first save makes the database, its folder, and those above it,
    /// where they are missing. A database that vanishes later is not made again, because its values would silently be
    /// gone: from then on calls throw.
    ///
    /// - Parameters:
    ///   - file: The database, as a file URL. Let it be the store's own, on a volume of this machine: WAL mode works on
    ///     no network volume.
    ///   - busyTimeout: How long a call waits for another process that is using the database before it throws.
    ///   - now: Tells the time, for ``StoredValue/savedAt``.
    public init(
      file: URL, busyTimeout: Duration = .seconds(5), now: @escaping @Sendable () -> Date = { Date() }
    ) {
      self.init(backend: SQLiteBackend(file: file, busyTimeout: busyTimeout, now: now), now: now)
    }
  }
#endif

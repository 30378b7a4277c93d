#if SQLite
  /// How a database of a ``SQLiteBackend`` is laid out, and everything that is ever said to it.
  ///
  /// - `value` holds what is stored. A save replaces the row by one with a version higher than any before, so what was
  ///   saved since a look is one range of the table.
  /// - `removed` holds the names that were removed last, for those who watch.
  /// - `set_aside` holds bytes that could not be decoded.
  ///
  /// `writer` tells whose change it was, by a number each backend draws for itself.
  enum SQLiteLayout {
    /// Marks a database as a store's: `DStr`.
    static let applicationID: Int64 = 0x4453_7472

    /// The layout's version, kept as `user_version`.
    static let version: Int64 = 1

    /// How many removals are kept for those who watch.
    static let removalLimit: Int64 = 1_000

    static let creation = [
      """
      CREATE TABLE value (
        version INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL UNIQUE,
        writer INTEGER NOT NULL,
        bytes BLOB NOT NULL)
      """,
      """
      CREATE TABLE removed (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL,
        writer INTEGER NOT NULL)
      """,
      """
      CREATE TABLE set_aside (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL,
        time TEXT NOT NULL,
        bytes BLOB NOT NULL)
      """,
      "PRAGMA application_id = \(applicationID)",
      "PRAGMA user_version = \(version)",
    ]

    /// What every connection needs.
    ///
    /// In WAL mode `synchronous=NORMAL` would leave the log unsynchronised until the next checkpoint: a loss of power
    /// could take back the last commits. `FULL` synchronises it with each commit. The two `fullfsync` empty the drive's
    /// cache on Apple's systems and mean nothing elsewhere. The rest keeps a damaged file from doing more harm.
    static let configuration = [
      "PRAGMA synchronous = FULL",
      "PRAGMA fullfsync = ON",
      "PRAGMA checkpoint_fullfsync = ON",
      "PRAGMA journal_size_limit = 4194304",
      "PRAGMA trusted_schema = OFF",
      "PRAGMA cell_size_check = ON",
    ]

    static let read = "SELECT bytes FROM value WHERE name = ?1"
    static let names = "SELECT name FROM value"
    static let write = "REPLACE INTO value (name, writer, bytes) VALUES (?1, ?2, ?3)"
    static let noteRemoval = "INSERT INTO removed (name, writer) SELECT name, ?2 FROM value WHERE name = ?1"
    static let remove = "DELETE FROM value WHERE name = ?1"
    static let forgetRemovals = "DELETE FROM removed WHERE id <= (SELECT max(id) FROM removed) - \(removalLimit)"
    static let setAside = "INSERT INTO set_aside (name, time, bytes) VALUES (?1, ?2, ?3)"
    static let lastSetAside = "SELECT max(id) FROM set_aside"

    static let newest = "SELECT (SELECT max(version) FROM value), (SELECT max(id) FROM removed)"
    static let oldestRemoval = "SELECT min(id) FROM removed"
    static let savedByOthers = "SELECT name FROM value WHERE version > ?1 AND writer <> ?2 ORDER BY version"
    static let removedByOthers = "SELECT name FROM removed WHERE id > ?1 AND writer <> ?2 ORDER BY id"

    /// All that name a table: a database that does not understand one of them is damaged.
    static let statements = [
      read, names, write, noteRemoval, remove, forgetRemovals, setAside, lastSetAside, newest, oldestRemoval,
      savedByOthers, removedByOthers,
    ]
  }
#endif

#if SQLite
  /// The layout of a ``SQLiteBackend``'s database, and the statements that use it.
  ///
  /// - `value` holds the stored bytes by name.
  /// - `part` holds the parts of values that are stored in parts.
  /// - `change` is the log of the latest changes of `value`, in commit order. Its column `id` numbers the changes. Its
  ///   column `writer` is a random number that identifies the backend that made the change. A backend logs its own
  ///   changes, on a connection that runs no triggers. The changes of other programs are logged by triggers, with 0 as
  ///   the writer.
  /// - `quarantine` holds bytes that could not be decoded or migrated.
  enum SQLiteLayout {
    /// The application ID that marks a database as a store's: `DStr`.
    static let applicationID: Int64 = 0x4453_7472

    /// The layout's version, kept as `user_version`.
    ///
    /// Layout 1 was used before the first release.
    static let version: Int64 = 2

    /// The count of the latest changes that remain in the log of changes when it is truncated, except by an erasure.
    static let keptChangeCount: Int64 = 4_096

    /// The interval at which stores truncate the log of changes, in changes.
    ///
    /// A store truncates it when it adds a change whose number is a multiple of this.
    static let truncationInterval: Int64 = 1_024

    /// The size in bytes to which SQLite truncates a larger write-ahead log when it restarts the log.
    ///
    /// After 1,000 pages, which need less space than this, SQLite restarts the log: it overwrites the log from its
    /// start. A large commit, or a read that delays the restart, can make the log larger.
    static let logSizeLimit: Int64 = 4 << 20

    private static func trigger(_ name: String, after event: String, logging columns: [String]) -> String {
      let entries = columns.map { "INSERT INTO change (name, writer) VALUES (\($0), 0);" }
      return """
        CREATE TRIGGER \(name) AFTER \(event) ON value BEGIN
          \(entries.joined(separator: " "))
          DELETE FROM change WHERE id <= (SELECT max(id) FROM change) - \(keptChangeCount);
        END
        """
    }

    /// The statements that create the tables of a new database.
    static let creation = [
      "CREATE TABLE value (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, bytes BLOB NOT NULL)",
      "CREATE TABLE part (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, bytes BLOB NOT NULL)",
      // The newest row is never deleted, so the number of each new row is higher than all earlier ones.
      "CREATE TABLE change (id INTEGER PRIMARY KEY, name TEXT NOT NULL, writer INTEGER NOT NULL)",
      trigger("value_inserted", after: "INSERT", logging: ["NEW.name"]),
      trigger("value_updated", after: "UPDATE OF name, bytes", logging: ["OLD.name", "NEW.name"]),
      trigger("value_removed", after: "DELETE", logging: ["OLD.name"]),
      """
      CREATE TABLE quarantine (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL,
        time TEXT NOT NULL,
        bytes BLOB NOT NULL)
      """,
      "PRAGMA application_id = \(applicationID)",
      "PRAGMA user_version = \(version)",
    ]

    /// The configuration of every connection.
    ///
    /// In WAL mode, `synchronous=NORMAL` would leave the write-ahead log unsynchronized until the next checkpoint, so a
    /// loss of power could undo the last commits. `FULL` synchronizes it with each commit. The two `fullfsync` settings
    /// flush the drive's cache on Apple's systems and have no effect elsewhere. The last two settings limit the harm
    /// that a corrupt file can do.
    static let configuration = [
      "PRAGMA synchronous = FULL",
      "PRAGMA fullfsync = ON",
      "PRAGMA checkpoint_fullfsync = ON",
      "PRAGMA journal_size_limit = \(logSizeLimit)",
      "PRAGMA trusted_schema = OFF",
      "PRAGMA cell_size_check = ON",
    ]

    static let read = "SELECT bytes FROM value WHERE name = ?1"
    static let readPart = "SELECT bytes FROM part WHERE name = ?1"
    static let names = "SELECT name FROM value"
    // `DO UPDATE` changes the row in place; `INSERT OR REPLACE` would write a new one.
    static let write =
      "INSERT INTO value (name, bytes) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET bytes = excluded.bytes"
    static let writePart =
      "INSERT INTO part (name, bytes) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET bytes = excluded.bytes"
    static let remove = "DELETE FROM value WHERE name = ?1"
    static let removePart = "DELETE FROM part WHERE name = ?1"
    static let log = "INSERT INTO change (name, writer) VALUES (?1, ?2)"
    static let truncateLog = "DELETE FROM change WHERE id <= ?1"
    static let quarantine = "INSERT INTO quarantine (name, time, bytes) VALUES (?1, ?2, ?3)"
    static let lastQuarantined = "SELECT max(id) FROM quarantine"

    static let partNames = "SELECT name FROM part"
    static let quarantined = "SELECT id, name FROM quarantine"
    static let readQuarantined = "SELECT bytes FROM quarantine WHERE id = ?1"
    static let removeQuarantined = "DELETE FROM quarantine WHERE id = ?1"

    static let newestChange = "SELECT max(id) FROM change"
    static let oldestChange = "SELECT min(id) FROM change"

    /// The names that other writers changed after a given change, in the order of the changes.
    static let externallyChangedNames = "SELECT name FROM change WHERE id > ?1 AND writer <> ?2 ORDER BY id"

    /// All statements above that read or change rows of a table.
    ///
    /// If one of them can't be prepared, the database is corrupt.
    static let statements = [
      read, readPart, names, write, writePart, remove, removePart, log, truncateLog, quarantine, lastQuarantined,
      partNames, quarantined, readQuarantined, removeQuarantined, newestChange, oldestChange, externallyChangedNames,
    ]
  }
#endif

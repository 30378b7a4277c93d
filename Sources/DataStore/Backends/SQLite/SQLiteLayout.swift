#if SQLite
  /// The layout of a ``SQLiteBackend``'s database, and every statement that is run on it.
  ///
  /// - `value` holds what is stored. A save replaces the row by one with a version higher than any before, so what was
  ///   saved since a check is one range of the table.
  /// - `part` holds the parts of values that are stored in parts.
  /// - `change` holds the names that were changed last in any other way: removed, or changed by an `UPDATE`. Triggers fill
  ///   it, so changes made without the library are in it too. `version` is that of the newest save before the change.
  /// - `quarantine` holds bytes that could not be decoded.
  ///
  /// `writer` distinguishes the changes of one backend from those of all others, by a random number; 0 is unknown.
  ///
  /// | layout | what it added |
  /// | --- | --- |
  /// | 1 | `value`, `removed`, `set_aside` |
  /// | 2 | `part`, `change` for `removed`, `quarantine` for `set_aside`, the triggers |
  enum SQLiteLayout {
    /// Marks a database as a store's: `DStr`.
    static let applicationID: Int64 = 0x4453_7472

    /// The layout's version, kept as `user_version`.
    static let version: Int64 = 2

    /// The number of changes that are kept for those who watch.
    static let changeLimit: Int64 = 1_000

    private static let valueTable = """
      CREATE TABLE value (
        version INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL UNIQUE,
        writer INTEGER NOT NULL,
        bytes BLOB NOT NULL)
      """

    private static let tablesOfLayout2 = [
      "CREATE TABLE part (name TEXT PRIMARY KEY NOT NULL, bytes BLOB NOT NULL)",
      """
      CREATE TABLE change (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL,
        version INTEGER NOT NULL,
        writer INTEGER NOT NULL)
      """,
      trigger("value_removed", on: "DELETE ON value", recording: ["OLD.name"]),
      trigger("value_updated", on: "UPDATE OF name, bytes ON value", recording: ["OLD.name", "NEW.name"]),
    ]

    /// A trigger that records changed names and forgets those before the last ones.
    private static func trigger(_ name: String, on event: String, recording columns: [String]) -> String {
      let records = columns.map {
        """
          INSERT INTO change (name, version, writer)
            VALUES (\($0), coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'value'), 0), 0);
        """
      }
      return """
        CREATE TRIGGER \(name) AFTER \(event) BEGIN
        \(records.joined(separator: "\n"))
          DELETE FROM change WHERE id <= (SELECT max(id) FROM change) - \(changeLimit);
        END
        """
    }

    /// Makes the tables of a new database.
    static let creation =
      [
        valueTable,
        """
        CREATE TABLE quarantine (
          id INTEGER PRIMARY KEY AUTOINCREMENT,
          name TEXT NOT NULL,
          time TEXT NOT NULL,
          bytes BLOB NOT NULL)
        """,
      ] + tablesOfLayout2 + [
        "PRAGMA application_id = \(applicationID)",
        "PRAGMA user_version = \(version)",
      ]

    /// Makes layout 2 of layout 1.
    ///
    /// The removals that layout 1 kept are lost to processes that watch; they have to open the database again in any case,
    /// as their program knows layout 1 only.
    static let migration =
      ["DROP TABLE removed", "ALTER TABLE set_aside RENAME TO quarantine"] + tablesOfLayout2 + [
        "PRAGMA user_version = \(version)"
      ]

    /// The configuration of every connection.
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
    static let readPart = "SELECT bytes FROM part WHERE name = ?1"
    static let names = "SELECT name FROM value"
    static let write = "REPLACE INTO value (name, writer, bytes) VALUES (?1, ?2, ?3)"
    static let writePart = "REPLACE INTO part (name, bytes) VALUES (?1, ?2)"
    static let remove = "DELETE FROM value WHERE name = ?1"
    static let removePart = "DELETE FROM part WHERE name = ?1"
    static let claimRemoval = "UPDATE change SET writer = ?1 WHERE id = (SELECT max(id) FROM change) AND name = ?2"
    static let quarantine = "INSERT INTO quarantine (name, time, bytes) VALUES (?1, ?2, ?3)"
    static let lastQuarantined = "SELECT max(id) FROM quarantine"

    static let newest = "SELECT (SELECT max(version) FROM value), (SELECT max(id) FROM change)"
    static let oldestChange = "SELECT min(id) FROM change"

    /// The names that were changed since a check by another writer, in the order of the changes.
    static let changedByOthers = """
      SELECT name FROM (
        SELECT name, version, 0 AS id FROM value WHERE version > ?1 AND writer <> ?3
        UNION ALL SELECT name, version, id FROM change WHERE id > ?2 AND writer <> ?3)
      ORDER BY version, id
      """

    /// All that name a table: a database on which one of them can't be prepared is corrupt.
    static let statements = [
      read, readPart, names, write, writePart, remove, removePart, claimRemoval, quarantine, lastQuarantined, newest,
      oldestChange, changedByOthers,
    ]
  }
#endif

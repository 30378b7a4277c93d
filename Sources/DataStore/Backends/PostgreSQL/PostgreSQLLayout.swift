#if PostgreSQL
  /// The tables of a ``PostgreSQLBackend``, and the statements that use them.
  ///
  /// - `datastore_value` holds the stored bytes by name.
  /// - `datastore_part` holds the parts of values that are stored in parts.
  /// - `datastore_change` is the log of the latest commits. `names` are the names in `datastore_value` whose bytes the
  ///   commit has changed, or null if any name may have changed. An entry takes a number of a sequence for each name,
  ///   but at least one; `id` is its last number. `writer` is the random number of the connection that made the commit,
  ///   and `serial` the number that the ``PostgreSQLBackend`` gave the commit. An entry that isn't a store's commit has
  ///   the serial 0, such as the entry that a trigger adds for a change by another program.
  /// - `datastore_quarantine` holds bytes that could not be decoded or migrated.
  /// - `datastore_watch` holds the registration of each ``PostgreSQLWatch``. `pid` is the number of the server's
  ///   process that serves the connection of the watch. `started` is the time at which that connection started. It
  ///   tells the connection from a later one whose process has the same number. `writer` is the number of the
  ///   connection on which the store of the watch makes its own changes.
  /// - `datastore_layout` has one row: the version of the layout.
  ///
  /// The tables are in the first schema of the connection's `search_path`.
  ///
  /// **Order.** Two transactions may take numbers from a sequence in one order and commit in the other. If the higher
  /// number is committed first, a store that has read it would miss the lower one. So every change takes the store's
  /// lock, an advisory lock of the whole store, before it takes a number. The lock is released at the end of the
  /// transaction. The numbers are therefore in the order of commits.
  ///
  /// **One statement.** A statement sees the tables as they were when it began. A commit is usually one statement,
  /// which waits for the lock only after it has begun. So in the tables, it can't see the commits that it has waited
  /// for. Instead, it compares the last number of the sequence, which every statement sees up to date, with the last
  /// number that the store knows. Every entry of the log takes its numbers under the lock. So if the two are equal, the
  /// tables haven't changed since the store read them. After a crash, a failover or the restoration of a backup, the
  /// server may use a number again. But the store has then lost its connection, and a store that connects again doesn't
  /// rely on the numbers that it knew.
  ///
  /// While a commit of one statement waits for the store's lock, it already holds the weak table locks that a change
  /// needs. So another program that takes the store's lock and then locks a whole table, with `ALTER TABLE` for
  /// example, may cause a deadlock. The server then rolls back one of the two. If that is the commit, the store repeats
  /// it.
  ///
  /// **Notifications.** A notification costs the server a lock of the whole cluster. So a change tests whether a watch
  /// of another store is registered, and sends a notification only then. For a change that is made while a watch
  /// starts, either this test must find the registration, or the store's first check of the log must find the change.
  /// So a watch first listens, then registers in a transaction that takes the store's lock, and only then does the
  /// store check the log. The check finds a change that ended before the registration took the lock. A change that took
  /// the lock later finds the registration in its test.
  ///
  /// For this, the test must see every registration that was committed before the change took the lock. The test of a
  /// commit of one statement might not, so a registration adds an entry to the log. The last number then isn't the
  /// known one, so the commit isn't made in one statement but in a transaction. All other changes take the lock in an
  /// earlier statement, or in a trigger. At the isolation level `READ COMMITTED`, each statement of a volatile function
  /// sees all earlier commits. At another level, which only another program uses, a statement may see only the commits
  /// from before the first statement of the transaction. So a change in such a transaction always sends a notification.
  ///
  /// When a store loses its connection, the server may still make the commit that was sent last, without the store's
  /// knowledge. Such a late commit must cause a notification, although the store itself sent it. So the watch registers
  /// again with the number of the new connection. The old connection then counts as another writer. The store also
  /// checks the log again, because the late commit may have been made before the new registration.
  ///
  /// When a watch loses its own connection, its registration only causes needless notifications, until a later
  /// registration deletes it.
  ///
  /// **Truncation of the log.** A truncation deletes the oldest entries. So if the log still contains the last entry
  /// that a client knows, no later one was truncated.
  enum PostgreSQLLayout {
    /// The layout's version.
    static let version: Int64 = 1

    /// The minimum number of names that the log keeps when it is truncated because of its length.
    ///
    /// An entry without names counts as one name.
    private static let keptNameCount = 4_096

    /// The number of new names after which the log is truncated again.
    private static let truncationInterval: Int64 = 1_024

    /// The channel of the notifications.
    ///
    /// It is the same in every schema, so a notification may concern a store in another schema. The check for changes
    /// that follows then finds none.
    static let channel = "datastore_change"

    /// The number of the store's lock: "DStr" in the upper half, and the object identifier of `datastore_value` in the
    /// lower one.
    static let lockNumber = "(1146319986::bigint << 32) | 'datastore_value'::regclass::oid::bigint"

    /// The number of the advisory lock for a name; see ``PostgreSQLBackend/acquireLock(_:)``.
    private static let namedLockNumber = "hashtextextended($1, 'datastore_value'::regclass::oid::bigint)"

    /// The statements that create the tables, functions and triggers of the layout.
    ///
    /// They keep existing tables and replace existing functions and triggers. Several clients may run them at the same
    /// time, so an advisory lock serializes them. It has two numbers: "DStr" and a hash of the schema's name.
    static let creation = """
      SELECT pg_advisory_xact_lock(1146319986, hashtext(current_schema()));
      CREATE TABLE IF NOT EXISTS datastore_layout (version bigint NOT NULL);
      INSERT INTO datastore_layout (version) SELECT \(version) WHERE NOT EXISTS (SELECT FROM datastore_layout);
      CREATE TABLE IF NOT EXISTS datastore_value (name text COLLATE "C" PRIMARY KEY, bytes bytea NOT NULL);
      CREATE TABLE IF NOT EXISTS datastore_part (name text COLLATE "C" PRIMARY KEY, bytes bytea NOT NULL);
      CREATE TABLE IF NOT EXISTS datastore_change (
        id bigint PRIMARY KEY, names text[], writer bigint NOT NULL, serial bigint NOT NULL);
      CREATE SEQUENCE IF NOT EXISTS datastore_change_number OWNED BY datastore_change.id;
      CREATE TABLE IF NOT EXISTS datastore_quarantine (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL, time text NOT NULL,
        bytes bytea NOT NULL);
      -- Compressing with lz4 takes the server less time than with its default method. A server that was built without
      -- lz4 keeps its default.
      -- ALTER TABLE locks the whole table, so it runs only if a column isn't compressed with lz4 yet.
      DO $$ BEGIN
        IF EXISTS (
          SELECT FROM pg_attribute WHERE attname = 'bytes' AND attcompression <> 'l'
            AND attrelid IN ('datastore_value'::regclass, 'datastore_part'::regclass)) THEN
          ALTER TABLE datastore_value ALTER COLUMN bytes SET COMPRESSION lz4;
          ALTER TABLE datastore_part ALTER COLUMN bytes SET COMPRESSION lz4;
        END IF;
      EXCEPTION WHEN feature_not_supported THEN NULL;
      END $$;
      -- A crash of the server empties an unlogged table. It also ends all watches, so no registration is missed.
      CREATE UNLOGGED TABLE IF NOT EXISTS datastore_watch (
        pid integer PRIMARY KEY, started timestamptz, writer bigint NOT NULL);

      -- Adds an entry to the log, notifies the watches of other stores, and returns the entry's number. The caller must
      -- have taken the store's lock.
      CREATE OR REPLACE FUNCTION datastore_log(changed_names text[], by_writer bigint, by_commit bigint) RETURNS bigint
      LANGUAGE sql VOLATILE AS $$
        WITH \(entry(names: "changed_names", writer: "by_writer", serial: "by_commit")),
        \(truncation)
        \(notification(writer: "by_writer"))
      $$;

      -- Registers the watch of this connection, in place of its earlier registration. The connection must already
      -- listen. The number known_writer is that of the connection on which the watch's store makes its changes. These
      -- changes need no notification, because the store knows them. Also deletes the registrations of connections that
      -- have ended. The start of a connection is visible only to some roles. If this role reads null, the registration
      -- stays, because its connection may still be open.
      CREATE OR REPLACE FUNCTION datastore_register_watch(known_writer bigint) RETURNS void
      LANGUAGE plpgsql AS $$
        DECLARE
          added bigint;
        BEGIN
          PERFORM pg_advisory_xact_lock(\(lockNumber));
          DELETE FROM datastore_watch AS watch WHERE pid = pg_backend_pid() OR NOT EXISTS (
            SELECT FROM pg_stat_activity AS activity
            WHERE activity.pid = watch.pid AND (activity.backend_start = watch.started) IS NOT FALSE);
          INSERT INTO datastore_watch (pid, started, writer)
            SELECT pid, backend_start, known_writer FROM pg_stat_activity WHERE pid = pg_backend_pid();
          WITH \(entry(names: "'{}'::text[]", takesOneNumber: true, writer: "known_writer", serial: "0")),
            \(truncation)
            SELECT id INTO added FROM entry;
        END
      $$;

      -- Returns whether a commit was made, or null if the log no longer shows that. The known number is that of the
      -- last entry that the store had read when it sent the commit. If the result is false, the commit never will be
      -- made, even if it arrives at the server later. To ensure this, the function adds an entry to the log, so that
      -- the last number is no longer the known one.
      CREATE OR REPLACE FUNCTION datastore_was_made(known bigint, by_writer bigint, by_commit bigint) RETURNS boolean
      LANGUAGE plpgsql AS $$
        BEGIN
          PERFORM pg_advisory_xact_lock(\(lockNumber));
          IF EXISTS (SELECT FROM datastore_change WHERE writer = by_writer AND serial = by_commit) THEN
            RETURN true;
          END IF;
          -- If the known entry is missing, the log was truncated, and the commit's entry may be gone too. If the log
          -- was empty when the store read it, the known number is 0. The log is then complete if its first number is
          -- 1.
          IF (known > 0 AND NOT EXISTS (SELECT FROM datastore_change WHERE id = known))
            OR (known = 0 AND (SELECT id - \(numberCount) FROM datastore_change ORDER BY id LIMIT 1) > 0) THEN
            RETURN NULL;
          END IF;
          PERFORM datastore_log('{}', 0, 0);
          RETURN false;
        END
      $$;

      -- Records a change by another program, for the triggers below.
      CREATE OR REPLACE FUNCTION datastore_record() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          PERFORM pg_advisory_xact_lock(\(lockNumber));
          IF TG_OP = 'TRUNCATE' THEN
            PERFORM datastore_log(NULL, 0, 0);
          ELSIF TG_OP = 'DELETE' THEN
            PERFORM datastore_log(ARRAY[OLD.name], 0, 0);
          ELSIF TG_OP = 'UPDATE' AND OLD.name <> NEW.name THEN
            PERFORM datastore_log(ARRAY[NEW.name, OLD.name], 0, 0);
          ELSE
            PERFORM datastore_log(ARRAY[NEW.name], 0, 0);
          END IF;
          RETURN NULL;
        END
      $$;
      CREATE OR REPLACE TRIGGER datastore_record AFTER INSERT OR UPDATE OR DELETE ON datastore_value
        FOR EACH ROW WHEN (coalesce(current_setting('\(storeSetting)', true), '') = '')
        EXECUTE FUNCTION datastore_record();
      CREATE OR REPLACE TRIGGER datastore_record_truncation AFTER TRUNCATE ON datastore_value
        FOR EACH STATEMENT WHEN (coalesce(current_setting('\(storeSetting)', true), '') = '')
        EXECUTE FUNCTION datastore_record();
      -- The other program may have another search_path, so the function sets its own.
      DO $$ BEGIN
        EXECUTE format('ALTER FUNCTION datastore_record() SET search_path = %I, pg_temp', current_schema());
      END $$;
      """

    /// Returns whether a commit may complete an interval after which the log is truncated.
    ///
    /// Without the truncation, the statement takes the server less time.
    ///
    /// - Parameters:
    ///   - known: The number of the last entry of the log; `nil` if it is unknown.
    ///   - nameCount: The maximum number of names in the entry that the commit adds.
    static func mayTruncateLog(after known: Int64?, adding nameCount: Int) -> Bool {
      guard let known else { return true }
      return (known + Int64(max(1, nameCount))) / truncationInterval > known / truncationInterval
    }

    /// The last number that was taken; null before the first.
    ///
    /// The view `pg_sequences` calls this function too. But only a direct call is evaluated exactly at its place in a
    /// statement, such as in a branch of a `CASE`.
    static let lastNumber = "pg_sequence_last_value('datastore_change_number')"

    /// The count of the numbers that an entry has taken.
    private static let numberCount = "greatest(cardinality(names), 1)"

    /// Returns the part of a `WITH` clause that adds an entry to the log.
    ///
    /// - Parameters:
    ///   - names: The array of the entry's names.
    ///   - takesOneNumber: Whether the array is known to have at most one name.
    ///   - writer: The number of the connection.
    ///   - serial: The number of the commit.
    ///   - source: A `FROM` clause for the names. If it has no row, no entry is added.
    static func entry(
      names: String, takesOneNumber: Bool = false, writer: String, serial: String, from source: String = ""
    ) -> String {
      let next = "nextval('datastore_change_number')"
      let rows =
        takesOneNumber
        ? "\(next), \(names), \(writer), \(serial) \(source)"
        : """
        CASE WHEN cardinality(names) > 1
            THEN setval('datastore_change_number', coalesce(\(lastNumber), 0) + cardinality(names))
            ELSE \(next) END, names, \(writer), \(serial)
          FROM (SELECT \(names) AS names \(source)) AS changed
        """
      return """
        entry AS (INSERT INTO datastore_change (id, names, writer, serial)
          SELECT \(rows)
          RETURNING id, id - \(numberCount) AS previous)
        """
    }

    /// The part of a `WITH` clause that truncates the log after each ``truncationInterval``.
    ///
    /// The server evaluates the first condition once, before it scans the log. With the second condition alone, each
    /// commit would scan the whole log.
    static let truncation = """
      truncated AS (DELETE FROM datastore_change
        WHERE (SELECT id / \(truncationInterval) > previous / \(truncationInterval) FROM entry)
          AND id <= (SELECT previous - \(keptNameCount) FROM entry))
      """

    /// Returns the end of a statement, after ``entry(names:takesOneNumber:writer:serial:from:)``.
    ///
    /// The statement sends a notification if a watch of another store is registered, or if the isolation level isn't
    /// `READ COMMITTED`. Its result is the entry's number.
    static func notification(writer: String) -> String {
      // `pg_notify` returns `void`, which isn't null, so the result is always `id`.
      """
      SELECT CASE WHEN (current_setting('transaction_isolation') <> 'read committed'
          OR EXISTS (SELECT FROM datastore_watch WHERE writer <> \(writer)))
        AND pg_notify('\(channel)', '') IS NULL THEN NULL ELSE id END FROM entry
      """
    }

    /// The setting that marks the connection of a store.
    ///
    /// The triggers ignore the changes of such a connection, because the statements of the store record them.
    static let storeSetting = "datastore.store"

    /// Returns the statements that configure a connection of a store.
    ///
    /// - Parameter timeout: The timeout of the store's calls, which is also the longest time that a statement waits for
    ///   a lock of another client.
    static func settings(timeout: Duration) -> String {
      let milliseconds = milliseconds(timeout)
      let seconds = PostgreSQLConnection.longestSilence(within: timeout)
      return "SET \(storeSetting) = 'true'; SET lock_timeout = \(milliseconds); "
        + "SET synchronous_commit = on; SET default_transaction_isolation = 'read committed'; "
        // A process that is suspended during a transaction must not hold the store's lock, or its named locks, for
        // hours. A shorter limit would end large commits, because the server counts the time in which it receives a
        // statement as idle.
        + "SET idle_in_transaction_session_timeout = \(max(1_000, 2 * milliseconds)); "
        + "SET tcp_keepalives_idle = \(seconds); SET tcp_keepalives_interval = 1; "
        + "SET tcp_keepalives_count = \(seconds); SET tcp_user_timeout = \(seconds * 1_000); "
        // A store closes a connection whose answer is late. The server notices that even while it waits for a lock or
        // runs a statement, so it releases the locks of the connection soon. Some systems don't support the setting.
        + "DO $$ BEGIN SET client_connection_check_interval = 1000; EXCEPTION WHEN OTHERS THEN NULL; END $$"
    }

    /// Returns a duration in milliseconds, within the limits of the server's settings.
    ///
    /// The server accepts 1 to 2,147,483,647 milliseconds; 0 would mean no limit. One setting is twice the timeout.
    private static func milliseconds(_ duration: Duration) -> Int64 {
      let limited = min(max(duration, .milliseconds(1)), .milliseconds(Int32.max / 2)).components
      return limited.seconds * 1_000 + limited.attoseconds / 1_000_000_000_000_000
    }

    /// Returns ``beginChange`` with a shorter wait for the lock; other statements stay the same.
    static func limitingLockWait(to duration: Duration, in begin: String) -> String {
      guard begin == beginChange else { return begin }
      return "BEGIN; SET LOCAL lock_timeout = \(milliseconds(duration)); \(takeLock)"
    }

    /// Whether the tables exist.
    static let tablesExist = "SELECT to_regclass('datastore_layout') IS NOT NULL"
    static let foundVersion = "SELECT version FROM datastore_layout"

    /// Begins a transaction that locks the store, so that no other transaction can change it.
    static let beginChange = "BEGIN; \(takeLock)"
    private static let takeLock = "SELECT pg_advisory_xact_lock(\(lockNumber))"
    static let beginSnapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    static let wasMade = "SELECT datastore_was_made($1, $2, $3)"

    static let read = "SELECT bytes FROM datastore_value WHERE name = $1"
    static let readPart = "SELECT bytes FROM datastore_part WHERE name = $1"
    static let readSeveral = "SELECT name, bytes FROM datastore_value WHERE name = ANY ($1)"
    static let names = "SELECT name FROM datastore_value"
    static let quarantine =
      "INSERT INTO datastore_quarantine (name, time, bytes) VALUES ($1, $2, $3) RETURNING id"

    static let newestEntry = "SELECT coalesce(max(id), 0) FROM datastore_change"
    /// Reads the entries from a given one on, in order, with a row for each name that another writer has changed.
    ///
    /// An entry without such names has one row without a name. The columns are the entry's number, the number before
    /// its first one, whether another writer may have changed any name, and the name.
    static let entries = """
      SELECT id, id - \(numberCount), names IS NULL AND writer <> $2, name FROM datastore_change
        LEFT JOIN unnest(CASE WHEN writer <> $2 THEN names END) WITH ORDINALITY AS changed (name, position) ON true
        WHERE id >= $1 ORDER BY id, position
      """
    /// Adds an entry without names, which is the only one that an erasure keeps; see ``forgetEntries``.
    static let logErasure = "SELECT datastore_log('{}', 0, 0)"

    static let registerWatch = "SELECT datastore_register_watch($1)"
    static let unregisterWatch = "DELETE FROM datastore_watch WHERE pid = pg_backend_pid()"

    static let partNames = "SELECT name FROM datastore_part"
    static let quarantined = "SELECT id, name FROM datastore_quarantine"
    static let readQuarantined = "SELECT bytes FROM datastore_quarantine WHERE id = $1"
    static let removeQuarantined = "DELETE FROM datastore_quarantine WHERE id = $1"
    static let forgetEntries = "DELETE FROM datastore_change WHERE id < $1"
    /// The tables that an erasure rewrites.
    static let erasedTables = ["datastore_value", "datastore_part", "datastore_change", "datastore_quarantine"]

    /// Returns the statement that rewrites a table without the bytes of deleted rows.
    static func rewrite(_ table: String) -> String { "VACUUM (FULL) \(table)" }

    /// Returns the query for the number of a table's file, which each rewrite changes.
    static func fileNumber(of table: String) -> String { "SELECT pg_relation_filenode('\(table)')::bigint" }

    /// Returns the query for the number of bytes of a table and its indexes, which a rewrite processes.
    static func size(of table: String) -> String { "SELECT pg_total_relation_size('\(table)')" }

    static let unlock = "SELECT pg_advisory_unlock(\(namedLockNumber))"
    /// A statement without a result, which shows whether the server answers.
    static let ping = "SELECT"
    static let tryToLock = "SELECT pg_try_advisory_lock(\(namedLockNumber))"
  }
#endif

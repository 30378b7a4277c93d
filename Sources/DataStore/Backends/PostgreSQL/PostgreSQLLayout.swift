#if PostgreSQL
  /// The tables of a ``PostgreSQLBackend``, and the statements that use them.
  ///
  /// - `datastore_value` holds the stored bytes by name.
  /// - `datastore_part` holds the parts of values that are stored in parts.
  /// - `datastore_change` is the log of the latest changes of `datastore_value`. `id` is the number of the change, and
  ///   `name` the name whose bytes have changed; an empty name means that none has. `writer` is the random number of
  ///   the connection that made the change, and `serial` the number that its backend gave the commit. Both are 0 for an
  ///   entry of no commit, and for a change by another program, which a trigger records.
  /// - `datastore_quarantine` holds bytes that could not be decoded.
  /// - `datastore_watch` holds the registrations of watches. `pid` is the number of the server's process that serves
  ///   the connection of the watch. `started` is the time at which that connection started, because a later process may
  ///   get the same number. `writer` is the number of the connection on which the store of the watch makes its own
  ///   changes.
  /// - `datastore_layout` has one row: the version of the layout.
  ///
  /// The tables are in the first schema of the connection's `search_path`.
  ///
  /// **Order.** Two transactions may take numbers from a sequence in one order and commit in the other. An observer
  /// that has read the higher number would then never look for the lower one. So every change first takes a lock of the
  /// whole store, which is released at the end of its transaction. The numbers are therefore in the order of commits.
  ///
  /// **Notifications.** A notification costs the server a lock of the whole cluster, so a change sends one only if a
  /// watch of another store is registered. A change that is made while a watch starts must not be missed by both that
  /// test and the watch's first check of the log. So a watch first listens, then registers in a transaction that takes
  /// the store's lock, and only then checks the log. A change either ended before the registration took the lock, and
  /// the check finds it, or it took the lock later, and its test finds the registration.
  ///
  /// For this, the test must see every registration that was committed before the change took the lock. It does in a
  /// transaction of the isolation level `READ COMMITTED`, in which each statement of a volatile function sees all
  /// earlier commits. In a transaction of another level, which only another program uses, it may see only the commits
  /// from before the first statement of the transaction. So a change in such a transaction always sends a notification.
  ///
  /// When a store loses its connection, the server may still make the commit that was sent last, without the store's
  /// knowledge. Such a late commit must cause a notification, although the store itself sent it. So the watch registers
  /// again with the number of the new connection, which makes the old connection another writer, and the store checks
  /// the log again.
  ///
  /// The registration of a lost connection only causes needless notifications, until the next registration deletes it.
  ///
  /// **Truncation of the log.** A truncation deletes the oldest changes. So if the log still contains the last change
  /// that a client knows, no later change was truncated.
  enum PostgreSQLLayout {
    /// The layout's version.
    static let version: Int64 = 1

    /// The minimum number of changes that the log keeps when it is truncated because of its length.
    private static let changeLimit: Int64 = 4_096

    /// The channel of the notifications.
    ///
    /// It is the same in every schema, so a notification may be of another store. The check for changes that follows
    /// detects this.
    static let channel = "datastore_change"

    /// The number of the store's lock: "DStr" and the table's object identifier.
    private static let lockNumber = "(1146319986::bigint << 32) | 'datastore_value'::regclass::oid::bigint"

    /// The number of the lock of a name.
    private static let namedLockNumber = "hashtextextended($1, 'datastore_value'::regclass::oid::bigint)"

    /// The statements that create the tables, functions and triggers of the layout.
    ///
    /// They keep existing tables and replace existing functions and triggers. Several clients may run them at the same
    /// time, so a lock serializes them. Its first number is "DStr".
    static let creation = """
      SELECT pg_advisory_xact_lock(1146319986, hashtext(current_schema()));
      CREATE TABLE IF NOT EXISTS datastore_layout (version bigint NOT NULL);
      INSERT INTO datastore_layout (version) SELECT \(version) WHERE NOT EXISTS (SELECT FROM datastore_layout);
      CREATE TABLE IF NOT EXISTS datastore_value (name text COLLATE "C" PRIMARY KEY, bytes bytea NOT NULL);
      CREATE TABLE IF NOT EXISTS datastore_part (name text COLLATE "C" PRIMARY KEY, bytes bytea NOT NULL);
      CREATE TABLE IF NOT EXISTS datastore_change (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL, writer bigint NOT NULL,
        serial bigint NOT NULL);
      CREATE TABLE IF NOT EXISTS datastore_quarantine (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL, time text NOT NULL,
        bytes bytea NOT NULL);
      -- A crash of the server empties an unlogged table, and ends all watches too.
      CREATE UNLOGGED TABLE IF NOT EXISTS datastore_watch (
        pid integer PRIMARY KEY, started timestamptz, writer bigint NOT NULL);

      -- Records changes in the log, and sends a notification if a watch of another store is registered. Returns the
      -- number of the last of these changes. Truncates the log about every 1,024 changes. The caller has taken the
      -- store's lock.
      CREATE OR REPLACE FUNCTION datastore_log(names text[], by_writer bigint, by_commit bigint) RETURNS bigint
      LANGUAGE plpgsql AS $$
        DECLARE
          newest bigint;
        BEGIN
          INSERT INTO datastore_change (name, writer, serial)
            SELECT changed, by_writer, by_commit FROM unnest(names) AS changed;
          newest := lastval();
          IF newest / 1024 > (newest - cardinality(names)) / 1024 THEN
            DELETE FROM datastore_change WHERE id <= newest - \(changeLimit) - cardinality(names);
          END IF;
          IF current_setting('transaction_isolation') <> 'read committed'
            OR EXISTS (SELECT FROM datastore_watch WHERE writer <> by_writer) THEN
            PERFORM pg_notify('\(channel)', '');
          END IF;
          RETURN newest;
        END
      $$;

      -- Registers the watch of this connection, which listens already, in place of its earlier registration. The number
      -- known_writer is that of the connection on which the watch's store makes its changes. They cause no
      -- notification, because the store knows them. Also deletes the registrations of connections that have ended. The
      -- start of a connection is visible only to some roles. If this role reads null, the registration stays, because
      -- its connection may still be open.
      CREATE OR REPLACE FUNCTION datastore_register_watch(known_writer bigint) RETURNS void
      LANGUAGE plpgsql AS $$
        BEGIN
          PERFORM pg_advisory_xact_lock(\(lockNumber));
          DELETE FROM datastore_watch AS watch WHERE pid = pg_backend_pid() OR NOT EXISTS (
            SELECT FROM pg_stat_activity AS activity
            WHERE activity.pid = watch.pid AND (activity.backend_start = watch.started) IS NOT FALSE);
          INSERT INTO datastore_watch (pid, started, writer)
            SELECT pid, backend_start, known_writer FROM pg_stat_activity WHERE pid = pg_backend_pid();
        END
      $$;

      -- Makes the changes of a commit, and returns the number of the last change in the log. If the log had a change
      -- after the known one, returns null and changes nothing, unless the known number is null itself: the caller then
      -- has the lock, and has read the log under it.
      CREATE OR REPLACE FUNCTION datastore_commit(
        known bigint, by_writer bigint, by_commit bigint, value_names text[], value_bytes bytea[], part_names text[],
        part_bytes bytea[], removed_values text[], removed_parts text[]) RETURNS bigint
      LANGUAGE plpgsql AS $$
        DECLARE
          changed text[] := value_names;
          newest bigint;
        BEGIN
          PERFORM pg_advisory_xact_lock(\(lockNumber));
          SELECT coalesce(max(id), 0) INTO newest FROM datastore_change;
          IF newest <> known THEN
            RETURN NULL;
          END IF;
          IF cardinality(removed_values) > 0 THEN
            WITH removed AS (DELETE FROM datastore_value WHERE name = ANY (removed_values) RETURNING name)
              SELECT changed || array_agg(name) INTO changed FROM removed;
          END IF;
          IF cardinality(removed_parts) > 0 THEN
            DELETE FROM datastore_part WHERE name = ANY (removed_parts);
          END IF;
          IF cardinality(part_names) > 0 THEN
            INSERT INTO datastore_part (name, bytes) SELECT * FROM unnest(part_names, part_bytes)
              ON CONFLICT (name) DO UPDATE SET bytes = excluded.bytes;
          END IF;
          IF cardinality(value_names) > 0 THEN
            INSERT INTO datastore_value (name, bytes) SELECT * FROM unnest(value_names, value_bytes)
              ON CONFLICT (name) DO UPDATE SET bytes = excluded.bytes;
          END IF;
          IF cardinality(changed) > 0 THEN
            RETURN datastore_log(changed, by_writer, by_commit);
          END IF;
          RETURN newest;
        END
      $$;

      -- Returns whether a commit was made, or null if the log does not show it. The known number is that of the last
      -- change that the backend had read when it sent the commit. A commit that was not made never will be, even if it
      -- arrives at the server later, because this function adds a change to the log, which is then not the known one.
      CREATE OR REPLACE FUNCTION datastore_was_made(known bigint, by_writer bigint, by_commit bigint) RETURNS boolean
      LANGUAGE plpgsql AS $$
        BEGIN
          PERFORM pg_advisory_xact_lock(\(lockNumber));
          IF EXISTS (SELECT FROM datastore_change WHERE writer = by_writer AND serial = by_commit) THEN
            RETURN true;
          END IF;
          -- If the known change is missing, the log was truncated, perhaps with the commit. If the log was empty, the
          -- known number is 0. The log is complete then if it begins with the number 1.
          IF (known > 0 AND NOT EXISTS (SELECT FROM datastore_change WHERE id = known))
            OR (known = 0 AND (SELECT min(id) FROM datastore_change) > 1) THEN
            RETURN NULL;
          END IF;
          PERFORM datastore_log(ARRAY[''], 0, 0);
          RETURN false;
        END
      $$;

      -- Records a change by another program, for the triggers below.
      CREATE OR REPLACE FUNCTION datastore_record() RETURNS trigger LANGUAGE plpgsql AS $$
        DECLARE
          newest bigint;
        BEGIN
          PERFORM pg_advisory_xact_lock(\(lockNumber));
          IF TG_OP = 'TRUNCATE' THEN
            -- The log is truncated too, so that all clients read their values again.
            newest := datastore_log(ARRAY[''], 0, 0);
            DELETE FROM datastore_change WHERE id < newest;
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
      """

    /// The setting that marks the connection of a store, which records its changes itself.
    static let storeSetting = "datastore.store"

    /// Returns the statements that prepare the connection of a store.
    ///
    /// - Parameter timeout: The longest time that a statement waits for the locks of other clients.
    static func settings(timeout: Duration) -> String {
      // The server accepts 1 to 2,147,483,647 milliseconds; 0 would mean no limit. One setting is twice the
      // timeout.
      let limited = min(max(timeout, .milliseconds(1)), .milliseconds(Int32.max / 2)).components
      let milliseconds = limited.seconds * 1_000 + limited.attoseconds / 1_000_000_000_000_000
      let seconds = PostgreSQLConnection.longestSilence(within: timeout)
      return "SET \(storeSetting) = 'true'; SET lock_timeout = \(milliseconds); "
        + "SET synchronous_commit = on; SET default_transaction_isolation = 'read committed'; "
        // A client that has stopped must not hold the store's lock, or its named locks, for hours. A shorter limit
        // would end large commits, because the server counts the time in which it receives a statement.
        + "SET idle_in_transaction_session_timeout = \(max(1_000, 2 * milliseconds)); "
        + "SET tcp_keepalives_idle = \(seconds); SET tcp_keepalives_interval = 1; "
        + "SET tcp_keepalives_count = \(seconds); SET tcp_user_timeout = \(seconds * 1_000)"
    }

    /// Whether the tables exist.
    static let tablesExist = "SELECT to_regclass('datastore_layout') IS NOT NULL"
    static let foundVersion = "SELECT version FROM datastore_layout"

    /// Begins a transaction that locks the store, so that no other transaction can change it.
    static let beginChange = "BEGIN; SELECT pg_advisory_xact_lock(\(lockNumber))"
    static let beginSnapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    static let commit = "SELECT datastore_commit($1, $2, $3, $4, $5, $6, $7, $8, $9)"
    static let wasMade = "SELECT datastore_was_made($1, $2, $3)"

    static let read = "SELECT bytes FROM datastore_value WHERE name = $1"
    static let readPart = "SELECT bytes FROM datastore_part WHERE name = $1"
    static let readSeveral = "SELECT name, bytes FROM datastore_value WHERE name = ANY ($1)"
    static let names = "SELECT name FROM datastore_value"
    static let quarantine =
      "INSERT INTO datastore_quarantine (name, time, bytes) VALUES ($1, $2, $3) RETURNING id"

    static let newestChange = "SELECT coalesce(max(id), 0) FROM datastore_change"
    /// The changes from a given one on, in order, with the names of those that another writer made.
    static let changes =
      "SELECT id, CASE WHEN writer = $2 THEN NULL ELSE name END FROM datastore_change WHERE id >= $1 ORDER BY id"
    /// Records a change of no key, which follows all others.
    static let logErasure = "SELECT datastore_log(ARRAY[''], 0, 0)"

    static let registerWatch = "SELECT datastore_register_watch($1)"
    static let unregisterWatch = "DELETE FROM datastore_watch WHERE pid = pg_backend_pid()"

    static let partNames = "SELECT name FROM datastore_part"
    static let quarantined = "SELECT id, name FROM datastore_quarantine"
    static let readQuarantined = "SELECT bytes FROM datastore_quarantine WHERE id = $1"
    static let removeQuarantined = "DELETE FROM datastore_quarantine WHERE id = $1"
    static let forgetChanges = "DELETE FROM datastore_change WHERE id < $1"
    /// Rewrites each table without the bytes of deleted rows.
    static let vacuums = ["datastore_value", "datastore_part", "datastore_change", "datastore_quarantine"].map {
      "VACUUM (FULL) \($0)"
    }

    static let unlock = "SELECT pg_advisory_unlock(\(namedLockNumber))"
    /// A statement without a result, which shows whether the server answers.
    static let ping = "SELECT"
    static let tryToLock = "SELECT pg_try_advisory_lock(\(namedLockNumber))"
  }
#endif

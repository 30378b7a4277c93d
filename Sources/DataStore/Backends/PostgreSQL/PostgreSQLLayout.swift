#if PostgreSQL
  /// The tables of a ``PostgreSQLBackend``, and every statement that is run on them.
  ///
  /// - `datastore_value` holds what is stored.
  /// - `datastore_part` holds the parts of values that are stored in parts.
  /// - `datastore_change` is the log of the last changes of `datastore_value`. A trigger writes it, whichever program makes a
  ///   change. `writer` distinguishes the changes of one backend from those of all other backends by a random number; it is 0
  ///   for every other program.
  /// - `datastore_quarantine` holds bytes that could not be decoded.
  /// - `datastore_layout` has one row: the version of the layout, and the last change that was cut from the log.
  ///
  /// They are in the first schema of the connection's `search_path`.
  ///
  /// **Order.** Two transactions may take numbers from a sequence in one order and commit in the other. An observer that has
  /// seen the higher number would then never look for the lower one. So every change first takes a lock of the whole store,
  /// which ends with its transaction: numbers are in the order of commits, and a decision holds until its commit is made.
  enum PostgreSQLLayout {
    /// The layout's version.
    static let version: Int64 = 1

    /// The number of changes that the log keeps at least.
    static let changeLimit: Int64 = 4_096

    /// The name by which changes are notified in every schema: a check for changes finds out whether they are the store's.
    static let channel = "datastore_change"

    /// The number of the store's lock: "DStr", and the table's number in the database.
    private static let lockNumber = "(1146319986::bigint << 32) | 'datastore_value'::regclass::oid::bigint"

    /// The number of a lock of a name.
    private static let namedLockNumber = "hashtextextended($1, 'datastore_value'::regclass::oid::bigint)"

    /// Makes the tables that are missing.
    ///
    /// Several clients may do so at once, so they come one after the other.
    static let creation = """
      SELECT pg_advisory_xact_lock(1146319986, hashtext(current_schema()));
      CREATE TABLE IF NOT EXISTS datastore_layout (version bigint NOT NULL, last_cut bigint NOT NULL DEFAULT 0);
      INSERT INTO datastore_layout (version) SELECT \(version) WHERE NOT EXISTS (SELECT FROM datastore_layout);
      CREATE TABLE IF NOT EXISTS datastore_value (name text COLLATE "C" PRIMARY KEY, bytes bytea NOT NULL);
      CREATE TABLE IF NOT EXISTS datastore_part (name text COLLATE "C" PRIMARY KEY, bytes bytea NOT NULL);
      CREATE TABLE IF NOT EXISTS datastore_change (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL, writer bigint NOT NULL);
      CREATE TABLE IF NOT EXISTS datastore_quarantine (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL, time text NOT NULL, bytes bytea NOT NULL);
      CREATE OR REPLACE FUNCTION datastore_log() RETURNS trigger LANGUAGE plpgsql AS $$
        DECLARE
          number bigint;
          changed text;
        BEGIN
          PERFORM pg_advisory_xact_lock(\(lockNumber));
          changed := CASE WHEN TG_OP = 'DELETE' THEN OLD.name ELSE NEW.name END;
          INSERT INTO datastore_change (name, writer)
            VALUES (changed, coalesce(nullif(current_setting('datastore.writer', true), ''), '0')::bigint)
            RETURNING id INTO number;
          IF TG_OP = 'UPDATE' AND OLD.name <> NEW.name THEN
            INSERT INTO datastore_change (name, writer) VALUES (OLD.name, 0);
          END IF;
          IF number % 1024 = 0 THEN
            DELETE FROM datastore_change WHERE id <= number - \(changeLimit);
            UPDATE datastore_layout SET last_cut = greatest(last_cut, number - \(changeLimit));
          END IF;
          PERFORM pg_notify('\(channel)', '');
          RETURN NULL;
        END
      $$;
      CREATE OR REPLACE TRIGGER datastore_log AFTER INSERT OR UPDATE OR DELETE ON datastore_value
        FOR EACH ROW EXECUTE FUNCTION datastore_log();
      """

    /// Whether the tables are there.
    static let isThere = "SELECT to_regclass('datastore_layout') IS NOT NULL"
    static let foundVersion = "SELECT version FROM datastore_layout"

    /// Begins a transaction that changes something, and returns its number, by which its fate can be asked for.
    static let beginChange =
      "BEGIN; SELECT pg_advisory_xact_lock(\(lockNumber)); SELECT pg_current_xact_id()::text"
    static let beginSnapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    static let fate = "SELECT pg_xact_status($1::text::xid8)"

    static let read = "SELECT bytes FROM datastore_value WHERE name = $1"
    static let readPart = "SELECT bytes FROM datastore_part WHERE name = $1"
    static let names = "SELECT name FROM datastore_value"
    static let write =
      "INSERT INTO datastore_value (name, bytes) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET bytes = excluded.bytes"
    static let writePart =
      "INSERT INTO datastore_part (name, bytes) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET bytes = excluded.bytes"
    static let remove = "DELETE FROM datastore_value WHERE name = $1"
    static let removePart = "DELETE FROM datastore_part WHERE name = $1"
    static let quarantine =
      "INSERT INTO datastore_quarantine (name, time, bytes) VALUES ($1, $2, $3) RETURNING id"

    static let newestChange = "SELECT coalesce(max(id), 0) FROM datastore_change"
    static let lastCut = "SELECT last_cut FROM datastore_layout"
    /// The changes after a change, in order, and for those of another writer the names.
    static let changes =
      "SELECT id, CASE WHEN writer = $2 THEN NULL ELSE name END FROM datastore_change WHERE id > $1 ORDER BY id"
    /// Adds a change of no key, behind all.
    static let logErasure = "INSERT INTO datastore_change (name, writer) VALUES ('', 0)"

    static let partNames = "SELECT name FROM datastore_part"
    static let quarantined = "SELECT id, name FROM datastore_quarantine"
    static let readQuarantined = "SELECT bytes FROM datastore_quarantine WHERE id = $1"
    static let removeQuarantined = "DELETE FROM datastore_quarantine WHERE id = $1"
    static let forgetChanges = "DELETE FROM datastore_change WHERE id < $1"
    static let recordCut = "UPDATE datastore_layout SET last_cut = greatest(last_cut, $1)"
    /// Writes each table anew without the bytes of deleted rows.
    static let vacuums = ["datastore_value", "datastore_part", "datastore_change", "datastore_quarantine"].map {
      "VACUUM (FULL) \($0)"
    }

    static let unlock = "SELECT pg_advisory_unlock(\(namedLockNumber))"
    /// Asks whether the server is there.
    static let nothing = "SELECT"
    static let tryToLock = "SELECT pg_try_advisory_lock(\(namedLockNumber))"
  }
#endif

#if PostgreSQL
  /// The statement that makes a commit, as the set of its steps.
  ///
  /// The statement contains only the steps that the commit needs, because the server spends 5 to 10 µs on each of them,
  /// even if it has nothing to do.
  struct PostgreSQLCommitStatement: OptionSet {
    /// Stores one value; the parameters are its name and its bytes.
    static let storeValue = Self(rawValue: 1)
    /// Stores several values; the parameters are the lists of their names and of their bytes.
    ///
    /// A statement contains this step or ``storeValue``, not both.
    static let storeValues = Self(rawValue: 2)
    /// Stores parts; the parameters are the lists of their names and of their bytes.
    static let storeParts = Self(rawValue: 4)
    /// Removes values; the parameter is the list of their names.
    static let removeValues = Self(rawValue: 8)
    /// Removes parts; the parameter is the list of their names.
    static let removeParts = Self(rawValue: 16)
    /// Truncates the log if the commit completes an interval; see ``PostgreSQLLayout/mayTruncateLog(after:adding:)``.
    static let truncateLog = Self(rawValue: 32)

    let rawValue: Int

    /// The text of the statement.
    ///
    /// The parameters are the number of the last known entry of the log, the number of the connection, and the number
    /// of the commit; then those of the steps, in the order above. The result is the number of the entry that the
    /// commit has added to the log. There is no result, and nothing is changed, if the known entry isn't the last one.
    /// The known number may be null in a transaction that has taken the store's lock already.
    var sql: String { Self.texts[rawValue] }

    private static let texts = (0..<64).map { Self(rawValue: $0).makeSQL() }

    private func makeSQL() -> String {
      var number = 3
      func parameter() -> String {
        number += 1
        return "$\(number)"
      }
      // PostgreSQL evaluates the branch of a `CASE` after its condition, and thus compares the number under the lock.
      var clauses = [
        """
        allowed AS MATERIALIZED (
          SELECT WHERE CASE WHEN pg_advisory_xact_lock(\(PostgreSQLLayout.lockNumber)) IS NOT NULL
            THEN $1::bigint IS NULL OR \(PostgreSQLLayout.lastNumber) = $1 END)
        """
      ]
      var loggedNames: [String] = []
      func store(in table: String, _ rows: String) {
        clauses.append(
          """
          \(table)_stored AS (INSERT INTO \(table) (name, bytes) SELECT \(rows)
            ON CONFLICT (name) DO UPDATE SET bytes = excluded.bytes)
          """)
      }
      func storeList(in table: String) -> String {
        let (names, bytes) = (parameter(), parameter())
        store(in: table, "stored.* FROM allowed, unnest(\(names)::text[], \(bytes)::bytea[]) AS stored")
        return names
      }
      func removeList(from table: String) -> String {
        clauses.append(
          """
          \(table)_removed AS (
            DELETE FROM \(table) USING allowed WHERE name = ANY (\(parameter())::text[]) RETURNING name)
          """)
        return "ARRAY(SELECT name FROM \(table)_removed)"
      }
      if contains(.storeValue) {
        let name = parameter()
        store(in: "datastore_value", "\(name)::text, \(parameter())::bytea FROM allowed")
        loggedNames.append("ARRAY[\(name)::text]")
      }
      if contains(.storeValues) { loggedNames.append(storeList(in: "datastore_value")) }
      if contains(.storeParts) { _ = storeList(in: "datastore_part") }
      if contains(.removeValues) { loggedNames.append(removeList(from: "datastore_value")) }
      if contains(.removeParts) { _ = removeList(from: "datastore_part") }
      clauses.append(
        PostgreSQLLayout.entry(
          names: loggedNames.isEmpty ? "'{}'::text[]" : loggedNames.joined(separator: " || "),
          takesOneNumber: isDisjoint(with: [.storeValues, .removeValues]),
          writer: "$2", serial: "$3", from: "FROM allowed"))
      if contains(.truncateLog) { clauses.append(PostgreSQLLayout.truncation) }
      return "WITH " + clauses.joined(separator: ",\n") + "\n" + PostgreSQLLayout.notification(writer: "$2")
    }
  }
#endif

#if PostgreSQL
  extension SystemError {
    /// The `SQLSTATE` `connection_failure`.
    ///
    /// All errors of a connection that has ended have this state.
    static let lostConnectionState = "08006"

    /// The `SQLSTATE` `sqlclient_unable_to_establish_sqlconnection`.
    static let noConnectionState = "08001"

    private var state: String? {
      guard case .postgreSQL(let state, _) = source else { return nil }
      return state
    }

    /// Whether the connection has ended, or could not be opened.
    var isLostConnection: Bool { state == Self.lostConnectionState || state == Self.noConnectionState }

    /// Whether the server rolled a transaction back because of concurrent ones.
    ///
    /// The transaction may succeed when it is repeated. The states are `serialization_failure` and `deadlock_detected`.
    var isConflict: Bool { state == "40001" || state == "40P01" }

    /// The error of a call whose time has passed while it waited behind calls that the server didn't answer.
    ///
    /// - Parameter place: The server and the database.
    static func unreachable(_ place: String) -> SystemError {
      SystemError(
        code: 0, operation: "connecting", path: place,
        source: .postgreSQL(
          state: noConnectionState,
          message: "the server has not answered since before this call, which has waited behind others"))
    }

    /// The error of a commit whose answer was lost and whose outcome is unknown.
    ///
    /// Either the server can't be asked, or the log of changes no longer shows whether the commit was made.
    ///
    /// - Parameters:
    ///   - place: The server and the database.
    ///   - loss: The error with which the connection was lost, if it is known.
    static func unknownOutcome(_ place: String, after loss: SystemError?) -> SystemError {
      var message = "the connection was lost before the server answered"
      if case .postgreSQL(_, let reason) = loss?.source { message += " (\(reason))" }
      return SystemError(
        code: 0, operation: "committing", path: place,
        source: .postgreSQL(state: unknownOutcomeState, message: message))
    }

    /// The error of a commit that needs more bytes than the server accepts in one message.
    static func tooLarge(_ place: String, byteCount: Int, limit: Int) -> SystemError {
      SystemError(
        code: 0, operation: "committing", path: place,
        source: .postgreSQL(
          // `program_limit_exceeded`.
          state: "54000", message: "the commit has \(byteCount) bytes, and the limit is \(limit)"))
    }

    /// The error of an erasure after which bytes of deleted rows may remain, because the server didn't rewrite a table.
    static func notRewritten(_ table: String, of place: String) -> SystemError {
      SystemError(
        code: 0, operation: "erasing", path: place,
        source: .postgreSQL(
          // `insufficient_privilege`.
          state: "42501",
          message: "bytes of deleted rows may remain, because the user can't rewrite the table \(table)"))
    }

    /// The error of a connection through a pooler that gives it another process of the server for each transaction.
    static func pooledByTransaction(_ place: String) -> SystemError {
      SystemError(
        code: 0, operation: "connecting", path: place,
        source: .postgreSQL(
          // `feature_not_supported`.
          state: "0A000",
          message: "a connection pooler in transaction mode stands between the store and the server, "
            + "but the store needs one process of the server for as long as its connection lasts"))
    }

    /// The error of a commit whose transaction the server rolled back after an error.
    static func abortedTransaction(_ place: String) -> SystemError {
      // The state is `in_failed_sql_transaction`.
      SystemError(
        code: 0, operation: "committing", path: place,
        source: .postgreSQL(state: "25P02", message: "the transaction was rolled back after an earlier error"))
    }
  }

  extension StoreError {
    /// Whether, after this error of a commit, the other commits of its group would probably fail too, whatever they
    /// store.
    ///
    /// That is so if the store is locked, the connection is lost, transactions are in conflict, or the outcome is
    /// unknown. Other errors of the server, such as that of a full disk, don't count.
    var wouldFailOtherCommits: Bool {
      guard let error = systemError else { return false }
      return error.isLockout || error.isLostConnection || error.isConflict || error.isUnknownOutcome
    }

    /// Whether to repeat the call: the connection was lost or could not be opened, or the server rolled the transaction
    /// back because of a conflict.
    ///
    /// A call that was in conflict has changed nothing. A commit whose connection was lost may have been made, so the
    /// caller asks the server before it repeats the commit.
    var isTransient: Bool {
      guard let error = systemError else { return false }
      return error.isLostConnection || error.isConflict
    }
  }
#endif

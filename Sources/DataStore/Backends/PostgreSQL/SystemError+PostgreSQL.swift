#if PostgreSQL
  extension SystemError {
    /// Whether the server couldn't be reached, or is starting or stopping.
    var isLostConnection: Bool {
      guard case .postgreSQL(let state, _) = source else { return false }
      return state.hasPrefix("08") || state.hasPrefix("57P")
    }

    /// A commit whose answer was lost, and of which the server doesn't say yet what becomes of it.
    static func unknownOutcome(of transaction: String, _ place: String) -> SystemError {
      SystemError(
        code: 0, operation: "committing", path: place,
        source: .postgreSQL(
          state: "40003", message: "the connection was lost, and transaction \(transaction) is still in progress"))
    }

    /// The transaction of a commit that the server has given up at an error.
    static func abortedTransaction(_ place: String) -> SystemError {
      SystemError(
        code: 0, operation: "committing", path: place,
        source: .postgreSQL(state: "25P02", message: "the transaction was rolled back at an earlier error"))
    }
  }
#endif

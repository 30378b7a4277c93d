#if PostgreSQL
  extension SystemError {
    /// Whether the server couldn't be reached, or is starting or stopping.
    var isLostConnection: Bool {
      guard case .postgreSQL(let state, _) = source else { return false }
      return state.hasPrefix("08") || state.hasPrefix("57P")
    }

    /// A lock that another client has had since this one acquired it.
    static func lostLock(_ name: String, _ place: String) -> SystemError {
      SystemError(
        code: 0, operation: "committing", path: place,
        source: .postgreSQL(
          state: "55000", message: "another client has had the lock \(name) since the connection was lost"))
    }

    /// The transaction of a commit that the server has given up at an error.
    static func abortedTransaction(_ place: String) -> SystemError {
      SystemError(
        code: 0, operation: "committing", path: place,
        source: .postgreSQL(state: "25P02", message: "the transaction was rolled back at an earlier error"))
    }
  }
#endif

#if PostgreSQL
  extension SystemError {
    /// Whether the server couldn't be reached, or is starting or stopping.
    var isLostConnection: Bool {
      guard case .postgreSQL(let state, _) = source else { return false }
      return state.hasPrefix("08") || state.hasPrefix("57P")
    }

    /// A commit whose answer was lost, and of which the server doesn't say what became of it.
    static func unknownOutcome(_ place: String) -> SystemError {
      SystemError(
        code: 0, operation: "committing", path: place,
        source: .postgreSQL(state: unknownOutcomeState, message: "the connection was lost before the server answered"))
    }

    /// The transaction of a commit that the server has given up at an error.
    static func abortedTransaction(_ place: String) -> SystemError {
      SystemError(
        code: 0, operation: "committing", path: place,
        source: .postgreSQL(state: "25P02", message: "the transaction was rolled back after an earlier error"))
    }
  }

  extension StoreError {
    /// Whether it is the server's fault, or the way's to it, and not that of what is stored.
    var concernsServer: Bool {
      switch self {
      case .readFailed(let error), .writeFailed(let error), .removeFailed(let error):
        error.isLockedOut || error.isLostConnection || error.isUnknownOutcome
      default: false
      }
    }
  }
#endif

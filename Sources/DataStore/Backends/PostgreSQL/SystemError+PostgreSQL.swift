#if PostgreSQL
  extension SystemError {
    /// Whether the server couldn't be reached, or is starting or stopping.
    var isLostConnection: Bool {
      guard case .postgreSQL(let state, _) = source else { return false }
      return state.hasPrefix("08") || state.hasPrefix("57P")
    }

    /// The error of a commit whose answer was lost and whose outcome the server doesn't know.
    static func unknownOutcome(_ place: String) -> SystemError {
      SystemError(
        code: 0, operation: "committing", path: place,
        source: .postgreSQL(state: unknownOutcomeState, message: "the connection was lost before the server answered"))
    }

    /// The error of a commit whose transaction the server rolled back after an error.
    static func abortedTransaction(_ place: String) -> SystemError {
      SystemError(
        code: 0, operation: "committing", path: place,
        source: .postgreSQL(state: "25P02", message: "the transaction was rolled back after an earlier error"))
    }
  }

  extension StoreError {
    /// Whether the server or the connection caused the error, and not the stored values.
    var concernsServer: Bool {
      switch self {
      case .readFailed(let error), .writeFailed(let error), .removeFailed(let error):
        error.isLockedOut || error.isLostConnection || error.isUnknownOutcome
      default: false
      }
    }
  }
#endif

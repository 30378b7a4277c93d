#if PostgreSQL
  /// A commit that was sent to the server, and whose transaction isn't known to have ended.
  struct PostgreSQLSentCommit<Result> {
    /// The `id` of the last entry of the log that the backend knew when it sent the commit; 0 if the log was empty.
    let known: Int64
    /// The connection's number in the log.
    let writer: Int64
    /// The number that the backend gave the commit: the `serial` of its entry in the log.
    let number: Int64
    /// The result to return if the commit was made.
    let result: Result
    /// The error with which the connection was lost.
    var loss: SystemError?

    /// Asks the server whether it made the commit, after its answer was lost.
    ///
    /// - Throws: An error of unknown outcome if the log no longer shows whether the commit was made, or the error with
    ///   which this query failed.
    func wasMade(
      on connection: PostgreSQLConnection, _ failure: (SystemError) -> StoreError
    ) throws(StoreError) -> Bool {
      do throws(SystemError) {
        let answer = try connection.first(
          PostgreSQLLayout.wasMade, .integer(known), .integer(writer), .integer(number)
        ) { $0.optionalBool(0) }
        // Without an answer, or with a null, the log no longer shows whether the commit was made.
        guard let wasMade = answer ?? nil else { throw .unknownOutcome(connection.place, after: loss) }
        return wasMade
      } catch {
        throw failure(error)
      }
    }
  }
#endif

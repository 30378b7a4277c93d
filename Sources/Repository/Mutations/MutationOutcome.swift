/// What became of one attempt to send a mutation.
public enum MutationOutcome<Reply: Sendable, Failure: Error>: Sendable {
  /// The server has made the change, now or at an earlier attempt with the same key.
  case delivered(Reply)

  /// The server will never make the change; asking again is of no use.
  case refused(Failure)

  /// Nobody knows, or the server cannot just now: the same mutation is to be sent again with the same key.
  ///
  /// Also the answer for an attempt that was cancelled.
  case retryLater(Failure)
}

extension MutationOutcome: Equatable where Reply: Equatable, Failure: Equatable {}

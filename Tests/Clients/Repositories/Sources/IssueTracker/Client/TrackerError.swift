internal import Repository

/// The error of a failed request to the tracker.
public enum TrackerError: Error, Hashable, Sendable {
  /// The request didn't reach the server.
  case offline
  /// The request was sent, but there is no reply that can be read.
  case noReply
  /// The server is busy, and may have asked for a later attempt.
  case busy(retryAfter: Duration?)
  /// The user's token is missing or has expired.
  case signedOut
  /// Another client has changed the issue since the version that the change is based on.
  case outdated
  /// The change isn't possible in the present state of the issue.
  case impossible
  /// There is no such issue, or it was deleted.
  case missing
  /// The server doesn't accept the request.
  case invalid(status: Int)

  /// Returns the error of a response; `nil` if its status is that of a success.
  init?(status: Int, retryAfter: String?) {
    switch status {
    case 200..<300, 304: return nil
    case 401: self = .signedOut
    case 404, 410: self = .missing
    case 409: self = .impossible
    case 412: self = .outdated
    case 429: self = .busy(retryAfter: retryAfter.flatMap(Int.init).map(Duration.seconds))
    // A server that fails may have made the change before.
    case 500...: self = .noReply
    default: self = .invalid(status: status)
    }
  }

  /// What the error says about a change.
  var disposition: FailureDisposition {
    switch self {
    case .offline: .retryLater()
    case .noReply: .unknownOutcome
    case .busy(let delay): .retryLater(after: delay)
    case .signedOut: .needsSignIn
    case .outdated, .impossible: .conflict
    case .missing, .invalid: .refused
    }
  }
}

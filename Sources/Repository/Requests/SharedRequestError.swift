/// Why a shared request brought a caller no value.
public enum SharedRequestError<Failure: Error>: Error {
  /// The request failed, for all its callers.
  case failed(Failure)

  /// The calling task was cancelled. Other callers of the same request go on waiting.
  case cancelled
}

extension SharedRequestError: Equatable where Failure: Equatable {}
extension SharedRequestError: Hashable where Failure: Hashable {}

extension SharedRequestError: CustomStringConvertible {
  /// What happened, and what helps.
  public var description: String {
    switch self {
    case .failed(let failure): String(describing: failure)
    case .cancelled: "The call was cancelled before the reply arrived. Call again if it is still wanted."
    }
  }
}

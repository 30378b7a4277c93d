/// The reason why a shared request returned no value to a caller.
public enum SharedRequestError<Failure: Error>: Error {
  /// The request failed for all its callers.
  case failed(Failure)

  /// The calling task was cancelled.
  ///
  /// Other callers of the same request, if there are any, still wait.
  case cancelled
}

extension SharedRequestError: Equatable where Failure: Equatable {}
extension SharedRequestError: Hashable where Failure: Hashable {}

extension SharedRequestError: CustomStringConvertible {
  /// A description of the error, with a suggested action if there is one.
  public var description: String {
    switch self {
    case .failed(let failure): String(describing: failure)
    case .cancelled: "The call was cancelled before the reply arrived. Call again if the reply is still needed."
    }
  }
}

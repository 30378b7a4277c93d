public import Foundation

extension URLError {
  private static let unsentRequestKey = "GraphQLClient.UnsentRequest"

  /// Creates the error of a request of which the server certainly received nothing.
  ///
  /// An ``HTTPTransport`` throws it if an exchange ends before it began, for example because it was cancelled while it
  /// waited for a free connection.
  ///
  /// - Parameters:
  ///   - code: The code of the error, such as `cancelled`.
  ///   - description: A description of what happened; `nil` for that of the code.
  public static func unsentRequest(_ code: Code, _ description: String? = nil) -> URLError {
    var userInfo: [String: Any] = [unsentRequestKey: true]
    userInfo[NSLocalizedDescriptionKey] = description
    return URLError(code, userInfo: userInfo)
  }

  /// Whether the server certainly didn't receive the request.
  ///
  /// True for an error that ``unsentRequest(_:_:)`` created, and for the codes that ``HTTPTransport/send(_:)`` names.
  /// If it is `false`, the server may have acted on the request.
  public var impliesUnsentRequest: Bool {
    switch code {
    case .unsupportedURL, .badURL, .cannotFindHost, .dnsLookupFailed, .cannotConnectToHost, .notConnectedToInternet:
      true
    default: userInfo[Self.unsentRequestKey] as? Bool == true
    }
  }

  /// The error with a sanitized description, because the description may quote the server.
  var sanitized: URLError {
    let description = ServerText.line(localizedDescription)
    guard description != localizedDescription else { return self }
    return impliesUnsentRequest
      ? .unsentRequest(code, description) : URLError(code, userInfo: [NSLocalizedDescriptionKey: description])
  }
}

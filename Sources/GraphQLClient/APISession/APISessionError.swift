public import Foundation

/// An error of a request to a GraphQL server.
///
/// Each kind of failure is a separate case. A caller can therefore distinguish an unreachable server, errors that the
/// server reported, a response that isn't the API's, and a cancelled call. If ``isTransient`` is `true`, the same
/// request may succeed later.
///
/// The associated values and the ``description`` contain no control characters from the server, and no more than
/// ``excerptLength`` consecutive characters of its text. ``GraphQLError/extensions`` are an exception, because they are
/// data.
public enum APISessionError: Error, Equatable, Sendable {
  /// No complete response arrived, for example because the connection failed or was lost, or the host wasn't found.
  ///
  /// `URLError.impliesUnsentRequest` says whether the server certainly didn't receive the request.
  case transport(URLError)
  /// The timeout of the whole exchange, or a limit of the transport, expired before the response was complete.
  ///
  /// The server may have received the request. If it expired before the request was sent, the error is
  /// ``transport(_:)`` with the code `timedOut` and `impliesUnsentRequest`.
  case timedOut
  /// The calling task was cancelled, and the request with it.
  ///
  /// The server may have received the request before the cancellation.
  case cancelled
  /// The server, or a gateway in front of it, answered with a failure status and without GraphQL errors.
  ///
  /// `bodyExcerpt` is the beginning of the body, on one line and with at most ``excerptLength`` characters.
  /// `retryAfter` is the wait that the response requests, at most a day.
  case statusCode(Int, bodyExcerpt: String, retryAfter: Duration? = nil)
  /// The server reported errors, with or without partial data.
  ///
  /// The array of errors is never empty. `status` is the status of the HTTP response, except that
  /// ``APISession/post(document:operationName:variables:headers:as:)`` reports partial data with the default, 200.
  case graphQL([GraphQLError], status: Int = 200, retryAfter: Duration? = nil)
  /// The response isn't from this API: for example, it is a redirection that the session doesn't follow, the HTML of a
  /// login page or a proxy, or JSON with neither a `data` nor an `errors` member.
  ///
  /// The response says nothing about the request, which may not have reached the server. `location` is the text of the
  /// response's `Location` field, which names the target of a redirection.
  case notAnAPIResponse(status: Int, location: String? = nil, bodyExcerpt: String)
  /// The server answered with a success status but no content.
  ///
  /// Either the body is a GraphQL response without data and without errors, such as `{"data":null}` or `{"errors":[]}`,
  /// or it is empty. An empty body of another media type than JSON is
  /// ``notAnAPIResponse(status:location:bodyExcerpt:)`` instead.
  case emptyReply
  /// The response was larger than `limit` bytes, or declared that it was, and the session stopped reading it.
  case replyTooLarge(limit: Int)
  /// The response wasn't valid JSON, or didn't have the requested shape.
  case undecodable(reason: String, excerpt: String)
  /// The variables of the request couldn't be encoded as JSON; nothing was sent.
  case unencodableVariables(reason: String)
  /// The URL of the session isn't an HTTP URL; nothing was sent.
  case unsupportedURL(String)
  /// The name or the value of a header is invalid; nothing was sent.
  case invalidHeader(name: String)

  /// The maximum length of an excerpt of the server's text, in Unicode scalars.
  public static let excerptLength = 512

  /// Whether the same, unchanged request may succeed later.
  ///
  /// True if the network or the server was unavailable, slow or overloaded: ``transport(_:)``, ``timedOut``, and the
  /// statuses 408, 425, 429 and 5xx. Also true if something other than the server answered:
  /// ``notAnAPIResponse(status:location:bodyExcerpt:)``. False if the server rejected the request, if its response is
  /// invalid, empty or too large, if the request itself is invalid, and for ``cancelled``.
  ///
  /// If ``GraphQLErrorCodes/standard`` has the codes of reported errors, the codes decide instead of the status.
  public var isTransient: Bool {
    switch self {
    case .transport, .timedOut, .notAnAPIResponse: true
    case .statusCode(let status, _, _): Self.isTransient(status)
    case .graphQL(let errors, let status, _):
      [.unknownOutcome, .retryLater].contains(
        GraphQLErrorCodes.standard.meaning(of: errors, otherwise: Self.isTransient(status) ? .retryLater : .refused))
    case .cancelled, .emptyReply, .replyTooLarge, .undecodable, .unencodableVariables, .unsupportedURL, .invalidHeader:
      false
    }
  }

  private static func isTransient(_ status: Int) -> Bool {
    [408, 425, 429].contains(status) || (500...599).contains(status)
  }

  /// Returns what reported errors mean for the request; `nil` if the error isn't ``graphQL(_:status:retryAfter:)``.
  ///
  /// Each error has the meaning of its code. The status determines the meaning of an error without a known code: 401
  /// and 407 ask for a sign-in. 408, 409, 425, 429 and 5xx ask for a later attempt if the response requests a wait, and
  /// leave the outcome unknown if it requests none. With any other status, an error with a path has the meaning
  /// ``GraphQLErrorCodes/uncodedFieldErrors``, and one without a path is a refusal.
  ///
  /// - Parameter codes: The table of the server's codes.
  public func meaning(by codes: GraphQLErrorCodes) -> GraphQLErrorCodes.Meaning? {
    guard case .graphQL(let errors, let status, let retryAfter) = self else { return nil }
    let meaningOfStatus: GraphQLErrorCodes.Meaning? =
      switch status {
      case 401, 407: .needsSignIn
      case 409: retryAfter == nil ? .unknownOutcome : .retryLater
      case _ where Self.isTransient(status): retryAfter == nil ? .unknownOutcome : .retryLater
      default: nil
      }
    let meanings = errors.map { error in
      let meaningWithoutCode = error.path == nil ? .refused : codes.uncodedFieldErrors
      return codes.meaning(of: [error], otherwise: meaningOfStatus ?? meaningWithoutCode)
    }
    return meanings.min() ?? .refused
  }

  /// Returns whether the server reported an error of a field below a root field.
  ///
  /// A server calls the fields below the field of a mutation only after it has made the change. Such an error is
  /// therefore not a refusal of the mutation, whatever its code is: the server has no data to send because a field of
  /// the result failed that can't be null. A server that undoes the change because of any error is an exception.
  ///
  /// - Parameter field: The name or alias of the root field in the response.
  /// - Complexity: O(*n*), where *n* is the number of errors.
  public func hasError(below field: String) -> Bool {
    guard case .graphQL(let errors, _, _) = self else { return false }
    return errors.contains { error in
      guard let path = error.path, path.count > 1 else { return false }
      return path.first == .field(field)
    }
  }

  /// The HTTP status of the response; `nil` if no response arrived, or if its status was a success.
  public var status: Int? {
    switch self {
    case .statusCode(let status, _, _), .notAnAPIResponse(let status, _, _), .graphQL(_, let status, _):
      (200...299).contains(status) ? nil : status
    default: nil
    }
  }

  /// The wait that the server requests before the next attempt, from zero to a day; `nil` if it requests none.
  public var retryAfter: Duration? {
    switch self {
    case .statusCode(_, _, let retryAfter), .graphQL(_, _, let retryAfter): retryAfter
    default: nil
    }
  }
}

extension APISessionError: CustomStringConvertible {
  /// The maximum number of GraphQL errors that ``description`` quotes.
  private static let maximumQuotedErrorCount = 3

  /// A description of the failure, and of the action that may resolve it.
  public var description: String {
    switch self {
    case .transport(let error):
      "The server could not be reached (\(ServerText.line(error.localizedDescription)); "
        + "URLError \(error.code.rawValue)). "
        + "Check the network connection and the server's address, then try again."
    case .timedOut:
      "The server did not answer in time. Try again later, or allow the session a longer timeout."
    case .cancelled:
      "The request was cancelled before its reply arrived. Send it again if the reply is still wanted."
    case .statusCode(let status, let bodyExcerpt, _):
      "The server answered with HTTP status \(status)" + Self.clause(quoting: bodyExcerpt)
        + (isTransient ? tryAgainAdvice : Self.advice(onStatus: status))
    case .graphQL(let errors, _, _):
      "The server reported errors: \(Self.quoted(errors)). " + adviceOnReportedErrors
    case .notAnAPIResponse(let status, let location, let bodyExcerpt):
      "Something that is not the API answered, with HTTP status \(status)" + Self.clause(quoting: bodyExcerpt)
        + (location.map { "It redirects to “\($0)”; if that is the server, use its address or allow its host. " } ?? "")
        + "Check the server's address, and whether the network requires a sign-in."
    case .emptyReply:
      "The server answered with success but sent no data. Check that the address is that of a GraphQL server."
    case .replyTooLarge(let limit):
      "The reply is larger than the limit of \(limit == 1 ? "1 byte" : "\(limit) bytes"). "
        + "Ask for less, or allow the session a larger maximum reply size."
    case .undecodable(let reason, let excerpt):
      "The reply could not be decoded: \(reason). It begins “\(excerpt)”. "
        + "Check that the server has the schema this program was written for."
    case .unencodableVariables(let reason):
      "The variables of the request could not be encoded as JSON: \(reason). Nothing was sent; correct the variables."
    case .unsupportedURL(let url):
      "“\(url)” is not the address of a GraphQL server. Use an http or https URL with a host."
    case .invalidHeader(let name):
      "The HTTP header “\(name)” cannot be sent. "
        + "Use only letters, digits and -_.!#$%&'*+^`|~ in its name, and no line breaks or NUL in its value."
    }
  }

  private static func advice(onStatus status: Int) -> String {
    switch status {
    case 413: "The request is too large for the server or a proxy. Send less at once."
    case 414, 431: "The address or the headers of the request are too long for the server or a proxy. Shorten them."
    default: "Check the server's address and the credentials of the request."
    }
  }

  private var adviceOnReportedErrors: String {
    switch meaning(by: .standard) {
    case .unknownOutcome, .retryLater: tryAgainAdvice
    case .needsSignIn: "Sign in again, then repeat the request."
    case .refused, nil: "Correct the request; sending it again unchanged will not help."
    }
  }

  private var tryAgainAdvice: String {
    guard let retryAfter else { return "Try again later." }
    let (wholeSeconds, rest) = retryAfter.components
    return switch wholeSeconds + (rest > 0 ? 1 : 0) {
    case ...0: "Try again now."
    case 1: "Try again in 1 second."
    case let seconds: "Try again in \(seconds) seconds."
    }
  }

  private static func clause(quoting bodyExcerpt: String) -> String {
    bodyExcerpt.isEmpty ? " and no text. " : ": “\(bodyExcerpt)”. "
  }

  private static func quoted(_ errors: [GraphQLError]) -> String {
    let quoted = errors.prefix(maximumQuotedErrorCount).map(\.description).joined(separator: "; ")
    let omittedCount = errors.count - maximumQuotedErrorCount
    return omittedCount > 0 ? "\(quoted); and \(omittedCount) more" : quoted
  }
}

extension APISessionError: LocalizedError {
  /// The same text as ``description``, for user interfaces that show `localizedDescription`.
  public var errorDescription: String? { description }
}

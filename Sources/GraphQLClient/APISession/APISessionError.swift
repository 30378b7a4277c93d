public import Foundation

/// Why a request to the server gave no value.
///
/// Every way to fail is a case of its own, so a caller can distinguish a server that is away (keep the change, try
/// again: ``isTransient``) from one that refused, from one that is not this API's, and each from a cancelled call.
///
/// No ``description`` contains a control character of a server, or more than ``excerptLength`` characters of its text
/// in a row. Nor does a case, except in ``GraphQLError/extensions``, which are data.
public enum APISessionError: Error, Equatable, Sendable {
  /// No complete response came over the network: no connection, no such host, or a connection lost midway.
  case transport(URLError)
  /// The response was not complete when the time for the whole exchange was over.
  case timedOut
  /// The calling task was cancelled; the request was too, as far as it had been sent.
  case cancelled
  /// The server, or a gateway in front of it, answered with a status that is no success and without a GraphQL response
  /// that can be trusted.
  ///
  /// `bodyExcerpt` is the beginning of what it said, on one line, at most ``excerptLength`` characters. `retryAfter` is
  /// how long it asks to wait, at most a day.
  case statusCode(Int, bodyExcerpt: String, retryAfter: Duration? = nil)
  /// The server reported errors, with or without partial data. Never empty.
  ///
  /// `status` is that of the HTTP response: where it is no success, the media type was
  /// `application/graphql-response+json`, which only a GraphQL server sends.
  case graphQL([GraphQLError], status: Int = 200, retryAfter: Duration? = nil)
  /// What answered is not this API: a redirection that is not followed, the HTML of a login page or of a proxy, or JSON
  /// without `data` and `errors`.
  ///
  /// So it says nothing about the request, which may not have reached the server. `location` is where a redirection
  /// leads.
  case notAnAPIResponse(status: Int, location: String? = nil, bodyExcerpt: String)
  /// The server answered with success and said nothing: no body, or `data` that is `null` without `errors`.
  case emptyReply
  /// The response was larger than `limit` bytes; reading stopped there.
  case replyTooLarge(limit: Int)
  /// The response was no JSON, or not of the shape asked for.
  case undecodable(reason: String, excerpt: String)
  /// The variables of the request could not be written as JSON; nothing was sent.
  case unencodableVariables(reason: String)
  /// The URL of the session is not one of HTTP; nothing was sent.
  case unsupportedURL(String)
  /// The header of this name cannot be sent as given; nothing was sent.
  case invalidHeader(name: String)

  /// The most characters of a server's text in a row, counted in Unicode scalars.
  public static let excerptLength = 512

  /// Whether the same request may succeed later without any change to it.
  ///
  /// True when the network or the server was away, slow, or overloaded: ``transport(_:)``, ``timedOut``, and the
  /// statuses 408, 425, 429 and 5xx; and when something else than the server answered,
  /// ``notAnAPIResponse(status:location:bodyExcerpt:)``. False when the server understood and refused, when its
  /// response makes no sense, when the request itself is wrong, and for ``cancelled``.
  public var isTransient: Bool {
    switch self {
    case .transport, .timedOut, .notAnAPIResponse: true
    case .statusCode(let status, _, _), .graphQL(_, let status, _):
      [408, 425, 429].contains(status) || (500...599).contains(status)
    case .cancelled, .emptyReply, .replyTooLarge, .undecodable, .unencodableVariables, .unsupportedURL, .invalidHeader:
      false
    }
  }

  /// The HTTP status of the response; `nil` where none arrived, and where it was a success.
  public var status: Int? {
    switch self {
    case .statusCode(let status, _, _), .notAnAPIResponse(let status, _, _), .graphQL(_, let status, _):
      (200...299).contains(status) ? nil : status
    default: nil
    }
  }

  /// How long the server asks to wait before the next request, from zero to a day; `nil` where it does not ask.
  public var retryAfter: Duration? {
    switch self {
    case .statusCode(_, _, let retryAfter), .graphQL(_, _, let retryAfter): retryAfter
    default: nil
    }
  }
}

extension APISessionError: CustomStringConvertible {
  /// The most GraphQL errors that ``description`` quotes.
  private static let maximumQuotedErrorCount = 3

  /// What happened, and what to do about it.
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
      "The server answered with HTTP status \(status)" + Self.quoted(bodyExcerpt)
        + (isTransient ? tryAgainLater : "Check the server's address and the credentials of the request.")
    case .graphQL(let errors, _, _):
      "The server refused the request: \(Self.quoted(errors)). "
        + (isTransient ? tryAgainLater : "Correct the request; sending it again unchanged will not help.")
    case .notAnAPIResponse(let status, let location, let bodyExcerpt):
      "Something that is not the API answered, with HTTP status \(status)" + Self.quoted(bodyExcerpt)
        + (location.map { "It redirects to “\($0)”; if that is the server, use its address or allow its host. " } ?? "")
        + "Check the server's address, and whether the network wants a sign-in."
    case .emptyReply:
      "The server answered with success but sent no data. Check that the address is that of a GraphQL server."
    case .replyTooLarge(let limit):
      "The reply is larger than the limit of \(limit) bytes. "
        + "Ask for less, or allow the session a larger maximum reply size."
    case .undecodable(let reason, let excerpt):
      "The reply could not be read: \(reason). It begins “\(excerpt)”. "
        + "Check that the server speaks the schema this program was written for."
    case .unencodableVariables(let reason):
      "The variables of the request could not be written as JSON: \(reason). Nothing was sent; correct the variables."
    case .unsupportedURL(let url):
      "“\(url)” is not the address of a GraphQL server. Use an http or https URL with a host."
    case .invalidHeader(let name):
      "The HTTP header “\(name)” cannot be sent. "
        + "Use only letters, digits and -_.!#$%&'*+^`|~ in its name, and no line breaks or NUL in its value."
    }
  }

  private var tryAgainLater: String {
    guard let retryAfter else { return "Try again later." }
    let seconds = retryAfter.components.seconds
    return seconds == 1 ? "Try again in 1 second." : "Try again in \(seconds) seconds."
  }

  private static func quoted(_ bodyExcerpt: String) -> String {
    bodyExcerpt.isEmpty ? " and no text. " : ": “\(bodyExcerpt)”. "
  }

  private static func quoted(_ errors: [GraphQLError]) -> String {
    let quoted = errors.prefix(maximumQuotedErrorCount).map(\.description).joined(separator: "; ")
    let rest = errors.count - maximumQuotedErrorCount
    return rest > 0 ? "\(quoted); and \(rest) more" : quoted
  }
}

extension APISessionError: LocalizedError {
  /// The same text as ``description``, for interfaces that show `localizedDescription`.
  public var errorDescription: String? { description }
}

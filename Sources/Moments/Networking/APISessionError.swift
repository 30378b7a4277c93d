public import Foundation

/// Why a request to the server gave no value.
///
/// Every way to fail is a case of its own, so a caller can tell a server that is away (keep the change, try again:
/// ``isTransient``) from one that refused, and neither from a cancelled call.
public enum APISessionError: Error, Equatable, Sendable {
  /// No complete reply came over the network: no connection, no such host, or a connection lost midway.
  case transport(URLError)
  /// The reply was not complete when the time for the whole exchange was over.
  case timedOut
  /// The calling task was cancelled; the request was too, as far as it had been sent.
  case cancelled
  /// The server answered with a status other than 2xx.
  ///
  /// `bodyExcerpt` is the beginning of what it said, on one line, at most
  /// ``excerptLength`` characters.
  case statusCode(Int, bodyExcerpt: String)
  /// The server reported errors, with or without partial data. Never empty.
  case graphQL([GraphQLError])
  /// The server answered with success and said nothing: no body, or neither `data` nor `errors` in it.
  case emptyReply
  /// The reply was larger than `limit` bytes; reading stopped there.
  case replyTooLarge(limit: Int)
  /// The reply was no JSON, or not of the shape asked for.
  case undecodable(reason: String, excerpt: String)
  /// The variables of the request could not be written as JSON; nothing was sent.
  case unencodableVariables(reason: String)
  /// The URL of the session is not one of HTTP; nothing was sent.
  case unsupportedURL(String)
  /// The header of this name cannot be sent as given; nothing was sent.
  case invalidHeader(name: String)

  /// The most characters an excerpt of a reply has.
  public static let excerptLength = 512

  /// Whether the same request may succeed later without any change to it.
  ///
  /// True when the network or the server was away, slow, or overloaded: ``transport(_:)``, ``timedOut``, and the
  /// statuses 408, 425, 429 and 5xx. False when the server understood and refused, when its reply makes no sense, when
  /// the request itself is wrong, and for ``cancelled``.
  public var isTransient: Bool {
    switch self {
    case .transport, .timedOut: true
    case .statusCode(let code, _): [408, 425, 429].contains(code) || (500...599).contains(code)
    case .cancelled, .graphQL, .emptyReply, .replyTooLarge, .undecodable, .unencodableVariables, .unsupportedURL,
      .invalidHeader:
      false
    }
  }
}

extension APISessionError: CustomStringConvertible {
  /// What happened, and what to do about it.
  public var description: String {
    switch self {
    case .transport(let error):
      "The server could not be reached (\(error.localizedDescription); URLError \(error.code.rawValue)). "
        + "Check the network connection and the server's address, then try again."
    case .timedOut:
      "The server did not answer in time. Try again later, or allow the session a longer timeout."
    case .cancelled:
      "The request was cancelled before its reply arrived. Send it again if the reply is still wanted."
    case .statusCode(let code, let bodyExcerpt):
      "The server answered with HTTP status \(code)"
        + (bodyExcerpt.isEmpty ? " and no text. " : ": “\(bodyExcerpt)”. ")
        + (isTransient ? "Try again later." : "Check the server's address and the credentials of the request.")
    case .graphQL(let errors):
      "The server refused the request: \(errors.map(\.description).joined(separator: "; ")). "
        + "Correct the request; sending it again unchanged will not help."
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
}

extension APISessionError: LocalizedError {
  /// The same text as ``description``, for interfaces that show `localizedDescription`.
  public var errorDescription: String? { description }
}

public import Foundation

#if canImport(FoundationNetworking)
  public import FoundationNetworking
#endif

/// A client of one GraphQL server: posts documents as JSON over HTTP and decodes the `data` of the replies.
///
/// ## Behavior
///
/// - Every way to fail is a case of ``APISessionError``. A reply with `errors` is a failure even if it has `data` too.
/// - Cancelling the calling task cancels the request at once and throws ``APISessionError/cancelled``. A call made by
///   a task that is cancelled already sends nothing. Cancelling after the request was sent does not mean the server
///   did not act on it.
/// - The timeout covers the whole exchange, from connecting to the last byte of the reply.
/// - No more of a reply than ``maximumReplySize`` is kept in memory, whatever length it claims to have.
/// - Redirections are not followed, and nothing is cached.
///
/// A session is a value: copies share their connections, which are closed when the last copy is gone. Make one for a
/// server and keep it. It may be used by any number of tasks at once.
public struct APISession: Sendable {
  /// Where requests are posted.
  public let url: URL
  /// The time a whole exchange may take.
  public let timeout: Duration
  /// The most bytes the body of a reply may have, after decompression.
  public let maximumReplySize: Int

  private let headers: HTTPHeaders
  private let transport: HTTPTransport

  /// Creates a session.
  ///
  /// - Parameters:
  ///   - url: The address of the GraphQL server, `http` or `https`.
  ///   - headers: Headers for every request. They win over ``defaultHeaders(appVersion:)``, whatever the case of their
  ///     names.
  ///   - timeout: The time a whole exchange may take.
  ///   - maximumReplySize: The most bytes the body of a reply may have, not negative.
  ///   - configuration: How connections are made. The session takes a copy, and ignores its cache and credential
  ///     storage.
  public init(
    url: URL,
    headers: [String: String] = [:],
    timeout: Duration = .seconds(30),
    maximumReplySize: Int = 8 * 1024 * 1024,
    configuration: URLSessionConfiguration = .ephemeral
  ) {
    precondition(maximumReplySize >= 0, "The maximum reply size is a number of bytes; it cannot be negative.")
    self.url = url
    self.timeout = timeout
    self.maximumReplySize = maximumReplySize
    self.headers = HTTPHeaders(["Content-Type": "application/json", "Accept": "application/json"])
      .merging(Self.defaultHeaders())
      .merging(headers)
    transport = HTTPTransport(configuration: configuration)
  }

  /// Posts a GraphQL document and gives the decoded `data` of the reply.
  ///
  /// - Parameters:
  ///   - document: The text of the query or mutation.
  ///   - operationName: The name of the operation in `document` to run.
  ///   - variables: The values of the document's variables; encoded as a JSON object.
  ///   - headers: Headers for this request, which win over those of the session.
  ///   - replyType: The type of `data`.
  /// - Returns: The `data` of the reply.
  /// - Throws: ``APISessionError``, see there for each case.
  public func post<Variables: Encodable & Sendable, Reply: Decodable & Sendable>(
    document: String,
    operationName: String,
    variables: Variables,
    headers: [String: String] = [:],
    as replyType: Reply.Type = Reply.self
  ) async throws(APISessionError) -> Reply {
    let request = try urlRequest(
      headers: self.headers.merging(headers),
      body: GraphQLRequest(document: document, operationName: operationName, variables: variables))
    let body = try await transport.send(request, timeout: timeout, maximumReplySize: maximumReplySize)
    return try GraphQLReply<Reply>.payload(of: body)
  }

  private func urlRequest(
    headers: HTTPHeaders,
    body: GraphQLRequest<some Encodable & Sendable>
  ) throws(APISessionError) -> URLRequest {
    guard ["http", "https"].contains(url.scheme?.lowercased()), url.host()?.isEmpty == false else {
      throw .unsupportedURL(url.absoluteString)
    }
    if let name = headers.firstInvalidName {
      throw .invalidHeader(name: name)
    }
    var request = URLRequest(url: url)
    request.httpMethod = "POST"
    for field in headers.fields {
      request.setValue(field.value, forHTTPHeaderField: field.name)
    }
    do {
      request.httpBody = try JSONEncoder().encode(body)
    } catch {
      throw .unencodableVariables(reason: CodingFailure.reason(of: error))
    }
    return request
  }
}

public import Foundation

/// A client of one GraphQL server: posts documents as JSON over HTTP and decodes the responses.
///
/// It follows the first release of the GraphQL over HTTP specification (GraphQL Foundation, September 2026): it accepts
/// `application/graphql-response+json` and, second to it, `application/json`, and reads each by its own rules.
///
/// ## Behavior
///
/// - **Errors**: Every way to fail is a case of ``APISessionError``.
///   ``post(document:operationName:variables:headers:as:)`` takes a response with `errors` for a failure, even if it
///   has `data` too; ``response(to:operationName:variables:headers:as:)`` returns both.
/// - **Cancellation**: Cancelling the calling task cancels the request at once and throws
///   ``APISessionError/cancelled``. A call made by a task that is cancelled already sends nothing. Cancelling after the
///   request was sent does not mean that the server did not act on it.
/// - **Time**: The timeout covers the whole exchange, from connecting to the last byte of the response, redirections
///   included. Reading the response comes on top: about 30 milliseconds for a megabyte of JSON, on a thread of its own.
/// - **Memory**: No more of a response than ``maximumReplySize`` is kept, and no more than 64 KiB of one that only says
///   why there is no reply, whatever length it claims to have.
/// - **Redirections**: Followed as the ``RedirectPolicy`` says, by default to the same origin only. Nothing is cached.
/// - **Words of the server**: They are cleaned and cut wherever they become part of an error.
///
/// A session is a value: copies share their connections, which are closed when the last copy is gone. Make one for a
/// server and keep it. It may be used by any number of tasks at once.
public struct APISession: Sendable {
  /// Where requests are posted.
  public let url: URL
  /// The time a whole exchange may take.
  public let timeout: Duration
  /// The most bytes the body of a response may have, after decompression.
  public let maximumReplySize: Int
  /// Which redirections are followed.
  public let redirects: RedirectPolicy

  private let messageHeaders: HTTPHeaders
  private let callerHeaders: [String: String]
  private let transport: any HTTPTransport
  private let clock: any Clock<Duration>

  /// Creates a session.
  ///
  /// - Parameters:
  ///   - url: The address of the GraphQL server, `http` or `https`.
  ///   - headers: Headers for every request. They win over ``defaultHeaders(appVersion:)``, whatever the case of their
  ///     names.
  ///   - timeout: The time a whole exchange may take.
  ///   - maximumReplySize: The most bytes the body of a response may have, not negative.
  ///   - redirects: Which redirections to follow.
  ///   - transport: What carries the requests; `nil` makes a ``PlatformTransport`` of its own.
  ///   - clock: What measures the timeout.
  public init(
    url: URL,
    headers: [String: String] = [:],
    timeout: Duration = .seconds(30),
    maximumReplySize: Int = 8 * 1024 * 1024,
    redirects: RedirectPolicy = .sameOrigin,
    transport: (any HTTPTransport)? = nil,
    clock: any Clock<Duration> = ContinuousClock()
  ) {
    precondition(maximumReplySize >= 0, "The maximum reply size is a number of bytes; it cannot be negative.")
    self.url = url
    self.timeout = timeout
    self.maximumReplySize = maximumReplySize
    self.redirects = redirects
    messageHeaders = HTTPHeaders([
      "Content-Type": "application/json",
      "Accept": "application/graphql-response+json, application/json;q=0.9",
    ]).merging(Self.defaultHeaders())
    callerHeaders = headers
    self.transport = transport ?? PlatformTransport()
    self.clock = clock
  }

  /// Posts a GraphQL document and returns the decoded `data` of the response.
  ///
  /// - Parameters:
  ///   - document: The text of the query or mutation.
  ///   - operationName: The name of the operation in `document` to run.
  ///   - variables: The values of the document's variables; encoded as a JSON object.
  ///   - headers: Headers for this request, which win over those of the session.
  ///   - replyType: The type of `data`.
  /// - Returns: The `data` of the response, which is complete.
  /// - Throws: ``APISessionError``, see there for each case; ``APISessionError/graphQL(_:status:retryAfter:)`` also for
  ///   partial data.
  public func post<Variables: Encodable & Sendable, Reply: Decodable & Sendable>(
    document: String,
    operationName: String,
    variables: Variables,
    headers: [String: String] = [:],
    as replyType: Reply.Type = Reply.self
  ) async throws(APISessionError) -> Reply {
    let response = try await response(
      to: document, operationName: operationName, variables: variables, headers: headers, as: replyType)
    guard response.errors.isEmpty else { throw .graphQL(response.errors) }
    return response.data
  }

  /// Posts a GraphQL document and returns the whole response: data, the errors that made it partial, and extensions.
  ///
  /// - Parameters:
  ///   - document: The text of the query or mutation.
  ///   - operationName: The name of the operation in `document` to run.
  ///   - variables: The values of the document's variables; encoded as a JSON object.
  ///   - headers: Headers for this request, which win over those of the session.
  ///   - replyType: The type of `data`. Give it optional properties for fields that may fail on their own.
  /// - Returns: The response, which has data.
  /// - Throws: ``APISessionError``, see there for each case; ``APISessionError/graphQL(_:status:retryAfter:)`` where
  ///   the response has errors and no data of that type.
  public func response<Variables: Encodable & Sendable, Reply: Decodable & Sendable>(
    to document: String,
    operationName: String,
    variables: Variables,
    headers: [String: String] = [:],
    as replyType: Reply.Type = Reply.self
  ) async throws(APISessionError) -> GraphQLResponse<Reply> {
    let exchange = APIExchange(
      request: try request(
        GraphQLRequest(document: document, operationName: operationName, variables: variables), headers: headers),
      messageHeaders: messageHeaders(with: headers), maximumReplySize: maximumReplySize, redirects: redirects,
      transport: transport)
    let received = try await exchange.run(timeout: timeout, clock: clock)
    guard received.body.count >= LongWork.threshold else { return try Self.read(received).get() }
    return try await LongWork.run { Self.read(received) }.get()
  }

  private static func read<Reply: Decodable & Sendable>(_ received: APIExchange.Received) -> Result<
    GraphQLResponse<Reply>, APISessionError
  > {
    do throws(APISessionError) {
      return .success(
        try received.rules.response(
          body: received.body, isComplete: received.isComplete, now: Date(), as: Reply.self))
    } catch {
      return .failure(error)
    }
  }

  private func request(
    _ body: GraphQLRequest<some Encodable & Sendable>, headers: [String: String]
  ) throws(APISessionError) -> HTTPRequest {
    guard Origin(url) != nil else { throw .unsupportedURL(url.withoutUser.absoluteString) }
    let headers = messageHeaders.merging(callerHeaders).merging(headers)
    if let name = headers.firstInvalidName { throw .invalidHeader(name: name) }
    do {
      return HTTPRequest(
        url: url, method: "POST", headers: headers, body: try JSONEncoder().encode(body), timeout: timeout)
    } catch {
      throw .unencodableVariables(reason: CodingFailure.reason(of: error))
    }
  }

  /// The fields that may go to another origin: none of them is the caller's but the key of a repeated change.
  private func messageHeaders(with headers: [String: String]) -> HTTPHeaders {
    var allowed = messageHeaders
    allowed["Idempotency-Key"] = HTTPHeaders(callerHeaders).merging(headers)["Idempotency-Key"]
    return allowed
  }
}

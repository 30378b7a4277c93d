public import Foundation

/// A client of one GraphQL server that posts documents as JSON over HTTP and decodes the responses.
///
/// A session follows the first release of the GraphQL over HTTP specification (GraphQL Foundation, September 2026). It
/// accepts `application/graphql-response+json` and, with lower preference, `application/json`, and applies the rules of
/// the specification to each.
///
/// ## Behavior
///
/// - **Errors**: Every failure is a case of ``APISessionError``. ``post(document:operationName:variables:headers:as:)``
///   treats a response with `errors` as a failure, even if it also has `data`.
///   ``response(to:operationName:variables:headers:as:)`` returns the data together with the errors.
/// - **Cancellation**: Cancelling the calling task cancels the request immediately and throws
///   ``APISessionError/cancelled``, unless the `authorization` closure ignores the cancellation. A call from a task
///   that is already cancelled sends nothing. If the request was sent before the cancellation, the server may still act
///   on it. A response that was complete before the cancellation is decoded as usual.
/// - **Time**: The timeout covers the whole exchange, from connecting to the last byte of the response, including
///   redirections. If it expires before the request was sent, the error says so; see ``APISessionError/timedOut``.
///   Decoding the response takes additional time, about 30 milliseconds per megabyte of JSON. A large
///   response is decoded on a separate thread.
/// - **Memory**: A session keeps at most ``maximumReplySize`` bytes of a response, and at most 64 KiB of one whose
///   status and media type don't identify it as a GraphQL response. The session counts the bytes, and relies on the
///   declared length only to fail early if a response is too large.
/// - **Redirections**: A session follows the redirections that its ``RedirectPolicy`` allows; the default policy allows
///   only the same origin. A session caches neither redirections nor responses.
/// - **Server text**: Text from the server is sanitized and truncated before it becomes part of an error.
///
/// Copies of a session share a transport and its connections. The connections close when the transport is released; a
/// transport that the session created is released with the last copy of the session. Create one session for each server
/// and keep it. Any number of tasks can use a session concurrently.
public struct APISession: Sendable {
  /// The URL to which the session posts requests.
  public let url: URL
  /// The maximum duration of a whole exchange.
  public let timeout: Duration
  /// The maximum size of a response's body in bytes, after decompression.
  public let maximumReplySize: Int
  /// The redirections that the session follows.
  public let redirects: RedirectPolicy
  /// The format of the dates in variables and in data.
  public let dates: DateCoding

  /// The headers that don't come from the caller: `Content-Type`, `Accept` and ``defaultHeaders(appVersion:)``.
  private let standardHeaders: HTTPHeaders
  /// The caller's headers for every request of the session.
  private let sessionHeaders: [String: String]
  private let authorization: (@Sendable () async -> String?)?
  private let transport: any HTTPTransport
  private let clock: any Clock<Duration>

  /// Creates a session.
  ///
  /// - Parameters:
  ///   - url: The URL of the GraphQL server, with the scheme `http` or `https`.
  ///   - headers: The headers for every request. They take precedence over the default `Content-Type` and `Accept` and
  ///     over ``defaultHeaders(appVersion:)``; the case of their names doesn't matter.
  ///   - authorization: A closure that returns the value of the header `Authorization`, such as `Bearer` and a token,
  ///     or `nil` for a request without that header. The session calls it for every request, so the token may change.
  ///     It takes precedence over `headers`; it isn't called for a request that has its own `Authorization`. Its time
  ///     counts towards `timeout`. It must return soon after its task is cancelled, because the call ends only then.
  ///   - timeout: The maximum duration of a whole exchange.
  ///   - maximumReplySize: The maximum size of a response's body in bytes, after decompression. It can't be negative.
  ///   - redirects: The redirections to follow.
  ///   - dates: The format of the dates in variables and in data.
  ///   - transport: The transport that carries the requests; `nil` creates a new ``PlatformTransport``.
  ///   - clock: The clock that measures the timeout.
  public init(
    url: URL,
    headers: [String: String] = [:],
    authorization: (@Sendable () async -> String?)? = nil,
    timeout: Duration = .seconds(30),
    maximumReplySize: Int = 8 * 1024 * 1024,
    redirects: RedirectPolicy = .sameOrigin,
    dates: DateCoding = .iso8601,
    transport: (any HTTPTransport)? = nil,
    clock: any Clock<Duration> = ContinuousClock()
  ) {
    precondition(maximumReplySize >= 0, "The maximum reply size is a number of bytes and cannot be negative.")
    self.url = url
    self.timeout = timeout
    self.maximumReplySize = maximumReplySize
    self.redirects = redirects
    self.dates = dates
    self.authorization = authorization
    standardHeaders = HTTPHeaders([
      "Content-Type": "application/json",
      "Accept": "application/graphql-response+json, application/json;q=0.9",
    ]).merging(Self.defaultHeaders())
    sessionHeaders = headers
    self.transport = transport ?? PlatformTransport()
    self.clock = clock
  }

  /// Posts a GraphQL document and returns the decoded `data` of the response.
  ///
  /// - Parameters:
  ///   - document: The text of the query or mutation.
  ///   - operationName: The name of the operation in `document` to run.
  ///   - variables: The values of the document's variables, which are encoded as a JSON object.
  ///   - headers: The headers for this request, which take precedence over those of the session.
  ///   - replyType: The type of `data`.
  /// - Returns: The complete `data` of the response.
  /// - Throws: An ``APISessionError``. Partial data also throws ``APISessionError/graphQL(_:status:retryAfter:)``.
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

  /// Posts a GraphQL document and returns the whole response: its data, the errors that made the data partial, and its
  /// extensions.
  ///
  /// - Parameters:
  ///   - document: The text of the query or mutation.
  ///   - operationName: The name of the operation in `document` to run.
  ///   - variables: The values of the document's variables, which are encoded as a JSON object.
  ///   - headers: The headers for this request, which take precedence over those of the session.
  ///   - replyType: The type of `data`. Its properties should be optional for fields that can fail individually.
  /// - Returns: The response, which always has data.
  /// - Throws: An ``APISessionError``. A GraphQL response that has errors throws
  ///   ``APISessionError/graphQL(_:status:retryAfter:)`` if it has no data of type `replyType`, or if its status isn't
  ///   a success.
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
      authorization: HTTPHeaders(headers)["Authorization"] == nil ? authorization : nil,
      crossOriginHeaders: crossOriginHeaders(with: headers), maximumReplySize: maximumReplySize, redirects: redirects,
      transport: transport)
    let received = try await exchange.run(timeout: timeout, clock: clock)
    guard received.body.count >= LongWork.threshold else { return try decode(received).get() }
    return try await LongWork.run { decode(received) }.get()
  }

  private func decode<Reply: Decodable & Sendable>(_ received: APIExchange.Received) -> Result<
    GraphQLResponse<Reply>, APISessionError
  > {
    do throws(APISessionError) {
      return .success(
        try received.rules.response(
          body: received.body, isComplete: received.isComplete, now: Date(), dates: dates, as: Reply.self))
    } catch {
      return .failure(error)
    }
  }

  private func request(
    _ body: GraphQLRequest<some Encodable & Sendable>, headers: [String: String]
  ) throws(APISessionError) -> HTTPRequest {
    guard Origin(url) != nil else { throw .unsupportedURL(url.withoutCredentials.absoluteString) }
    let headers = standardHeaders.merging(sessionHeaders).merging(headers)
    if let name = headers.nameOfFirstInvalidField { throw .invalidHeader(name: name) }
    let encoder = JSONEncoder()
    encoder.dateEncodingStrategy = dates.encoding
    do {
      return HTTPRequest(url: url, method: "POST", headers: headers, body: try encoder.encode(body), timeout: timeout)
    } catch {
      throw .unencodableVariables(reason: CodingFailure.reason(of: error))
    }
  }

  /// Returns the only header fields that are sent after a redirection to another origin.
  ///
  /// Of the caller's headers, only `Idempotency-Key` is sent, because it prevents the server from applying a repeated
  /// mutation twice.
  private func crossOriginHeaders(with headers: [String: String]) -> HTTPHeaders {
    var allowed = standardHeaders
    allowed["Idempotency-Key"] = HTTPHeaders(sessionHeaders).merging(headers)["Idempotency-Key"]
    return allowed
  }
}

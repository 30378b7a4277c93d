internal import Foundation

/// The interpretation of a response: the rules of GraphQL over HTTP, and the choices that they leave open.
///
/// The rules are those of the first release of the specification (GraphQL Foundation, September 2026).
///
/// - An `application/graphql-response+json` body comes from a GraphQL server, so it is decoded regardless of the
///   status. With a failure status, a body without decodable GraphQL errors becomes the error
///   ``APISessionError/statusCode(_:bodyExcerpt:retryAfter:)``, which quotes the beginning of the body.
/// - An `application/json` body is decoded only if the status is a success, because a gateway may send this type too.
///   With a failure status other than 3xx, the errors of JSON that is shaped like a GraphQL response are reported too,
///   because servers send codes such as `UNAUTHENTICATED` with such a status. If it has no errors, it becomes the same
///   error as above. Other `+json` types, and a missing type, count as `application/json`.
/// - Any other response isn't from the API, and neither is a success whose body is markup, or JSON that isn't shaped
///   like a GraphQL response. As an exception, some failure statuses (about credentials, conflicts, the method, limits
///   and server failures) mean the same whether the server or a gateway sends them. A response with such a status also
///   becomes ``APISessionError/statusCode(_:bodyExcerpt:retryAfter:)``.
struct ResponseRules {
  let status: Int
  let headers: HTTPHeaders
  let maximumReplySize: Int

  private let mediaType: MediaType

  init(status: Int, headers: HTTPHeaders, maximumReplySize: Int) {
    self.status = status
    self.headers = headers
    self.maximumReplySize = maximumReplySize
    mediaType = MediaType(contentType: headers["Content-Type"])
  }

  /// The maximum number of bytes to read of JSON with a failure status, to determine whether it is shaped like a
  /// GraphQL response.
  private static let maximumFailureSize = 64 * 1024

  private var isSuccess: Bool { (200...299).contains(status) }

  /// Whether the status and the media type identify the body as a GraphQL response.
  private var isTrusted: Bool { mediaType == .graphQLResponse || (isSuccess && mediaType == .json) }

  /// Whether the status is a failure whose meaning doesn't depend on the sender.
  private var isUnambiguousFailure: Bool {
    [401, 405, 407, 408, 409, 413, 414, 425, 429, 431].contains(status) || (500...599).contains(status)
  }

  /// The maximum number of bytes to read of the body.
  var maximumBodySize: Int {
    if isTrusted { return maximumReplySize }
    return mediaType == .json ? Self.maximumFailureSize : ServerText.maximumByteCount
  }

  /// Whether a successful GraphQL response declares a body larger than the limit; if so, the body isn't read.
  ///
  /// The declared length of a compressed body isn't compared, because the limit applies after decompression.
  var declaresOversizedBody: Bool {
    guard isTrusted, isSuccess, headers["Content-Encoding"] == nil, let length = headers["Content-Length"] else {
      return false
    }
    guard let count = Int(length) else {
      // A number that overflows `Int` also exceeds the limit.
      return !length.isEmpty && length.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }
    return count > maximumReplySize
  }

  /// Returns the decoded GraphQL response, or throws the error that the response represents.
  ///
  /// - Parameters:
  ///   - body: The first bytes of the body, at most ``maximumBodySize``.
  ///   - isComplete: Whether `body` is the complete body.
  ///   - now: The time at which the response arrived.
  ///   - dates: The format of the dates in `data`.
  ///   - payloadType: The type of `data`.
  /// - Throws: ``APISessionError``.
  func response<Payload: Decodable & Sendable>(
    body: Data, isComplete: Bool, now: Date, dates: DateCoding = .iso8601, as payloadType: Payload.Type
  ) throws(APISessionError) -> GraphQLResponse<Payload> {
    guard isTrusted else { throw failure(body: body, isComplete: isComplete, now: now) }
    guard isComplete else {
      if isSuccess { throw .replyTooLarge(limit: maximumReplySize) }
      throw failure(body: body, isComplete: false, now: now)
    }
    guard !body.isEmpty else {
      if isSuccess { throw .emptyReply }
      throw failure(body: body, isComplete: true, now: now)
    }
    let reply: GraphQLReply<Payload>
    do {
      reply = try GraphQLReply.decode(body, dates: dates)
    } catch {
      if !isSuccess { throw failure(body: body, isComplete: true, now: now) }
      // JSON that isn't an object comes from another API, and markup from a login page or a proxy. Other invalid JSON
      // may be a truncated reply of this API.
      if Self.isNonObjectBody(accordingTo: error) || Self.isMarkup(body) { throw notAnAPIResponse(body) }
      throw .undecodable(reason: CodingFailure.reason(of: error), excerpt: ServerText.line(of: body))
    }
    guard reply.isGraphQL else {
      throw isSuccess ? notAnAPIResponse(body) : failure(body: body, isComplete: true, now: now)
    }
    return try response(reply, body: body, now: now)
  }

  /// Whether a body begins like HTML or XML, regardless of its media type.
  private static func isMarkup(_ body: Data) -> Bool {
    let whitespace: [UInt8] = [0x20, 0x09, 0x0A, 0x0D]
    return body.first { !whitespace.contains($0) } == UInt8(ascii: "<")
  }

  /// Whether decoding failed because the body is JSON but not an object.
  private static func isNonObjectBody(accordingTo error: any Error) -> Bool {
    switch error {
    case DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context):
      context.codingPath.isEmpty
    default: false
    }
  }

  private func response<Payload>(
    _ reply: GraphQLReply<Payload>, body: Data, now: Date
  ) throws(APISessionError) -> GraphQLResponse<Payload> {
    switch reply.data {
    case .payload(let data) where isSuccess:
      return GraphQLResponse(data: data, errors: reply.errors, extensions: reply.extensions)
    case _ where !reply.errors.isEmpty:
      throw .graphQL(reply.errors, status: status, retryAfter: RetryAfter.delay(in: headers, now: now))
    case _ where !isSuccess:
      throw failure(body: body, isComplete: true, now: now)
    case .mismatch(let reason):
      throw .undecodable(reason: reason, excerpt: ServerText.line(of: body))
    // The cases above handle every payload, so that only `null` and a missing member are left.
    case .payload, .null, .missing:
      throw .emptyReply
    }
  }

  private func failure(body: Data, isComplete: Bool, now: Date) -> APISessionError {
    let isGraphQLShaped = isGraphQLShaped(body, isComplete: isComplete)
    guard isUnambiguousFailure || mediaType == .graphQLResponse || isGraphQLShaped else {
      return notAnAPIResponse(body)
    }
    let retryAfter = RetryAfter.delay(in: headers, now: now)
    if isGraphQLShaped {
      let errors = GraphQLShape.errors(in: body)
      if !errors.isEmpty { return .graphQL(errors, status: status, retryAfter: retryAfter) }
    }
    return .statusCode(status, bodyExcerpt: ServerText.line(of: body), retryAfter: retryAfter)
  }

  private func isGraphQLShaped(_ body: Data, isComplete: Bool) -> Bool {
    !isSuccess && !(300...399).contains(status) && mediaType == .json && isComplete && GraphQLShape.matches(body)
  }

  private func notAnAPIResponse(_ body: Data) -> APISessionError {
    .notAnAPIResponse(
      status: status, location: headers["Location"].map { ServerText.line($0) }, bodyExcerpt: ServerText.line(of: body))
  }
}

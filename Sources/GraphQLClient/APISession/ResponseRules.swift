internal import Foundation

/// Decides what a response means: the rules of GraphQL over HTTP, and what they leave open.
///
/// It follows the first release of that specification (GraphQL Foundation, September 2026).
///
/// - `application/graphql-response+json` comes from a GraphQL server, so the body counts whatever the status.
/// - `application/json` counts with a status of success alone, since a gateway sends it too. With another status it is
///   an HTTP failure, and its text is quoted.
/// - Anything else, and JSON that is not shaped like a GraphQL response, is not the API's. Statuses that speak for
///   themselves (credentials, conflicts, limits, failures) are failures, even when a gateway sent them.
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

  /// The most bytes read of a failure's body to find out whether it is shaped like a GraphQL response.
  private static let maximumFailureSize = 64 * 1024

  private var isSuccess: Bool { (200...299).contains(status) }

  /// Whether the body is a GraphQL response if it is well-formed.
  private var isTrusted: Bool { mediaType == .graphQLResponse || (isSuccess && mediaType == .json) }

  /// Whether the status says enough, even when a gateway sent it.
  private var speaksForItself: Bool {
    [401, 407, 408, 409, 425, 429].contains(status) || (500...599).contains(status)
  }

  /// How many bytes of the body to read at most.
  var maximumBodySize: Int {
    if isTrusted { return maximumReplySize }
    return mediaType == .json ? Self.maximumFailureSize : ServerText.maximumByteCount
  }

  /// Whether the response announces a body beyond the limit, so that no byte of it needs to be read.
  var announcesTooMuch: Bool {
    guard isTrusted, isSuccess, headers["Content-Encoding"] == nil, let length = headers["Content-Length"] else {
      return false
    }
    guard let count = Int(length) else {
      return !length.isEmpty && length.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    }
    return count > maximumReplySize
  }

  /// Returns what the response says.
  ///
  /// - Parameters:
  ///   - body: The body, up to ``maximumBodySize`` bytes of it.
  ///   - isComplete: Whether the body ends there.
  ///   - now: When the response arrived.
  /// - Throws: ``APISessionError``.
  func response<Payload: Decodable & Sendable>(
    body: Data, isComplete: Bool, now: Date, as payload: Payload.Type
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
      reply = try GraphQLReply.decode(body)
    } catch {
      if !isSuccess { throw failure(body: body, isComplete: true, now: now) }
      // JSON of another shape is another API's; what is no JSON may be a reply of this one that was cut off.
      if Self.isOfAnotherShape(error) || Self.isMarkup(body) { throw notAnAPI(body) }
      throw .undecodable(reason: CodingFailure.reason(of: error), excerpt: ServerText.line(of: body))
    }
    guard reply.isGraphQL else {
      throw isSuccess ? notAnAPI(body) : failure(body: body, isComplete: true, now: now)
    }
    return try response(reply, body: body, now: now)
  }

  /// Whether a body begins like HTML or XML, whatever its media type says.
  private static func isMarkup(_ body: Data) -> Bool {
    body.first { ![0x20, 0x09, 0x0A, 0x0D].contains($0) } == UInt8(ascii: "<")
  }

  /// Whether a body was JSON and no object.
  private static func isOfAnotherShape(_ error: any Error) -> Bool {
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
    case .payload, .null, .missing:
      throw .emptyReply
    }
  }

  private func failure(body: Data, isComplete: Bool, now: Date) -> APISessionError {
    guard speaksForItself || mediaType == .graphQLResponse || isGraphQLShaped(body, isComplete: isComplete) else {
      return notAnAPI(body)
    }
    return .statusCode(
      status, bodyExcerpt: ServerText.line(of: body), retryAfter: RetryAfter.delay(in: headers, now: now))
  }

  private func isGraphQLShaped(_ body: Data, isComplete: Bool) -> Bool {
    !isSuccess && !(300...399).contains(status) && mediaType == .json && isComplete && GraphQLShape.matches(body)
  }

  private func notAnAPI(_ body: Data) -> APISessionError {
    .notAnAPIResponse(
      status: status, location: headers["Location"].map { ServerText.line($0) }, bodyExcerpt: ServerText.line(of: body))
  }
}

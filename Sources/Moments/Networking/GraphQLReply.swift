internal import Foundation

/// The body of a GraphQL reply.
enum GraphQLReply<Payload: Decodable & Sendable>: Decodable, Sendable {
  /// The request succeeded without errors.
  case data(Payload)
  /// The request failed, wholly or in part.
  case errors([GraphQLError])
  /// The reply has neither data nor errors.
  case empty

  private enum CodingKeys: CodingKey {
    case data, errors
  }

  init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    // Errors come first: a field that failed is null in `data`, and decoding that would fail with a worse message.
    if let errors = try container.decodeIfPresent([GraphQLError].self, forKey: .errors), !errors.isEmpty {
      self = .errors(errors)
    } else if let payload = try container.decodeIfPresent(Payload.self, forKey: .data) {
      self = .data(payload)
    } else {
      self = .empty
    }
  }
}

extension GraphQLReply {
  /// Reads the payload out of the body of a successful HTTP reply.
  static func payload(of body: Data) throws(APISessionError) -> Payload {
    guard !body.isEmpty else { throw .emptyReply }
    let reply: GraphQLReply
    do {
      reply = try JSONDecoder().decode(GraphQLReply.self, from: body)
    } catch {
      throw .undecodable(reason: CodingFailure.reason(of: error), excerpt: BodyExcerpt.text(of: body))
    }
    switch reply {
    case .data(let payload): return payload
    case .errors(let errors): throw .graphQL(errors)
    case .empty: throw .emptyReply
    }
  }
}

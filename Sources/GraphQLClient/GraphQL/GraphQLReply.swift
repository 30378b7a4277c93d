internal import Foundation

/// The body of a GraphQL response as it is decoded, before it is known whether it counts as one.
struct GraphQLReply<Payload: Decodable & Sendable>: Decodable, Sendable {
  /// What became of the `data` member.
  enum DataMember: Sendable {
    /// There is no such member: the request was not executed.
    case missing
    /// It is `null`: the execution failed as a whole.
    case null
    case payload(Payload)
    /// It is there and is no payload; the reason says where they differ.
    case mismatch(reason: String)
  }

  /// The most entries of `errors` that are kept.
  static var maximumErrorCount: Int { 100 }

  let data: DataMember
  let errors: [GraphQLError]
  let extensions: [String: JSONValue]
  /// Whether the object has a member that only a GraphQL response must have.
  let isGraphQL: Bool

  private enum CodingKeys: CodingKey {
    case data, errors, extensions
  }

  init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    isGraphQL = container.contains(.data) || container.contains(.errors)
    errors = try Self.errors(in: container)
    extensions = container.extensions(forKey: .extensions)
    if !container.contains(.data) {
      data = .missing
    } else if try container.decodeNil(forKey: .data) {
      data = .null
    } else {
      do {
        data = .payload(try container.decode(Payload.self, forKey: .data))
      } catch {
        // Where the server reports errors, they say better why a part is missing.
        data = .mismatch(reason: CodingFailure.reason(of: error))
      }
    }
  }

  private static func errors(in container: KeyedDecodingContainer<CodingKeys>) throws -> [GraphQLError] {
    guard container.contains(.errors), try !container.decodeNil(forKey: .errors) else { return [] }
    var list = try container.nestedUnkeyedContainer(forKey: .errors)
    var errors: [GraphQLError] = []
    var failure: (any Error)?
    while !list.isAtEnd, errors.count < maximumErrorCount {
      // An entry that isn't an error must not hide those that are.
      let entry = try list.superDecoder()
      do {
        errors.append(try GraphQLError(from: entry))
      } catch {
        failure = failure ?? error
      }
    }
    if errors.isEmpty, let failure { throw failure }
    return errors
  }

  /// Decodes the body of a response.
  ///
  /// - Throws: `DecodingError`.
  static func decode(_ body: Data) throws -> GraphQLReply {
    try JSONText.check(body)
    let decoder = JSONDecoder()
    decoder.userInfo[JSONValue.Budget.key] = JSONValue.Budget()
    return try decoder.decode(GraphQLReply.self, from: body)
  }
}

/// Only whether a body is shaped like a GraphQL response, for replies whose source is in doubt.
struct GraphQLShape: Decodable {
  private struct AnyError: Decodable {
    let message: String
  }

  private enum CodingKeys: CodingKey {
    case data, errors
  }

  init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    if container.contains(.data) { return }
    var errors = try container.nestedUnkeyedContainer(forKey: .errors)
    _ = try errors.decode(AnyError.self)
  }

  /// Whether `body` is a JSON object with `data`, or with `errors` that have a message.
  static func matches(_ body: Data) -> Bool {
    do {
      try JSONText.check(body)
      _ = try JSONDecoder().decode(GraphQLShape.self, from: body)
      return true
    } catch {
      // What does not decode is of another shape.
      return false
    }
  }
}

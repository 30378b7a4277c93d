internal import Foundation

/// The decoded body of a response that may be a GraphQL response.
struct GraphQLReply<Payload: Decodable & Sendable>: Decodable, Sendable {
  /// The result of decoding the `data` member.
  enum DataMember: Sendable {
    /// The member is missing, so the request wasn't executed.
    case missing
    /// The member is `null`, so the execution failed as a whole.
    case null
    case payload(Payload)
    /// The member exists but isn't a `Payload`.
    ///
    /// The reason describes the first difference.
    case mismatch(reason: String)
  }

  /// The maximum number of entries of `errors` that are kept.
  static var maximumErrorCount: Int { 100 }

  let data: DataMember
  let errors: [GraphQLError]
  let extensions: [String: JSONValue]
  /// Whether the object has a member that identifies it as a GraphQL response.
  let isGraphQL: Bool

  private enum CodingKeys: CodingKey {
    case data, errors, extensions
  }

  init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    isGraphQL = container.contains(.data) || container.contains(.errors)
    if !container.contains(.data) {
      data = .missing
    } else if try container.decodeNil(forKey: .data) {
      data = .null
    } else {
      do {
        data = .payload(try container.decode(Payload.self, forKey: .data))
      } catch {
        // Not thrown: if the server reports errors, they explain better why a part is missing.
        data = .mismatch(reason: CodingFailure.reason(of: error))
      }
    }
    do {
      errors = try Self.errors(in: container)
    } catch {
      // Invalid errors must not hide complete data, but they may be the only sign that it is partial.
      guard case .payload = data else { throw error }
      errors = [GraphQLError(message: "The errors of the reply are invalid: \(CodingFailure.reason(of: error))")]
    }
    // After the errors, because all extensions of a reply share a limit, and those of the errors say more.
    extensions = container.extensions(forKey: .extensions)
  }

  private static func errors(in container: KeyedDecodingContainer<CodingKeys>) throws -> [GraphQLError] {
    guard container.contains(.errors), try !container.decodeNil(forKey: .errors) else { return [] }
    var list = try container.nestedUnkeyedContainer(forKey: .errors)
    var errors: [GraphQLError] = []
    var firstFailure: (any Error)?
    while !list.isAtEnd, errors.count < maximumErrorCount {
      // An invalid entry must not hide the valid ones.
      let entry = try list.superDecoder()
      do {
        errors.append(try GraphQLError(from: entry))
      } catch {
        firstFailure = firstFailure ?? error
        if let named = GraphQLError(withoutMessage: entry) { errors.append(named) }
      }
    }
    if errors.isEmpty, let firstFailure { throw firstFailure }
    return errors
  }

  /// Decodes the body of a response, whose dates have the given format.
  ///
  /// - Throws: `DecodingError`.
  static func decode(_ body: Data, dates: DateCoding = .iso8601) throws -> GraphQLReply {
    let body = try JSONText.readable(body)
    let decoder = JSONDecoder()
    decoder.dateDecodingStrategy = dates.decoding
    decoder.userInfo[JSONValue.Budget.key] = JSONValue.Budget()
    return try decoder.decode(GraphQLReply.self, from: body)
  }
}

/// A check whether a body is shaped like a GraphQL response, for a response whose sender is uncertain.
struct GraphQLShape: Decodable {
  private struct ErrorEntry: Decodable {
    let message: String
  }

  /// A payload of any shape, of which nothing is decoded.
  private struct IgnoredPayload: Decodable {
    init(from decoder: any Decoder) {}
  }

  private enum CodingKeys: CodingKey {
    case data, errors
  }

  init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    if container.contains(.data) { return }
    var errors = try container.nestedUnkeyedContainer(forKey: .errors)
    _ = try errors.decode(ErrorEntry.self)
  }

  /// Returns the errors of a body that ``matches(_:)``; none if the body has no list of errors.
  static func errors(in body: Data) -> [GraphQLError] {
    do {
      return try GraphQLReply<IgnoredPayload>.decode(body).errors
    } catch {
      // The status and the beginning of the body still describe the failure.
      return []
    }
  }

  /// Whether `body` is a JSON object with `data`, or with a list of `errors` whose first entry has a message.
  static func matches(_ body: Data) -> Bool {
    do {
      _ = try JSONDecoder().decode(GraphQLShape.self, from: JSONText.readable(body))
      return true
    } catch {
      // A body that can't be decoded has another shape.
      return false
    }
  }
}

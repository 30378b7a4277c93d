/// The value of a field that the server has sent, even if it can't be read.
///
/// A reply to a mutation whose `data` holds the field of the mutation proves that the server has made the change.
/// Decode the field as this type if that matters more than its value.
///
/// Decoding throws only if the field is missing or `null`.
public enum GraphQLField<Value: Decodable & Sendable>: Decodable, Sendable {
  /// The value.
  case value(Value)
  /// The field has a value that isn't a `Value`.
  ///
  /// The reason describes the first difference. Its text is sanitized and truncated.
  case unreadable(reason: String)

  /// Decodes a field.
  ///
  /// - Parameter decoder: The decoder to read from.
  /// - Throws: `DecodingError.valueNotFound` if the field is `null`.
  public init(from decoder: any Decoder) throws {
    if try decoder.singleValueContainer().decodeNil() {
      throw DecodingError.valueNotFound(
        Value.self, .init(codingPath: decoder.codingPath, debugDescription: "The field is null"))
    }
    do {
      self = .value(try Value(from: decoder))
    } catch {
      self = .unreadable(reason: CodingFailure.reason(of: error))
    }
  }
}

extension GraphQLField: Equatable where Value: Equatable {}

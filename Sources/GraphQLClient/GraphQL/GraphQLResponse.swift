/// A GraphQL response with data, and with errors where the server could give only a part of it.
///
/// At most 100 errors are kept, and of all `extensions` together at most 1,000 values, 32 levels deep: an object with
/// more is left out whole.
public struct GraphQLResponse<Payload: Sendable>: Sendable {
  /// What was asked for.
  ///
  /// Where there are ``errors``, the fields they name are `nil`.
  public var data: Payload
  /// What went wrong with parts of the data; empty when it is complete.
  public var errors: [GraphQLError]
  /// What else the server says about the response.
  public var extensions: [String: JSONValue]

  /// Creates a response.
  public init(data: Payload, errors: [GraphQLError] = [], extensions: [String: JSONValue] = [:]) {
    self.data = data
    self.errors = errors
    self.extensions = extensions
  }
}

extension GraphQLResponse: Equatable where Payload: Equatable {}

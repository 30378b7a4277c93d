/// A GraphQL response with data, and with errors if the data is partial.
///
/// A session keeps at most 100 errors. All `extensions` of a response together may have at most 1,000 values, each at
/// most 32 levels below the root of the response; an `extensions` object that exceeds a limit is dropped as a whole.
public struct GraphQLResponse<Payload: Sendable>: Sendable {
  /// The requested data.
  ///
  /// If there are ``errors``, the fields that they name, or fields that contain these, are `nil`.
  public var data: Payload
  /// The errors of parts of the data; empty if the data is complete.
  public var errors: [GraphQLError]
  /// Additional data about the response, as the server sent it.
  public var extensions: [String: JSONValue]

  /// Creates a response.
  public init(data: Payload, errors: [GraphQLError] = [], extensions: [String: JSONValue] = [:]) {
    self.data = data
    self.errors = errors
    self.extensions = extensions
  }
}

extension GraphQLResponse: Equatable where Payload: Equatable {}

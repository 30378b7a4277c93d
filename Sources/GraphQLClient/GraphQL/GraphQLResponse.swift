/// A GraphQL response with data, and with errors if the data is partial.
///
/// A session keeps at most 100 errors. The `extensions` of a response and of its errors may together have at most 1,000
/// values, each at most 32 levels below the root of the response. An `extensions` object that exceeds a limit is
/// dropped as a whole.
public struct GraphQLResponse<Payload: Sendable>: Sendable {
  /// The requested data.
  ///
  /// For each of the ``errors`` with a path, a GraphQL server sends `null` for the field at that path, or for a field
  /// that contains it.
  public var data: Payload
  /// The errors that made the data partial; empty if the data is complete.
  public var errors: [GraphQLError]
  /// Additional data about the response, as the server sent it.
  public var extensions: [String: JSONValue]

  /// Creates a response.
  public init(data: Payload, errors: [GraphQLError] = [], extensions: [String: JSONValue] = [:]) {
    self.data = data
    self.errors = errors
    self.extensions = extensions
  }

  /// Returns a response with other data, and the same errors and extensions.
  ///
  /// - Parameter transform: A closure that returns the new data, for example a member of the present data.
  public func map<NewPayload: Sendable, Failure: Error>(
    _ transform: (Payload) throws(Failure) -> NewPayload
  ) throws(Failure) -> GraphQLResponse<NewPayload> {
    GraphQLResponse<NewPayload>(data: try transform(data), errors: errors, extensions: extensions)
  }
}

extension GraphQLResponse: Equatable where Payload: Equatable {}

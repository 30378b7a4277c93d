/// A response whose head has arrived and whose body is read as it arrives.
///
/// Releasing the last copy of the response and of its body's iterators before the body's end cancels the exchange.
public struct HTTPResponse: Sendable {
  /// The status code; final, so neither an interim response (1xx) nor a redirection that the transport has followed.
  public var status: Int
  /// The header fields.
  public var headers: HTTPHeaders
  /// The body, after decompression.
  public var body: HTTPBody

  /// Creates a response.
  public init(status: Int, headers: HTTPHeaders = HTTPHeaders(), body: HTTPBody) {
    self.status = status
    self.headers = headers
    self.body = body
  }
}

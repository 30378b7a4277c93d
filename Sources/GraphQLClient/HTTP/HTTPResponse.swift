/// A response whose head has arrived and whose body can be read as a stream.
///
/// Releasing the last copy of the response and of its body's iterators before the end of the body cancels the exchange.
public struct HTTPResponse: Sendable {
  /// The status code of the final response; interim responses (1xx other than 101) are skipped.
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

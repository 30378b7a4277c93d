/// A response whose head has arrived and whose body can be read as a stream.
///
/// The exchange is cancelled if all copies of the response, of its body and of the body's iterators are released before
/// the body has arrived completely.
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

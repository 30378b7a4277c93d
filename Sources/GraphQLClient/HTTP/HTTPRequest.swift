public import Foundation

/// An HTTP request to send with an ``HTTPTransport``.
public struct HTTPRequest: Sendable {
  /// The URL, with a host and the scheme `http` or `https`.
  public var url: URL
  /// The method, in uppercase.
  public var method: String
  /// The header fields.
  ///
  /// The transport adds the fields that frame the message, such as `Host` and `Content-Length`.
  public var headers: HTTPHeaders
  /// The body; empty for a request without one.
  public var body: Data
  /// The time that the caller waits for the whole exchange before it cancels the request.
  ///
  /// The caller enforces this limit. A transport only has to ensure that its own limits don't end the exchange earlier.
  public var timeout: Duration

  /// Creates a request.
  ///
  /// - Parameters:
  ///   - url: The URL, with a host and the scheme `http` or `https`.
  ///   - method: The method, in uppercase.
  ///   - headers: The header fields.
  ///   - body: The body; empty for a request without one.
  ///   - timeout: The time that the caller waits for the whole exchange.
  public init(
    url: URL, method: String, headers: HTTPHeaders = HTTPHeaders(), body: Data = Data(),
    timeout: Duration = .seconds(60)
  ) {
    self.url = url
    self.method = method
    self.headers = headers
    self.body = body
    self.timeout = timeout
  }
}

extension HTTPRequest {
  /// Checks that the request can be sent unchanged, and that it stays a single request.
  ///
  /// - Throws: `URLError(.unsupportedURL)` if the scheme of the URL isn't `http` or `https`, or if the URL has no host
  ///   or an invalid port; `URLError(.badURL)` if the method or a header field would corrupt the request or inject a
  ///   field or a second request.
  func check() throws(URLError) {
    guard Origin(url) != nil else { throw URLError(.unsupportedURL) }
    // A valid method is a token, like the name of a field.
    guard HTTPHeaders.Field(name: method, value: "").isValid, headers.nameOfFirstInvalidField == nil else {
      let description =
        "The HTTP method or header “\(ServerText.name(headers.nameOfFirstInvalidField ?? method))” cannot be sent"
      throw URLError(.badURL, userInfo: [NSLocalizedDescriptionKey: description])
    }
  }
}

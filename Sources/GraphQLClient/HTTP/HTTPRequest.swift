public import Foundation

/// An HTTP request for an ``HTTPTransport``.
public struct HTTPRequest: Sendable {
  /// The address, with the scheme `http` or `https` and a host.
  public var url: URL
  /// The method, in upper case.
  public var method: String
  /// The header fields.
  ///
  /// The transport adds those that carry the message itself, such as `Host` and `Content-Length`.
  public var headers: HTTPHeaders
  /// The body; empty for a request without one.
  public var body: Data
  /// How long the caller waits for the whole exchange before it cancels.
  ///
  /// The caller enforces it. A transport only has to make sure that no limit of its own ends the exchange earlier.
  public var timeout: Duration

  /// Creates a request.
  ///
  /// - Parameters:
  ///   - url: The address, with the scheme `http` or `https` and a host.
  ///   - method: The method, in upper case.
  ///   - headers: The header fields.
  ///   - body: The body; empty for a request without one.
  ///   - timeout: How long the caller waits for the whole exchange.
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
  /// Checks that the request can be sent as it is, and as one request.
  ///
  /// - Throws: `URLError(.unsupportedURL)` for another scheme or no host, `URLError(.badURL)` for a method or a header
  ///   field that would break the request or smuggle something into it.
  func check() throws(URLError) {
    guard Origin(url) != nil else { throw URLError(.unsupportedURL) }
    guard HTTPHeaders.Field(name: method, value: "").isValid, headers.firstInvalidName == nil else {
      let description =
        "The HTTP method or the header “\(ServerText.name(headers.firstInvalidName ?? method))” cannot be sent"
      throw URLError(.badURL, userInfo: [NSLocalizedDescriptionKey: description])
    }
  }
}

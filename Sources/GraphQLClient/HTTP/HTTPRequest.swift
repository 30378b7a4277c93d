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

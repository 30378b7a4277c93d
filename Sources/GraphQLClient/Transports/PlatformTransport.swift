public import Foundation

/// The transport of the platform: `URLSession` on Apple's systems, and libcurl, on which `URLSession` is built there,
/// on Linux.
///
/// ## Why not `URLSession` on Linux
///
/// Some responses end the process inside `URLSession` on Linux, and some can't be stopped; see ``URLSessionTransport``.
/// A library cannot work around that from the outside, so this transport calls libcurl itself, through `CurlTransport`.
/// The library is the one that Foundation is linked with, so nothing needs to be installed. Where it cannot be found,
/// as in a statically linked program, this transport is a ``URLSessionTransport`` with the limits described there.
///
/// Copies share their connections, which are closed when the last copy is gone.
public struct PlatformTransport: HTTPTransport {
  private let base: any HTTPTransport

  /// Creates a transport with connections of its own.
  public init() {
    #if os(Linux)
      base = CurlTransport() ?? URLSessionTransport()
    #else
      base = URLSessionTransport()
    #endif
  }

  /// Sends a request and returns the response as soon as its head has arrived.
  public func send(_ request: HTTPRequest) async throws(URLError) -> HTTPResponse {
    try await base.send(request)
  }
}

public import Foundation

/// The default transport of the platform: `URLSession` on Apple platforms, libcurl on Linux.
///
/// Copies of a transport share their connections. When the last copy is released, the connections close after the
/// exchanges that are in progress.
///
/// ## Why not `URLSession` on Linux
///
/// `URLSession` on Linux is built on libcurl. Some responses crash the process inside `URLSession`, and some can't be
/// stopped; see ``URLSessionTransport``. A library can't work around these problems from the outside, so this transport
/// uses `CurlTransport`, which calls libcurl directly. Foundation links libcurl too, so nothing needs to be installed.
/// If libcurl can't be found, as in a statically linked program, this transport falls back to ``URLSessionTransport``,
/// with the limitations described there.
public struct PlatformTransport: HTTPTransport {
  private let base: any HTTPTransport

  /// Creates a transport with its own connections.
  public init() {
    #if os(Linux)
      base = CurlTransport() ?? URLSessionTransport()
    #else
      base = URLSessionTransport()
    #endif
  }

  /// Sends a request with the platform's transport.
  public func send(_ request: HTTPRequest) async throws(URLError) -> HTTPResponse {
    try await base.send(request)
  }
}

#if os(Linux)
  internal import CCurl
  public import Foundation

  /// Carries requests by libcurl, the library that Foundation's `URLSession` is built on outside Apple's systems.
  ///
  /// ## Behavior
  ///
  /// - **Hostile servers**: A response's head may have 256 fields and 64 KiB, and the lengths and redirections it
  ///   claims mean nothing to the transport. An exchange that is cancelled or over a limit is closed at once, however
  ///   fast the server sends.
  /// - **Once**: A request is sent once. Where a connection that was kept turns out to be closed, the exchange fails
  ///   with `networkConnectionLost`, because the server may have acted on the request.
  /// - **Connections**: Each exchange has a thread and a connection of its own, so none holds up another. Both are used
  ///   again for 30 seconds. Beyond the limit for a host, requests wait in line.
  /// - **Backpressure**: A chunk has 16 KiB at most. While one waits to be taken, the transport reads nothing more.
  /// - **TLS and proxies**: As libcurl is configured on the system, with the certificates of the system and the
  ///   variables `https_proxy`, `http_proxy` and `no_proxy`.
  ///
  /// Copies of a transport share their connections, which are closed when the last copy is gone.
  public final class CurlTransport: HTTPTransport {
    private let pool: CurlPool

    /// Creates a transport.
    ///
    /// - Parameter maximumConnectionsPerHost: How many exchanges with one host run at once, at least 1.
    /// - Returns: `nil` where libcurl 7.68 or newer cannot be found at run time, as in a statically linked program.
    public init?(maximumConnectionsPerHost: Int = 6) {
      precondition(maximumConnectionsPerHost > 0, "A host needs one connection at least.")
      guard Self.isAvailable else { return nil }
      pool = CurlPool(maximumConnectionsPerHost: maximumConnectionsPerHost)
    }

    deinit {
      pool.close()
    }

    /// Whether libcurl was found; the search runs once.
    private static let isAvailable = CCurlOpen()

    /// Sends a request and returns the response as soon as its head has arrived.
    public func send(_ request: HTTPRequest) async throws(URLError) -> HTTPResponse {
      if Task.isCancelled { throw URLError(.cancelled) }
      try request.check()
      guard let origin = Origin(request.url) else { throw URLError(.unsupportedURL) }
      let transfer = Transfer()
      pool.add(CurlJob(request: request, transfer: transfer), to: origin)
      return try await transfer.response()
    }
  }
#endif

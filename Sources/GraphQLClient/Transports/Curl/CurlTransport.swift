#if os(Linux)
  internal import CCurl
  public import Foundation

  /// A transport that sends requests with libcurl, the library underneath Foundation's `URLSession` on Linux.
  ///
  /// ## Behavior
  ///
  /// - **Hostile servers**: Each head of a response, interim or final, may have at most 256 fields. All heads and
  ///   trailers of the response together may have at most 64 KiB. The transport doesn't rely on the lengths that a
  ///   response declares, and follows no redirections. An exchange that is cancelled or exceeds a limit ends
  ///   immediately, however fast the server sends.
  /// - **Single attempt**: A request is sent only once. If a reused connection turns out to be closed, the exchange
  ///   fails with `networkConnectionLost`, because the server may have acted on the request.
  /// - **Connections**: Each exchange has its own thread and its own connection, so that exchanges don't block each
  ///   other. Requests to one host beyond `maximumConnectionsPerHost` wait in a FIFO queue. For reuse, idle threads
  ///   keep their connections for 30 seconds. Over all hosts together, at most `maximumConnectionsPerHost` threads are
  ///   idle. With libcurl before 7.80, no connection is reused.
  /// - **Backpressure**: A chunk has at most 16 KiB. The transport reads nothing more until the chunk is taken.
  /// - **TLS and proxies**: The transport uses the TLS defaults of the system's libcurl, the certificates of the
  ///   system, and the environment variables `https_proxy`, `http_proxy` and `no_proxy`.
  ///
  /// When the transport is released, its idle connections close, and the others close after their exchanges.
  public final class CurlTransport: HTTPTransport {
    private let pool: CurlPool

    /// Creates a transport.
    ///
    /// - Parameter maximumConnectionsPerHost: The maximum number of concurrent exchanges with one host, at least 1.
    /// - Returns: `nil` if libcurl 7.68 or newer can't be found at run time, as in a statically linked program.
    public init?(maximumConnectionsPerHost: Int = 6) {
      precondition(maximumConnectionsPerHost > 0, "A host needs at least one connection.")
      guard Self.isAvailable else { return nil }
      pool = CurlPool(maximumConnectionsPerHost: maximumConnectionsPerHost)
    }

    deinit {
      pool.close()
    }

    /// Whether libcurl was found; determined once.
    private static let isAvailable = CCurlOpen()

    /// Sends a request on one of the transport's threads.
    public func send(_ request: HTTPRequest) async throws(URLError) -> HTTPResponse {
      if Task.isCancelled { throw .unsentRequest(.cancelled) }
      try request.check()
      guard let origin = Origin(request.url) else { throw URLError(.unsupportedURL) }
      let transfer = Transfer()
      pool.add(CurlJob(request: request, transfer: transfer), to: origin)
      return try await transfer.response()
    }
  }
#endif

public import Foundation

/// Carries HTTP requests to servers.
///
/// An ``APISession`` uses ``PlatformTransport`` unless its initializer receives another transport. Conform your own
/// type to send requests with another HTTP library, or to answer them without a network in tests.
///
/// ## Requirements
///
/// - **One exchange per call**: A transport sends the request once. It doesn't follow redirections, store cookies,
///   answer requests for credentials, or use a cache.
/// - **Head first**: ``send(_:)`` returns when the head of the final response has arrived, regardless of its status. It
///   throws only if no complete head arrives.
/// - **Backpressure**: A transport reads the body at the pace of its consumer; see ``HTTPBody``.
/// - **Cancellation**: When the calling task is cancelled, ``send(_:)`` throws `URLError(.cancelled)` immediately and
///   the exchange ends. It also ends if the response and its body are released before the end of the body; see
///   ``HTTPResponse``. A transport sends nothing for a task that is already cancelled.
/// - **Threads**: A transport never blocks the caller's thread.
public protocol HTTPTransport: Sendable {
  /// Sends a request and returns the response as soon as its head has arrived.
  ///
  /// - Parameter request: The request.
  /// - Returns: The response, regardless of its status.
  /// - Throws: `URLError`. Its code says whether the server may have received the request:
  ///   - `unsupportedURL` and `badURL`: The request is invalid, and the server received nothing.
  ///   - `cannotFindHost`, `dnsLookupFailed`, `cannotConnectToHost` and `notConnectedToInternet`: The server received
  ///     nothing.
  ///   - `networkConnectionLost` and `timedOut`: The server may have acted on the request.
  ///   - `badServerResponse`: The server has answered, but its response isn't HTTP, or its head is too large.
  ///   - `cancelled`: The calling task was cancelled, or the system cancelled the exchange. The server may have acted
  ///     on the request.
  ///   - Any code, if the error was created by `URLError.unsentRequest(_:_:)`: The server received nothing.
  ///   - Any other code, such as that of a TLS failure: It is unknown whether the server received the request.
  func send(_ request: HTTPRequest) async throws(URLError) -> HTTPResponse
}

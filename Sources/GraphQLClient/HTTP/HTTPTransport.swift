public import Foundation

/// Carries HTTP requests to servers.
///
/// An ``APISession`` uses ``PlatformTransport`` unless it is given another. Conform a type of your own to send requests
/// by another HTTP library, or to answer them without a network in tests.
///
/// ## What a transport promises
///
/// - **One exchange a call**: It sends the request once. It follows no redirection, stores no cookie, answers no
///   request for credentials, and takes no response from a cache.
/// - **Head first**: ``send(_:)`` returns when the head of the final response has arrived. Any status is a response;
///   only an exchange that brings no complete head throws.
/// - **Backpressure**: The body is read as it is taken, see ``HTTPBody``.
/// - **Cancellation**: When the calling task is cancelled, ``send(_:)`` throws `URLError(.cancelled)` at once and the
///   exchange ends. So does releasing the response before the end of its body. A task that is cancelled already sends
///   nothing.
/// - **Threads**: It never blocks the thread of a caller.
public protocol HTTPTransport: Sendable {
  /// Sends a request and returns the response as soon as its head has arrived.
  ///
  /// - Parameter request: The request.
  /// - Returns: The response, whatever its status.
  /// - Throws: `URLError`, whose code says what is known: `cannotFindHost`, `cannotConnectToHost` and
  ///   `notConnectedToInternet` mean that the server surely got nothing, as do `unsupportedURL` and `badURL`, which are
  ///   about the request itself; `networkConnectionLost` and `timedOut`, that it may have acted on the request;
  ///   `badServerResponse`, that what it sent is not HTTP; `cancelled`, that the calling task was cancelled.
  func send(_ request: HTTPRequest) async throws(URLError) -> HTTPResponse
}

internal import Dispatch
public import Foundation

#if canImport(FoundationNetworking)
  public import FoundationNetworking
#endif

/// A transport that sends requests with a `URLSession`.
///
/// When the transport is released, its connections close after the exchanges that are in progress.
///
/// ## Linux
///
/// > Important: On Linux use this transport only for servers that you trust, and use `CurlTransport` otherwise.
///
/// As of Swift 6.3, Foundation's `URLSession` on Linux crashes the **process** on responses with
///
/// - a truncated head, for example because the server stopped while sending it,
/// - a `Content-Length` from 9223372036854775296 to 9223372036854775807,
/// - trailers after a chunked body,
/// - a status from 301 to 308 and a `Location` whose host can't be part of a URL, such as `//%00/`.
///
/// On Linux all sessions of a process share one queue, so a response that keeps the queue busy delays every other
/// request of the process. One example is a redirection with an endless body, which is kept in memory and can't be
/// stopped. Another is a response with many header fields, which take time quadratic in their number. The caller's
/// timeout and cancellation still work, because this transport calls the session on a separate queue.
///
/// On Linux a task can't be paused. An exchange therefore ends with `URLError(.dataLengthExceedsMaximum)` once more
/// than 64 MiB of its body are waiting for the caller.
///
/// - SeeAlso: [swift-corelibs-foundation](https://github.com/swiftlang/swift-corelibs-foundation)
public final class URLSessionTransport: HTTPTransport {
  private let session: URLSession
  private let events: URLSessionEvents
  /// The queue on which tasks are created, started and cancelled, because on Linux these calls wait for the session's
  /// own work.
  private let queue: DispatchQueue

  /// Creates a transport.
  ///
  /// - Parameter configuration: The configuration of the session. The transport copies it, and ignores its cache, its
  ///   cookies and its credential storage.
  public init(configuration: URLSessionConfiguration = .ephemeral) {
    let configuration = configuration.copy() as? URLSessionConfiguration ?? .ephemeral
    // A transport uses no cache. Moreover, on Linux the process crashes if a task is cancelled while its session
    // accesses a cache or the stored credentials.
    configuration.urlCache = nil
    configuration.urlCredentialStorage = nil
    configuration.httpCookieStorage = nil
    configuration.httpShouldSetCookies = false
    configuration.httpCookieAcceptPolicy = .never
    let queue = DispatchQueue(label: "GraphQLClient.URLSessionTransport")
    self.queue = queue
    events = URLSessionEvents(queue: queue)
    #if canImport(FoundationNetworking)
      session = URLSession(configuration: configuration, delegate: events, delegateQueue: InlineDelegateQueue())
    #else
      session = URLSession(configuration: configuration, delegate: events, delegateQueue: nil)
    #endif
  }

  deinit {
    // A session keeps its delegate, its threads and its connections until it is invalidated. The invalidation is queued
    // after earlier requests, because creating a task in an invalidated session crashes the process.
    queue.async { [session] in session.finishTasksAndInvalidate() }
  }

  /// Sends a request with a task of the transport's session.
  public func send(_ request: HTTPRequest) async throws(URLError) -> HTTPResponse {
    if Task.isCancelled { throw .unsentRequest(.cancelled) }
    try request.check()
    let transfer = Transfer()
    let urlRequest = URLRequest(request)
    queue.async { [session, events, queue] in
      let task = session.dataTask(with: urlRequest)
      let flow = URLSessionFlow(task: task, transfer: transfer, queue: queue)
      guard transfer.begin(flow.network) else {
        task.cancel()
        return
      }
      events.register(transfer, flow, for: task)
      task.resume()
    }
    return try await transfer.response()
  }
}

extension URLRequest {
  fileprivate init(_ request: HTTPRequest) {
    self.init(url: request.url)
    httpMethod = request.method
    for field in request.headers.fields { setValue(field.value, forHTTPHeaderField: field.name) }
    if !request.body.isEmpty { httpBody = request.body }
    // Limits the idle time. Because of the margin, the caller's own limit expires first, unless it is about a day or
    // longer. Rounds up to whole seconds, because Linux rounds down.
    let margin = 2.0
    let oneDay = 24 * 60 * 60.0
    timeoutInterval = min(max(request.timeout / .seconds(1), 0) + margin, oneDay).rounded(.up)
  }
}

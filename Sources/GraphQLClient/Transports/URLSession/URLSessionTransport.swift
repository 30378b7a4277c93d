internal import Dispatch
public import Foundation

#if canImport(FoundationNetworking)
  public import FoundationNetworking
#endif

/// Carries requests by a `URLSession`.
///
/// Copies of a transport share their connections, which are closed when the last copy is gone.
///
/// ## Linux
///
/// Choose this transport on Linux only for servers that you trust, and use `CurlTransport` otherwise. Foundation's
/// `URLSession` ends the **process** there, as of Swift 6.3, on responses with
///
/// - a head that is cut off, as when a server is stopped in the middle of it,
/// - a `Content-Length` from 9223372036854775296 to 9223372036854775807,
/// - trailers behind a chunked body,
/// - the status 301 to 308 and a `Location` whose host cannot be part of a URL, such as `//%00/`.
///
/// All sessions of a process share one queue there. So a response that keeps it busy delays every other request of the
/// process: an endless redirection, which is kept in memory and cannot be stopped, or many header fields, which take
/// time that grows with the square of their number. A caller's timeout and cancellation hold all the same, because this
/// transport calls the session on a queue of its own. A task there cannot be held up either, so an exchange of which
/// 64 MiB wait to be taken ends with `URLError(.dataLengthExceedsMaximum)`.
///
/// - SeeAlso: [swift-corelibs-foundation](https://github.com/swiftlang/swift-corelibs-foundation)
public final class URLSessionTransport: HTTPTransport {
  private let session: URLSession
  private let events: URLSessionEvents
  /// Where tasks are made, started and cancelled: on Linux that waits for the session's own work.
  private let queue: DispatchQueue

  /// Creates a transport.
  ///
  /// - Parameter configuration: How the session behaves. The transport takes a copy, and ignores its cache, its cookies
  ///   and its credential storage.
  public init(configuration: URLSessionConfiguration = .ephemeral) {
    let configuration = configuration.copy() as? URLSessionConfiguration ?? .ephemeral
    // No response comes from a cache; and on Linux a task that is cancelled while its session looks into one, or into
    // the stored credentials, ends the process.
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
    // A session keeps its delegate, its threads and its connections until it is invalidated. That comes behind the
    // requests that were sent before, since making a task of an invalidated session ends the process.
    queue.async { [session] in session.finishTasksAndInvalidate() }
  }

  /// Sends a request and returns the response as soon as its head has arrived.
  public func send(_ request: HTTPRequest) async throws(URLError) -> HTTPResponse {
    if Task.isCancelled { throw URLError(.cancelled) }
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
    // A limit on idleness that the caller's own always precedes. Whole seconds, since Linux rounds down.
    let oneDay = 24 * 60 * 60.0
    timeoutInterval = min(max(request.timeout / .seconds(1), 0) + 2, oneDay).rounded(.up)
  }
}

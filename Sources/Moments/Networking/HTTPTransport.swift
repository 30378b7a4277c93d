internal import Dispatch
internal import Foundation

#if canImport(FoundationNetworking)
  internal import FoundationNetworking
#endif

/// Sends HTTP requests over one `URLSession`, each with a deadline and a limit on its reply.
final class HTTPTransport: Sendable {
  private let urlSession: URLSession
  private let registry = HTTPExchangeRegistry()
  private let cancellationQueue = DispatchQueue(label: "Moments.HTTPTransport.cancellation")

  /// Creates a transport.
  ///
  /// - Parameter configuration: How the session behaves; a copy is used, without its cache and credential storage.
  init(configuration: URLSessionConfiguration) {
    let configuration = configuration.copy() as? URLSessionConfiguration ?? .ephemeral
    // A POST is never answered from a cache, and on Linux a task that is cancelled while its session looks into one,
    // or into the stored credentials, traps.
    configuration.urlCache = nil
    configuration.urlCredentialStorage = nil
    urlSession = URLSession(configuration: configuration, delegate: registry, delegateQueue: HTTPDelegateQueue())
  }

  deinit {
    // A session keeps its delegate, its threads and its connections until it is invalidated.
    urlSession.finishTasksAndInvalidate()
  }

  /// Sends `request` and gives the body of a successful reply.
  ///
  /// - Parameters:
  ///   - request: The request.
  ///   - timeout: The time the whole exchange may take.
  ///   - maximumReplySize: The most bytes the body may have; at most as much is kept in memory.
  /// - Returns: The body of a reply with a status of 2xx; it may be empty.
  /// - Throws: ``APISessionError`` if there is no such reply in time.
  func send(_ request: URLRequest, timeout: Duration, maximumReplySize: Int) async throws(APISessionError) -> Data {
    guard !Task.isCancelled else { throw .cancelled }
    let request = request.withIdleTimeout(beyond: timeout)
    let outcome = await withTaskGroup { group in
      group.addTask {
        await self.exchange(request, maximumReplySize: maximumReplySize)
      }
      group.addTask { () -> HTTPExchange.Outcome in
        do {
          try await Task.sleep(for: timeout)
          return .failure(.timedOut)
        } catch {
          return .failure(.cancelled)
        }
      }
      let first = await group.next()
      group.cancelAll()
      return first ?? .failure(.cancelled)
    }
    return try outcome.get()
  }

  private func exchange(_ request: URLRequest, maximumReplySize: Int) async -> HTTPExchange.Outcome {
    let task = urlSession.dataTask(with: request)
    let exchange = HTTPExchange(
      task: task, cancellationQueue: cancellationQueue, maximumReplySize: maximumReplySize)
    registry.register(exchange, for: task)
    return await exchange.run()
  }
}

extension URLRequest {
  /// The request with an idle timeout that the deadline of the whole exchange always precedes.
  ///
  /// Without it a session ends a request that is idle for its own default time, however long the caller would wait.
  fileprivate func withIdleTimeout(beyond timeout: Duration) -> URLRequest {
    var request = self
    let oneDay = 24 * 60 * 60.0
    // Whole seconds, since Linux rounds down.
    request.timeoutInterval = min(max(timeout / .seconds(1), 0) + 2, oneDay).rounded(.up)
    return request
  }
}

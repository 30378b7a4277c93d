internal import Foundation
internal import Multicast

#if canImport(FoundationNetworking)
  internal import FoundationNetworking
#endif

/// The delegate of a `URLSession` that passes each task's events to the task's exchange.
///
/// A registry rather than delegates of single tasks, which Linux does not call.
final class HTTPExchangeRegistry: NSObject, URLSessionDataDelegate, Sendable {
  private let exchanges = Lock<[Int: HTTPExchange]>([:])

  /// Passes the events of `task` to `exchange` until the task completes.
  func register(_ exchange: HTTPExchange, for task: URLSessionTask) {
    exchanges.withLock { $0[task.taskIdentifier] = exchange }
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    exchanges.withLock { $0[dataTask.taskIdentifier] }?.receive(data)
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    exchanges.withLock { $0.removeValue(forKey: task.taskIdentifier) }?.complete(error: error)
  }

  /// Refuses redirections: the redirecting reply becomes the outcome.
  ///
  /// Following one would turn a POST into a GET and might hand the request's headers to another host.
  func urlSession(
    _ session: URLSession,
    task: URLSessionTask,
    willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest,
    completionHandler: @escaping (URLRequest?) -> Void
  ) {
    completionHandler(nil)
  }

  /// Leaves the trust in a server to the system and answers no other challenge: credentials travel in headers, and a
  /// reply of status 401 becomes the outcome.
  func urlSession(
    _ session: URLSession,
    task: URLSessionTask,
    didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    switch challenge.protectionSpace.authenticationMethod {
    case NSURLAuthenticationMethodHTTPBasic, NSURLAuthenticationMethodHTTPDigest, NSURLAuthenticationMethodDefault:
      completionHandler(.rejectProtectionSpace, nil)
    default:
      completionHandler(.performDefaultHandling, nil)
    }
  }
}

internal import Dispatch
internal import Foundation
internal import Multicast

#if canImport(FoundationNetworking)
  internal import FoundationNetworking
#endif

/// The delegate of a `URLSession`, which forwards the events of each task to the task's transfer.
///
/// It is one delegate with a registry of tasks, because Linux doesn't call the delegates of individual tasks.
final class URLSessionEvents: NSObject, URLSessionDataDelegate, Sendable {
  private struct Entry {
    let transfer: Transfer
    let flow: URLSessionFlow
  }

  private let entries = Lock<[Int: Entry]>([:])
  /// The queue on which challenges are rejected.
  ///
  /// A rejection calls the session, which the delegate must not do directly; see ``InlineDelegateQueue``.
  private let queue: DispatchQueue

  init(queue: DispatchQueue) {
    self.queue = queue
  }

  /// Forwards the events of `task` to `transfer`, and its chunks of data through `flow`, until the task completes.
  func register(_ transfer: Transfer, _ flow: URLSessionFlow, for task: URLSessionTask) {
    entries.withLock { $0[task.taskIdentifier] = Entry(transfer: transfer, flow: flow) }
  }

  private func entry(of task: URLSessionTask) -> Entry? {
    entries.withLock { $0[task.taskIdentifier] }
  }

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
  ) {
    if let response = response as? HTTPURLResponse, response.isFinal {
      entry(of: dataTask)?.transfer.receive(head: HTTPHead(response))
    }
    completionHandler(.allow)
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    entry(of: dataTask)?.flow.receive(data)
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    entries.withLock { $0.removeValue(forKey: task.taskIdentifier) }?.transfer
      .end(error: error.map { $0 as? URLError ?? URLError(.unknown, userInfo: [NSUnderlyingErrorKey: $0]) })
  }

  /// Declines a redirection, so that the redirecting response becomes the final response.
  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
  ) {
    completionHandler(nil)
  }

  /// Lets the system evaluate the trust in a server, and rejects challenges that ask for credentials, so that a
  /// response with status 401 becomes the final response.
  func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    switch challenge.protectionSpace.authenticationMethod {
    case NSURLAuthenticationMethodHTTPBasic, NSURLAuthenticationMethodHTTPDigest, NSURLAuthenticationMethodDefault,
      NSURLAuthenticationMethodNTLM, NSURLAuthenticationMethodNegotiate:
      #if canImport(FoundationNetworking)
        // On Linux the challenge arrives when the response is complete, and a rejection counts as a cancellation of the
        // task. So the transfer must end before the rejection.
        entries.withLock { $0.removeValue(forKey: task.taskIdentifier) }?.transfer.end(error: nil)
      #endif
      queue.async { completionHandler(.rejectProtectionSpace, nil) }
    default:
      completionHandler(.performDefaultHandling, nil)
    }
  }
}

extension HTTPURLResponse {
  /// Whether this is the final response; Linux also reports interim responses (1xx other than 101).
  fileprivate var isFinal: Bool { statusCode >= 200 || statusCode == 101 }
}

extension HTTPHead {
  fileprivate init(_ response: HTTPURLResponse) {
    var headers = HTTPHeaders()
    for (name, value) in response.allHeaderFields {
      guard let name = name as? String, let value = value as? String else { continue }
      // Linux doesn't remove trailing white space.
      headers[name] = value.trimmingCharacters(in: .whitespaces)
    }
    self.init(status: response.statusCode, headers: headers)
  }
}

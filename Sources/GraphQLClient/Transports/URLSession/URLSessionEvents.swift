internal import Dispatch
internal import Foundation
internal import Multicast

#if canImport(FoundationNetworking)
  internal import FoundationNetworking
#endif

/// The delegate of a `URLSession` that passes each task's events to the task's transfer.
///
/// A registry rather than delegates of single tasks, which Linux does not call.
final class URLSessionEvents: NSObject, URLSessionDataDelegate, Sendable {
  private struct Entry {
    let transfer: Transfer
    let flow: URLSessionFlow
  }

  private let entries = Lock<[Int: Entry]>([:])
  /// Where to answer challenges, see ``InlineDelegateQueue``.
  private let queue: DispatchQueue

  init(queue: DispatchQueue) {
    self.queue = queue
  }

  /// Passes the events of `task` to `transfer` until the task completes.
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

  /// Refuses redirections: the redirecting response is the response.
  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
  ) {
    completionHandler(nil)
  }

  /// Leaves the trust in a server to the system and answers no other challenge: a status of 401 is a response.
  func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    switch challenge.protectionSpace.authenticationMethod {
    case NSURLAuthenticationMethodHTTPBasic, NSURLAuthenticationMethodHTTPDigest, NSURLAuthenticationMethodDefault,
      NSURLAuthenticationMethodNTLM, NSURLAuthenticationMethodNegotiate:
      #if canImport(FoundationNetworking)
        // Linux asks when the response is complete, and takes a refusal for a cancellation of the task.
        entries.withLock { $0.removeValue(forKey: task.taskIdentifier) }?.transfer.end(error: nil)
      #endif
      queue.async { completionHandler(.rejectProtectionSpace, nil) }
    default:
      completionHandler(.performDefaultHandling, nil)
    }
  }
}

extension HTTPURLResponse {
  /// Whether no other response follows this one; Linux passes interim ones on as well.
  fileprivate var isFinal: Bool { statusCode >= 200 || statusCode == 101 }
}

extension HTTPHead {
  fileprivate init(_ response: HTTPURLResponse) {
    var headers = HTTPHeaders()
    for (name, value) in response.allHeaderFields {
      guard let name = name as? String, let value = value as? String else { continue }
      // Linux leaves blanks behind a value.
      headers[name] = value.trimmingCharacters(in: .whitespaces)
    }
    self.init(status: response.statusCode, headers: headers)
  }
}

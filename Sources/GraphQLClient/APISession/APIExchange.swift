internal import Foundation

/// One call of a session: sends the request, follows redirections, and reads the response up to the limit that
/// ``ResponseRules`` sets.
struct APIExchange: Sendable {
  typealias Received = (rules: ResponseRules, body: Data, isComplete: Bool)

  let request: HTTPRequest
  /// Returns the value of the request's `Authorization`, or `nil` for a request without it; called once.
  let authorization: (@Sendable () async -> String?)?
  /// The only header fields that are sent after a redirection to an origin other than the request's.
  let crossOriginHeaders: HTTPHeaders
  let maximumReplySize: Int
  let redirects: RedirectPolicy
  let transport: any HTTPTransport

  /// The result of one part of an exchange.
  private struct Failure: Error {
    let error: APISessionError
    /// Whether the server certainly received nothing.
    var isUnsent = false
  }

  /// Runs the exchange until it completes, the timeout expires, or the calling task is cancelled.
  func run(timeout: Duration, clock: any Clock<Duration>) async throws(APISessionError) -> Received {
    if Task.isCancelled { throw .cancelled }
    let outcome = await withTaskGroup { group -> Result<Received, APISessionError> in
      group.addTask { await sendAndReceive() }
      group.addTask {
        do {
          try await clock.sleep(for: timeout, tolerance: nil)
          return .failure(Failure(error: .timedOut))
        } catch {
          return .failure(Failure(error: .cancelled))
        }
      }
      let first = await group.next()
      group.cancelAll()
      // The exchange ends because of the cancellation, and says whether the request was sent.
      if case .failure(let failure) = first, failure.error == .timedOut, case .failure(let end) = await group.next(),
        end.isUnsent
      {
        return .failure(.transport(.unsentRequest(.timedOut, Self.unsentDescription)))
      }
      return first?.mapError(\.error) ?? .failure(.cancelled)
    }
    // A transport may report the cancellation as a lost connection.
    if case .failure = outcome, Task.isCancelled { throw .cancelled }
    return try outcome.get()
  }

  private static let unsentDescription =
    "The time for the request ended before it was sent, for example because it waited for a free connection"

  private func sendAndReceive() async -> Result<Received, Failure> {
    var request = request
    if let authorization {
      request.headers["Authorization"] = await authorization()
      if let name = request.headers.nameOfFirstInvalidField {
        return .failure(Failure(error: .invalidHeader(name: name), isUnsent: true))
      }
      if Task.isCancelled { return .failure(Failure(error: .cancelled, isUnsent: true)) }
    }
    var redirectCount = 0
    do throws(URLError) {
      while true {
        let response = try await transport.send(request)
        let target = redirects.target(
          status: response.status, location: response.headers["Location"], from: request.url)
        if let target, redirectCount < RedirectPolicy.maximumCount {
          redirectCount += 1
          request = redirected(request, to: target)
          continue
        }
        let rules = ResponseRules(
          status: response.status, headers: response.headers, maximumReplySize: maximumReplySize)
        if rules.declaresOversizedBody { return .failure(Failure(error: .replyTooLarge(limit: maximumReplySize))) }
        let (body, isComplete) = try await read(response.body, upTo: rules.maximumBodySize, status: response.status)
        return .success((rules, body, isComplete))
      }
    } catch {
      // The server that redirected the request has received it, even if the target hasn't. It didn't act on it.
      return .failure(
        Failure(
          error: APISessionError(error, isCallCancelled: Task.isCancelled), isUnsent: error.impliesUnsentRequest))
    }
  }

  private func redirected(_ request: HTTPRequest, to target: URL) -> HTTPRequest {
    var redirected = request
    redirected.url = target
    if Origin(target) != Origin(self.request.url) { redirected.headers = crossOriginHeaders }
    return redirected
  }

  /// Reads a body up to a limit, and returns the bytes and whether they are the complete body.
  private func read(_ body: HTTPBody, upTo limit: Int, status: Int) async throws(URLError) -> (Data, isComplete: Bool) {
    var bytes = Data()
    do throws(URLError) {
      for try await chunk in body {
        guard chunk.count <= limit - bytes.count else {
          bytes.append(chunk.prefix(limit - bytes.count))
          return (bytes, false)
        }
        bytes.append(chunk)
      }
      return (bytes, true)
    } catch {
      // The status and the header fields suffice to describe a failure. Therefore, an error while reading the body of
      // a failure is ignored, unless the error is a cancellation.
      guard !(200...299).contains(status), error.code != .cancelled else { throw error }
      return (bytes, false)
    }
  }
}

extension APISessionError {
  fileprivate init(_ error: URLError, isCallCancelled: Bool) {
    switch error.code {
    case .timedOut where !error.impliesUnsentRequest: self = .timedOut
    // The system cancels requests too. The caller sees that as a failure of the transport, not as a cancellation.
    case .cancelled where isCallCancelled: self = .cancelled
    default: self = .transport(error.sanitized)
    }
  }
}

internal import Foundation

/// What one HTTP exchange has come to: a pure state machine that takes events and says what to do about them.
///
/// It promises that a waiter handed to ``start(_:)`` is handed back exactly once, with the outcome of whichever came
/// first: the end of the reply, a reply beyond the limit, a failure, or a cancellation. Every later event is ignored.
/// It never keeps more of a body than the limit allows.
///
///     created ── start ──▶ receiving ── reply complete, too large, failed, cancelled ──▶ finished
///        └───────────────────── cancelled ──────────────────────────────────────────────────▲
struct HTTPExchangeState<Waiter: Sendable>: Sendable {
  typealias Outcome = Result<Data, APISessionError>

  private enum Phase {
    /// The request has not been sent, nobody waits.
    case created
    /// The request is under way and `Waiter` wants its outcome; the body so far is in `body`.
    case receiving(Waiter)
    /// The outcome is out, or the exchange was cancelled before anybody waited for it.
    case finished
  }

  private let maximumReplySize: Int
  private var phase = Phase.created
  private var body = Data()

  init(maximumReplySize: Int) {
    self.maximumReplySize = maximumReplySize
  }

  enum StartAction {
    /// Send the request.
    case send
    /// Send nothing; hand the outcome to the waiter.
    case finish(Waiter, Outcome)
  }

  /// Somebody waits for the outcome.
  ///
  /// Call it once.
  mutating func start(_ waiter: Waiter) -> StartAction {
    switch phase {
    case .created:
      phase = .receiving(waiter)
      return .send
    case .receiving:
      preconditionFailure("An HTTP exchange has one waiter; make another exchange for another request.")
    case .finished:
      return .finish(waiter, .failure(.cancelled))
    }
  }

  enum ReceiveAction {
    /// Go on reading.
    case proceed
    /// Stop reading, and hand the outcome to the waiter.
    case stop(Waiter, Outcome)
    /// Stop reading; the outcome is out already.
    case ignore
  }

  /// A part of the body arrived.
  ///
  /// - Parameters:
  ///   - chunk: The part.
  ///   - statusCode: The status of the reply it belongs to.
  ///   - expectedLength: The length the reply claims to have, or a negative number if it claims none.
  /// - Returns: Whether to go on reading.
  mutating func receive(_ chunk: Data, statusCode: Int, expectedLength: Int64) -> ReceiveAction {
    guard case .receiving(let waiter) = phase else { return .ignore }
    if Self.isSuccess(statusCode) {
      guard expectedLength <= Int64(maximumReplySize), chunk.count <= maximumReplySize - body.count else {
        return .stop(waiter, finish(.failure(.replyTooLarge(limit: maximumReplySize))))
      }
      body.append(chunk)
      return .proceed
    }
    // Of a refusal only the beginning is shown, so the rest is not worth waiting for.
    body.append(chunk.prefix(BodyExcerpt.maximumByteCount + 1 - body.count))
    guard body.count > BodyExcerpt.maximumByteCount else { return .proceed }
    return .stop(waiter, finish(.failure(statusError(statusCode))))
  }

  enum FinishAction {
    /// Hand the outcome to the waiter.
    case finish(Waiter, Outcome)
    /// The outcome is out already.
    case ignore
  }

  /// The transfer ended.
  ///
  /// - Parameters:
  ///   - statusCode: The status of the reply, or nil if none arrived.
  ///   - error: Why the transfer ended early, or nil if it did not.
  /// - Returns: Whom to tell.
  mutating func complete(statusCode: Int?, error: URLError?) -> FinishAction {
    guard case .receiving(let waiter) = phase else { return .ignore }
    switch (statusCode, error) {
    case (let statusCode?, _) where !Self.isSuccess(statusCode):
      // A status is the server's answer, whatever became of the text after it.
      return .finish(waiter, finish(.failure(statusError(statusCode))))
    case (_, let error?) where error.code == .timedOut:
      return .finish(waiter, finish(.failure(.timedOut)))
    case (_, let error?):
      return .finish(waiter, finish(.failure(.transport(error))))
    case (_?, nil):
      return .finish(waiter, finish(.success(body)))
    case (nil, nil):
      return .finish(waiter, finish(.failure(.transport(URLError(.badServerResponse)))))
    }
  }

  enum CancelAction {
    /// Give the request up; nobody waits yet.
    case giveUp
    /// Give the request up, and hand the outcome to the waiter.
    case stop(Waiter, Outcome)
    /// The outcome is out already.
    case ignore
  }

  /// Nobody wants the outcome any more.
  mutating func cancel() -> CancelAction {
    switch phase {
    case .created:
      phase = .finished
      return .giveUp
    case .receiving(let waiter):
      return .stop(waiter, finish(.failure(.cancelled)))
    case .finished:
      return .ignore
    }
  }

  private mutating func finish(_ outcome: Outcome) -> Outcome {
    phase = .finished
    body = Data()
    return outcome
  }

  private func statusError(_ statusCode: Int) -> APISessionError {
    .statusCode(statusCode, bodyExcerpt: BodyExcerpt.text(of: body))
  }

  private static func isSuccess(_ statusCode: Int) -> Bool {
    (200...299).contains(statusCode)
  }
}

extension HTTPExchangeState.StartAction: Equatable where Waiter: Equatable {}
extension HTTPExchangeState.ReceiveAction: Equatable where Waiter: Equatable {}
extension HTTPExchangeState.FinishAction: Equatable where Waiter: Equatable {}
extension HTTPExchangeState.CancelAction: Equatable where Waiter: Equatable {}

internal import Foundation

/// The head of a response.
struct HTTPHead: Equatable, Sendable {
  var status: Int
  var headers: HTTPHeaders
}

/// A pure state machine of one transfer between the network and a caller.
///
/// The network side calls ``begin()``, ``receive(head:)``, ``receive(chunk:)`` and ``end(error:)``. The caller side
/// calls ``awaitHead(_:)``, then ``take(_:)`` for each chunk, and ``cancel()`` at any time. If there is nothing to give
/// to a waiter yet, the machine keeps the waiter, and exactly one later call returns it.
///
///     created ── begin ──▶ running ── end ──▶ ended
///        └────────────────────┴─── cancel ──────┴──▶ cancelled
///
/// To bound the memory, the network side pauses while a chunk is pending, that is, received but not yet taken.
struct TransferState<HeadWaiter: Sendable, ChunkWaiter: Sendable>: Sendable {
  private enum Phase {
    case created
    case running
    /// The network side is done, with or without an error. Chunks may still be pending.
    case ended(URLError?)
    /// The error says whether the request was sent, that is, whether the transfer had begun.
    case cancelled(URLError)
  }

  private var phase = Phase.created
  private var head: HTTPHead?
  private var headWaiter: HeadWaiter?
  /// The pending chunks; more than one only if the network side can't pause, or paused late.
  private var chunks: [Data] = []
  private var chunkWaiter: ChunkWaiter?

  init() {}

  enum BeginAction: Equatable {
    /// Send the request.
    case send
    /// Send nothing, because the transfer was cancelled.
    case skip
  }

  /// Begins the transfer; called before the network side sends the request.
  mutating func begin() -> BeginAction {
    switch phase {
    case .created:
      phase = .running
      return .send
    case .cancelled:
      return .skip
    case .running, .ended:
      preconditionFailure("A transfer begins only once; create another one for another request.")
    }
  }

  enum AwaitHeadAction {
    case wait
    case resume(HeadWaiter, Result<HTTPHead, URLError>)
  }

  /// Takes the head, or registers the caller's waiter for it; called once.
  mutating func awaitHead(_ waiter: HeadWaiter) -> AwaitHeadAction {
    precondition(headWaiter == nil, "A transfer has one caller.")
    if case .cancelled(let error) = phase { return .resume(waiter, .failure(error)) }
    if let head { return .resume(waiter, .success(head)) }
    if case .ended(let error) = phase { return .resume(waiter, .failure(error ?? URLError(.badServerResponse))) }
    headWaiter = waiter
    return .wait
  }

  enum ReceiveHeadAction {
    case resume(HeadWaiter, HTTPHead)
    /// The head is kept until the caller waits for it.
    case keep
    /// The transfer isn't running, or already has a head.
    case ignore
  }

  /// Receives the head of the final response.
  mutating func receive(head: HTTPHead) -> ReceiveHeadAction {
    guard case .running = phase, self.head == nil else { return .ignore }
    self.head = head
    guard let waiter = headWaiter.take() else { return .keep }
    return .resume(waiter, head)
  }

  enum ReceiveChunkAction {
    case resume(ChunkWaiter, Data)
    /// Pause until all pending chunks are taken or the transfer is cancelled.
    case pause
    /// Deliver no further chunks, because the transfer isn't running.
    case refuse
  }

  /// Receives a chunk of the body.
  mutating func receive(chunk: Data) -> ReceiveChunkAction {
    guard case .running = phase else { return .refuse }
    if let waiter = chunkWaiter.take() { return .resume(waiter, chunk) }
    chunks.append(chunk)
    return .pause
  }

  /// The number of bytes in the pending chunks.
  ///
  /// - Complexity: O(*n*), where *n* is the number of pending chunks.
  var pendingByteCount: Int { chunks.reduce(0) { $0 + $1.count } }

  enum TakeAction {
    case wait
    /// Give the chunk to the caller; if `resumesNetwork` is true, also resume the paused network side.
    case give(Data, resumesNetwork: Bool)
    case end(URLError?)
  }

  /// Takes the next chunk, or registers the caller's waiter for it.
  ///
  /// Called after the head has arrived, for one chunk at a time.
  mutating func take(_ waiter: ChunkWaiter) -> TakeAction {
    precondition(chunkWaiter == nil, "A body can be iterated only once, by one task at a time.")
    if !chunks.isEmpty {
      let chunk = chunks.removeFirst()
      return .give(chunk, resumesNetwork: chunks.isEmpty)
    }
    switch phase {
    case .created, .running:
      chunkWaiter = waiter
      return .wait
    case .ended(let error): return .end(error)
    case .cancelled(let error): return .end(error)
    }
  }

  enum EndAction {
    case failHead(HeadWaiter, URLError)
    case endBody(ChunkWaiter, URLError?)
    case ignore
  }

  /// Records that the network side is done.
  ///
  /// - Parameter error: The error that ended the exchange early; `nil` at the end of the response.
  mutating func end(error: URLError?) -> EndAction {
    guard case .running = phase else { return .ignore }
    phase = .ended(error)
    if let waiter = headWaiter.take() { return .failHead(waiter, error ?? URLError(.badServerResponse)) }
    if let waiter = chunkWaiter.take() { return .endBody(waiter, error) }
    return .ignore
  }

  enum CancelAction {
    /// Resume the waiters with the error, and stop the network side if it is running, even while it is paused.
    case stop(HeadWaiter?, ChunkWaiter?, URLError)
    /// The network side isn't running and there are no waiters, so there is nothing to stop.
    case ignore
  }

  /// Cancels the transfer on behalf of the caller, even if the network side is done, and drops the pending chunks.
  mutating func cancel() -> CancelAction {
    let wasRunning = isRunning
    if case .cancelled = phase { return .ignore }
    var error = URLError(.cancelled)
    if case .created = phase { error = .unsentRequest(.cancelled) }
    phase = .cancelled(error)
    chunks = []
    let (headWaiter, chunkWaiter) = (self.headWaiter.take(), self.chunkWaiter.take())
    return wasRunning || headWaiter != nil || chunkWaiter != nil ? .stop(headWaiter, chunkWaiter, error) : .ignore
  }

  /// Whether the transfer has begun, and has neither ended nor been cancelled.
  var isRunning: Bool {
    if case .running = phase { true } else { false }
  }
}

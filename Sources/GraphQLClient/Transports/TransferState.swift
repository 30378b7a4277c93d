internal import Foundation

/// The head of a response.
struct HTTPHead: Equatable, Sendable {
  var status: Int
  var headers: HTTPHeaders
}

/// One transfer between a network and a caller: a pure state machine.
///
/// The network side calls ``begin()``, ``receive(head:)``, ``receive(chunk:)`` and ``end(error:)``. The caller's side
/// calls ``awaitHead(_:)``, then ``take(_:)`` for each chunk, and ``cancel()`` at any time. A waiter that is handed in
/// is handed back exactly once.
///
///     created ── begin ──▶ running ── end ──▶ ended
///        └────────────────────┴─── cancel ──────┴──▶ cancelled
///
/// It holds no more than the caller takes: the network is held up as long as a chunk waits to be taken.
struct TransferState<HeadWaiter: Sendable, ChunkWaiter: Sendable>: Sendable {
  private enum Phase {
    case created
    case running
    /// The network is done, with an error or without. Chunks may still wait to be taken.
    case ended(URLError?)
    case cancelled
  }

  private var phase = Phase.created
  private var head: HTTPHead?
  private var headWaiter: HeadWaiter?
  /// Chunks that wait to be taken: one, or more where the network could not be held up at once.
  private var chunks: [Data] = []
  private var chunkWaiter: ChunkWaiter?

  init() {}

  enum BeginAction: Equatable {
    /// Send the request.
    case send
    /// Send nothing: the transfer was cancelled.
    case skip
  }

  /// The network side is about to send the request.
  mutating func begin() -> BeginAction {
    switch phase {
    case .created:
      phase = .running
      return .send
    case .cancelled:
      return .skip
    case .running, .ended:
      preconditionFailure("A transfer begins once; make another one for another request.")
    }
  }

  enum HeadAction {
    case wait
    case resume(HeadWaiter, Result<HTTPHead, URLError>)
  }

  /// The caller waits for the head.
  ///
  /// It does so once.
  mutating func awaitHead(_ waiter: HeadWaiter) -> HeadAction {
    precondition(headWaiter == nil, "A transfer has one caller.")
    if case .cancelled = phase { return .resume(waiter, .failure(URLError(.cancelled))) }
    if let head { return .resume(waiter, .success(head)) }
    if case .ended(let error) = phase { return .resume(waiter, .failure(error ?? URLError(.badServerResponse))) }
    headWaiter = waiter
    return .wait
  }

  enum ReceiveHeadAction {
    case resume(HeadWaiter, HTTPHead)
    /// The caller does not wait for it yet.
    case keep
    /// The transfer is over.
    case ignore
  }

  /// The head of the final response arrived.
  mutating func receive(head: HTTPHead) -> ReceiveHeadAction {
    guard case .running = phase, self.head == nil else { return .ignore }
    self.head = head
    guard let waiter = headWaiter.take() else { return .keep }
    return .resume(waiter, head)
  }

  enum ReceiveChunkAction {
    case resume(ChunkWaiter, Data)
    /// Send no more until a chunk was taken, or the transfer was cancelled.
    case holdUp
    /// Send no more at all: the transfer is over.
    case refuse
  }

  /// A chunk of the body arrived.
  mutating func receive(chunk: Data) -> ReceiveChunkAction {
    guard case .running = phase else { return .refuse }
    if let waiter = chunkWaiter.take() { return .resume(waiter, chunk) }
    chunks.append(chunk)
    return .holdUp
  }

  /// How many bytes wait to be taken.
  ///
  /// - Complexity: O(*n*), where *n* is the number of chunks that wait.
  var waitingByteCount: Int { chunks.reduce(0) { $0 + $1.count } }

  enum TakeAction {
    case wait
    /// The chunk; where `resumesNetwork` is true, the network was held up and goes on.
    case give(Data, resumesNetwork: Bool)
    case end(URLError?)
  }

  /// The caller asks for the next chunk.
  ///
  /// It does so after the head arrived, one chunk at a time.
  mutating func take(_ waiter: ChunkWaiter) -> TakeAction {
    precondition(chunkWaiter == nil, "A body is iterated once, by one task at a time.")
    if !chunks.isEmpty {
      let chunk = chunks.removeFirst()
      return .give(chunk, resumesNetwork: chunks.isEmpty)
    }
    switch phase {
    case .created, .running:
      chunkWaiter = waiter
      return .wait
    case .ended(let error): return .end(error)
    case .cancelled: return .end(URLError(.cancelled))
    }
  }

  enum EndAction {
    case failHead(HeadWaiter, URLError)
    case endBody(ChunkWaiter, URLError?)
    case ignore
  }

  /// The network is done.
  ///
  /// - Parameter error: Why it is done early; `nil` at the end of the response.
  mutating func end(error: URLError?) -> EndAction {
    guard case .running = phase else { return .ignore }
    phase = .ended(error)
    if let waiter = headWaiter.take() { return .failHead(waiter, error ?? URLError(.badServerResponse)) }
    if let waiter = chunkWaiter.take() { return .endBody(waiter, error) }
    return .ignore
  }

  enum CancelAction {
    /// Stop the network, which may be held up, and resume the waiters with the cancellation.
    case stop(HeadWaiter?, ChunkWaiter?)
    /// The network is done, or was never started.
    case ignore
  }

  /// The caller wants no more of it.
  mutating func cancel() -> CancelAction {
    let isRunning = if case .running = phase { true } else { false }
    if case .cancelled = phase { return .ignore }
    phase = .cancelled
    chunks = []
    let (head, chunk) = (headWaiter.take(), chunkWaiter.take())
    return isRunning || head != nil || chunk != nil ? .stop(head, chunk) : .ignore
  }

  /// Whether the caller still wants what the network side reads.
  var isRunning: Bool {
    if case .running = phase { true } else { false }
  }
}

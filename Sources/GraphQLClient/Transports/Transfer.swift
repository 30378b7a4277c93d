internal import Dispatch
internal import Foundation
internal import Multicast

/// The transfer of one response from the network to a caller.
///
/// It performs the actions of a ``TransferState``. Its lock guards only the state: waiters are resumed, and the network
/// is stopped or resumed, after the lock is released. Calls under the lock could deadlock. A resumed task may run
/// immediately and need the lock, and a thread that waits for the lock may hold a lock of the network side.
final class Transfer: Sendable {
  /// The functions that control the network side of a transfer.
  ///
  /// They can be called from any thread, and must not block.
  struct Network: Sendable {
    /// Ends the exchange; called at most once.
    var stop: @Sendable () -> Void
    /// Resumes an exchange that ``Transfer/receive(chunk:)`` has paused.
    var resume: @Sendable () -> Void
  }

  private typealias HeadWaiter = CheckedContinuation<Result<HTTPHead, URLError>, Never>
  private typealias ChunkWaiter = CheckedContinuation<Result<Data?, URLError>, Never>

  private struct State {
    var machine = TransferState<HeadWaiter, ChunkWaiter>()
    var network: Network?
  }

  private let state = Lock(State())

  // MARK: - Network side

  /// Begins the transfer, and returns whether to send the request.
  ///
  /// If it returns `true`, the transfer controls the exchange through `network` from now on.
  func begin(_ network: Network) -> Bool {
    state.withLock { state in
      guard state.machine.begin() == .send else { return false }
      state.network = network
      return true
    }
  }

  /// Receives the head of the final response.
  func receive(head: HTTPHead) {
    if case .resume(let waiter, let head) = state.withLock({ $0.machine.receive(head: head) }) {
      waiter.resume(returning: .success(head))
    }
  }

  enum Reception {
    /// The network side may deliver the next chunk.
    case proceed
    /// The network side pauses until ``Network/resume`` or ``Network/stop`` is called.
    case pause
    /// The transfer isn't running, so the network side delivers no further chunks.
    case refuse
  }

  /// Receives a chunk of the body.
  func receive(chunk: Data) -> Reception {
    switch state.withLock({ $0.machine.receive(chunk: chunk) }) {
    case .resume(let waiter, let chunk):
      waiter.resume(returning: .success(chunk))
      return .proceed
    case .pause: return .pause
    case .refuse: return .refuse
    }
  }

  /// Records that the network side is done, and resumes a waiting caller.
  ///
  /// - Parameter error: The error that ended the exchange early; `nil` at the end of the response.
  func end(error: URLError?) {
    let action = state.withLock { state in
      state.network = nil
      return state.machine.end(error: error)
    }
    switch action {
    case .failHead(let waiter, let error): waiter.resume(returning: .failure(error))
    case .endBody(let waiter, let error?): waiter.resume(returning: .failure(error))
    case .endBody(let waiter, nil): waiter.resume(returning: .success(nil))
    case .ignore: break
    }
  }

  /// The number of received bytes that the caller hasn't taken yet.
  var pendingByteCount: Int { state.withLock { $0.machine.pendingByteCount } }

  /// Whether the transfer has begun, and has neither ended nor been cancelled.
  var isRunning: Bool { state.withLock { $0.machine.isRunning } }

  // MARK: - Caller side

  /// Waits for the head, and returns the response.
  func response() async throws(URLError) -> HTTPResponse {
    let headResult = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        if case .resume(let waiter, let result) = state.withLock({ $0.machine.awaitHead(continuation) }) {
          waiter.resume(returning: result)
        }
      }
    } onCancel: {
      cancel()
    }
    let head = try headResult.get()
    let body = HTTPBody(TransferBody(transfer: self))
    return HTTPResponse(status: head.status, headers: head.headers, body: body)
  }

  /// Returns the next chunk of the body, waiting for it if necessary; `nil` at the end.
  fileprivate func nextChunk() async throws(URLError) -> Data? {
    let chunkResult = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let (action, network) = state.withLock { ($0.machine.take(continuation), $0.network) }
        switch action {
        case .wait: break
        case .give(let chunk, let resumesNetwork):
          if resumesNetwork { network?.resume() }
          continuation.resume(returning: .success(chunk))
        case .end(let error?): continuation.resume(returning: .failure(error))
        case .end(nil): continuation.resume(returning: .success(nil))
        }
      }
    } onCancel: {
      cancel()
    }
    return try chunkResult.get()
  }

  /// Cancels the transfer: drops the pending chunks, and stops the network side if it is running.
  func cancel() {
    let (action, network) = state.withLock { state in
      defer { state.network = nil }
      return (state.machine.cancel(), state.network)
    }
    guard case .stop(let headWaiter, let chunkWaiter, let error) = action else { return }
    headWaiter?.resume(returning: .failure(error))
    chunkWaiter?.resume(returning: .failure(error))
    network?.stop()
  }
}

/// The body of a transfer's response.
///
/// The transfer is cancelled when all copies of the body and of its iterators are released.
private struct TransferBody: AsyncSequence, Sendable {
  fileprivate final class Owner: Sendable {
    let transfer: Transfer

    init(_ transfer: Transfer) { self.transfer = transfer }

    deinit { transfer.cancel() }
  }

  private let owner: Owner

  init(transfer: Transfer) {
    owner = Owner(transfer)
  }

  func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(owner: owner)
  }

  struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate let owner: Owner

    func next(isolation actor: isolated (any Actor)?) async throws(URLError) -> Data? {
      try await owner.transfer.nextChunk()
    }
  }
}

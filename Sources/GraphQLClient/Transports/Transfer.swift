internal import Dispatch
internal import Foundation
internal import Multicast

/// One transfer between a network and a caller: performs what ``TransferState`` decides.
///
/// The lock guards the state alone. Waiters are resumed, and the network is stopped or held up, after it is released:
/// a resumed task may run at once, and a network's own lock may be held by a thread that waits for this one.
final class Transfer: Sendable {
  /// How to steer the network side of a transfer.
  ///
  /// Each is called from any thread, and must not wait.
  struct Network: Sendable {
    /// Ends the exchange; called at most once.
    var stop: @Sendable () -> Void
    /// Continues an exchange that ``Transfer/receive(chunk:)`` answered with `holdUp`.
    var goOn: @Sendable () -> Void
  }

  private typealias HeadWaiter = CheckedContinuation<Result<HTTPHead, URLError>, Never>
  private typealias ChunkWaiter = CheckedContinuation<Result<Data?, URLError>, Never>

  private struct State {
    var machine = TransferState<HeadWaiter, ChunkWaiter>()
    var network: Network?
  }

  private let state = Lock(State())

  // MARK: - The network's side

  /// Returns whether to send the request; if so, `network` steers the exchange from now on.
  func begin(_ network: Network) -> Bool {
    state.withLock { state in
      guard state.machine.begin() == .send else { return false }
      state.network = network
      return true
    }
  }

  /// The head of the final response arrived.
  func receive(head: HTTPHead) {
    if case .resume(let waiter, let head) = state.withLock({ $0.machine.receive(head: head) }) {
      waiter.resume(returning: .success(head))
    }
  }

  enum Reception {
    /// Send more.
    case proceed
    /// Send no more until ``Network/goOn`` or ``Network/stop`` is called.
    case holdUp
    /// Send no more at all.
    case refuse
  }

  /// A chunk of the body arrived.
  func receive(chunk: Data) -> Reception {
    switch state.withLock({ $0.machine.receive(chunk: chunk) }) {
    case .resume(let waiter, let chunk):
      waiter.resume(returning: .success(chunk))
      return .proceed
    case .holdUp: return .holdUp
    case .refuse: return .refuse
    }
  }

  /// The network is done, early if there is an error.
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

  /// How many bytes wait to be taken.
  var waitingByteCount: Int { state.withLock { $0.machine.waitingByteCount } }

  /// Whether the caller still wants the response.
  var isRunning: Bool { state.withLock { $0.machine.isRunning } }

  // MARK: - The caller's side

  /// Waits for the head, and returns the response it belongs to.
  func response() async throws(URLError) -> HTTPResponse {
    let head = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        if case .resume(let waiter, let result) = state.withLock({ $0.machine.awaitHead(continuation) }) {
          waiter.resume(returning: result)
        }
      }
    } onCancel: {
      cancel()
    }
    let received = try head.get()
    let body = HTTPBody(TransferBody(transfer: self))
    return HTTPResponse(status: received.status, headers: received.headers, body: body)
  }

  /// Waits for the next chunk of the body; `nil` at its end.
  fileprivate func chunk() async throws(URLError) -> Data? {
    let chunk = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let (action, network) = state.withLock { ($0.machine.take(continuation), $0.network) }
        switch action {
        case .wait: break
        case .give(let chunk, let resumesNetwork):
          if resumesNetwork { network?.goOn() }
          continuation.resume(returning: .success(chunk))
        case .end(let error?): continuation.resume(returning: .failure(error))
        case .end(nil): continuation.resume(returning: .success(nil))
        }
      }
    } onCancel: {
      cancel()
    }
    return try chunk.get()
  }

  /// Ends the exchange, unless it has ended.
  func cancel() {
    let (action, network) = state.withLock { state in
      defer { state.network = nil }
      return (state.machine.cancel(), state.network)
    }
    guard case .stop(let headWaiter, let chunkWaiter) = action else { return }
    headWaiter?.resume(returning: .failure(URLError(.cancelled)))
    chunkWaiter?.resume(returning: .failure(URLError(.cancelled)))
    network?.stop()
  }
}

/// The body of a transfer; its end of life is the end of the exchange.
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
      try await owner.transfer.chunk()
    }
  }
}

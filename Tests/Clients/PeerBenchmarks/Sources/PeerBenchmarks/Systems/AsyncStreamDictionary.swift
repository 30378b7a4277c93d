internal import Synchronization

/// The usual hand-written broadcast: a dictionary of `AsyncStream` continuations under a lock.
///
/// `subscribe()` adds a continuation, whose `onTermination` handler removes it again. `send` yields to each subscriber
/// under the lock, so that all subscribers receive the elements in one order. A continuation is added and receives the
/// replayed element under the same lock, so a new subscriber misses no later element and receives none twice.
final class AsyncStreamDictionary<Element: Payload>: ReplayingBroadcast {
  private struct State {
    var continuations: [Int: AsyncStream<Element>.Continuation] = [:]
    var nextID = 0
    var last: Element?
  }

  private let state = Mutex(State())
  private let buffering: AsyncStream<Element>.Continuation.BufferingPolicy
  private let replaysLast: Bool

  init(
    buffering: AsyncStream<Element>.Continuation.BufferingPolicy = .unbounded,
    replaysLast: Bool = false
  ) {
    self.buffering = buffering
    self.replaysLast = replaysLast
  }

  static var label: String { "AsyncStream dictionary" }

  var subscriberCount: Int { state.withLock { $0.continuations.count } }

  func send(_ element: Element) {
    state.withLock { state in
      if replaysLast { state.last = element }
      for continuation in state.continuations.values { continuation.yield(element) }
    }
  }

  func finish() {
    let continuations = state.withLock { $0.continuations }
    for continuation in continuations.values { continuation.finish() }
  }

  func subscribe() -> AsyncStream<Element> {
    let (stream, continuation) = AsyncStream.makeStream(of: Element.self, bufferingPolicy: buffering)
    let id = state.withLock { state in
      let id = state.nextID
      state.nextID += 1
      state.continuations[id] = continuation
      if let last = state.last { continuation.yield(last) }
      return id
    }
    continuation.onTermination = { [weak self] _ in
      _ = self?.state.withLock { $0.continuations.removeValue(forKey: id) }
    }
    return stream
  }
}

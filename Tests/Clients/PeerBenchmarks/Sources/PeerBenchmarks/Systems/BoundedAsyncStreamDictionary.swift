internal import Synchronization

/// A variant of ``AsyncStreamDictionary`` that uses `bufferingOldest` and counts the elements that `yield` drops.
final class BoundedAsyncStreamDictionary<Element: Payload>: BoundedBroadcast {
  private struct State {
    var continuations: [Int: AsyncStream<Element>.Continuation] = [:]
    var nextID = 0
    var droppedCount = 0
  }

  private let state = Mutex(State())
  private let capacity: Int

  init(capacity: Int) {
    self.capacity = capacity
  }

  static var label: String { "AsyncStream dictionary" }

  var policy: String { "bufferingOldest(\(capacity))" }

  func send(_ element: Element) {
    state.withLock { state in
      for continuation in state.continuations.values {
        if case .dropped = continuation.yield(element) { state.droppedCount += 1 }
      }
    }
  }

  func finish() {
    let continuations = state.withLock { $0.continuations }
    for continuation in continuations.values { continuation.finish() }
  }

  func subscribe() -> AsyncStream<Element> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: Element.self, bufferingPolicy: .bufferingOldest(capacity))
    let id = state.withLock { state in
      let id = state.nextID
      state.nextID += 1
      state.continuations[id] = continuation
      return id
    }
    continuation.onTermination = { [weak self] _ in
      _ = self?.state.withLock { $0.continuations.removeValue(forKey: id) }
    }
    return stream
  }

  func droppedCount(_ subscribers: [AsyncStream<Element>]) -> Int {
    state.withLock { $0.droppedCount }
  }
}

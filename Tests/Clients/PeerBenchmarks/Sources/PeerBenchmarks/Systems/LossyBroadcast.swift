internal import Synchronization

/// A broken system that loses its hundredth element, so a comparison that includes it must fail.
struct LossyBroadcast<Element: Payload>: Broadcast {
  private final class Counter: Sendable {
    let sentCount = Atomic(0)
  }

  private let base = AsyncStreamDictionary<Element>()
  private let counter = Counter()

  static var label: String { "Lossy" }

  func send(_ element: Element) {
    if counter.sentCount.add(1, ordering: .relaxed).newValue != 100 { base.send(element) }
  }

  func finish() {
    base.finish()
  }

  func subscribe() -> AsyncStream<Element> {
    base.subscribe()
  }
}

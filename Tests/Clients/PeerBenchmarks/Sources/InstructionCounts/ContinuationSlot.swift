internal import Synchronization

/// Hands elements to a task that always waits when one comes, by a bare continuation.
final class ContinuationSlot<Element: Sendable>: Sendable {
  private let waiting = Mutex<UnsafeContinuation<Element, Never>?>(nil)

  func take() async -> Element {
    await withUnsafeContinuation { continuation in
      waiting.withLock { $0 = continuation }
    }
  }

  func put(_ element: Element) {
    waiting.withLock { $0.take() }?.resume(returning: element)
  }
}

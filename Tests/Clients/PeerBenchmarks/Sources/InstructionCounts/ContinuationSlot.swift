internal import Synchronization

/// A slot that hands elements to one task by a bare continuation.
///
/// The task must be suspended in ``take()`` at each call of ``put(_:)``.
final class ContinuationSlot<Element: Sendable>: Sendable {
  private let taker = Mutex<UnsafeContinuation<Element, Never>?>(nil)

  func take() async -> Element {
    await withUnsafeContinuation { continuation in
      taker.withLock { $0 = continuation }
    }
  }

  func put(_ element: Element) {
    taker.withLock { $0.take() }?.resume(returning: element)
  }
}

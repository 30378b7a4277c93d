internal import Multicast

/// A gate that suspends tasks until a test opens it, as a deterministic replacement for sleeping.
public final class Gate: Sendable {
  private let openState = CurrentValueRelay(false)
  private let arrivalCount = CurrentValueRelay(0)

  /// Creates a closed gate.
  public init() {}

  /// Suspends until the gate is open, or the calling task is cancelled.
  public func pass() async {
    arrivalCount.update { $0 += 1 }
    for await isOpen in openState.stream where isOpen { return }
  }

  /// Opens the gate permanently, for suspended tasks and for later calls of ``pass()``.
  public func open() {
    openState.send(true)
  }

  /// Suspends until ``pass()`` has been called at least `count` times, or the calling task is cancelled.
  public func arrivals(_ count: Int = 1) async {
    for await currentCount in arrivalCount.stream where currentCount >= count { return }
  }
}

internal import Multicast

/// A gate that suspends tasks until a test opens it, as a deterministic replacement for sleeping.
public final class Gate: Sendable {
  private let opened = CurrentValueRelay(false)
  private let arrived = CurrentValueRelay(0)

  /// Creates a closed gate.
  public init() {}

  /// Suspends until the gate is open, or the calling task is cancelled.
  public func pass() async {
    arrived.update { $0 += 1 }
    for await isOpen in opened.stream where isOpen { return }
  }

  /// Opens the gate permanently, for suspended tasks and for later calls of ``pass()``.
  public func open() {
    opened.send(true)
  }

  /// Suspends until ``pass()`` has been called at least `count` times, or the calling task is cancelled.
  public func arrivals(_ count: Int = 1) async {
    for await callCount in arrived.stream where callCount >= count { return }
  }
}

internal import Multicast

/// Holds tasks until a test lets them pass, in the place of a sleep.
public final class Gate: Sendable {
  private let opened = CurrentValueRelay(false)
  private let arrived = CurrentValueRelay(0)

  /// Creates a closed gate.
  public init() {}

  /// Waits until the gate is open, or the calling task is cancelled.
  public func pass() async {
    arrived.update { $0 += 1 }
    for await isOpen in opened.stream where isOpen { return }
  }

  /// Lets everybody pass who waits or comes later.
  public func open() {
    opened.send(true)
  }

  /// Waits until `count` tasks have come to the gate.
  public func arrivals(_ count: Int = 1) async {
    for await arrived in arrived.stream where arrived >= count { return }
  }
}

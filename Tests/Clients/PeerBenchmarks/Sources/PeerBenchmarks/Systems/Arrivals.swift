internal import Synchronization

/// A barrier at which one task waits for a number of other tasks, round after round.
final class Arrivals: Sendable {
  private let expected: Int
  private let arrived = Atomic(0)
  private let slot = HandOffSlot<Int>()

  init(expecting expected: Int) {
    self.expected = expected
  }

  func arrive() {
    let arrived = arrived.add(1, ordering: .acquiringAndReleasing).newValue
    if arrived % expected == 0 { slot.put(arrived) }
  }

  /// Suspends until all tasks have arrived in the current round.
  func all() async {
    _ = await slot.take()
  }
}

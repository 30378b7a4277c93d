internal import Synchronization

/// Lets one task wait until a number of others have arrived; goes on to count the next round.
final class Arrivals: Sendable {
  private let expected: Int
  private let arrived = Atomic(0)
  private let mailbox = Mailbox<Int>()

  init(expecting expected: Int) {
    self.expected = expected
  }

  func arrive() {
    let arrived = arrived.add(1, ordering: .acquiringAndReleasing).newValue
    if arrived % expected == 0 { mailbox.put(arrived) }
  }

  /// Waits until all of a round have arrived.
  func all() async {
    _ = await mailbox.take()
  }
}

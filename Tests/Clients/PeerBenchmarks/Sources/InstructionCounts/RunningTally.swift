internal import Synchronization

/// The sum of what one reader has received so far.
final class RunningTally: Sendable {
  private let total = Atomic(0)

  var sum: Int { total.load(ordering: .relaxed) }

  /// Adds by a load and a store: there is one thread.
  func add(_ number: Int) {
    total.store(total.load(ordering: .relaxed) &+ number, ordering: .relaxed)
  }
}

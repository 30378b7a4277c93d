internal import Synchronization

/// The sum of the numbers that one subscriber has received so far.
final class RunningTally: Sendable {
  private let total = Atomic(0)

  var sum: Int { total.load(ordering: .relaxed) }

  /// Adds a number with a load and a store, which suffices because there is only one thread.
  func add(_ number: Int) {
    total.store(total.load(ordering: .relaxed) &+ number, ordering: .relaxed)
  }
}

internal import Synchronization

/// The sum of the numbers that one subscriber has received so far.
final class RunningTally: Sendable {
  private let atomicSum = Atomic(0)

  var sum: Int { atomicSum.load(ordering: .relaxed) }

  /// Adds a number.
  ///
  /// A load and a store suffice, because the program has one thread; `Atomic` only makes the class `Sendable`.
  func add(_ number: Int) {
    atomicSum.store(atomicSum.load(ordering: .relaxed) &+ number, ordering: .relaxed)
  }
}

internal import Synchronization

/// A barrier at which one task waits for a number of other tasks, round after round.
final class Arrivals: Sendable {
  private let taskCount: Int
  private let arrivalCount = Atomic(0)
  /// The slot through which the last task to arrive in a round resumes the waiting task.
  ///
  /// The value itself is unused.
  private let roundEnd = HandOffSlot<Int>()

  init(expecting taskCount: Int) {
    self.taskCount = taskCount
  }

  func arrive() {
    let newCount = arrivalCount.add(1, ordering: .acquiringAndReleasing).newValue
    if newCount % taskCount == 0 { roundEnd.put(newCount) }
  }

  /// Suspends until all tasks have arrived in the current round.
  func all() async {
    _ = await roundEnd.take()
  }
}

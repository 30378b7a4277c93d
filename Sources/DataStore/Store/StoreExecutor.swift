internal import Dispatch
internal import Multicast

/// Runs a store's jobs in the order they arrive: on a queue of its own, or on the caller's thread if the store is idle.
///
/// A job of a store may wait for the disk, so it runs on a queue of its own, and not on one of the few threads that all
/// tasks share. To get there and back takes two wake-ups of a thread, up to 50 µs each. A read that needs no disk takes
/// a few microseconds, so ``runIfIdle(_:)`` runs it where it is asked for.
///
/// The lock decides what uses the queue: either one drain of the jobs that wait, or one call of ``runIfIdle(_:)``. So
/// that call never waits for a job.
///
/// A task that only makes such calls never gives way to the other tasks of its thread, and as many of them as there are
/// threads would stop the program, if what they wait for is to be done by another task. So now and then a call finds the
/// store busy.
final class StoreExecutor: SerialExecutor {
  private struct State {
    var waiting: [@Sendable () -> Void] = []
    /// Whether jobs are being run, or will be without another call.
    var isBusy = false
    /// How often ``runIfIdle(_:)`` may still run its work before a caller has to give way.
    var turns = StoreExecutor.turnsInARow
  }

  /// How many calls of ``runIfIdle(_:)`` run their work before one doesn't: about a millisecond of reads.
  static let turnsInARow = 256

  private let queue: DispatchQueue
  private let state = Lock(State())

  init(label: String) {
    queue = DispatchQueue(label: label)
  }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    enqueue { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
  }

  /// Runs `work` on the queue, behind the jobs that are waiting.
  func enqueue(_ work: @escaping @Sendable () -> Void) {
    let wasIdle = state.withLock { state in
      defer { state.isBusy = true }
      state.waiting.append(work)
      return !state.isBusy
    }
    if wasIdle { queue.async(execute: drain) }
  }

  /// Runs `work` on the calling thread, alone among the jobs.
  ///
  /// - Returns: `nil`, without running it, if a job is running or waits, or if it is time to give way.
  func runIfIdle<Result>(_ work: () -> Result) -> Result? {
    let hasTurn = state.withLock { state in
      if state.isBusy { return false }
      if state.turns == 0 {
        state.turns = Self.turnsInARow
        return false
      }
      (state.isBusy, state.turns) = (true, state.turns - 1)
      return true
    }
    guard hasTurn else { return nil }
    defer {
      let hasWork = state.withLock { state in
        state.isBusy = !state.waiting.isEmpty
        return state.isBusy
      }
      if hasWork { queue.async(execute: drain) }
    }
    return queue.sync(execute: work)
  }

  private func drain() {
    while true {
      let jobs = state.withLock { state in
        defer { state.waiting = [] }
        state.isBusy = !state.waiting.isEmpty
        return state.waiting
      }
      if jobs.isEmpty { return }
      for job in jobs { job() }
    }
  }

  func checkIsolated() {
    dispatchPrecondition(condition: .onQueue(queue))
  }
}

internal import Dispatch
internal import Multicast

/// Runs a store's jobs on one queue, in the order they arrive, and short reads of an idle store on the caller's thread.
///
/// A job of a store may wait for the disk, so it runs on the store's own queue and not on one of the few threads that
/// all tasks share. Switching to the queue and back takes two wake-ups of a thread, up to 50 µs each. A read that needs
/// no disk takes a few microseconds, so ``runIfIdle(_:)`` runs it on the calling thread.
///
/// ``State/isBusy`` ensures that the queue belongs either to one ``drain()`` of the waiting jobs or to one call of
/// ``runIfIdle(_:)``. Such a call therefore never waits for a job.
///
/// A task that makes such calls in a loop never yields to the other tasks of its thread. If every thread ran such a
/// loop, and the loops ended only when another task had saved a value, that task would never run. Therefore
/// ``runIfIdle(_:)`` occasionally refuses to run its work, as if the store were busy.
final class StoreExecutor: SerialExecutor {
  private struct Job {
    let work: @Sendable () -> Void
    /// The time at which the job arrived.
    let start: ContinuousClock.Instant
  }

  private struct State {
    var waiting: [Job] = []
    /// The arrival of the job that is running; `nil` during ``runIfIdle(_:)``.
    var runningStart: ContinuousClock.Instant?
    /// Whether work is running, or is scheduled on the queue.
    var isBusy = false
    /// The number of times that ``runIfIdle(_:)`` may run its work before a caller has to yield.
    var turnsLeft = StoreExecutor.turnsInARow
  }

  /// The number of calls of ``runIfIdle(_:)`` that run their work before a call has to yield.
  ///
  /// They take about a millisecond if each is a read.
  static let turnsInARow = 256

  private let queue: DispatchQueue
  private let state = Lock(State())

  init(label: String) {
    queue = DispatchQueue(label: label)
  }

  /// The time at which the running job arrived; `nil` during ``runIfIdle(_:)``, whose work didn't wait.
  ///
  /// It is meaningful in the isolation of the store only.
  var jobStart: ContinuousClock.Instant? { state.withLock { $0.runningStart } }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    enqueue { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
  }

  /// Runs `work` on the queue, after the waiting jobs.
  func enqueue(_ work: @escaping @Sendable () -> Void) {
    let job = Job(work: work, start: .now)
    let wasIdle = state.withLock { state in
      defer { state.isBusy = true }
      state.waiting.append(job)
      return !state.isBusy
    }
    if wasIdle { queue.async(execute: drain) }
  }

  /// Runs `work` on the calling thread, isolated from the jobs.
  ///
  /// - Returns: The result of `work`; `nil` if it was not run, because other work is running or waiting, or because the
  ///   caller has to yield.
  func runIfIdle<Result>(_ work: () -> Result) -> Result? {
    let hasTurn = state.withLock { state in
      if state.isBusy { return false }
      if state.turnsLeft == 0 {
        state.turnsLeft = Self.turnsInARow
        return false
      }
      (state.isBusy, state.turnsLeft) = (true, state.turnsLeft - 1)
      state.runningStart = nil
      return true
    }
    guard hasTurn else { return nil }
    defer {
      let hasWaitingJobs = state.withLock { state in
        state.isBusy = !state.waiting.isEmpty
        return state.isBusy
      }
      if hasWaitingJobs { queue.async(execute: drain) }
    }
    return queue.sync(execute: work)
  }

  /// Runs the waiting jobs until there are no more.
  private func drain() {
    while true {
      let jobs = state.withLock { state in
        defer { state.waiting = [] }
        state.isBusy = !state.waiting.isEmpty
        return state.waiting
      }
      if jobs.isEmpty { return }
      for job in jobs {
        state.withLock { $0.runningStart = job.start }
        job.work()
      }
    }
  }

  func checkIsolated() {
    dispatchPrecondition(condition: .onQueue(queue))
  }
}

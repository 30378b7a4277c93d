/// A pure state machine that assigns jobs to workers.
///
/// A *host* is an origin here: a scheme, a host name and a port. Each host has a limited number of busy workers; its
/// further jobs wait in a FIFO queue. A worker that finishes a job runs the next waiting job of the same host. If there
/// is none, the worker becomes idle. But it ends if the pool is closed, or if `maximumConnectionsPerHost` workers, of
/// all hosts together, are already idle.
///
/// A new job that needn't wait goes to an idle worker or, if none is idle, to a new worker. Idle workers whose last job
/// had the same host are preferred, because they may still have a connection to it. If there are several candidates,
/// the job goes to the one that became idle last.
struct CurlPoolState<Worker: Equatable & Sendable, Job: Sendable>: Sendable {
  private struct HostQueue {
    var busyWorkerCount = 0
    var waitingJobs: [Job] = []
  }

  private let maximumConnectionsPerHost: Int
  private var queues: [Origin: HostQueue] = [:]
  /// The idle workers, in the order in which they became idle.
  private var idleWorkers: [(worker: Worker, origin: Origin)] = []
  private var isClosed = false

  init(maximumConnectionsPerHost: Int) {
    self.maximumConnectionsPerHost = maximumConnectionsPerHost
  }

  enum AddAction {
    /// Give the job to an idle worker.
    case wake(Worker)
    /// Give the job to a new worker.
    case start
    /// The job waits in the queue of its host.
    case wait
  }

  /// Adds a job.
  mutating func add(_ job: Job, to origin: Origin) -> AddAction {
    var queue = queues[origin, default: HostQueue()]
    defer { queues[origin] = queue }
    guard queue.busyWorkerCount < maximumConnectionsPerHost else {
      queue.waitingJobs.append(job)
      return .wait
    }
    queue.busyWorkerCount += 1
    // Prefers a worker whose last job had this host, because it may still have a connection.
    guard let index = idleWorkers.lastIndex(where: { $0.origin == origin }) ?? idleWorkers.indices.last else {
      return .start
    }
    return .wake(idleWorkers.remove(at: index).worker)
  }

  /// Records that a new worker couldn't be started for a job.
  ///
  /// - Returns: The waiting jobs that no worker will run. They must fail, like the job itself.
  mutating func startFailed(of origin: Origin) -> [Job] {
    guard var queue = queues[origin] else { preconditionFailure("The host of a worker has a queue.") }
    queue.busyWorkerCount -= 1
    guard queue.busyWorkerCount == 0 else {
      queues[origin] = queue
      return []
    }
    queues[origin] = nil
    return queue.waitingJobs
  }

  enum FinishAction {
    case run(Job)
    /// Wait for another job.
    case idle
    /// End, because enough workers are idle or the pool is closed.
    case exit
  }

  /// Records that a worker has finished a job, and returns its next action.
  mutating func finish(_ worker: Worker, of origin: Origin) -> FinishAction {
    guard var queue = queues[origin] else { preconditionFailure("The host of a finished job has a queue.") }
    defer { queues[origin] = queue.busyWorkerCount == 0 ? nil : queue }
    if !queue.waitingJobs.isEmpty { return .run(queue.waitingJobs.removeFirst()) }
    queue.busyWorkerCount -= 1
    guard !isClosed, idleWorkers.count < maximumConnectionsPerHost else { return .exit }
    idleWorkers.append((worker, origin))
    return .idle
  }

  /// Removes a worker that has been idle for too long.
  ///
  /// - Returns: Whether the worker may end. If `false`, the worker is no longer idle, because ``add(_:to:)`` has chosen
  ///   it for a job, or because the pool was closed. It must wait until it is given that job or told to end.
  mutating func retire(_ worker: Worker) -> Bool {
    guard let index = idleWorkers.firstIndex(where: { $0.worker == worker }) else { return false }
    idleWorkers.remove(at: index)
    return true
  }

  /// Closes the pool; no further jobs may be added.
  ///
  /// - Returns: The idle workers, which must end.
  mutating func close() -> [Worker] {
    isClosed = true
    defer { idleWorkers = [] }
    return idleWorkers.map(\.worker)
  }
}

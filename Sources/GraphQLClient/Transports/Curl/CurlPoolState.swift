/// Which worker runs which job, and which jobs wait: a pure state machine.
///
/// A host has a limited number of workers at once; its other jobs wait in line. A worker that is done takes the next
/// job of its host, else it rests, and the one that rested least is used first.
struct CurlPoolState<Worker: Equatable & Sendable, Job: Sendable>: Sendable {
  private struct Line {
    var workerCount = 0
    var jobs: [Job] = []
  }

  private let maximumConnectionsPerHost: Int
  private var lines: [Origin: Line] = [:]
  private var resting: [(worker: Worker, origin: Origin)] = []
  private var isClosed = false

  init(maximumConnectionsPerHost: Int) {
    self.maximumConnectionsPerHost = maximumConnectionsPerHost
  }

  enum AddAction {
    /// Give the job to a worker that rests.
    case wake(Worker)
    /// Give the job to a new worker.
    case start
    /// The job waits in line.
    case wait
  }

  /// A job is added.
  mutating func add(_ job: Job, to origin: Origin) -> AddAction {
    var line = lines[origin, default: Line()]
    defer { lines[origin] = line }
    guard line.workerCount < maximumConnectionsPerHost else {
      line.jobs.append(job)
      return .wait
    }
    line.workerCount += 1
    // One that has a connection to this host, if any.
    guard let index = resting.lastIndex(where: { $0.origin == origin }) ?? resting.indices.last else { return .start }
    return .wake(resting.remove(at: index).worker)
  }

  /// A new worker could not be started for a job.
  ///
  /// - Returns: The jobs that no worker is left for, to be given up with that job.
  mutating func startFailed(of origin: Origin) -> [Job] {
    guard var line = lines[origin] else { preconditionFailure("The host of a worker has a line.") }
    line.workerCount -= 1
    guard line.workerCount == 0 else {
      lines[origin] = line
      return []
    }
    lines[origin] = nil
    return line.jobs
  }

  enum FinishAction {
    case run(Job)
    /// Wait for another job.
    case rest
    /// End: there are enough that rest, or the pool is closed.
    case leave
  }

  /// A worker has finished a job.
  mutating func finish(_ worker: Worker, of origin: Origin) -> FinishAction {
    guard var line = lines[origin] else { preconditionFailure("The host of a finished job has a line.") }
    defer { lines[origin] = line.workerCount == 0 ? nil : line }
    if !line.jobs.isEmpty { return .run(line.jobs.removeFirst()) }
    line.workerCount -= 1
    guard !isClosed, resting.count < maximumConnectionsPerHost else { return .leave }
    resting.append((worker, origin))
    return .rest
  }

  /// A worker has rested for long; returns whether it may leave, which it may not where it was given a job meanwhile.
  mutating func leave(_ worker: Worker) -> Bool {
    guard let index = resting.firstIndex(where: { $0.worker == worker }) else { return false }
    resting.remove(at: index)
    return true
  }

  /// No more jobs are added; returns the workers that rest, which have to leave.
  mutating func close() -> [Worker] {
    isClosed = true
    defer { resting = [] }
    return resting.map(\.worker)
  }
}

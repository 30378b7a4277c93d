import Foundation
import MulticastTesting
import Testing

@testable import GraphQLClient

/// The behavior of ``CurlPoolState``.
///
/// The name of a test states the input, the state and the result.
struct CurlPoolStateTests {
  private static let hostA = origin("http://a.example")
  private static let hostB = origin("http://b.example")

  fileprivate static func origin(_ url: String) -> Origin {
    Origin(URL(string: url)!)!
  }

  // MARK: - Start failure

  @Test func startFailed_whenTheHostHasOtherWorkers_leavesTheQueueToThem() {
    var pool = Pool(limit: 2)
    #expect(pool.add(1, to: Self.hostA) == .start)
    #expect(pool.add(2, to: Self.hostA) == .start)
    #expect(pool.add(3, to: Self.hostA) == .wait)
    #expect(pool.startFailed(of: Self.hostA) == [])
    #expect(pool.finish("x", of: Self.hostA) == .run(3))
    #expect(pool.add(4, to: Self.hostA) == .start)
  }

  @Test func startFailed_whenTheHostHasNoOtherWorker_failsTheQueuedJobs() {
    var pool = Pool(limit: 1)
    #expect(pool.add(1, to: Self.hostA) == .start)
    #expect(pool.add(2, to: Self.hostA) == .wait)
    #expect(pool.add(3, to: Self.hostB) == .start)
    #expect(pool.startFailed(of: Self.hostA) == [2])
    #expect(pool.add(4, to: Self.hostA) == .start)
    #expect(pool.add(5, to: Self.hostB) == .wait)
  }

  // MARK: - Add

  @Test func add_whenNoWorkerIsIdle_startsOne() {
    var pool = Pool(limit: 2)
    #expect(pool.add(1, to: Self.hostA) == .start)
  }

  @Test func add_upToTheLimit_startsOneWorkerPerJob() {
    var pool = Pool(limit: 2)
    #expect(pool.add(1, to: Self.hostA) == .start)
    #expect(pool.add(2, to: Self.hostA) == .start)
    #expect(pool.add(3, to: Self.hostA) == .wait)
    #expect(pool.add(4, to: Self.hostA) == .wait)
  }

  @Test func add_toAnotherHost_hasASeparateLimit() {
    var pool = Pool(limit: 1)
    #expect(pool.add(1, to: Self.hostA) == .start)
    #expect(pool.add(2, to: Self.hostA) == .wait)
    #expect(pool.add(3, to: Self.hostB) == .start)
    #expect(pool.add(4, to: Self.hostB) == .wait)
  }

  @Test func add_toAnotherPortOrScheme_countsAsAnotherHost() {
    var pool = Pool(limit: 1)
    #expect(pool.add(1, to: Self.hostA) == .start)
    #expect(pool.add(2, to: Self.origin("http://a.example:8080")) == .start)
    #expect(pool.add(3, to: Self.origin("https://a.example")) == .start)
    #expect(pool.add(4, to: Self.origin("HTTP://A.example:80/path")) == .wait)
  }

  @Test func add_whenAWorkerIsIdle_wakesIt() {
    var pool = Pool(limit: 2)
    #expect(pool.add(1, to: Self.hostA) == .start)
    #expect(pool.finish("x", of: Self.hostA) == .idle)
    #expect(pool.add(2, to: Self.hostA) == .wake("x"))
    #expect(pool.add(3, to: Self.hostA) == .start)
  }

  @Test func add_whenSeveralWorkersAreIdle_wakesTheOneThatBecameIdleLast() {
    var pool = Pool(limit: 3)
    for job in 1...3 { #expect(pool.add(job, to: Self.hostA) == .start) }
    for worker in ["x", "y", "z"] { #expect(pool.finish(worker, of: Self.hostA) == .idle) }
    #expect(pool.add(4, to: Self.hostA) == .wake("z"))
    #expect(pool.add(5, to: Self.hostA) == .wake("y"))
    #expect(pool.add(6, to: Self.hostA) == .wake("x"))
  }

  @Test func add_whenSeveralWorkersAreIdle_prefersAWorkerOfTheSameHost() {
    var pool = Pool(limit: 3)
    for job in 1...2 { #expect(pool.add(job, to: Self.hostA) == .start) }
    #expect(pool.add(3, to: Self.hostB) == .start)
    #expect(pool.finish("ax", of: Self.hostA) == .idle)
    #expect(pool.finish("ay", of: Self.hostA) == .idle)
    #expect(pool.finish("bz", of: Self.hostB) == .idle)
    #expect(pool.add(4, to: Self.hostA) == .wake("ay"))
    #expect(pool.add(5, to: Self.hostB) == .wake("bz"))
    #expect(pool.add(6, to: Self.hostB) == .wake("ax"))
    #expect(pool.add(7, to: Self.hostB) == .start)
  }

  // MARK: - Finish

  @Test func finish_whenJobsAreQueued_runsThemInOrder() {
    var pool = Pool(limit: 1)
    #expect(pool.add(1, to: Self.hostA) == .start)
    for job in 2...4 { #expect(pool.add(job, to: Self.hostA) == .wait) }
    #expect(pool.finish("x", of: Self.hostA) == .run(2))
    #expect(pool.finish("x", of: Self.hostA) == .run(3))
    #expect(pool.add(5, to: Self.hostA) == .wait)
    #expect(pool.finish("x", of: Self.hostA) == .run(4))
    #expect(pool.finish("x", of: Self.hostA) == .run(5))
    #expect(pool.finish("x", of: Self.hostA) == .idle)
  }

  @Test func finish_whenOnlyJobsOfAnotherHostAreQueued_becomesIdle() {
    var pool = Pool(limit: 1)
    #expect(pool.add(1, to: Self.hostA) == .start)
    #expect(pool.add(2, to: Self.hostB) == .start)
    #expect(pool.add(3, to: Self.hostB) == .wait)
    #expect(pool.finish("x", of: Self.hostA) == .idle)
    #expect(pool.finish("y", of: Self.hostB) == .run(3))
  }

  @Test func finish_whenEnoughWorkersAreIdle_exits() {
    var pool = Pool(limit: 1)
    #expect(pool.add(1, to: Self.hostA) == .start)
    #expect(pool.add(2, to: Self.hostB) == .start)
    #expect(pool.finish("x", of: Self.hostA) == .idle)
    // The limit also applies to the idle workers of all hosts together.
    #expect(pool.finish("y", of: Self.hostB) == .exit)
    #expect(pool.add(3, to: Self.hostB) == .wake("x"))
    #expect(pool.finish("x", of: Self.hostB) == .idle)
  }

  @Test func finish_freesAConnectionOfTheHost() {
    var pool = Pool(limit: 1)
    for job in 1...3 {
      #expect(pool.add(job, to: Self.hostA) == (job == 1 ? .start : .wake("x")))
      #expect(pool.finish("x", of: Self.hostA) == .idle)
    }
  }

  // MARK: - Retire

  @Test func retire_whenIdle_succeeds() {
    var pool = Pool(limit: 1)
    #expect(pool.add(1, to: Self.hostA) == .start)
    #expect(pool.finish("x", of: Self.hostA) == .idle)
    #expect(pool.retire("x") == true)
    #expect(pool.retire("x") == false)
    #expect(pool.add(2, to: Self.hostA) == .start)
  }

  @Test func retire_whenGivenAJobInTheMeantime_fails() {
    var pool = Pool(limit: 1)
    #expect(pool.add(1, to: Self.hostA) == .start)
    #expect(pool.finish("x", of: Self.hostA) == .idle)
    #expect(pool.add(2, to: Self.hostA) == .wake("x"))
    #expect(pool.retire("x") == false)
    #expect(pool.finish("x", of: Self.hostA) == .idle)
    #expect(pool.retire("x") == true)
  }

  @Test func retire_whenOtherWorkersAreIdle_removesOnlyTheGivenWorker() {
    var pool = Pool(limit: 3)
    for job in 1...3 { #expect(pool.add(job, to: Self.hostA) == .start) }
    for worker in ["x", "y", "z"] { #expect(pool.finish(worker, of: Self.hostA) == .idle) }
    #expect(pool.retire("y") == true)
    #expect(pool.close() == ["x", "z"])
  }

  // MARK: - Close

  @Test func close_returnsTheIdleWorkersOnce() {
    var emptyPool = Pool(limit: 2)
    #expect(emptyPool.close() == [])
    var pool = Pool(limit: 2)
    for job in 1...2 { #expect(pool.add(job, to: Self.hostA) == .start) }
    for worker in ["x", "y"] { #expect(pool.finish(worker, of: Self.hostA) == .idle) }
    #expect(pool.close() == ["x", "y"])
    #expect(pool.close() == [])
  }

  @Test func retire_whenCloseHasReturnedTheWorker_fails() {
    var pool = Pool(limit: 1)
    #expect(pool.add(1, to: Self.hostA) == .start)
    #expect(pool.finish("x", of: Self.hostA) == .idle)
    #expect(pool.close() == ["x"])
    #expect(pool.retire("x") == false)
  }

  @Test func finish_whenClosed_runsTheQueuedJobsAndExits() {
    var pool = Pool(limit: 1)
    #expect(pool.add(1, to: Self.hostA) == .start)
    #expect(pool.add(2, to: Self.hostA) == .wait)
    #expect(pool.close() == [])
    #expect(pool.finish("x", of: Self.hostA) == .run(2))
    #expect(pool.finish("x", of: Self.hostA) == .exit)
    #expect(pool.retire("x") == false)
  }

  // MARK: - Random runs

  /// A failure reports the seed and the step of the run.
  @Test func `With random inputs, a pool never exceeds the limit of a host, and runs each job exactly once`() {
    var seenKinds: Set<String> = []
    var stepCount = 0
    for seed in 0..<200 as Range<UInt64> {
      var run = RandomRun(seed: seed)
      for step in 0..<150 {
        run.step()
        stepCount += 1
        if let fault = run.fault {
          Issue.record("seed \(seed), step \(step): \(fault)\nafter \(run.log.suffix(20).joined(separator: ", "))")
          return
        }
      }
      run.finishAll()
      if let fault = run.fault {
        Issue.record("seed \(seed), at the end: \(fault)\nafter \(run.log.suffix(20).joined(separator: ", "))")
        return
      }
      seenKinds.formUnion(run.answerKinds)
    }
    #expect(stepCount == 30_000)
    // Every kind of answer occurred.
    #expect(seenKinds == ["start", "wake", "wait", "run", "idle", "exit", "may retire", "may not retire"])
  }
}

/// An action with which the machine answers an input, in an equatable form.
private enum Answer<Worker: Equatable>: Equatable {
  case start, wait, idle, exit
  case wake(Worker)
  case run(Int)

  /// The name of the case.
  var kind: String { String("\(self)".prefix { $0 != "(" }) }
}

/// The state machine, with numbers as jobs and with equatable answers.
private struct PoolMachine<Worker: Equatable & Sendable> {
  private var state: CurlPoolState<Worker, Int>

  init(limit: Int) {
    state = CurlPoolState(maximumConnectionsPerHost: limit)
  }

  mutating func add(_ job: Int, to origin: Origin) -> Answer<Worker> {
    switch state.add(job, to: origin) {
    case .wake(let worker): .wake(worker)
    case .start: .start
    case .wait: .wait
    }
  }

  mutating func finish(_ worker: Worker, of origin: Origin) -> Answer<Worker> {
    switch state.finish(worker, of: origin) {
    case .run(let job): .run(job)
    case .idle: .idle
    case .exit: .exit
    }
  }

  mutating func retire(_ worker: Worker) -> Bool { state.retire(worker) }

  mutating func startFailed(of origin: Origin) -> [Int] { state.startFailed(of: origin) }

  mutating func close() -> [Worker] { state.close() }
}

private typealias Pool = PoolMachine<String>

/// A run that gives a machine random inputs and checks its answers.
private struct RandomRun {
  /// A job that a worker runs, with the index of its host in `origins`.
  private struct RunningJob {
    let worker: Int
    let job: Int
    let origin: Int
  }

  private static let origins = ["http://a.example", "https://a.example", "http://b.example:81"]
    .map(CurlPoolStateTests.origin)

  private var machine: PoolMachine<Int>
  private var generator: SplitMix64
  private let limit: Int

  private(set) var fault: String?
  private(set) var log: [String] = []
  private(set) var answerKinds: Set<String> = []

  private var isClosed = false
  private var startedWorkerCount = 0
  private var jobCount = 0
  private var runningJobs: [RunningJob] = []
  /// The idle workers, in the order in which they became idle, each with the host of its last job.
  private var idleWorkers: [(worker: Int, origin: Int)] = []
  /// The queued jobs of each host.
  private var queues = [[Int]](repeating: [], count: origins.count)
  private var startedJobs: Set<Int> = []

  init(seed: UInt64) {
    generator = SplitMix64(seed: seed)
    limit = Int(seed % 4) + 1
    machine = PoolMachine(limit: limit)
  }

  /// Gives the machine one random input.
  mutating func step() {
    switch Int.random(in: 0..<200, using: &generator) {
    case 0..<85: add()
    case 85..<175: finish()
    case 175..<199: retire()
    default: close()
    }
  }

  /// Finishes all jobs, checks that each one has run, and closes the pool.
  mutating func finishAll() {
    while !runningJobs.isEmpty, fault == nil { finish() }
    if startedJobs != Set(0..<jobCount) { fault = "\(jobCount - startedJobs.count) jobs did not run" }
    close()
  }

  /// Records that a worker begins a job, and sets `fault` if the job mustn't begin.
  private mutating func begin(_ job: Int, on worker: Int, origin: Int) {
    if !startedJobs.insert(job).inserted { fault = "the job \(job) runs twice" }
    if runningJobs.contains(where: { $0.worker == worker }) { fault = "the worker \(worker) has two jobs" }
    runningJobs.append(RunningJob(worker: worker, job: job, origin: origin))
    let count = runningJobs.count { $0.origin == origin }
    if count > limit { fault = "\(count) jobs of a host run at once" }
  }

  private mutating func add() {
    guard !isClosed else { return }
    let origin = Int.random(in: 0..<Self.origins.count, using: &generator)
    let job = jobCount
    jobCount += 1
    let isHostAtLimit = runningJobs.count { $0.origin == origin } == limit
    let answer = machine.add(job, to: Self.origins[origin])
    record("add \(job) to \(origin)", answer)
    switch answer {
    case .wait where isHostAtLimit:
      queues[origin].append(job)
    case .start where !isHostAtLimit && idleWorkers.isEmpty:
      startedWorkerCount += 1
      begin(job, on: startedWorkerCount, origin: origin)
    case .wake(let worker) where !isHostAtLimit:
      guard let index = idleWorkers.lastIndex(where: { $0.origin == origin }) ?? idleWorkers.indices.last,
        idleWorkers[index].worker == worker
      else {
        fault = "a worker other than the preferred one was woken"
        return
      }
      idleWorkers.remove(at: index)
      begin(job, on: worker, origin: origin)
    default:
      fault = "unexpected answer to add: \(answer)"
    }
  }

  private mutating func finish() {
    guard !runningJobs.isEmpty else { return }
    let done = runningJobs.remove(at: Int.random(in: 0..<runningJobs.count, using: &generator))
    let answer = machine.finish(done.worker, of: Self.origins[done.origin])
    record("finish \(done.job)", answer)
    switch answer {
    case .run(let job) where job == queues[done.origin].first:
      queues[done.origin].removeFirst()
      begin(job, on: done.worker, origin: done.origin)
    case .idle where queues[done.origin].isEmpty && !isClosed && idleWorkers.count < limit:
      idleWorkers.append((done.worker, done.origin))
    case .exit where queues[done.origin].isEmpty && (isClosed || idleWorkers.count == limit):
      break
    default:
      fault = "unexpected answer to finish: \(answer)"
    }
  }

  private mutating func retire() {
    guard startedWorkerCount > 0 else { return }
    let worker = Int.random(in: 1...startedWorkerCount, using: &generator)
    let index = idleWorkers.firstIndex { $0.worker == worker }
    let mayRetire = machine.retire(worker)
    log.append("retire \(worker): \(mayRetire)")
    answerKinds.insert(mayRetire ? "may retire" : "may not retire")
    if mayRetire != (index != nil) { fault = "unexpected answer to retire: \(mayRetire)" }
    if let index { idleWorkers.remove(at: index) }
  }

  private mutating func close() {
    let workers = machine.close()
    log.append("close: \(workers)")
    if workers != idleWorkers.map(\.worker) { fault = "unexpected answer to close: \(workers)" }
    idleWorkers = []
    isClosed = true
  }

  private mutating func record(_ input: String, _ answer: Answer<Int>) {
    log.append("\(input): \(answer)")
    answerKinds.insert(answer.kind)
  }
}

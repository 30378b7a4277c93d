import Foundation
import MulticastTesting
import Testing

@testable import GraphQLClient

/// The behavior of ``CurlPoolState``.
///
/// The name of a test states the input, the state and the result.
struct CurlPoolStateTests {
  private static let a = origin("http://a.example")
  private static let b = origin("http://b.example")

  fileprivate static func origin(_ url: String) -> Origin {
    Origin(URL(string: url)!)!
  }

  // MARK: - Start failure

  @Test func startFailed_whenItsHostHasOtherWorkers_leavesTheQueueToThem() {
    var pool = Pool(limit: 2)
    #expect(pool.add(1, to: Self.a) == .start)
    #expect(pool.add(2, to: Self.a) == .start)
    #expect(pool.add(3, to: Self.a) == .wait)
    #expect(pool.startFailed(of: Self.a) == [])
    #expect(pool.finish("x", of: Self.a) == .run(3))
    #expect(pool.add(4, to: Self.a) == .start)
  }

  @Test func startFailed_whenItWasTheOnlyWorker_failsTheQueuedJobs() {
    var pool = Pool(limit: 1)
    #expect(pool.add(1, to: Self.a) == .start)
    #expect(pool.add(2, to: Self.a) == .wait)
    #expect(pool.add(3, to: Self.b) == .start)
    #expect(pool.startFailed(of: Self.a) == [2])
    #expect(pool.add(4, to: Self.a) == .start)
    #expect(pool.add(5, to: Self.b) == .wait)
  }

  // MARK: - Add

  @Test func add_whenNoWorkerIsIdle_startsOne() {
    var pool = Pool(limit: 2)
    #expect(pool.add(1, to: Self.a) == .start)
  }

  @Test func add_upToTheLimit_startsOneWorkerPerJob() {
    var pool = Pool(limit: 2)
    #expect(pool.add(1, to: Self.a) == .start)
    #expect(pool.add(2, to: Self.a) == .start)
    #expect(pool.add(3, to: Self.a) == .wait)
    #expect(pool.add(4, to: Self.a) == .wait)
  }

  @Test func add_toAnotherHost_hasASeparateLimit() {
    var pool = Pool(limit: 1)
    #expect(pool.add(1, to: Self.a) == .start)
    #expect(pool.add(2, to: Self.a) == .wait)
    #expect(pool.add(3, to: Self.b) == .start)
    #expect(pool.add(4, to: Self.b) == .wait)
  }

  @Test func add_toAnotherPortOrScheme_countsAsAnotherHost() {
    var pool = Pool(limit: 1)
    #expect(pool.add(1, to: Self.a) == .start)
    #expect(pool.add(2, to: Self.origin("http://a.example:8080")) == .start)
    #expect(pool.add(3, to: Self.origin("https://a.example")) == .start)
    #expect(pool.add(4, to: Self.origin("HTTP://A.example:80/path")) == .wait)
  }

  @Test func add_whenAWorkerIsIdle_wakesIt() {
    var pool = Pool(limit: 2)
    #expect(pool.add(1, to: Self.a) == .start)
    #expect(pool.finish("x", of: Self.a) == .idle)
    #expect(pool.add(2, to: Self.a) == .wake("x"))
    #expect(pool.add(3, to: Self.a) == .start)
  }

  @Test func add_whenSeveralWorkersAreIdle_wakesTheOneThatBecameIdleLast() {
    var pool = Pool(limit: 3)
    for job in 1...3 { #expect(pool.add(job, to: Self.a) == .start) }
    for worker in ["x", "y", "z"] { #expect(pool.finish(worker, of: Self.a) == .idle) }
    #expect(pool.add(4, to: Self.a) == .wake("z"))
    #expect(pool.add(5, to: Self.a) == .wake("y"))
    #expect(pool.add(6, to: Self.a) == .wake("x"))
  }

  @Test func add_whenSeveralWorkersAreIdle_prefersAWorkerOfTheSameHost() {
    var pool = Pool(limit: 3)
    for job in 1...2 { #expect(pool.add(job, to: Self.a) == .start) }
    #expect(pool.add(3, to: Self.b) == .start)
    #expect(pool.finish("ax", of: Self.a) == .idle)
    #expect(pool.finish("ay", of: Self.a) == .idle)
    #expect(pool.finish("bz", of: Self.b) == .idle)
    #expect(pool.add(4, to: Self.a) == .wake("ay"))
    #expect(pool.add(5, to: Self.b) == .wake("bz"))
    #expect(pool.add(6, to: Self.b) == .wake("ax"))
    #expect(pool.add(7, to: Self.b) == .start)
  }

  // MARK: - Finish

  @Test func finish_whenJobsAreQueued_runsThemInOrder() {
    var pool = Pool(limit: 1)
    #expect(pool.add(1, to: Self.a) == .start)
    for job in 2...4 { #expect(pool.add(job, to: Self.a) == .wait) }
    #expect(pool.finish("x", of: Self.a) == .run(2))
    #expect(pool.finish("x", of: Self.a) == .run(3))
    #expect(pool.add(5, to: Self.a) == .wait)
    #expect(pool.finish("x", of: Self.a) == .run(4))
    #expect(pool.finish("x", of: Self.a) == .run(5))
    #expect(pool.finish("x", of: Self.a) == .idle)
  }

  @Test func finish_whenOnlyJobsOfAnotherHostAreQueued_becomesIdle() {
    var pool = Pool(limit: 1)
    #expect(pool.add(1, to: Self.a) == .start)
    #expect(pool.add(2, to: Self.b) == .start)
    #expect(pool.add(3, to: Self.b) == .wait)
    #expect(pool.finish("x", of: Self.a) == .idle)
    #expect(pool.finish("y", of: Self.b) == .run(3))
  }

  @Test func finish_whenEnoughWorkersAreIdle_exits() {
    var pool = Pool(limit: 1)
    #expect(pool.add(1, to: Self.a) == .start)
    #expect(pool.add(2, to: Self.b) == .start)
    #expect(pool.finish("x", of: Self.a) == .idle)
    #expect(pool.finish("y", of: Self.b) == .exit)
    #expect(pool.add(3, to: Self.b) == .wake("x"))
    #expect(pool.finish("x", of: Self.b) == .idle)
  }

  @Test func finish_freesAConnectionOfTheHost() {
    var pool = Pool(limit: 1)
    for job in 1...3 {
      #expect(pool.add(job, to: Self.a) == (job == 1 ? .start : .wake("x")))
      #expect(pool.finish("x", of: Self.a) == .idle)
    }
  }

  // MARK: - Retire

  @Test func retire_whenIdle_succeeds() {
    var pool = Pool(limit: 1)
    #expect(pool.add(1, to: Self.a) == .start)
    #expect(pool.finish("x", of: Self.a) == .idle)
    #expect(pool.retire("x") == true)
    #expect(pool.retire("x") == false)
    #expect(pool.add(2, to: Self.a) == .start)
  }

  @Test func retire_whenGivenAJobInTheMeantime_fails() {
    var pool = Pool(limit: 1)
    #expect(pool.add(1, to: Self.a) == .start)
    #expect(pool.finish("x", of: Self.a) == .idle)
    #expect(pool.add(2, to: Self.a) == .wake("x"))
    #expect(pool.retire("x") == false)
    #expect(pool.finish("x", of: Self.a) == .idle)
    #expect(pool.retire("x") == true)
  }

  @Test func retire_whenOtherWorkersAreIdle_removesOnlyTheGivenWorker() {
    var pool = Pool(limit: 3)
    for job in 1...3 { #expect(pool.add(job, to: Self.a) == .start) }
    for worker in ["x", "y", "z"] { #expect(pool.finish(worker, of: Self.a) == .idle) }
    #expect(pool.retire("y") == true)
    #expect(pool.close() == ["x", "z"])
  }

  // MARK: - Close

  @Test func close_returnsTheIdleWorkersOnce() {
    var pool = Pool(limit: 2)
    #expect(pool.close() == [])
    var busy = Pool(limit: 2)
    for job in 1...2 { #expect(busy.add(job, to: Self.a) == .start) }
    for worker in ["x", "y"] { #expect(busy.finish(worker, of: Self.a) == .idle) }
    #expect(busy.close() == ["x", "y"])
    #expect(busy.close() == [])
  }

  @Test func retire_whenCloseHasReturnedTheWorker_fails() {
    var pool = Pool(limit: 1)
    #expect(pool.add(1, to: Self.a) == .start)
    #expect(pool.finish("x", of: Self.a) == .idle)
    #expect(pool.close() == ["x"])
    #expect(pool.retire("x") == false)
  }

  @Test func finish_whenClosed_runsTheQueuedJobsAndExits() {
    var pool = Pool(limit: 1)
    #expect(pool.add(1, to: Self.a) == .start)
    #expect(pool.add(2, to: Self.a) == .wait)
    #expect(pool.close() == [])
    #expect(pool.finish("x", of: Self.a) == .run(2))
    #expect(pool.finish("x", of: Self.a) == .exit)
    #expect(pool.retire("x") == false)
  }

  // MARK: - Random runs

  /// A failure reports the seed and the step of the run.
  @Test func `With random inputs, a pool never exceeds the limit of a host, and runs each job exactly once`() {
    var seen: Set<String> = []
    var stepCount = 0
    for seed in 0..<200 as Range<UInt64> {
      var run = RandomPool(seed: seed)
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
      seen.formUnion(run.kinds)
    }
    #expect(stepCount == 30_000)
    // Every action of the machine occurred.
    #expect(seen == ["start", "wake", "wait", "run", "idle", "exit", "may retire", "may not retire"])
  }
}

/// An action of the machine, in an equatable form.
private enum Answer<Worker: Equatable>: Equatable {
  case start, wait, idle, exit
  case wake(Worker)
  case run(Int)

  /// The name of the case.
  var kind: String { String("\(self)".prefix { $0 != "(" }) }
}

/// The state machine with numbers as jobs.
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

/// Gives a pool random inputs, and checks its answers.
private struct RandomPool {
  private struct Running {
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
  private(set) var kinds: Set<String> = []

  private var isClosed = false
  private var workerCount = 0
  private var jobCount = 0
  private var running: [Running] = []
  /// The idle workers, in the order in which they became idle, each with the host that it is connected to.
  private var idle: [(worker: Int, origin: Int)] = []
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
    while !running.isEmpty, fault == nil { finish() }
    if startedJobs != Set(0..<jobCount) { fault = "\(jobCount - startedJobs.count) jobs did not run" }
    close()
  }

  private mutating func run(_ job: Int, on worker: Int, origin: Int) {
    if !startedJobs.insert(job).inserted { fault = "the job \(job) runs twice" }
    if running.contains(where: { $0.worker == worker }) { fault = "the worker \(worker) has two jobs" }
    running.append(Running(worker: worker, job: job, origin: origin))
    let count = running.count { $0.origin == origin }
    if count > limit { fault = "\(count) jobs of a host run at once" }
  }

  private mutating func add() {
    guard !isClosed else { return }
    let origin = Int.random(in: 0..<Self.origins.count, using: &generator)
    let job = jobCount
    jobCount += 1
    let isFull = running.count { $0.origin == origin } == limit
    let answer = machine.add(job, to: Self.origins[origin])
    record("add \(job) to \(origin)", answer)
    switch answer {
    case .wait where isFull:
      queues[origin].append(job)
    case .start where !isFull && idle.isEmpty:
      workerCount += 1
      run(job, on: workerCount, origin: origin)
    case .wake(let worker) where !isFull:
      guard let index = idle.lastIndex(where: { $0.origin == origin }) ?? idle.indices.last,
        idle[index].worker == worker
      else {
        fault = "a worker other than the preferred one was woken"
        return
      }
      idle.remove(at: index)
      run(job, on: worker, origin: origin)
    default:
      fault = "unexpected answer to add: \(answer)"
    }
  }

  private mutating func finish() {
    guard !running.isEmpty else { return }
    let done = running.remove(at: Int.random(in: 0..<running.count, using: &generator))
    let answer = machine.finish(done.worker, of: Self.origins[done.origin])
    record("finish \(done.job)", answer)
    switch answer {
    case .run(let job) where job == queues[done.origin].first:
      queues[done.origin].removeFirst()
      run(job, on: done.worker, origin: done.origin)
    case .idle where queues[done.origin].isEmpty && !isClosed && idle.count < limit:
      idle.append((done.worker, done.origin))
    case .exit where queues[done.origin].isEmpty && (isClosed || idle.count == limit):
      break
    default:
      fault = "unexpected answer to finish: \(answer)"
    }
  }

  private mutating func retire() {
    guard workerCount > 0 else { return }
    let worker = Int.random(in: 1...workerCount, using: &generator)
    let index = idle.firstIndex { $0.worker == worker }
    let mayRetire = machine.retire(worker)
    log.append("retire \(worker): \(mayRetire)")
    kinds.insert(mayRetire ? "may retire" : "may not retire")
    if mayRetire != (index != nil) { fault = "unexpected answer to retire: \(mayRetire)" }
    if let index { idle.remove(at: index) }
  }

  private mutating func close() {
    let workers = machine.close()
    log.append("close: \(workers)")
    if workers != idle.map(\.worker) { fault = "unexpected answer to close: \(workers)" }
    idle = []
    isClosed = true
  }

  private mutating func record(_ input: String, _ answer: Answer<Int>) {
    log.append("\(input): \(answer)")
    kinds.insert(answer.kind)
  }
}

import Foundation
import MulticastTesting
import Testing

@testable import GraphQLClient

/// The machine, input × state.
struct CurlPoolStateTests {
  private static let a = origin("http://a.example")
  private static let b = origin("http://b.example")

  fileprivate static func origin(_ url: String) -> Origin {
    Origin(URL(string: url)!)!
  }

  // MARK: - A worker that cannot be started

  @Test func startFailed_whenItsHostHasOtherWorkers_leavesTheLineToThem() {
    var pool = Pool(limit: 2)
    #expect(pool.add(1, to: Self.a) == .start)
    #expect(pool.add(2, to: Self.a) == .start)
    #expect(pool.add(3, to: Self.a) == .wait)
    #expect(pool.startFailed(of: Self.a) == [])
    #expect(pool.finish("x", of: Self.a) == .run(3))
    #expect(pool.add(4, to: Self.a) == .start)
  }

  @Test func startFailed_whenItWasTheOnlyWorker_givesUpTheLine() {
    var pool = Pool(limit: 1)
    #expect(pool.add(1, to: Self.a) == .start)
    #expect(pool.add(2, to: Self.a) == .wait)
    #expect(pool.add(3, to: Self.b) == .start)
    #expect(pool.startFailed(of: Self.a) == [2])
    #expect(pool.add(4, to: Self.a) == .start)
    #expect(pool.add(5, to: Self.b) == .wait)
  }

  // MARK: - Add

  @Test func add_whenNoWorkerRests_startsOne() {
    var pool = Pool(limit: 2)
    #expect(pool.add(1, to: Self.a) == .start)
  }

  @Test func add_upToTheLimit_startsAWorkerEach() {
    var pool = Pool(limit: 2)
    #expect(pool.add(1, to: Self.a) == .start)
    #expect(pool.add(2, to: Self.a) == .start)
    #expect(pool.add(3, to: Self.a) == .wait)
    #expect(pool.add(4, to: Self.a) == .wait)
  }

  @Test func add_toAnotherHost_hasALimitOfItsOwn() {
    var pool = Pool(limit: 1)
    #expect(pool.add(1, to: Self.a) == .start)
    #expect(pool.add(2, to: Self.a) == .wait)
    #expect(pool.add(3, to: Self.b) == .start)
    #expect(pool.add(4, to: Self.b) == .wait)
  }

  @Test func add_toAnotherPortOrScheme_isToAnotherHost() {
    var pool = Pool(limit: 1)
    #expect(pool.add(1, to: Self.a) == .start)
    #expect(pool.add(2, to: Self.origin("http://a.example:8080")) == .start)
    #expect(pool.add(3, to: Self.origin("https://a.example")) == .start)
    #expect(pool.add(4, to: Self.origin("HTTP://A.example:80/path")) == .wait)
  }

  @Test func add_whenAWorkerRests_wakesIt() {
    var pool = Pool(limit: 2)
    #expect(pool.add(1, to: Self.a) == .start)
    #expect(pool.finish("x", of: Self.a) == .rest)
    #expect(pool.add(2, to: Self.a) == .wake("x"))
    #expect(pool.add(3, to: Self.a) == .start)
  }

  @Test func add_whenSeveralRest_wakesTheOneThatRestedLeast() {
    var pool = Pool(limit: 3)
    for job in 1...3 { #expect(pool.add(job, to: Self.a) == .start) }
    for worker in ["x", "y", "z"] { #expect(pool.finish(worker, of: Self.a) == .rest) }
    #expect(pool.add(4, to: Self.a) == .wake("z"))
    #expect(pool.add(5, to: Self.a) == .wake("y"))
    #expect(pool.add(6, to: Self.a) == .wake("x"))
  }

  @Test func add_whenSeveralRest_prefersTheSameHost() {
    var pool = Pool(limit: 3)
    for job in 1...2 { #expect(pool.add(job, to: Self.a) == .start) }
    #expect(pool.add(3, to: Self.b) == .start)
    #expect(pool.finish("ax", of: Self.a) == .rest)
    #expect(pool.finish("ay", of: Self.a) == .rest)
    #expect(pool.finish("bz", of: Self.b) == .rest)
    #expect(pool.add(4, to: Self.a) == .wake("ay"))
    #expect(pool.add(5, to: Self.b) == .wake("bz"))
    #expect(pool.add(6, to: Self.b) == .wake("ax"))
    #expect(pool.add(7, to: Self.b) == .start)
  }

  // MARK: - Finish

  @Test func finish_whenJobsWait_runsThemInOrder() {
    var pool = Pool(limit: 1)
    #expect(pool.add(1, to: Self.a) == .start)
    for job in 2...4 { #expect(pool.add(job, to: Self.a) == .wait) }
    #expect(pool.finish("x", of: Self.a) == .run(2))
    #expect(pool.finish("x", of: Self.a) == .run(3))
    #expect(pool.add(5, to: Self.a) == .wait)
    #expect(pool.finish("x", of: Self.a) == .run(4))
    #expect(pool.finish("x", of: Self.a) == .run(5))
    #expect(pool.finish("x", of: Self.a) == .rest)
  }

  @Test func finish_whenOnlyAnotherHostsJobsWait_rests() {
    var pool = Pool(limit: 1)
    #expect(pool.add(1, to: Self.a) == .start)
    #expect(pool.add(2, to: Self.b) == .start)
    #expect(pool.add(3, to: Self.b) == .wait)
    #expect(pool.finish("x", of: Self.a) == .rest)
    #expect(pool.finish("y", of: Self.b) == .run(3))
  }

  @Test func finish_whenEnoughRest_leaves() {
    var pool = Pool(limit: 1)
    #expect(pool.add(1, to: Self.a) == .start)
    #expect(pool.add(2, to: Self.b) == .start)
    #expect(pool.finish("x", of: Self.a) == .rest)
    #expect(pool.finish("y", of: Self.b) == .leave)
    #expect(pool.add(3, to: Self.b) == .wake("x"))
    #expect(pool.finish("x", of: Self.b) == .rest)
  }

  @Test func finish_makesRoomForTheHost() {
    var pool = Pool(limit: 1)
    for job in 1...3 {
      #expect(pool.add(job, to: Self.a) == (job == 1 ? .start : .wake("x")))
      #expect(pool.finish("x", of: Self.a) == .rest)
    }
  }

  // MARK: - Leave

  @Test func leave_whenResting_mayLeave() {
    var pool = Pool(limit: 1)
    #expect(pool.add(1, to: Self.a) == .start)
    #expect(pool.finish("x", of: Self.a) == .rest)
    #expect(pool.leave("x") == true)
    #expect(pool.leave("x") == false)
    #expect(pool.add(2, to: Self.a) == .start)
  }

  @Test func leave_whenGivenAJobMeanwhile_mayNot() {
    var pool = Pool(limit: 1)
    #expect(pool.add(1, to: Self.a) == .start)
    #expect(pool.finish("x", of: Self.a) == .rest)
    #expect(pool.add(2, to: Self.a) == .wake("x"))
    #expect(pool.leave("x") == false)
    #expect(pool.finish("x", of: Self.a) == .rest)
    #expect(pool.leave("x") == true)
  }

  @Test func leave_whenOthersRest_takesOnlyItself() {
    var pool = Pool(limit: 3)
    for job in 1...3 { #expect(pool.add(job, to: Self.a) == .start) }
    for worker in ["x", "y", "z"] { #expect(pool.finish(worker, of: Self.a) == .rest) }
    #expect(pool.leave("y") == true)
    #expect(pool.close() == ["x", "z"])
  }

  // MARK: - Close

  @Test func close_endsThoseThatRest() {
    var pool = Pool(limit: 2)
    #expect(pool.close() == [])
    var resting = Pool(limit: 2)
    for job in 1...2 { #expect(resting.add(job, to: Self.a) == .start) }
    for worker in ["x", "y"] { #expect(resting.finish(worker, of: Self.a) == .rest) }
    #expect(resting.close() == ["x", "y"])
    #expect(resting.close() == [])
  }

  @Test func close_whenAWorkerIsAboutToLeave_keepsItWaitingForItsOrder() {
    var pool = Pool(limit: 1)
    #expect(pool.add(1, to: Self.a) == .start)
    #expect(pool.finish("x", of: Self.a) == .rest)
    #expect(pool.close() == ["x"])
    #expect(pool.leave("x") == false)
  }

  @Test func finish_whenClosed_runsWhatWaitsAndLeaves() {
    var pool = Pool(limit: 1)
    #expect(pool.add(1, to: Self.a) == .start)
    #expect(pool.add(2, to: Self.a) == .wait)
    #expect(pool.close() == [])
    #expect(pool.finish("x", of: Self.a) == .run(2))
    #expect(pool.finish("x", of: Self.a) == .leave)
    #expect(pool.leave("x") == false)
  }

  // MARK: - Random runs

  /// A failure names its seed and its step.
  @Test func `A random pool keeps the limit, loses no job and runs none twice`() {
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
    // Every answer of the machine came up.
    #expect(seen == ["start", "wake", "wait", "run", "rest", "leave", "may leave", "may not leave"])
  }
}

/// What the machine answers to an input, in a form that can be compared.
private enum Answer<Worker: Equatable>: Equatable {
  case start, wait, rest, leave
  case wake(Worker)
  case run(Int)

  /// The name of the case.
  var kind: String { String("\(self)".prefix { $0 != "(" }) }
}

/// The machine with numbers for jobs.
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
    case .rest: .rest
    case .leave: .leave
    }
  }

  mutating func leave(_ worker: Worker) -> Bool { state.leave(worker) }

  mutating func startFailed(of origin: Origin) -> [Int] { state.startFailed(of: origin) }

  mutating func close() -> [Worker] { state.close() }
}

private typealias Pool = PoolMachine<String>

/// A pool with random inputs, and what it promises.
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
  /// The workers that rest, the one that rested longest first, with the host each has a connection to.
  private var resting: [(worker: Int, origin: Int)] = []
  /// The jobs of each host that wait.
  private var lines = [[Int]](repeating: [], count: origins.count)
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
    case 175..<199: leave()
    default: close()
    }
  }

  /// Runs all jobs to their end, after which each must have run.
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
      lines[origin].append(job)
    case .start where !isFull && resting.isEmpty:
      workerCount += 1
      run(job, on: workerCount, origin: origin)
    case .wake(let worker) where !isFull:
      guard let index = resting.lastIndex(where: { $0.origin == origin }) ?? resting.indices.last,
        resting[index].worker == worker
      else {
        fault = "another worker than the best one was woken"
        return
      }
      resting.remove(at: index)
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
    case .run(let job) where job == lines[done.origin].first:
      lines[done.origin].removeFirst()
      run(job, on: done.worker, origin: done.origin)
    case .rest where lines[done.origin].isEmpty && !isClosed && resting.count < limit:
      resting.append((done.worker, done.origin))
    case .leave where lines[done.origin].isEmpty && (isClosed || resting.count == limit):
      break
    default:
      fault = "unexpected answer to finish: \(answer)"
    }
  }

  private mutating func leave() {
    guard workerCount > 0 else { return }
    let worker = Int.random(in: 1...workerCount, using: &generator)
    let index = resting.firstIndex { $0.worker == worker }
    let mayLeave = machine.leave(worker)
    log.append("leave \(worker): \(mayLeave)")
    kinds.insert(mayLeave ? "may leave" : "may not leave")
    if mayLeave != (index != nil) { fault = "unexpected answer to leave: \(mayLeave)" }
    if let index { resting.remove(at: index) }
  }

  private mutating func close() {
    let workers = machine.close()
    log.append("close: \(workers)")
    if workers != resting.map(\.worker) { fault = "unexpected answer to close: \(workers)" }
    resting = []
    isClosed = true
  }

  private mutating func record(_ input: String, _ answer: Answer<Int>) {
    log.append("\(input): \(answer)")
    kinds.insert(answer.kind)
  }
}

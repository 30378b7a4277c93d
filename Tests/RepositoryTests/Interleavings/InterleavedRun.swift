import DataStore
import DataStoreTesting
import Foundation
import Multicast
import MulticastTesting
import RepositoryTesting

@testable import Repository

/// A run of repositories in simulated processes that start and end, with one server, network and storage.
///
/// Each mutation adds a numbered ``Mark`` to a value, and a ``Journal`` checks its laws. Everything runs on one
/// ``ManualTaskExecutor``. A seed determines the operations, and which job runs next.
struct InterleavedRun<Source: MarksSourceType> {
  typealias Repository = SyncedRepository<Source>

  /// The options of a run.
  struct Options {
    var acknowledgement = Acknowledgement.value
    /// Whether some calls of the store fail.
    var failsStore = false
    /// Whether two processes use the storage at the same time.
    var isShared = false
    /// The number of operations.
    var length = 50
  }

  /// A simulated process: a repository with its own store and client.
  private final class Process {
    let number: Int
    let client: MarksClient
    let store: SimulatedStore
    let network: ManualNetworkMonitor
    let activity: ManualActivityMonitor
    var repository: Repository?
    var callers: [Task<Void, Never>] = []
    /// The marks made in the process, by key and lane.
    var marks: [String: [Int]] = [:]
    /// The marks that were accepted before the process started; see ``Journal/Outcome``.
    var knownMarks: Set<Int> = []
    /// The keys that are fetched while they are observed.
    var loadingKeys: Set<String> = []
    var observers: [Task<Void, Never>] = []

    init(
      _ number: Int, _ client: MarksClient, _ store: SimulatedStore, _ repository: Repository,
      _ network: ManualNetworkMonitor, _ activity: ManualActivityMonitor
    ) {
      (self.number, self.client, self.store, self.repository) = (number, client, store, repository)
      (self.network, self.activity) = (network, activity)
    }
  }

  private static var keys: [String] { ["a", "b"] }

  private let options: Options
  private let executor = ManualTaskExecutor()
  private let clock = ManualClock()
  private let server = MarksServer(empty: Paged())
  private let storage: SimulatedStorage
  private let network: SimulatedNetwork
  private let journal: Journal
  private var random: SplitMix64
  private var processes: [Process] = []
  private var lastProcess = 0
  private var lastMark = 0
  private var marks: [String: [Int]] = [:]

  init(seed: UInt64, _ options: Options) {
    self.options = options
    random = SplitMix64(seed: seed)
    storage = SimulatedStorage { [clock] in
      Date(timeIntervalSinceReferenceDate: Double(clock.now.offset.components.seconds))
    }
    network = SimulatedNetwork(seed: random.next(), conditions: .rough)
    journal = Journal(
      seed: random.next(), storage: storage, server: server, isPaged: Source.loadMore != nil,
      isShared: options.isShared)
  }

  /// Performs the run.
  ///
  /// - Returns: The trace, and descriptions of the violations.
  mutating func run() -> (trace: [String], violations: [String]) {
    for key in Self.keys where Bool.random(using: &random) {
      for _ in 0..<Int.random(in: 1...5, using: &random) { edit(key) }
    }
    start()
    if options.isShared { start() }
    for _ in 0..<options.length {
      operate()
      runSome()
      if !journal.violations.isEmpty { break }
    }
    if journal.violations.isEmpty { settle() }
    while let process = processes.first { release(process) }
    executor.run(atMost: 100_000, using: &random)
    if journal.violations.isEmpty { journal.checkAll() }
    return (journal.trace, journal.violations)
  }

  private mutating func runSome() {
    executor.run(atMost: Int.random(in: 0...25, using: &random), using: &random)
  }

  // MARK: - Processes

  private mutating func start() {
    lastProcess += 1
    let client = MarksClient(network, server, options.acknowledgement, journal)
    let store = SimulatedStore(storage: storage, hooks: journal.hooks(lastProcess))
    var configuration = RepositoryConfiguration(
      pageSize: 3, freshness: Freshness(timeToLive: .seconds(5)), retryPolicy: RetryPolicy(cap: .seconds(8)),
      clock: clock,
      now: { [clock] in Date(timeIntervalSinceReferenceDate: Double(clock.now.offset.components.seconds)) },
      random: SplitMix64(seed: random.next()))
    configuration.taskExecutor = executor
    let (networkMonitor, activity) = (ManualNetworkMonitor(), ManualActivityMonitor())
    (configuration.network, configuration.activity) = (networkMonitor, activity)
    let repository = Repository(Source(client), store: store, configuration: configuration)
    let process = Process(lastProcess, client, store, repository, networkMonitor, activity)
    process.knownMarks = journal.acceptedMarks(among: Array(1...max(lastMark, 1)))
    processes.append(process)
    journal.note("process \(process.number) begins")
    for key in Self.keys { observe(key, process) }
    let events = repository.events.subscribe()
    Task(executorPreference: executor) { [journal] in
      for await event in events {
        switch event {
        case .mutationRefused(let id, _), .mutationConflicted(let id, _):
          if let mark = journal.mark(of: id) { journal.end(mark) }
        default: break
        }
      }
    }
  }

  private mutating func observe(_ key: String, _ process: Process) {
    guard let repository = process.repository else { return }
    let own = journal.acceptedMarks(among: process.marks.values.flatMap(\.self))
    let observer = journal.beginObserving(
      key, process.number, durable: own.union(process.knownMarks).intersection(marks[key] ?? []))
    let policies: [LoadingPolicy] = [
      .never, .whileObserved(),
      .whileObserved(stopTimeout: .zero, every: .seconds(Int.random(in: 5...20, using: &random))),
    ]
    let policy = policies.randomElement(using: &random)!
    if policy != .never { process.loadingKeys.insert(key) }
    let values = repository.values(of: key, loading: policy).subscribe()
    let states = repository.states(of: key, loading: policy).subscribe()
    let number = process.number
    process.observers.append(
      Task(executorPreference: executor) { [journal] in
        for await value in values { journal.observe(value, by: observer) }
      })
    process.observers.append(
      Task(executorPreference: executor) { [journal] in
        for await state in states {
          // A cancelled observer may be late. It must not overwrite the newer state that its successor has received.
          if Task.isCancelled { break }
          journal.observe(state, of: key, number)
        }
      })
  }

  /// Releases the repository of a process; the repository may still complete work in flight.
  private mutating func release(_ process: Process) {
    journal.note("process \(process.number) releases its repository")
    processes.removeAll { $0 === process }
    for caller in process.callers { caller.cancel() }
    process.repository = nil
  }

  /// Ends a process abruptly, so that it makes no further commits and sends no further requests.
  ///
  /// Requests in transit may still reach the server.
  private mutating func kill(_ process: Process) {
    process.store.disconnect()
    process.client.end()
    release(process)
  }

  private func call(_ process: Process, _ body: @escaping @Sendable (Repository) async -> Void) {
    guard let repository = process.repository else { return }
    process.callers.append(Task(executorPreference: executor) { await body(repository) })
  }

  // MARK: - Operations

  private mutating func operate() {
    let process = processes.randomElement(using: &random)!
    let key = Self.keys.randomElement(using: &random)!
    switch Int.random(in: 0..<52, using: &random) {
    case 0..<9: perform(key, process)
    case 9..<12: load(key, process) { try await $0.reload(key) }
    case 12: load(key, process) { try await $0.refresh(key) }
    case 13, 14:
      if let loadMore = Source.loadMore { load(key, process) { try await loadMore($0, key) } } else { edit(key) }
    case 15, 16: edit(key)
    case 17: saveExternally(key)
    case 18, 19: cancel(process)
    case 20: resolve(process)
    case 21: process.callers.randomElement(using: &random)?.cancel()
    case 22: process.client.isSignedOut.toggle()
    case 23: signIn(process)
    case 24, 25: network.isReachable.toggle()
    case 26: call(process) { await $0.retryNow() }
    case 27, 28: advance()
    case 29:
      if Bool.random(using: &random) {
        kill(process)
        if Bool.random(using: &random) { runSome() }
      } else {
        release(process)
        // The released repository completes what it can before the next process starts.
        executor.run(atMost: 100_000, using: &random)
      }
      start()
    case 30: notice(process)
    case 31: observe(key, process)
    case 32: journal.failureRate = options.failsStore && journal.failureRate == 0 ? 0.15 : 0
    case 33: checkQuiet()
    case 34: process.network.status = [.online, .offline, .unknown].randomElement(using: &random)!
    case 35: process.activity.activity = [.active, .inactive].randomElement(using: &random)!
    case 37: leave(process)
    case 38: process.store.loseLocks()
    case 36:
      let selection = [KeySelection.key(key), .user("0"), .all].randomElement(using: &random)!
      call(process) { await $0.invalidate(selection) }
    default: step()
    }
  }

  /// Cancels the observers of a process, and starts new ones for each key.
  private mutating func leave(_ process: Process) {
    for observer in process.observers { observer.cancel() }
    (process.observers, process.loadingKeys) = ([], [])
    if Bool.random(using: &random) { runSome() }
    for key in Self.keys { observe(key, process) }
  }

  private mutating func perform(_ key: String, _ process: Process) {
    lastMark += 1
    var change = MarkChange(mark: lastMark, lane: Int.random(in: 0...1, using: &random))
    switch Int.random(in: 0..<12, using: &random) {
    case 0: change.isRefused = true
    case 1: change.excluded = Int.random(in: 1...lastMark + 3, using: &random)
    case 2...6: change.isCounting = true
    default: break
    }
    let lane = "\(key)/\(change.lane)"
    let earlier = (process.marks[lane] ?? []).filter { journal.outcome(of: $0) == .accepted }
    process.marks[lane, default: []].append(change.mark)
    marks[key, default: []].append(change.mark)
    // The mark may be missing, because it appears and disappears depending on another mark.
    if change.excluded != nil { journal.end(change.mark) }
    journal.willPerform(change, behind: earlier)
    call(process) { [journal, change] repository in
      let outcome: Journal.Outcome
      do throws(RepositoryError<MarksFailure>) {
        let result = try await repository.perform(change, on: key)
        if case .conflicted = result { journal.end(change.mark) }
        journal.note("mark \(change.mark): \(result.name)")
        outcome = .accepted
      } catch {
        journal.note("mark \(change.mark): \(error)")
        switch error {
        case .store(SimulatedStore.disconnectedError), .cancelled: outcome = .other
        case .store: outcome = .notStored
        case .server, .conflict, .queueFull, .signedOut: outcome = .other
        }
        if case .cancelled = error {} else { journal.end(change.mark) }
      }
      journal.performed(change.mark, outcome)
      if outcome == .accepted { await journal.checkShown(change.mark, key, repository) }
    }
  }

  private func load(
    _ key: String, _ process: Process, _ body: @escaping @Sendable (Repository) async throws -> Void
  ) {
    call(process) { [journal] repository in
      do {
        try await body(repository)
        journal.note("\(key) is loaded")
      } catch {
        journal.note("\(key) isn't loaded: \(error)")
      }
    }
  }

  /// Changes the value on the server, as another user would.
  private mutating func edit(_ key: String) {
    lastMark += 1
    journal.note("mark \(lastMark) is made elsewhere")
    server.edit(key) { [lastMark] in $0.elements.insert(Mark(id: lastMark), at: 0) }
  }

  /// Stores the server's current value, or its newest page, as another process would.
  private mutating func saveExternally(_ key: String) {
    let store = SimulatedStore(
      storage: storage, hooks: .init(didCommit: { [journal] in journal.didSaveExternally($0) }))
    Task(executorPreference: executor) { [server, journal] in
      do throws(StoreError) {
        let stored = try await store.load(StoreKey<Paged<Mark>>("marks", id: key))
        var batch = StoreBatch()
        batch.require(stored?.tag, of: StoreKey<Paged<Mark>>("marks", id: key))
        let page = server.page(of: key, after: nil, limit: Source.loadMore == nil ? .max : 3)
        batch.save(page, for: StoreKey("marks", id: key))
        try await store.commit(batch)
      } catch {
        journal.note("\(key) isn't saved externally")
      }
    }
  }

  private mutating func cancel(_ process: Process) {
    let choice = random.next()
    call(process) { [journal] repository in
      guard let list = try? await repository.mutations.list() else { return }
      let waiting = list.filter { $0.standing == .waiting || $0.standing == .needsSignIn }
      guard !waiting.isEmpty else { return }
      let mutation = waiting[Int(choice % UInt64(waiting.count))]
      journal.end(mutation.mutation.mark)
      do throws(PendingMutationError) {
        try await repository.mutations.cancel(mutation.id)
        journal.cancelled(mutation.id)
        journal.note("mark \(mutation.mutation.mark) is cancelled")
      } catch {
        journal.note("mark \(mutation.mutation.mark) isn't cancelled")
      }
    }
  }

  /// Requeues, retries or discards all refused and conflicted mutations.
  private mutating func resolve(_ process: Process) {
    let requeues = Bool.random(using: &random)
    call(process) { [journal] repository in
      guard let list = try? await repository.mutations.list() else { return }
      for mutation in list {
        let mark = mutation.mutation.mark
        do throws(PendingMutationError) {
          switch mutation.standing {
          case .refused where requeues:
            journal.requeue(mark)
            try await repository.mutations.requeue(mutation.id)
          case .conflicted where requeues:
            journal.requeue(mark)
            try await repository.mutations.resolve(mutation.id, .retry)
          case .refused, .conflicted: try await repository.mutations.discard(mutation.id)
          case .waiting, .inFlight, .needsSignIn: continue
          }
          journal.note("mark \(mark) is resolved")
        } catch {
          journal.note("mark \(mark) isn't resolved")
        }
      }
    }
  }

  private func signIn(_ process: Process) {
    process.client.isSignedOut = false
    call(process) { await $0.credentialsChanged(userID: nil) }
  }

  private mutating func advance() {
    clock.advance(by: .seconds(Int.random(in: 1...10, using: &random)))
  }

  private func notice(_ process: Process) {
    Task(executorPreference: executor) { [store = process.store] in await store.noticeExternalChanges() }
  }

  private mutating func step() {
    guard let (packet, move) = network.step() else { return }
    journal.note("\(packet.label) \(packet.direction) \(move)")
  }

  /// Runs all jobs that are ready, and checks the laws that hold only while nothing is in flight.
  ///
  /// Checks nothing if a packet is in transit, calls of the store may fail, or two processes use the storage.
  private mutating func checkQuiet() {
    executor.run(atMost: 100_000, using: &random)
    guard !options.failsStore, !options.isShared, network.packets.isEmpty else { return }
    for process in processes {
      notice(process)
      executor.run(atMost: 100_000, using: &random)
      for key in Self.keys { journal.checkQuiet(key, process.number) }
    }
  }

  // MARK: - Settling

  /// Checks L12 to L14 of `RepositoryConformance`: when everything works again, the queue drains, every process shows
  /// the server's value, and no value is pending.
  private mutating func settle() {
    journal.note("everything works")
    network.conditions = .reliable
    network.isReachable = true
    journal.failureRate = 0
    // All repositories are released, and a new one must send the mutations that they left.
    if options.isShared {
      while let process = processes.first { release(process) }
      drain { true }
      start()
    }
    for process in processes {
      (process.network.status, process.activity.activity) = (.online, .active)
      signIn(process)
    }
    for process in processes {
      call(process) { [journal, number = process.number] repository in
        do throws(CancellationError) {
          try await repository.waitForPendingMutations()
          journal.finish("queue \(number)")
        } catch {}
      }
    }
    drain { [processes, journal] in processes.allSatisfy { journal.isFinished("queue \($0.number)") } }
    for process in processes where !journal.isFinished("queue \(process.number)") {
      let records = storage.values(in: "marks.mutations", as: Journal.Record.self)
      return journal.violate(
        "L12: the queue of process \(process.number) doesn't drain: \(records.values.map(\.mutation.mark).sorted())")
    }
    for process in processes {
      call(process) { [journal, number = process.number, loadingKeys = process.loadingKeys] repository in
        for key in Self.keys {
          do throws(RepositoryError<MarksFailure>) {
            // Keys that are fetched while they are observed need no reload.
            if loadingKeys.contains(key) {
              await repository.invalidate(.key(key))
            } else {
              try await repository.reload(key)
            }
          } catch {
            journal.note("\(key) isn't loaded at the end: \(error)")
          }
        }
        journal.finish("load \(number)")
      }
    }
    drain { [processes, journal] in processes.allSatisfy { journal.isFinished("load \($0.number)") } }
    for process in processes {
      notice(process)
      executor.run(atMost: 100_000, using: &random)
      checkEnd(process)
    }
  }

  /// Delivers packets and advances the clock until a condition holds and no packet is left, or a limit is reached.
  private mutating func drain(_ isDone: () -> Bool) {
    for _ in 0..<400 {
      executor.run(atMost: 100_000, using: &random)
      if network.packets.isEmpty {
        if isDone() { return }
        clock.advance(by: .seconds(10))
      } else {
        step()
      }
    }
  }

  private func checkEnd(_ process: Process) {
    guard journal.isFinished("load \(process.number)") else {
      return journal.violate("L12: process \(process.number) can't load.")
    }
    for key in Self.keys {
      let expected = server.value(of: key).elements
      let shown = journal.newestValue(of: key, process.number)?.elements
      if !(shown.map { isRight($0, expected) } ?? false) {
        journal.violate("L14: process \(process.number) shows \(shown?.map(\.id) ?? []), not \(expected.map(\.id)).")
      }
      if journal.newestState(of: key, process.number)?.isPending != false {
        journal.violate("L13: \(key) is pending in process \(process.number) although nothing is in flight.")
      }
    }
    let live = storage.values(in: "marks.mutations", as: Journal.Record.self).values.filter { $0.verdict == nil }
    if !live.isEmpty { journal.violate("L12: marks \(live.map(\.mutation.mark).sorted()) stay in the queue.") }
  }
}

extension InterleavedRun {
  /// Whether a shown value agrees with the server's value.
  ///
  /// With pages, the oldest elements may be missing. If the server acknowledges changes without a value, other elements
  /// that are older than the newest page may be missing too.
  private func isRight(_ shown: [Mark], _ expected: [Mark]) -> Bool {
    if Source.loadMore == nil { return shown == expected }
    if options.acknowledgement == .value { return expected.starts(with: shown) }
    return shown.prefix(3) == expected.prefix(3) && shown.allSatisfy(expected.contains)
  }
}

extension Journal {
  /// Checks L2: a new observer sees the mark of a call that has returned.
  fileprivate func checkShown<Source: MarksSourceType>(
    _ mark: Int, _ key: String, _ repository: SyncedRepository<Source>
  ) async {
    guard Source.loadMore == nil, !isEnded(mark), hasStored(key) else { return }
    for await value in repository.values(of: key) {
      if !value.elements.contains(where: { $0.id == mark }), !isEnded(mark) {
        note("L2: mark \(mark) was accepted, but a new observer sees \(value.elements.map(\.id)).")
        suspect(mark)
      }
      return
    }
  }
}

extension MutationResult {
  /// A description of the result without its random id.
  fileprivate var name: String {
    switch self {
    case .confirmed: "confirmed"
    case .queued: "queued"
    case .conflicted: "conflicted"
    }
  }
}

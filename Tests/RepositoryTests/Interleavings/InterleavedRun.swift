import DataStore
import DataStoreTesting
import Foundation
import Multicast
import MulticastTesting
import RepositoryTesting

@testable import Repository

/// A run of repositories in simulated processes that start and end, with one server, network and storage.
///
/// Each mutation adds a numbered ``Mark`` to a value, and a ``Journal`` lists and checks the laws. Everything runs on
/// one ``ManualTaskExecutor``. A seed determines the operations, and which job runs next.
struct InterleavedRun<Source: MarksSource> {
  typealias Repository = SyncedRepository<Source>

  /// The options of a run.
  struct Options {
    var acknowledgement = Acknowledgement.value
    /// Whether some calls of the store fail.
    var storeMayFail = false
    /// Whether two processes use the storage at the same time.
    var hasConcurrentProcesses = false
    var operationCount = 50
  }

  /// A simulated process: a repository with its own store and client.
  private final class Process {
    let number: Int
    let client: MarksClient
    let store: SimulatedStore
    let networkMonitor: ManualNetworkMonitor
    let activityMonitor: ManualActivityMonitor
    var repository: Repository?
    var callers: [Task<Void, Never>] = []
    /// The marks made in the process, by key and lane.
    var marksByLane: [String: [Int]] = [:]
    /// The marks that were accepted before the process started; see ``Journal/Outcome``.
    var marksAcceptedBeforeStart: Set<Int> = []
    var keysFetchedWhileObserved: Set<String> = []
    var observers: [Task<Void, Never>] = []

    init(
      _ number: Int, _ client: MarksClient, _ store: SimulatedStore, _ repository: Repository,
      _ networkMonitor: ManualNetworkMonitor, _ activityMonitor: ManualActivityMonitor
    ) {
      (self.number, self.client, self.store, self.repository) = (number, client, store, repository)
      (self.networkMonitor, self.activityMonitor) = (networkMonitor, activityMonitor)
    }
  }

  private static var keys: [String] { ["a", "b"] }
  private static var pageSize: Int { 3 }

  private let options: Options
  private let executor = ManualTaskExecutor()
  private let clock = ManualClock()
  private let server = MarksServer(empty: Paged())
  private let storage: SimulatedStorage
  private let network: SimulatedNetwork
  private let journal: Journal
  private var random: SplitMix64
  private var processes: [Process] = []
  private var lastProcessNumber = 0
  private var lastMark = 0
  /// The marks of all mutations that were made, by key.
  private var marksByKey: [String: [Int]] = [:]

  init(seed: UInt64, _ options: Options) {
    self.options = options
    random = SplitMix64(seed: seed)
    storage = SimulatedStorage { [clock] in
      Date(timeIntervalSinceReferenceDate: Double(clock.now.offset.components.seconds))
    }
    network = SimulatedNetwork(seed: random.next(), conditions: .rough)
    journal = Journal(
      seed: random.next(), storage: storage, server: server, isPaged: Source.loadMore != nil,
      hasConcurrentProcesses: options.hasConcurrentProcesses)
  }

  /// Performs the run.
  ///
  /// - Returns: The trace, and descriptions of the violations.
  mutating func run() -> (trace: [String], violations: [String]) {
    for key in Self.keys where Bool.random(using: &random) {
      for _ in 0..<Int.random(in: 1...5, using: &random) { editOnServer(key) }
    }
    startProcess()
    if options.hasConcurrentProcesses { startProcess() }
    for _ in 0..<options.operationCount {
      operate()
      runSomeJobs()
      if !journal.violations.isEmpty { break }
    }
    if journal.violations.isEmpty { settle() }
    while let process = processes.first { release(process) }
    runUntilIdle()
    if journal.violations.isEmpty { journal.checkAll() }
    return (journal.trace, journal.violations)
  }

  private mutating func runSomeJobs() {
    executor.run(atMost: Int.random(in: 0...25, using: &random), using: &random)
  }

  /// Runs jobs in a random order until none is ready, or a limit is reached.
  private mutating func runUntilIdle() {
    executor.run(atMost: 100_000, using: &random)
  }

  // MARK: - Processes

  private mutating func startProcess() {
    lastProcessNumber += 1
    let client = MarksClient(network, server, options.acknowledgement, journal)
    let store = SimulatedStore(storage: storage, hooks: journal.hooks(lastProcessNumber))
    var configuration = RepositoryConfiguration(
      pageSize: Self.pageSize, freshness: Freshness(timeToLive: .seconds(5)),
      retryPolicy: RetryPolicy(cap: .seconds(8)), clock: clock,
      now: { [clock] in Date(timeIntervalSinceReferenceDate: Double(clock.now.offset.components.seconds)) },
      random: SplitMix64(seed: random.next()))
    configuration.taskExecutor = executor
    let (networkMonitor, activityMonitor) = (ManualNetworkMonitor(), ManualActivityMonitor())
    (configuration.network, configuration.activity) = (networkMonitor, activityMonitor)
    let repository = Repository(Source(client), store: store, configuration: configuration)
    let process = Process(lastProcessNumber, client, store, repository, networkMonitor, activityMonitor)
    process.marksAcceptedBeforeStart = journal.acceptedMarks(among: Array(1...max(lastMark, 1)))
    processes.append(process)
    journal.note("process \(process.number) begins")
    for key in Self.keys { observe(key, process) }
    let events = repository.events.subscribe()
    Task(executorPreference: executor) { [journal] in
      for await event in events {
        switch event {
        case .mutationRefused(let id, _), .mutationConflicted(let id, _):
          if let mark = journal.mark(of: id) { journal.allowMissing(mark) }
        default: break
        }
      }
    }
  }

  private mutating func observe(_ key: String, _ process: Process) {
    guard let repository = process.repository else { return }
    let ownMarks = journal.acceptedMarks(among: process.marksByLane.values.flatMap(\.self))
    let durableMarks = ownMarks.union(process.marksAcceptedBeforeStart).intersection(marksByKey[key] ?? [])
    let observerNumber = journal.beginObserving(key, process.number, durableMarks: durableMarks)
    let policies: [LoadingPolicy] = [
      .never, .whileObserved(),
      .whileObserved(stopTimeout: .zero, every: .seconds(Int.random(in: 5...20, using: &random))),
    ]
    let policy = policies.randomElement(using: &random)!
    if policy != .never { process.keysFetchedWhileObserved.insert(key) }
    let values = repository.values(of: key, loading: policy).subscribe()
    let states = repository.states(of: key, loading: policy).subscribe()
    let processNumber = process.number
    process.observers.append(
      Task(executorPreference: executor) { [journal] in
        for await value in values { journal.recordValue(value, receivedBy: observerNumber) }
      })
    process.observers.append(
      Task(executorPreference: executor) { [journal] in
        for await state in states {
          // A cancelled observer may be late. It must not overwrite the newer state that its successor has received.
          if Task.isCancelled { break }
          journal.recordState(state, of: key, processNumber)
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
      if let loadMore = Source.loadMore {
        load(key, process) { try await loadMore($0, key) }
      } else {
        editOnServer(key)
      }
    case 15, 16: editOnServer(key)
    case 17: saveExternally(key)
    case 18, 19: cancelMutation(in: process)
    case 20: resolveMutations(in: process)
    case 21: process.callers.randomElement(using: &random)?.cancel()
    case 22: process.client.isSignedOut.toggle()
    case 23: signIn(process)
    case 24, 25: network.isReachable.toggle()
    case 26: call(process) { await $0.retryNow() }
    case 27, 28: advanceClock()
    case 29:
      if Bool.random(using: &random) {
        kill(process)
        if Bool.random(using: &random) { runSomeJobs() }
      } else {
        release(process)
        // The released repository completes what it can before the next process starts.
        runUntilIdle()
      }
      startProcess()
    case 30: noticeExternalChanges(in: process)
    case 31: observe(key, process)
    case 32: journal.storeFailureRate = options.storeMayFail && journal.storeFailureRate == 0 ? 0.15 : 0
    case 33: checkLawsWhenIdle()
    case 34: process.networkMonitor.status = [.online, .offline, .unknown].randomElement(using: &random)!
    case 35: process.activityMonitor.activity = [.active, .inactive, .background].randomElement(using: &random)!
    case 36:
      let selection = [KeySelection.key(key), .user("0"), .all].randomElement(using: &random)!
      call(process) { await $0.invalidate(selection) }
    case 37: replaceObservers(of: process)
    case 38: process.store.loseLocks()
    case 39: suspendOrResume(process)
    default: stepNetwork()
    }
  }

  /// Cancels the observers of a process, and starts new ones for each key.
  private mutating func replaceObservers(of process: Process) {
    for observer in process.observers { observer.cancel() }
    (process.observers, process.keysFetchedWhileObserved) = ([], [])
    if Bool.random(using: &random) { runSomeJobs() }
    for key in Self.keys { observe(key, process) }
  }

  private mutating func perform(_ key: String, _ process: Process) {
    lastMark += 1
    var change = MarkChange(mark: lastMark, lane: Int.random(in: 0...1, using: &random))
    switch Int.random(in: 0..<12, using: &random) {
    case 0: change.isRefused = true
    // The excluded mark may not exist yet.
    case 1: change.excluded = Int.random(in: 1...lastMark + 3, using: &random)
    case 2...6: change.isCounting = true
    default: break
    }
    let lane = "\(key)/\(change.lane)"
    let earlierMarks = (process.marksByLane[lane] ?? []).filter { journal.outcome(of: $0) == .accepted }
    process.marksByLane[lane, default: []].append(change.mark)
    marksByKey[key, default: []].append(change.mark)
    // The mark may be missing, because it appears and disappears depending on another mark.
    if change.excluded != nil { journal.allowMissing(change.mark) }
    journal.willPerform(change, after: earlierMarks)
    call(process) { [journal, change] repository in
      let outcome: Journal.Outcome
      do throws(RepositoryError<MarksFailure>) {
        let result = try await repository.perform(change, on: key)
        if case .conflicted = result { journal.allowMissing(change.mark) }
        journal.note("mark \(change.mark): \(result.name)")
        outcome = .accepted
      } catch {
        journal.note("mark \(change.mark): \(error)")
        switch error {
        case .store(SimulatedStore.disconnectedError), .cancelled: outcome = .other
        case .store: outcome = .notStored
        case .server, .conflict, .queueFull, .signedOut: outcome = .other
        }
        // Cancelling a call doesn't cancel its mutation, so a mark that was seen must stay.
        if case .cancelled = error {} else { journal.allowMissing(change.mark) }
      }
      journal.recordOutcome(outcome, of: change.mark)
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
  private mutating func editOnServer(_ key: String) {
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
        let page = server.page(of: key, after: nil, limit: Source.loadMore == nil ? .max : Self.pageSize)
        batch.save(page, for: StoreKey("marks", id: key))
        try await store.commit(batch)
      } catch {
        journal.note("\(key) isn't saved externally")
      }
    }
  }

  private mutating func cancelMutation(in process: Process) {
    let randomNumber = random.next()
    call(process) { [journal] repository in
      guard let list = try? await repository.mutations.list() else { return }
      let cancellable = list.filter { $0.standing == .waiting || $0.standing == .needsSignIn }
      guard !cancellable.isEmpty else { return }
      let pending = cancellable[Int(randomNumber % UInt64(cancellable.count))]
      journal.allowMissing(pending.mutation.mark)
      do throws(PendingMutationError) {
        try await repository.mutations.cancel(pending.id)
        journal.recordCancellation(of: pending.id)
        journal.note("mark \(pending.mutation.mark) is cancelled")
      } catch {
        journal.note("mark \(pending.mutation.mark) isn't cancelled")
      }
    }
  }

  /// Requeues, retries or discards all refused and conflicted mutations.
  private mutating func resolveMutations(in process: Process) {
    let sendsAgain = Bool.random(using: &random)
    call(process) { [journal] repository in
      guard let list = try? await repository.mutations.list() else { return }
      for pending in list {
        let mark = pending.mutation.mark
        do throws(PendingMutationError) {
          switch pending.standing {
          case .refused where sendsAgain:
            journal.recordRequeue(of: mark)
            try await repository.mutations.requeue(pending.id)
          case .conflicted where sendsAgain:
            journal.recordRequeue(of: mark)
            try await repository.mutations.resolve(pending.id, .retry)
          case .refused, .conflicted: try await repository.mutations.discard(pending.id)
          case .waiting, .inFlight, .needsSignIn: continue
          }
          journal.note("mark \(mark) is resolved")
        } catch {
          journal.note("mark \(mark) isn't resolved")
        }
      }
    }
  }

  private mutating func suspendOrResume(_ process: Process) {
    let duration = Duration.seconds(Int.random(in: 0...20, using: &random))
    switch Int.random(in: 0..<3, using: &random) {
    case 0: call(process) { await $0.suspend() }
    case 1: call(process) { await $0.resume() }
    default:
      call(process) { [journal] in journal.note("a drain ends: \(await $0.drain(within: duration))") }
    }
  }

  private func signIn(_ process: Process) {
    process.client.isSignedOut = false
    call(process) { await $0.credentialsChanged(userID: nil) }
  }

  private mutating func advanceClock() {
    clock.advance(by: .seconds(Int.random(in: 1...10, using: &random)))
  }

  private func noticeExternalChanges(in process: Process) {
    Task(executorPreference: executor) { [store = process.store] in await store.noticeExternalChanges() }
  }

  private mutating func stepNetwork() {
    guard let (packet, move) = network.step() else { return }
    journal.note("\(packet.label) \(packet.direction) \(move)")
  }

  /// Runs all jobs that are ready, and checks the laws that hold only while nothing is in flight.
  ///
  /// Checks nothing if a packet is in transit, calls of the store may fail, or two processes use the storage.
  private mutating func checkLawsWhenIdle() {
    runUntilIdle()
    guard !options.storeMayFail, !options.hasConcurrentProcesses, network.packets.isEmpty else { return }
    for process in processes {
      noticeExternalChanges(in: process)
      runUntilIdle()
      for key in Self.keys { journal.checkLawsWhenIdle(key, process.number) }
    }
  }

  // MARK: - Settling

  /// Checks L12 to L14 of `RepositoryConformance`: when everything works again, the queue drains, loads complete, no
  /// value is pending, and every process shows the server's value.
  private mutating func settle() {
    journal.note("everything works")
    network.conditions = .reliable
    network.isReachable = true
    journal.storeFailureRate = 0
    // All repositories are released, and a new one must send the mutations that they left.
    if options.hasConcurrentProcesses {
      while let process = processes.first { release(process) }
      deliverPackets(until: { true })
      startProcess()
    }
    // A call that suspends a repository must not begin after the one that resumes it.
    runUntilIdle()
    for process in processes {
      (process.networkMonitor.status, process.activityMonitor.activity) = (.online, .active)
      call(process) { await $0.resume() }
      signIn(process)
    }
    for process in processes {
      call(process) { [journal, number = process.number] repository in
        do throws(CancellationError) {
          try await repository.waitForPendingMutations()
          journal.recordCompletion(of: "queue \(number)")
        } catch {}
      }
    }
    deliverPackets(until: { [processes, journal] in
      processes.allSatisfy { journal.isCompleted("queue \($0.number)") }
    })
    for process in processes where !journal.isCompleted("queue \(process.number)") {
      let records = storage.values(in: "marks.mutations", as: Journal.Record.self)
      return journal.violate(
        "L12: the queue of process \(process.number) doesn't drain: \(records.values.compactMap(\.mark).sorted())")
    }
    for process in processes {
      let keysFetchedWhileObserved = process.keysFetchedWhileObserved
      call(process) { [journal, number = process.number] repository in
        for key in Self.keys {
          do throws(RepositoryError<MarksFailure>) {
            // Keys that are fetched while they are observed need no reload.
            if keysFetchedWhileObserved.contains(key) {
              await repository.invalidate(.key(key))
            } else {
              try await repository.reload(key)
            }
          } catch {
            journal.note("\(key) isn't loaded at the end: \(error)")
          }
        }
        journal.recordCompletion(of: "load \(number)")
      }
    }
    deliverPackets(until: { [processes, journal] in
      processes.allSatisfy { process in
        let isLoading = Self.keys.contains { journal.newestState(of: $0, process.number)?.isLoading ?? false }
        return journal.isCompleted("load \(process.number)") && !isLoading
      }
    })
    for process in processes {
      noticeExternalChanges(in: process)
      runUntilIdle()
      checkSettled(process)
    }
  }

  /// Delivers packets and advances the clock until a condition holds and no packet is left, or a limit is reached.
  private mutating func deliverPackets(until isDone: () -> Bool) {
    for _ in 0..<400 {
      runUntilIdle()
      if network.packets.isEmpty {
        if isDone() { return }
        clock.advance(by: .seconds(10))
      } else {
        stepNetwork()
      }
    }
  }

  private func checkSettled(_ process: Process) {
    guard journal.isCompleted("load \(process.number)") else {
      return journal.violate("L12: the loads of process \(process.number) don't complete.")
    }
    for key in Self.keys {
      let expected = server.value(of: key).elements
      let shown = journal.newestValue(of: key, process.number)?.elements
      if !(shown.map { agrees($0, with: expected) } ?? false) {
        journal.violate("L14: process \(process.number) shows \(shown?.map(\.id) ?? []), not \(expected.map(\.id)).")
      }
      if journal.newestState(of: key, process.number)?.isPending != false {
        journal.violate("L13: \(key) is pending in process \(process.number) although nothing is in flight.")
      }
    }
    let liveRecords = storage.values(in: "marks.mutations", as: Journal.Record.self).values.filter { $0.verdict == nil }
    if !liveRecords.isEmpty {
      journal.violate("L12: marks \(liveRecords.compactMap(\.mark).sorted()) stay in the queue.")
    }
  }
}

extension InterleavedRun {
  /// Whether a shown value agrees with the server's value.
  ///
  /// With pages, the oldest elements may be missing. If the server acknowledges changes without a value, other elements
  /// that are older than the newest page may be missing too.
  private func agrees(_ shown: [Mark], with expected: [Mark]) -> Bool {
    if Source.loadMore == nil { return shown == expected }
    if options.acknowledgement == .value { return expected.starts(with: shown) }
    return shown.prefix(Self.pageSize) == expected.prefix(Self.pageSize) && shown.allSatisfy(expected.contains)
  }
}

extension Journal {
  /// Checks L2: a new observer sees the mark of a call that has returned.
  ///
  /// This function only records an unseen mark, because the mark's change may still fail later, and the mark may then
  /// be missing. ``checkAll()`` reports the violations.
  fileprivate func checkShown<Source: MarksSource>(
    _ mark: Int, _ key: String, _ repository: SyncedRepository<Source>
  ) async {
    guard Source.loadMore == nil, !mayBeMissing(mark), hasStoredValue(of: key) else { return }
    for await value in repository.values(of: key) {
      if !value.elements.contains(where: { $0.id == mark }), !mayBeMissing(mark) {
        note("L2: mark \(mark) was accepted, but a new observer sees \(value.elements.map(\.id)).")
        recordUnseen(mark)
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

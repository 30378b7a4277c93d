import DataStore
import DataStoreTesting
import Foundation
import Multicast
import MulticastTesting
import RepositoryTesting

@testable import Repository

/// A random run of repositories in which one of two users signs out and in.
///
/// A seed determines the run, unless the stores use their own threads; see ``SignOutPlace/isReal``.
///
/// Two processes use one place. One user, Jake, signs out at random times; the other user, Mary, stays. All of Jake's
/// data contains his name.
struct SignOutRun {
  typealias Source = ScriptedSource<UserKey, Notes, NotesMutation, NotesFailure>
  typealias Repository = SyncedRepository<Source>

  /// A simulated process: a repository with its own store.
  private final class Process {
    let number: Int
    let store: any ProcessStore
    let isKilled: Setting<Bool>
    /// The number of sign-ins in flight.
    let pendingSignInCount = Setting(0)
    var repository: Repository?

    init(_ number: Int, _ store: any ProcessStore, _ isKilled: Setting<Bool>, _ repository: Repository) {
      (self.number, self.store, self.isKilled, self.repository) = (number, store, isKilled, repository)
    }
  }

  /// The state of Jake's session.
  private struct Session: Sendable {
    /// The number of begun calls that sign Jake in, plus the number of completed ones.
    var signInEventCount = 0
    /// The number of such calls in flight.
    var pendingSignInCount = 0
    /// Whether a sign-out has completed, and no sign-in has begun or completed since that sign-out began.
    ///
    /// While it is `true`, nothing of Jake's may be stored.
    var isSignedOut = false

    mutating func beginSignIn() {
      (signInEventCount, pendingSignInCount, isSignedOut) = (signInEventCount + 1, pendingSignInCount + 1, false)
    }

    mutating func endSignIn() {
      (signInEventCount, pendingSignInCount, isSignedOut) = (signInEventCount + 1, pendingSignInCount - 1, false)
    }
  }

  private let executor = ManualTaskExecutor()
  private let clock = ManualClock()
  private let place: any SignOutPlace
  private let network: SimulatedNetwork
  private let server = InMemoryServer<UserKey, Notes, NotesMutation>(empty: Notes())
  private let session = Setting(Session())
  private let trace = Setting<[String]>([])
  private let violations = Setting<[String]>([])
  private let failureRate = Setting(0.0)
  private let storeRandom: Setting<SplitMix64>
  private var random: SplitMix64
  private var processes: [Process] = []
  private var lastProcessNumber = 0
  private var lastTextNumber = 0
  private let keys = [UserKey("jake", "a"), UserKey("jake", "b"), UserKey("mary", "a")]

  init(seed: UInt64, on place: any SignOutPlace = SimulatedPlace()) {
    self.place = place
    random = SplitMix64(seed: seed)
    network = SimulatedNetwork(seed: random.next(), conditions: .rough)
    storeRandom = Setting(SplitMix64(seed: random.next()))
  }

  /// Performs the run.
  ///
  /// - Returns: The trace, and descriptions of the violations.
  mutating func run() -> (trace: [String], violations: [String]) {
    for _ in 0..<2 { startProcess() }
    for _ in 0..<60 where violations.value.isEmpty {
      performRandomOperation()
      executor.run(atMost: Int.random(in: 0...25, using: &random), using: &random)
      // The stores' threads need time; otherwise no call would ever complete.
      if place.isReal, Bool.random(using: &random) { runUntilQuiet() }
      checkStorage()
    }
    settle()
    return (trace.value, violations.value)
  }

  // MARK: - Processes

  private var hooks: SimulatedStore.Hooks {
    let pauseOrFail: @Sendable ([StoreKeyName]) async throws(StoreError) -> Void = {
      [storeRandom, failureRate] (_) async throws(StoreError) in
      for _ in 0..<Int.random(in: 0...3, using: &storeRandom.value) { await Task.yield() }
      if Double.random(in: 0..<1, using: &storeRandom.value) < failureRate.value {
        throw .writeFailed(SystemError(code: 28, operation: "simulating", path: "memory"))
      }
    }
    return SimulatedStore.Hooks(
      onRead: pauseOrFail, onCommit: pauseOrFail,
      onCommitted: { [storeRandom] (_) async in
        for _ in 0..<Int.random(in: 0...3, using: &storeRandom.value) { await Task.yield() }
      })
  }

  private mutating func startProcess() {
    lastProcessNumber += 1
    let (store, isKilled) = (place.open(hooks), Setting(false))
    var configuration = RepositoryConfiguration(
      retryPolicy: RetryPolicy(cap: .seconds(8)), clock: clock, random: SplitMix64(seed: random.next()))
    configuration.taskExecutor = executor
    let source = Source(
      "notes",
      fetch: { [network, server] (key) async throws(NotesFailure) in
        try await Self.exchange("fetch \(key.storeID)", network, isKilled) { server.value(of: key) }
      },
      send: { [network, server] (mutation, key, id) async throws(NotesFailure) in
        let answer = try await Self.exchange("send \(mutation)", network, isKilled) {
          Result { () throws(NotesFailure) in try server.take(mutation, key, id) }
        }
        return .value(try answer.get())
      }, disposition: { $0.disposition })
    let repository = Repository(source, store: store, configuration: configuration)
    let process = Process(lastProcessNumber, store, isKilled, repository)
    processes.append(process)
    note("process \(process.number) begins")
    for key in keys { observe(key, process) }
  }

  private static func exchange<Reply: Sendable>(
    _ label: String, _ network: SimulatedNetwork, _ isKilled: Setting<Bool>, _ reply: @escaping @Sendable () -> Reply
  ) async throws(NotesFailure) -> Reply {
    if isKilled.value { throw .offline }
    do throws(SimulatedNetwork.Failure) {
      return try await network.exchange(label, reply)
    } catch {
      throw error == .unreachable ? .offline : .brokenConnection
    }
  }

  private func observe(_ key: UserKey, _ process: Process) {
    guard let repository = process.repository else { return }
    let states = repository.states(of: key, loading: .whileObserved()).subscribe()
    _ = Task(executorPreference: executor) { for await _ in states {} }
  }

  private mutating func end(_ process: Process, isKilled: Bool) {
    note("process \(process.number) \(isKilled ? "is killed" : "releases its repository")")
    processes.removeAll { $0 === process }
    if isKilled {
      process.store.disconnect()
      process.isKilled.value = true
      session.value.pendingSignInCount -= process.pendingSignInCount.value
    }
    process.repository = nil
  }

  private func call(_ process: Process, _ body: @escaping @Sendable (Repository) async -> Void) {
    guard let repository = process.repository else { return }
    _ = Task(executorPreference: executor) { await body(repository) }
  }

  // MARK: - Operations

  private mutating func performRandomOperation() {
    let process = processes.randomElement(using: &random)!
    let key = keys.randomElement(using: &random)!
    switch Int.random(in: 0..<40, using: &random) {
    case 0..<7: perform(key, process)
    case 7..<10: call(process) { try? await $0.reload(key) }
    case 10, 11: edit(key)
    case 12: saveExternally(UserKey("mary", "a"))
    case 13..<17: signOut(process)
    case 17, 18: signIn(process)
    case 19, 20: network.isReachable.toggle()
    case 21: clock.advance(by: .seconds(Int.random(in: 1...10, using: &random)))
    case 22:
      end(process, isKilled: Bool.random(using: &random))
      startProcess()
    case 23: failureRate.value = failureRate.value == 0 ? 0.15 : 0
    case 24, 25: noticeExternalChanges(in: process)
    case 26: call(process) { await $0.retryNow() }
    case 27..<31: corrupt(key)
    default: stepNetwork()
    }
  }

  private mutating func perform(_ key: UserKey, _ process: Process) {
    lastTextNumber += 1
    let text = "\(key.user)'s \(lastTextNumber)"
    call(process) { [trace] repository in
      do throws(NotesError) {
        let result = try await repository.perform(.add(text), on: key)
        trace.value.append("\(text): \(result)")
      } catch {
        trace.value.append("\(text): \(error)")
      }
    }
  }

  /// Changes the value on the server.
  private mutating func edit(_ key: UserKey) {
    lastTextNumber += 1
    server.edit(key) { [lastTextNumber] in $0.texts.append("\(key.user)'s edit \(lastTextNumber)") }
  }

  /// Stores the server's current value, as another process would.
  private func saveExternally(_ key: UserKey) {
    let store = place.open(SimulatedStore.Hooks())
    _ = Task(executorPreference: executor) { [server] in
      try? await store.save(server.value(of: key), for: StoreKey<Notes>("notes", id: key.storeID))
    }
  }

  /// Makes a stored value undecodable.
  private func corrupt(_ key: UserKey) {
    // While Jake is signed out, the test itself must not store anything of his. Mary's values are left unchanged too.
    if session.value.isSignedOut { return }
    do {
      try place.corrupt(key)
    } catch {
      note("\(key.storeID) can't be corrupted: \(error)")
    }
  }

  private mutating func signOut(_ process: Process) {
    let policy = [UnsentPolicy.refuse, .discard, .discard, .send(within: .seconds(5))].randomElement(using: &random)!
    let countAtBegin = session.value.signInEventCount
    call(process) { [session, trace, number = process.number] repository in
      do throws(SignOutError) {
        try await repository.signOut(userID: "jake", unsent: policy)
        trace.value.append("Jake is signed out by process \(number)")
        if countAtBegin == session.value.signInEventCount { session.value.isSignedOut = true }
      } catch {
        trace.value.append("Jake isn't signed out by process \(number): \(error)")
      }
    }
  }

  private func signIn(_ process: Process) {
    session.value.beginSignIn()
    note("Jake signs in at process \(process.number)")
    process.pendingSignInCount.value += 1
    let (number, isKilled, pendingCount) = (process.number, process.isKilled, process.pendingSignInCount)
    call(process) { [session, trace] in
      await $0.credentialsChanged(userID: "jake")
      if isKilled.value { return }
      pendingCount.value -= 1
      session.value.endSignIn()
      trace.value.append("Jake is signed in at process \(number)")
    }
  }

  private func noticeExternalChanges(in process: Process) {
    Task(executorPreference: executor) { [store = process.store] in await store.noticeExternalChanges() }
  }

  private func stepNetwork() {
    guard let (packet, move) = network.step() else { return }
    note("\(packet.label) \(packet.direction) \(move)")
  }

  private func note(_ line: String) {
    trace.value.append(line)
  }

  // MARK: - Checking

  /// Checks that nothing of Jake's is stored while he is signed out.
  private func checkStorage() {
    guard session.value.isSignedOut else { return }
    do {
      var found = try place.mentions(of: "jake")
      if place.isReal, !found.isEmpty {
        // A commit whose precondition fails may be written briefly before it is removed.
        let deadline = ContinuousClock.now + .seconds(5)
        while !found.isEmpty, .now < deadline {
          usleep(1_000)
          found = try place.mentions(of: "jake")
        }
      }
      if !found.isEmpty { recordViolation("Jake is signed out, but this is stored: \(found)") }
    } catch {
      recordViolation("The stored data can't be searched: \(error)")
    }
  }

  private func recordViolation(_ text: String) {
    note("VIOLATION \(text)")
    violations.value.append(text)
  }

  // MARK: - Settling

  /// Ends all failures, signs Jake out permanently, and makes the final checks.
  ///
  /// Nothing of Jake's may be stored or shown, and Mary's mutations must be sent.
  private mutating func settle() {
    note("everything works")
    (network.conditions, network.isReachable, failureRate.value) = (.reliable, true, 0)
    // Sign-ins that began earlier may still complete.
    advanceUntil { [session] in session.value.pendingSignInCount == 0 }
    let isDone = Setting(false)
    call(processes[0]) { [session, trace] repository in
      do throws(SignOutError) {
        try await repository.signOut(userID: "jake", unsent: .discard)
        session.value.isSignedOut = true
      } catch {
        trace.value.append("\(error)")
      }
      isDone.value = true
    }
    advanceUntil { isDone.value }
    guard session.value.isSignedOut else { return recordViolation("Jake can't be signed out.") }
    advanceUntil { [network] in network.packets.isEmpty }
    checkStorage()
    for process in processes { checkMemory(of: process) }
    let completedWaitCount = Setting(0)
    for process in processes {
      call(process) { [trace, number = process.number] repository in
        do throws(CancellationError) {
          try await repository.waitForPendingMutations()
          completedWaitCount.value += 1
        } catch {
          trace.value.append("process \(number) can't wait for its mutations: \(error)")
        }
      }
    }
    advanceUntil { [processes] in completedWaitCount.value == processes.count }
    if completedWaitCount.value != processes.count { recordViolation("Mary's mutations aren't sent.") }
    checkStorage()
  }

  /// Checks that new observers get nothing of Jake's.
  private mutating func checkMemory(of process: Process) {
    guard let repository = process.repository else { return }
    noticeExternalChanges(in: process)
    var found = jakesDataShown(by: repository)
    // On a real place, a process is notified of the sign-out with a delay.
    let deadline = ContinuousClock.now + .seconds(5)
    while place.isReal, !found.isEmpty, .now < deadline { found = jakesDataShown(by: repository) }
    if !found.isEmpty { recordViolation("Jake is signed out, but process \(process.number) shows \(found).") }
  }

  /// The values, states and events with Jake's name that new observers get.
  private mutating func jakesDataShown(by repository: Repository) -> [String] {
    runUntilQuiet()
    let seen = Setting<[String]>([])
    for key in keys where key.user == "jake" {
      let (values, states) = (repository.values(of: key).subscribe(), repository.states(of: key).subscribe())
      let events = repository.events.subscribe()
      let observers = [
        Task(executorPreference: executor) { for await value in values { seen.value.append("\(value)") } },
        Task(executorPreference: executor) {
          for await state in states { if let value = state.value { seen.value.append("\(value)") } }
        },
        Task(executorPreference: executor) { for await event in events { seen.value.append("\(event)") } },
      ]
      runUntilQuiet()
      for observer in observers { observer.cancel() }
    }
    return seen.value.filter { $0.contains("jake") }
  }

  /// Delivers packets and advances the clock until a condition holds or a limit is reached.
  private mutating func advanceUntil(_ isDone: () -> Bool) {
    let deadline = ContinuousClock.now + .seconds(30)
    var rounds = 0
    while place.isReal ? .now < deadline : rounds < 200 {
      rounds += 1
      runUntilQuiet()
      if isDone() { return }
      for process in processes { noticeExternalChanges(in: process) }
      if network.packets.isEmpty { clock.advance(by: .seconds(5)) } else { stepNetwork() }
    }
  }

  /// Runs all jobs that wait neither for a packet nor for the clock, and waits for the stores' calls.
  private mutating func runUntilQuiet() {
    executor.run(atMost: 100_000, using: &random)
    while place.callCount > 0 {
      usleep(50)
      executor.run(atMost: 100_000, using: &random)
    }
  }
}

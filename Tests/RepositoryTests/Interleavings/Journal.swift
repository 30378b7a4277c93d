import DataStore
import DataStoreTesting
import Multicast
import MulticastTesting
import RepositoryTesting

@testable import Repository

/// The events of a run, and the laws that were violated.
///
/// The laws from L4 on are those of `RepositoryConformance`. The others are these. L1: observers see the stored value
/// with each pending mutation applied once. L2: a new observer sees the changes of all calls that have returned. L3: a
/// stored value is never older than the previously stored one.
final class Journal: Sendable {
  typealias Record = MutationRecord

  /// The result of a call of `perform`.
  enum Outcome: Equatable, Sendable {
    /// The mutation is durable.
    case accepted
    /// The store failed, and the mutation isn't durable.
    case notStored
    /// The result is unknown, or the user learned that the change isn't made.
    case other
  }

  /// The values that one observer of a key received.
  struct Observation: Sendable {
    let process: Int
    let key: String
    /// The marks that were accepted in the process or before it started, so the first value must contain them.
    let durableMarks: Set<Int>
    var values: [Paged<Mark>] = []
  }

  private struct State {
    var random: SplitMix64
    var trace: [String] = []
    var violations: [String] = []
    var marks: [MutationID: Int] = [:]
    var sequences: [MutationID: UInt64] = [:]
    var keys: [MutationID: String] = [:]
    var liveIDs: Set<MutationID> = []
    /// The marks that may be missing, because the user learned, or may learn, that their changes aren't made.
    var allowedMissing: Set<Int> = []
    var cancelledIDs: Set<MutationID> = []
    var requeuedMarks: Set<Int> = []
    var outcomes: [Int: Outcome] = [:]
    /// For each mark, the marks of the same process and lane that were accepted before the mark's call began.
    var earlierMarks: [Int: [Int]] = [:]
    var observations: [Observation] = []
    /// The newest state of each key in each process.
    var newestStates: [String: RepositoryState<Paged<Mark>, RepositoryError<MarksFailure>>] = [:]
    /// The marks of the last stored value of each key.
    var storedMarks: [String: Set<Int>] = [:]
    var storeFailureRate = 0.0
    /// The marks that were in a stored value while their mutation was in the queue, so they may be shown twice.
    var doubledMarks: Set<Int> = []
    /// The marks that a new observer didn't see although their calls had returned.
    var unseenMarks: Set<Int> = []
    /// The final steps of the run that processes have completed, such as `queue 1` and `load 1` for process 1.
    var completedParts: Set<String> = []
  }

  private let state: Lock<State>
  private let storage: SimulatedStorage
  private let server: MarksServer
  private let isPaged: Bool
  private let hasConcurrentProcesses: Bool

  /// - Parameters:
  ///   - seed: The seed of the delays and the failures of the store.
  ///   - storage: The storage that the processes share.
  ///   - server: The server.
  ///   - isPaged: Whether a stored value may lack older elements of the server's value.
  ///   - hasConcurrentProcesses: Whether several processes use the storage at a time. If so, three things aren't
  ///     checked: the order of changes on the server, sends after a cancellation, and marks that are shown twice.
  init(seed: UInt64, storage: SimulatedStorage, server: MarksServer, isPaged: Bool, hasConcurrentProcesses: Bool) {
    state = Lock(State(random: SplitMix64(seed: seed)))
    (self.storage, self.server) = (storage, server)
    (self.isPaged, self.hasConcurrentProcesses) = (isPaged, hasConcurrentProcesses)
  }

  /// The events in order, without values that the seed doesn't determine, such as ids.
  var trace: [String] { state.withLock { $0.trace } }

  var violations: [String] { state.withLock { $0.violations } }

  var storeFailureRate: Double {
    get { state.withLock { $0.storeFailureRate } }
    set { state.withLock { $0.storeFailureRate = newValue } }
  }

  func note(_ text: String) {
    state.withLock { $0.trace.append(text) }
  }

  func violate(_ text: String) {
    state.withLock { state in
      state.trace.append("VIOLATION \(text)")
      state.violations.append(text)
    }
  }

  // MARK: - Store

  /// The hooks of a process's store: calls are delayed by a few yields, and some fail.
  func hooks(_ process: Int) -> SimulatedStore.Hooks {
    SimulatedStore.Hooks(
      onRead: { [self] keys async throws(StoreError) in try await delayAndMaybeFail("read", keys, process) },
      onCommit: { [self] keys async throws(StoreError) in try await delayAndMaybeFail("commit", keys, process) },
      didCommit: { [self] keys in didCommit(keys, process) },
      onCommitted: { [self] _ in await delay() })
  }

  private func delay() async {
    let yieldCount = state.withLock { Int.random(in: 0...3, using: &$0.random) }
    for _ in 0..<yieldCount { await Task.yield() }
  }

  private func delayAndMaybeFail(_ call: String, _ keys: [StoreKeyName], _ process: Int) async throws(StoreError) {
    await delay()
    let fails = state.withLock {
      $0.storeFailureRate > 0 && Double.random(in: 0..<1, using: &$0.random) < $0.storeFailureRate
    }
    guard fails else { return }
    note("\(process): \(call) of \(describe(keys)) fails")
    // Code 28 is `ENOSPC`: no space is left on the device.
    throw .writeFailed(SystemError(code: 28, operation: "simulating", path: "memory"))
  }

  private func describe(_ keys: [StoreKeyName]) -> String {
    let marks = state.withLock { $0.marks }
    return keys.map { key in
      key.collection == "marks.mutations"
        ? key.id.flatMap { marks[MutationID(rawValue: $0)] }.map { "mark \($0)" } ?? "new mark"
        : key.id ?? key.collection
    }.joined(separator: ", ")
  }

  /// Checks the durable state after each commit.
  private func didCommit(_ keys: [StoreKeyName], _ process: Int) {
    for key in keys where key.collection == "marks" { checkStored(key.id!) }
    for key in keys where key.collection == "marks.mutations" {
      guard let rawID = key.id else { continue }
      let id = MutationID(rawValue: rawID)
      if let record = storage.value(of: StoreKey<Record>(key)) {
        recordMutation(id, record)
      } else {
        checkRemoval(of: id)
      }
    }
    recordDoubledMarks()
    note("\(process): committed \(describe(keys))")
  }

  private func recordDoubledMarks() {
    state.withLock { state in
      for id in state.liveIDs {
        guard let mark = state.marks[id], state.storedMarks[state.keys[id]!]?.contains(mark) ?? false else {
          continue
        }
        state.doubledMarks.insert(mark)
      }
    }
  }

  private func recordMutation(_ id: MutationID, _ record: Record) {
    guard let change = record.mutation(as: MarkChange.self) else {
      return violate("The record of \(id) is unreadable.")
    }
    state.withLock { state in
      state.marks[id] = change.mark
      state.sequences[id] = record.sequence
      state.keys[id] = record.keys.first
      if record.verdict == nil {
        state.liveIDs.insert(id)
      } else {
        state.liveIDs.remove(id)
        state.allowedMissing.insert(change.mark)
      }
    }
  }

  /// Checks L8: unless a mutation is rolled back, it is removed from the queue only when the stored value, if any,
  /// includes it.
  private func checkRemoval(of id: MutationID) {
    let removed = state.withLock { state -> (mark: Int, key: String)? in
      guard state.liveIDs.remove(id) != nil, let mark = state.marks[id], !state.allowedMissing.contains(mark) else {
        return nil
      }
      return (mark, state.keys[id]!)
    }
    guard let (mark, key) = removed, let value = storage.value(of: StoreKey<Paged<Mark>>("marks", id: key)) else {
      return
    }
    if value.elements.contains(where: { $0.id == mark }) { return }
    // With pages, older elements may be dropped, so it suffices that the server has applied the mutation.
    if isPaged, server.applied.contains(where: { $0.id == id }) { return }
    violate("L8: the mutation of mark \(mark) was removed, but the stored value of \(key) doesn't have it.")
  }

  /// Checks L3 and L6: a stored value has all marks of the previous value, and only marks of the server, each once.
  ///
  /// With pages, older marks may be dropped.
  private func checkStored(_ key: String) {
    guard let value = storage.value(of: StoreKey<Paged<Mark>>("marks", id: key)) else { return }
    for mark in value.elements where mark.count != 1 {
      violate("L6: the stored value of \(key) has mark \(mark.id) \(mark.count) times.")
    }
    let ids = value.elements.map(\.id)
    let serverMarks = Set(server.value(of: key).elements.map(\.id))
    if let id = ids.first(where: { !serverMarks.contains($0) }) {
      violate("L6: the stored value of \(key) has mark \(id), which the server doesn't have.")
    }
    let previousMarks = state.withLock { $0.storedMarks.updateValue(Set(ids), forKey: key) } ?? []
    guard !isPaged, let lost = previousMarks.subtracting(ids).min() else { return }
    violate("L3: the stored value of \(key) lost mark \(lost).")
  }

  // MARK: - Server

  func willSend(_ change: MarkChange, _ id: MutationID) {
    let (isDurable, isCancelled) = state.withLock { ($0.marks[id] != nil, $0.cancelledIDs.contains(id)) }
    note("sending mark \(change.mark)")
    if !isDurable { violate("L7: mark \(change.mark) was sent before it was durable.") }
    if isCancelled, !hasConcurrentProcesses { violate("L6: mark \(change.mark) was sent after it was cancelled.") }
    if change.isRefused { allowMissing(change.mark) }
  }

  // MARK: - Calls

  func mark(of id: MutationID) -> Int? { state.withLock { $0.marks[id] } }

  func allowMissing(_ mark: Int) {
    _ = state.withLock { $0.allowedMissing.insert(mark) }
  }

  func mayBeMissing(_ mark: Int) -> Bool { state.withLock { $0.allowedMissing.contains(mark) } }

  func recordRequeue(of mark: Int) {
    _ = state.withLock { $0.requeuedMarks.insert(mark) }
  }

  func recordCancellation(of id: MutationID) {
    _ = state.withLock { $0.cancelledIDs.insert(id) }
  }

  func willPerform(_ change: MarkChange, after earlierMarks: [Int]) {
    state.withLock { $0.earlierMarks[change.mark] = earlierMarks }
  }

  func recordOutcome(_ outcome: Outcome, of mark: Int) {
    state.withLock { $0.outcomes[mark] = outcome }
  }

  func outcome(of mark: Int) -> Outcome? { state.withLock { $0.outcomes[mark] } }

  /// Returns the marks that a value must contain, now and after a relaunch, because they were accepted.
  func acceptedMarks(among marks: [Int]) -> Set<Int> {
    state.withLock { state in
      Set(marks.filter { state.outcomes[$0] == .accepted && !state.allowedMissing.contains($0) })
    }
  }

  func recordCompletion(of part: String) {
    _ = state.withLock { $0.completedParts.insert(part) }
  }

  func isCompleted(_ part: String) -> Bool { state.withLock { $0.completedParts.contains(part) } }

  // MARK: - Observers

  /// Adds an observation, and returns the number of its observer.
  func beginObserving(_ key: String, _ process: Int, durableMarks: Set<Int>) -> Int {
    state.withLock { state in
      state.observations.append(Observation(process: process, key: key, durableMarks: durableMarks))
      return state.observations.count - 1
    }
  }

  func recordValue(_ value: Paged<Mark>, receivedBy observer: Int) {
    let observation = state.withLock { state in
      state.observations[observer].values.append(value)
      return state.observations[observer]
    }
    note("observer \(observer) of \(observation.key): \(value.elements.map { "\($0.id)×\($0.count)" })")
  }

  func recordState(
    _ newestState: RepositoryState<Paged<Mark>, RepositoryError<MarksFailure>>, of key: String, _ process: Int
  ) {
    state.withLock { $0.newestStates["\(process) \(key)"] = newestState }
  }

  func newestState(of key: String, _ process: Int) -> RepositoryState<Paged<Mark>, RepositoryError<MarksFailure>>? {
    state.withLock { $0.newestStates["\(process) \(key)"] }
  }

  func newestValue(of key: String, _ process: Int) -> Paged<Mark>? {
    state.withLock { $0.observations.last { $0.key == key && $0.process == process }?.values.last }
  }

  func hasStoredValue(of key: String) -> Bool {
    storage.value(of: StoreKey<Paged<Mark>>("marks", id: key)) != nil
  }

  /// Records that a new observer didn't see a mark.
  ///
  /// That is a violation unless the user learns later that the mark's change isn't made.
  func recordUnseen(_ mark: Int) {
    _ = state.withLock { $0.unseenMarks.insert(mark) }
  }

  /// Checks a value that the run itself stored, as another process would.
  func didSaveExternally(_ keys: [StoreKeyName]) {
    for key in keys { checkStored(key.id!) }
    recordDoubledMarks()
    note("saved externally \(describe(keys))")
  }

  // MARK: - Laws

  /// Checks L13 and L1 while nothing is in flight: a value is pending exactly if a live mutation of it is in the queue,
  /// and live mutations are visible.
  func checkLawsWhenIdle(_ key: String, _ process: Int) {
    guard let newest = newestState(of: key, process) else { return }
    let liveRecords = storage.values(in: "marks.mutations", as: Record.self).values
      .filter { $0.keys == [key] && $0.verdict == nil }
    if newest.isPending != !liveRecords.isEmpty {
      let marks = liveRecords.compactMap(\.mark).sorted()
      violate("L13: isPending is \(newest.isPending), but the queue has marks \(marks).")
    }
    guard let value = newestValue(of: key, process) else { return }
    let shown = Set(value.elements.map(\.id))
    // A mutation with an excluded mark isn't possible on a value that has that mark, so it may be invisible.
    for change in liveRecords.compactMap({ $0.mutation(as: MarkChange.self) })
    where change.excluded == nil && !shown.contains(change.mark) {
      violate("L1: mark \(change.mark) is pending, but only \(shown.sorted()) are shown.")
    }
  }

  /// Checks the laws of a complete run.
  func checkAll() {
    let state = state.withLock { $0 }
    checkOrder(state)
    for (mark, outcome) in state.outcomes.sorted(by: { $0.key < $1.key }) {
      let count = server.applied.count { $0.mutation.mark == mark }
      if outcome == .accepted, !state.allowedMissing.contains(mark), count != 1 {
        violate("L6, L7: mark \(mark) was accepted, but applied \(count) times.")
      }
      if outcome == .notStored, count != 0 { violate("L7: mark \(mark) wasn't stored, but was applied.") }
    }
    for mark in state.unseenMarks.subtracting(state.allowedMissing).sorted() {
      violate("L2: mark \(mark) was accepted, but a new observer didn't see it.")
    }
    let idsByMark = Dictionary(grouping: Set(server.received)) { state.marks[$0] }
    // Mark 0 stands for mutations that were sent, but were never durable.
    for (mark, ids) in idsByMark where ids.count > 1 && !state.requeuedMarks.contains(mark ?? 0) {
      violate("L6: mark \(mark ?? 0) was sent under \(ids.count) ids.")
    }
    for (index, observation) in state.observations.enumerated() { checkObserver(index, observation, state) }
  }

  /// Checks L5: the mutations of each lane are stored and applied in the order in which they were made.
  private func checkOrder(_ state: State) {
    for (mark, earlier) in state.earlierMarks.sorted(by: { $0.key < $1.key }) {
      guard !state.requeuedMarks.contains(mark), let id = state.marks.first(where: { $0.value == mark })?.key else {
        continue
      }
      for other in earlier where !state.requeuedMarks.contains(other) {
        guard let otherID = state.marks.first(where: { $0.value == other })?.key else { continue }
        if state.sequences[otherID]! > state.sequences[id]! {
          violate("L5: mark \(mark) was made after \(other), but is stored before it.")
        }
      }
    }
    if hasConcurrentProcesses { return }
    var lastByLane: [String: (mark: Int, sequence: UInt64)] = [:]
    for applied in server.applied where !state.allowedMissing.contains(applied.mutation.mark) {
      let lane = "\(applied.key)/\(applied.mutation.lane)"
      guard let sequence = state.sequences[applied.id] else { continue }
      if let previous = lastByLane[lane], previous.sequence > sequence {
        violate("L5: mark \(applied.mutation.mark) arrived after \(previous.mark), which was made later.")
      }
      lastByLane[lane] = (applied.mutation.mark, sequence)
    }
  }

  /// Checks the values that an observer received.
  ///
  /// L7: the first value has the marks that are durable. L4: a mark that the observer saw stays, unless the user
  /// learned that its change isn't made. L1: no mark is shown twice, and an impossible mutation has no effect.
  private func checkObserver(_ index: Int, _ observation: Observation, _ state: State) {
    if let first = observation.values.first {
      let missing = observation.durableMarks.subtracting(first.elements.map(\.id)).subtracting(state.allowedMissing)
      if !isPaged, let mark = missing.min() {
        violate("L7: observer \(index) of \(observation.key) began without mark \(mark), which was accepted before.")
      }
    }
    var seen: Set<Int> = []
    let server = server
    for value in observation.values {
      let ids = Set(value.elements.map(\.id))
      for lost in seen.subtracting(ids).sorted() where !state.allowedMissing.contains(lost) {
        // With pages, older elements may be dropped.
        if isPaged, server.value(of: observation.key).elements.contains(where: { $0.id == lost }) { continue }
        violate("L4: observer \(index) of \(observation.key) saw mark \(lost), and later only \(ids.sorted()).")
        return
      }
      seen.formUnion(ids)
      if let mark = value.elements.first(where: { $0.count > 1 }), !hasConcurrentProcesses,
        !state.doubledMarks.contains(mark.id)
      {
        violate("L1: observer \(index) of \(observation.key) saw mark \(mark.id) \(mark.count) times.")
        return
      }
      // Applying an impossible mutation adds the negative of its mark, and then throws. No observer may see the result.
      if let id = ids.first(where: { $0 < 0 }) { violate("L1: an impossible mutation added mark \(id).") }
    }
  }
}

extension MutationRecord {
  /// The mark of the change.
  var mark: Int? { mutation(as: MarkChange.self)?.mark }
}

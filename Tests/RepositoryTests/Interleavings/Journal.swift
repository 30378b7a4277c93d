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
  typealias Record = MutationRecord<MarkChange>

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
    let durable: Set<Int>
    var values: [Paged<Mark>] = []
  }

  private struct State {
    var random: SplitMix64
    var trace: [String] = []
    var violations: [String] = []
    var marks: [MutationID: Int] = [:]
    var sequences: [MutationID: UInt64] = [:]
    var keys: [MutationID: String] = [:]
    var live: Set<MutationID> = []
    /// The marks that may be missing, because the user learned, or may learn, that their changes aren't made.
    var ended: Set<Int> = []
    var cancelled: Set<MutationID> = []
    var requeued: Set<Int> = []
    var outcomes: [Int: Outcome] = [:]
    /// For each mark, the marks of the same process and lane that were accepted before the mark's call began.
    var earlier: [Int: [Int]] = [:]
    var observations: [Observation] = []
    var states: [String: RepositoryState<Paged<Mark>, RepositoryError<MarksFailure>>] = [:]
    /// The marks of the last stored value of each key.
    var stored: [String: Set<Int>] = [:]
    var failureRate = 0.0
    /// The marks that were in a stored value while their mutation was in the queue, so they may be shown twice.
    var doubled: Set<Int> = []
    /// The marks that a new observer didn't see although their calls had returned.
    var unseen: Set<Int> = []
    var finished: Set<String> = []
  }

  private let state: Lock<State>
  private let storage: SimulatedStorage
  private let server: MarksServer
  private let isPaged: Bool
  private let isShared: Bool

  /// - Parameters:
  ///   - seed: The seed of the delays and the failures of the store.
  ///   - storage: The storage that the processes share.
  ///   - server: The server.
  ///   - isPaged: Whether a stored value may lack older elements of the server's value.
  ///   - isShared: Whether several processes use the storage at a time.
  init(seed: UInt64, storage: SimulatedStorage, server: MarksServer, isPaged: Bool, isShared: Bool) {
    state = Lock(State(random: SplitMix64(seed: seed)))
    (self.storage, self.server, self.isPaged, self.isShared) = (storage, server, isPaged, isShared)
  }

  /// The events in order, without values that the seed doesn't determine, such as ids.
  var trace: [String] { state.withLock { $0.trace } }

  var violations: [String] { state.withLock { $0.violations } }

  var failureRate: Double {
    get { state.withLock { $0.failureRate } }
    set { state.withLock { $0.failureRate = newValue } }
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
      onRead: { [self] keys async throws(StoreError) in try await delay("read", keys, process) },
      onCommit: { [self] keys async throws(StoreError) in try await delay("commit", keys, process) },
      didCommit: { [self] keys in didCommit(keys, process) },
      onCommitted: { [self] _ in await delay() })
  }

  private func delay() async {
    let turns = state.withLock { Int.random(in: 0...3, using: &$0.random) }
    for _ in 0..<turns { await Task.yield() }
  }

  private func delay(_ call: String, _ keys: [StoreKeyName], _ process: Int) async throws(StoreError) {
    await delay()
    let fails = state.withLock { $0.failureRate > 0 && Double.random(in: 0..<1, using: &$0.random) < $0.failureRate }
    guard fails else { return }
    note("\(process): \(call) of \(describe(keys)) fails")
    throw .writeFailed(SystemError(code: 28, operation: "simulating", path: "memory"))
  }

  private func describe(_ keys: [StoreKeyName]) -> String {
    let marks = state.withLock { $0.marks }
    return keys.map { key in
      key.collection == "marks.mutations"
        ? key.id.flatMap { marks[MutationID(rawValue: $0)] }.map { "mark \($0)" } ?? "new mark" : key.id ?? "counter"
    }.joined(separator: ", ")
  }

  /// Checks the durable state after each commit.
  private func didCommit(_ keys: [StoreKeyName], _ process: Int) {
    for key in keys where key.collection == "marks" { checkStored(key.id!) }
    for key in keys where key.collection == "marks.mutations" {
      guard let text = key.id else { continue }
      let id = MutationID(rawValue: text)
      if let record = storage.value(of: StoreKey<Record>(key)) { noteRecord(id, record) } else { checkRemoval(of: id) }
    }
    noteDoubled()
    note("\(process): committed \(describe(keys))")
  }

  private func noteDoubled() {
    state.withLock { state in
      for id in state.live {
        guard let mark = state.marks[id], state.stored[state.keys[id]!]?.contains(mark) ?? false else { continue }
        state.doubled.insert(mark)
      }
    }
  }

  private func noteRecord(_ id: MutationID, _ record: Record) {
    state.withLock { state in
      state.marks[id] = record.mutation.mark
      state.sequences[id] = record.sequence
      state.keys[id] = record.key
      if record.verdict == nil {
        state.live.insert(id)
      } else {
        state.live.remove(id)
        state.ended.insert(record.mutation.mark)
      }
    }
  }

  /// Checks L8: unless a mutation is rolled back, it is removed from the queue only when the stored value, if any,
  /// includes it.
  private func checkRemoval(of id: MutationID) {
    let removed = state.withLock { state -> (mark: Int, key: String)? in
      guard state.live.remove(id) != nil, let mark = state.marks[id], !state.ended.contains(mark) else { return nil }
      return (mark, state.keys[id]!)
    }
    guard let (mark, key) = removed, let value = storage.value(of: StoreKey<Paged<Mark>>("marks", id: key)) else {
      return
    }
    if value.elements.contains(where: { $0.id == mark }) { return }
    // With pages, older elements may be dropped.
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
    let known = Set(server.value(of: key).elements.map(\.id))
    if let id = ids.first(where: { !known.contains($0) }) {
      violate("L6: the stored value of \(key) has mark \(id), which the server doesn't have.")
    }
    let before = state.withLock { $0.stored.updateValue(Set(ids), forKey: key) } ?? []
    guard !isPaged, let lost = before.subtracting(ids).min() else { return }
    violate("L3: the stored value of \(key) lost mark \(lost).")
  }

  // MARK: - Server

  func willSend(_ change: MarkChange, _ id: MutationID) {
    let (isDurable, isCancelled) = state.withLock { ($0.marks[id] != nil, $0.cancelled.contains(id)) }
    note("sending mark \(change.mark)")
    if !isDurable { violate("L7: mark \(change.mark) was sent before it was durable.") }
    if isCancelled, !isShared { violate("L6: mark \(change.mark) was sent after it was cancelled.") }
    if change.isRefused { end(change.mark) }
  }

  // MARK: - Calls

  func mark(of id: MutationID) -> Int? { state.withLock { $0.marks[id] } }

  func end(_ mark: Int) {
    _ = state.withLock { $0.ended.insert(mark) }
  }

  func isEnded(_ mark: Int) -> Bool { state.withLock { $0.ended.contains(mark) } }

  func requeue(_ mark: Int) {
    _ = state.withLock { $0.requeued.insert(mark) }
  }

  func cancelled(_ id: MutationID) {
    _ = state.withLock { $0.cancelled.insert(id) }
  }

  func willPerform(_ change: MarkChange, behind earlier: [Int]) {
    state.withLock { $0.earlier[change.mark] = earlier }
  }

  func performed(_ mark: Int, _ outcome: Outcome) {
    state.withLock { $0.outcomes[mark] = outcome }
  }

  func outcome(of mark: Int) -> Outcome? { state.withLock { $0.outcomes[mark] } }

  /// Returns the marks that a value must contain, now and after a relaunch, because they were accepted.
  func acceptedMarks(among marks: [Int]) -> Set<Int> {
    state.withLock { state in
      Set(marks.filter { state.outcomes[$0] == .accepted && !state.ended.contains($0) })
    }
  }

  func finish(_ name: String) {
    _ = state.withLock { $0.finished.insert(name) }
  }

  func isFinished(_ name: String) -> Bool { state.withLock { $0.finished.contains(name) } }

  // MARK: - Observers

  func beginObserving(_ key: String, _ process: Int, durable: Set<Int>) -> Int {
    state.withLock { state in
      state.observations.append(Observation(process: process, key: key, durable: durable))
      return state.observations.count - 1
    }
  }

  func observe(_ value: Paged<Mark>, by observer: Int) {
    let observation = state.withLock { state in
      state.observations[observer].values.append(value)
      return state.observations[observer]
    }
    note("observer \(observer) of \(observation.key): \(value.elements.map { "\($0.id)×\($0.count)" })")
  }

  func observe(_ state: RepositoryState<Paged<Mark>, RepositoryError<MarksFailure>>, of key: String, _ process: Int) {
    self.state.withLock { $0.states["\(process) \(key)"] = state }
  }

  func newestState(of key: String, _ process: Int) -> RepositoryState<Paged<Mark>, RepositoryError<MarksFailure>>? {
    state.withLock { $0.states["\(process) \(key)"] }
  }

  func newestValue(of key: String, _ process: Int) -> Paged<Mark>? {
    state.withLock { $0.observations.last { $0.key == key && $0.process == process }?.values.last }
  }

  func hasStored(_ key: String) -> Bool { storage.value(of: StoreKey<Paged<Mark>>("marks", id: key)) != nil }

  /// Records that a new observer didn't see a mark.
  ///
  /// That is a violation unless the user learns later that the mark's change isn't made.
  func suspect(_ mark: Int) {
    _ = state.withLock { $0.unseen.insert(mark) }
  }

  /// Checks a value that another process stored.
  func didSaveExternally(_ keys: [StoreKeyName]) {
    for key in keys { checkStored(key.id!) }
    noteDoubled()
    note("saved externally \(describe(keys))")
  }

  // MARK: - Laws

  /// Checks L13 and L1 while nothing is in flight: a value is pending exactly if a mutation of it is in the queue, and
  /// pending mutations are visible.
  func checkQuiet(_ key: String, _ process: Int) {
    guard let newest = newestState(of: key, process) else { return }
    let live = storage.values(in: "marks.mutations", as: Record.self).values
      .filter { $0.key == key && $0.verdict == nil }
    if newest.isPending != !live.isEmpty {
      violate("L13: isPending is \(newest.isPending), but the queue has marks \(live.map(\.mutation.mark).sorted()).")
    }
    guard let value = newestValue(of: key, process) else { return }
    let shown = Set(value.elements.map(\.id))
    for record in live where record.mutation.excluded == nil && !shown.contains(record.mutation.mark) {
      violate("L1: mark \(record.mutation.mark) is pending, but only \(shown.sorted()) are shown.")
    }
  }

  /// Checks the laws of a complete run.
  func checkAll() {
    let state = state.withLock { $0 }
    checkOrder(state)
    for (mark, outcome) in state.outcomes.sorted(by: { $0.key < $1.key }) {
      let count = server.applied.count { $0.mutation.mark == mark }
      if outcome == .accepted, !state.ended.contains(mark), count != 1 {
        violate("L6, L7: mark \(mark) was accepted, but applied \(count) times.")
      }
      if outcome == .notStored, count != 0 { violate("L7: mark \(mark) wasn't stored, but was applied.") }
    }
    for mark in state.unseen.subtracting(state.ended).sorted() {
      violate("L2: mark \(mark) was accepted, but a new observer didn't see it.")
    }
    let ids = Dictionary(grouping: Set(server.received)) { state.marks[$0] }
    for (mark, ids) in ids where ids.count > 1 && !state.requeued.contains(mark ?? 0) {
      violate("L6: mark \(mark ?? 0) was sent under \(ids.count) ids.")
    }
    for (index, observation) in state.observations.enumerated() { checkObserver(index, observation, state) }
  }

  /// Checks L5: the mutations of each lane are stored and applied in the order in which they were made.
  private func checkOrder(_ state: State) {
    for (mark, earlier) in state.earlier.sorted(by: { $0.key < $1.key }) {
      guard !state.requeued.contains(mark), let id = state.marks.first(where: { $0.value == mark })?.key else {
        continue
      }
      for other in earlier where !state.requeued.contains(other) {
        guard let otherID = state.marks.first(where: { $0.value == other })?.key else { continue }
        if state.sequences[otherID]! > state.sequences[id]! {
          violate("L5: mark \(mark) was made after \(other), but is stored before it.")
        }
      }
    }
    if isShared { return }
    var last: [String: (mark: Int, sequence: UInt64)] = [:]
    for applied in server.applied where !state.ended.contains(applied.mutation.mark) {
      let lane = "\(applied.key)/\(applied.mutation.lane)"
      guard let sequence = state.sequences[applied.id] else { continue }
      if let before = last[lane], before.sequence > sequence {
        violate("L5: mark \(applied.mutation.mark) arrived after \(before.mark), which was made later.")
      }
      last[lane] = (applied.mutation.mark, sequence)
    }
  }

  /// Checks the values that an observer received.
  ///
  /// L7: the first value has the marks that are durable. L4: a mark that the observer saw stays, unless the user
  /// learned that it isn't made. L1: no mark is shown twice, and an impossible mutation has no effect.
  private func checkObserver(_ index: Int, _ observation: Observation, _ state: State) {
    if let first = observation.values.first {
      let missing = observation.durable.subtracting(first.elements.map(\.id)).subtracting(state.ended)
      if !isPaged, let mark = missing.min() {
        violate("L7: observer \(index) of \(observation.key) began without mark \(mark), which was accepted before.")
      }
    }
    var seen: Set<Int> = []
    let server = server
    for value in observation.values {
      let ids = Set(value.elements.map(\.id))
      for lost in seen.subtracting(ids).sorted() where !state.ended.contains(lost) {
        // With pages, older elements may be dropped.
        if isPaged, server.value(of: observation.key).elements.contains(where: { $0.id == lost }) { continue }
        violate("L4: observer \(index) of \(observation.key) saw mark \(lost), and later only \(ids.sorted()).")
        return
      }
      seen.formUnion(ids)
      if let mark = value.elements.first(where: { $0.count > 1 }), !isShared, !state.doubled.contains(mark.id) {
        violate("L1: observer \(index) of \(observation.key) saw mark \(mark.id) \(mark.count) times.")
        return
      }
      if let id = ids.first(where: { $0 < 0 }) { violate("L1: an impossible mutation added mark \(id).") }
    }
  }
}

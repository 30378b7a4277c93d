import DataStore
import Foundation
import Testing

@testable import Repository

@Suite struct MutationQueueStateTests {
  private typealias State = MutationQueueState<String, NotesMutation>

  private static let start = Moment(time: Date(timeIntervalSinceReferenceDate: 0), elapsed: .zero)

  private func makeEntry(_ text: String, _ sequence: UInt64, interruptedAttempts: Int = 0) throws -> State.Entry {
    var record = try MutationRecord.sample(NotesMutation.add(text), sequence: sequence)
    // The mark stands for the last interrupted attempt, which isn't counted yet.
    (record.interruptedAttempts, record.isMarked) = (max(interruptedAttempts - 1, 0), interruptedAttempts > 0)
    return State.Entry(
      id: MutationID(rawValue: text), key: "a", lane: "a", mutation: .add(text), record: record, tag: StoreTag(),
      revision: sequence)
  }

  /// Simulates a successful send of the next mutation, and returns its id, or `nil` if nothing is to be sent.
  private func sendNext(of state: State) -> String? {
    guard case .send(let entry) = state.next(at: .zero) else { return nil }
    state.recordAnswer(to: entry)
    state.remove(entry.id)
    return entry.id.rawValue
  }

  @Test func `A leader sends external mutations in order, and waits at a gap until all predecessors are known`() throws
  {
    let state = State()
    state.begin(as: .leading)
    state.recordReading(upTo: 5)
    try #expect(state.addExternal(makeEntry("6", 6), at: Self.start) == .nothing)
    try #expect(state.addExternal(makeEntry("8", 8), at: Self.start) == .behindGap)
    #expect(state.knownSequence == 6)
    #expect(sendNext(of: state) == "6")
    #expect(sendNext(of: state) == nil)
    try #expect(state.addExternal(makeEntry("7", 7), at: Self.start) == .nothing)
    #expect(sendNext(of: state) == "7")
    // A mutation behind a gap waits until the store has been read again, even if the missing mutations have been added
    // meanwhile.
    #expect(sendNext(of: state) == nil)
    state.recordReading(upTo: 8)
    state.recordPredecessors(of: MutationID(rawValue: "8"))
    #expect(sendNext(of: state) == "8")
    try #expect(state.addExternal(makeEntry("9", 9), at: Self.start) == .nothing)
    #expect(sendNext(of: state) == "9")
  }

  @Test func `A mutation with too many interrupted attempts is refused even behind a gap, and blocks nothing`() throws {
    let state = State()
    state.begin(as: .leading)
    try #expect(state.addExternal(makeEntry("4", 4, interruptedAttempts: 5), at: Self.start) == .refused)
    #expect(sendNext(of: state) == nil)
    #expect(state.liveCount == 0)
    try #expect(state.addExternal(makeEntry("1", 1), at: Self.start) == .nothing)
    #expect(sendNext(of: state) == "1")
  }

  @Test func `If several attempts were interrupted together, none counts, and the mutations are sent one at a time`()
    throws
  {
    let state = State(maximumInterruptedAttempts: 1)
    for text in ["1", "2", "3"] {
      var record = try MutationRecord.sample(NotesMutation.add(text), key: text, sequence: UInt64(text)!)
      record.isMarked = text != "3"
      let lane = LaneID(userID: nil, orderingKey: text)
      state.restore(
        State.Entry(
          id: MutationID(rawValue: text), key: text, lane: lane, mutation: .add(text), record: record, tag: StoreTag()))
    }
    #expect(state.endRestoring(at: Self.start) == [])
    #expect(state.lead(as: .leading).refused == [])
    guard case .send(let first) = state.next(at: .zero), case .wait = state.next(at: .zero) else {
      throw CancellationError()
    }
    #expect(first.id.rawValue == "1")
    #expect(first.record.interruptedAttempts == 0)
    #expect(first.record.isOutcomeUnknown)
    state.recordAnswer(to: first)
    state.remove(first.id)
    #expect(sendNext(of: state) == "2")
    #expect(sendNext(of: state) == "3")
  }

  @Test func `A lone interrupted attempt counts`() throws {
    let state = State(maximumInterruptedAttempts: 1)
    try state.restore(makeEntry("1", 1, interruptedAttempts: 1))
    #expect(state.endRestoring(at: Self.start) == [])
    #expect(state.lead(as: .leading).refused.map(\.rawValue) == ["1"])
  }

  @Test func `A follower accepts external mutations in any order, and sends them in order only once it leads`() throws {
    let state = State()
    try #expect(state.addExternal(makeEntry("8", 8), at: Self.start) == .nothing)
    try #expect(state.addExternal(makeEntry("7", 7), at: Self.start) == .nothing)
    #expect(sendNext(of: state) == nil)
    state.recordReading(upTo: 8)
    let (refused, behindGap) = state.lead(as: .leading)
    #expect(refused == [])
    #expect(behindGap == [])
    #expect(sendNext(of: state) == "7")
    #expect(sendNext(of: state) == "8")
  }

  @Test func `Mutations that are noticed while another one is being stored keep their places before later ones`() throws
  {
    let state = State()
    func add(_ text: String) throws {
      let record = try MutationRecord.sample(NotesMutation.add(text), sequence: .max)
      state.add(MutationID(rawValue: text), .add(text), key: "a", lane: "a", record: record)
    }
    func recordAddition(_ text: String) {
      let (id, sequence) = (MutationID(rawValue: text), UInt64(text)!)
      #expect(!state.recordAddition(of: id, sequence: sequence, tag: StoreTag(), revision: sequence))
      state.release(id)
    }
    for text in ["1", "3", "5"] {
      try add(text)
      recordAddition(text)
    }
    try add("7")
    // Another repository has stored these, which is noticed late.
    for sequence: UInt64 in [2, 4, 6] {
      try #expect(state.addExternal(makeEntry("\(sequence)", sequence), at: Self.start) == .nothing)
    }
    recordAddition("7")
    state.recordReading(upTo: 7)
    #expect(state.lead(as: .leading).behindGap == [])
    #expect((1...7).map { _ in sendNext(of: state) } == ["1", "2", "3", "4", "5", "6", "7"])
  }

  @Test func `A new leader sends its own mutation only once the mutations stored before it are known`() throws {
    let state = State()
    state.recordReading(upTo: 5)
    let ownID = MutationID(rawValue: "own")
    // A mutation that isn't durable yet has the greatest possible sequence number.
    state.add(ownID, .add("own"), key: "a", lane: "a", record: try makeEntry("own", .max).record)
    // Mutation 6 isn't known yet, but only a leader has to wait for it.
    #expect(state.recordAddition(of: ownID, sequence: 7, tag: StoreTag(), revision: 7) == false)
    let (refused, behindGap) = state.lead(as: .leading)
    #expect(refused == [])
    #expect(behindGap == [ownID])
    // The mutation is durable now, but still waits at the gap.
    state.release(ownID)
    #expect(sendNext(of: state) == nil)
    try #expect(state.addExternal(makeEntry("6", 6), at: Self.start) == .nothing)
    #expect(sendNext(of: state) == "6")
    state.recordPredecessors(of: ownID)
    #expect(sendNext(of: state) == "own")
  }

  @Test func `A new mutation of a user who has to sign in isn't marked, because it isn't sent at once`() throws {
    let state = State()
    state.begin(as: .leading)
    let secondID = MutationID(rawValue: "2")
    try #expect(state.addExternal(makeEntry("1", 1), at: Self.start) == .nothing)
    guard case .send(let first) = state.next(at: .zero) else {
      // Any error fails the test.
      throw CancellationError()
    }
    #expect(state.beginRequest(first.id)?.record.attempts == 1)
    #expect(state.waitForSignIn(first) == [first.id])
    #expect(state[first.id]?.record.attempts == 0)
    state.add(secondID, .add("2"), key: "b", lane: "b", record: try makeEntry("2", 2).record)
    #expect(state[secondID]?.record.isMarked == false)
    // The keys name no user, so the mutations belong to the user `nil`.
    state.signedIn(userID: nil)
    state.remove(secondID)
    state.add(secondID, .add("2"), key: "b", lane: "b", record: try makeEntry("2", 2).record)
    #expect(state[secondID]?.record.isMarked == true)
  }
}

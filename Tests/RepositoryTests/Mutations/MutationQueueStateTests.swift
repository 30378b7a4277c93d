import DataStore
import Foundation
import Testing

@testable import Repository

@Suite struct MutationQueueStateTests {
  private typealias State = MutationQueueState<String, NotesMutation>

  private func makeEntry(_ text: String, _ sequence: UInt64, interruptedAttempts: Int = 0) -> State.Entry {
    var record = MutationRecord(
      key: "a", sequence: sequence, madeAt: Date(timeIntervalSinceReferenceDate: 0), mutation: NotesMutation.add(text),
      byteCount: 1)
    // The mark stands for the last interrupted attempt, which isn't counted yet.
    (record.interruptedAttempts, record.isMarked) = (max(interruptedAttempts - 1, 0), interruptedAttempts > 0)
    return State.Entry(
      id: MutationID(rawValue: text), key: "a", lane: "a", record: record, tag: StoreTag(), revision: sequence)
  }

  /// Simulates a successful send of the next mutation, and returns its id, or `nil` if nothing is to be sent.
  private func sendNext(of state: State) -> String? {
    guard case .send(let entry) = state.next(at: .zero) else { return nil }
    state.recordAnswer(to: entry)
    state.remove(entry.id)
    return entry.id.rawValue
  }

  @Test func `A leader sends external mutations in order, and waits at a gap until all predecessors are known`() {
    let state = State()
    state.begin(as: .leading)
    state.recordReading(upTo: 5)
    #expect(state.addExternal(makeEntry("6", 6)) == .nothing)
    #expect(state.addExternal(makeEntry("8", 8)) == .behindGap)
    #expect(state.knownSequence == 6)
    #expect(sendNext(of: state) == "6")
    #expect(sendNext(of: state) == nil)
    #expect(state.addExternal(makeEntry("7", 7)) == .nothing)
    #expect(sendNext(of: state) == "7")
    // A mutation behind a gap waits until the store has been read again, even if the missing mutations have been added
    // meanwhile.
    #expect(sendNext(of: state) == nil)
    state.recordReading(upTo: 8)
    state.recordPredecessors(of: MutationID(rawValue: "8"))
    #expect(sendNext(of: state) == "8")
    #expect(state.addExternal(makeEntry("9", 9)) == .nothing)
    #expect(sendNext(of: state) == "9")
  }

  @Test func `A mutation with too many interrupted attempts is refused even behind a gap, and blocks nothing`() {
    let state = State()
    state.begin(as: .leading)
    #expect(state.addExternal(makeEntry("4", 4, interruptedAttempts: State.maximumInterruptedAttempts)) == .refused)
    #expect(sendNext(of: state) == nil)
    #expect(state.liveCount == 0)
    #expect(state.addExternal(makeEntry("1", 1)) == .nothing)
    #expect(sendNext(of: state) == "1")
  }

  @Test func `A follower accepts external mutations in any order, and sends them in order only once it leads`() {
    let state = State()
    #expect(state.addExternal(makeEntry("8", 8)) == .nothing)
    #expect(state.addExternal(makeEntry("7", 7)) == .nothing)
    #expect(sendNext(of: state) == nil)
    state.recordReading(upTo: 8)
    let (refused, behindGap) = state.lead(as: .leading)
    #expect(refused == [])
    #expect(behindGap == [])
    #expect(sendNext(of: state) == "7")
    #expect(sendNext(of: state) == "8")
  }

  @Test func `A new leader sends its own mutation only once the mutations stored before it are known`() {
    let state = State()
    state.recordReading(upTo: 5)
    let ownID = MutationID(rawValue: "own")
    // A mutation that isn't durable yet has the greatest possible sequence number.
    state.add(ownID, key: "a", lane: "a", record: makeEntry("own", .max).record)
    // Mutation 6 isn't known yet, but only a leader has to wait for it.
    #expect(state.recordAddition(of: ownID, sequence: 7, tag: StoreTag(), revision: 7) == false)
    let (refused, behindGap) = state.lead(as: .leading)
    #expect(refused == [])
    #expect(behindGap == [ownID])
    // The mutation is durable now, but still waits at the gap.
    state.release(ownID)
    #expect(sendNext(of: state) == nil)
    #expect(state.addExternal(makeEntry("6", 6)) == .nothing)
    #expect(sendNext(of: state) == "6")
    state.recordPredecessors(of: ownID)
    #expect(sendNext(of: state) == "own")
  }

  @Test func `A new mutation of a user who has to sign in isn't marked, because it isn't sent at once`() throws {
    let state = State()
    state.begin(as: .leading)
    let secondID = MutationID(rawValue: "2")
    #expect(state.addExternal(makeEntry("1", 1)) == .nothing)
    guard case .send(let first) = state.next(at: .zero) else {
      // Any error fails the test.
      throw CancellationError()
    }
    #expect(state.beginRequest(first.id)?.record.attempts == 1)
    #expect(state.waitForSignIn(first) == [first.id])
    #expect(state[first.id]?.record.attempts == 0)
    state.add(secondID, key: "b", lane: "b", record: makeEntry("2", 2).record)
    #expect(state[secondID]?.record.isMarked == false)
    // The keys name no user, so the mutations belong to the user `nil`.
    state.signedIn(userID: nil)
    state.remove(secondID)
    state.add(secondID, key: "b", lane: "b", record: makeEntry("2", 2).record)
    #expect(state[secondID]?.record.isMarked == true)
  }
}

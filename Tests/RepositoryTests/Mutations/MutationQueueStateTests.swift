import DataStore
import Foundation
import Testing

@testable import Repository

@Suite struct MutationQueueStateTests {
  private typealias State = MutationQueueState<String, NotesMutation>

  private func entry(_ text: String, _ sequence: UInt64, unfinishedAttempts: Int = 0) -> State.Entry {
    var record = MutationRecord(
      key: "a", sequence: sequence, madeAt: Date(timeIntervalSinceReferenceDate: 0), mutation: NotesMutation.add(text),
      byteCount: 1)
    record.unfinishedAttempts = unfinishedAttempts
    return State.Entry(
      id: MutationID(rawValue: text), key: "a", lane: "a", record: record, tag: StoreTag(), revision: sequence)
  }

  /// The mutation that is sent next, which is done with then.
  private func sent(by state: inout State) -> String? {
    guard case .send(let entry) = state.next(at: .zero) else { return nil }
    state.recordAnswer(to: entry)
    state.remove(entry.id)
    return entry.id.rawValue
  }

  @Test func `A leader sends the mutations of others in order, and none behind a gap before it is closed`() {
    var state = State()
    state.begin(as: .leading)
    state.recordReading(upTo: 5)
    #expect(state.addExternal(entry("6", 6)) == .nothing)
    #expect(state.addExternal(entry("8", 8)) == .behindGap)
    #expect(state.knownSequence == 6)
    #expect(sent(by: &state) == "6")
    #expect(sent(by: &state) == nil)
    #expect(state.addExternal(entry("7", 7)) == .nothing)
    #expect(sent(by: &state) == "7")
    // It may have been told of 7 alone.
    #expect(sent(by: &state) == nil)
    state.recordReading(upTo: 8)
    state.recordPredecessors(of: MutationID(rawValue: "8"))
    #expect(sent(by: &state) == "8")
    #expect(state.addExternal(entry("9", 9)) == .nothing)
    #expect(sent(by: &state) == "9")
  }

  @Test func `A mutation behind a gap that ended too many processes is refused, and holds nothing up`() {
    var state = State()
    state.begin(as: .leading)
    #expect(state.addExternal(entry("4", 4, unfinishedAttempts: State.maximumUnfinishedAttempts)) == .refused)
    #expect(sent(by: &state) == nil)
    #expect(state.liveCount == 0)
    #expect(state.addExternal(entry("1", 1)) == .nothing)
    #expect(sent(by: &state) == "1")
  }

  @Test func `A follower takes what it is told in whatever order, and sends nothing`() {
    var state = State()
    #expect(state.addExternal(entry("8", 8)) == .nothing)
    #expect(state.addExternal(entry("7", 7)) == .nothing)
    #expect(sent(by: &state) == nil)
    #expect(state.lead(as: .leading) == [])
    #expect(sent(by: &state) == "7")
    #expect(sent(by: &state) == "8")
  }
}

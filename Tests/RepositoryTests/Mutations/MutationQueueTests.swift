import DataStore
import Foundation
import Testing

@testable import Repository

@Suite struct MutationQueueTests {
  private typealias Queue = MutationQueue<String, NotesMutation>

  private static let start = Moment(time: Date(timeIntervalSinceReferenceDate: 0), elapsed: .zero)

  private func makeEntry(_ text: String, _ sequence: UInt64, interruptedAttempts: Int = 0) throws -> Queue.Entry {
    var record = try MutationRecord.sample(NotesMutation.add(text), sequence: sequence)
    // The mark stands for the last interrupted attempt, which isn't counted yet.
    (record.interruptedAttempts, record.isMarked) = (max(interruptedAttempts - 1, 0), interruptedAttempts > 0)
    return Queue.Entry(
      id: MutationID(rawValue: text), key: "a", lane: "a", mutation: .add(text), record: record, tag: StoreTag(),
      revision: sequence)
  }

  /// Simulates a successful send of the next mutation, and returns its id, or `nil` if nothing is to be sent.
  private func sendNext(of queue: inout Queue) -> String? {
    guard case .send(let entry) = queue.next(at: .zero) else { return nil }
    queue.recordAnswer(to: entry)
    queue.remove(entry.id)
    return entry.id.rawValue
  }

  private func expectNext(_ text: String?, of queue: inout Queue) {
    let next = sendNext(of: &queue)
    #expect(next == text)
  }

  private func expectAddition(of entry: Queue.Entry, _ expected: Queue.FollowUp, to queue: inout Queue) {
    let followUp = queue.addExternal(entry, at: Self.start)
    #expect(followUp == expected)
  }

  @Test func `A leader sends external mutations in order, and waits at a gap until all predecessors are known`() throws
  {
    var queue = Queue()
    queue.begin(as: .leading)
    queue.recordReading(upTo: 5)
    try expectAddition(of: makeEntry("6", 6), .nothing, to: &queue)
    try expectAddition(of: makeEntry("8", 8), .behindGap, to: &queue)
    #expect(queue.knownSequence == 6)
    expectNext("6", of: &queue)
    expectNext(nil, of: &queue)
    try expectAddition(of: makeEntry("7", 7), .nothing, to: &queue)
    expectNext("7", of: &queue)
    // A mutation behind a gap waits until the store has been read again, even if the missing mutations have been added
    // meanwhile.
    expectNext(nil, of: &queue)
    queue.recordReading(upTo: 8)
    queue.recordPredecessors(of: MutationID(rawValue: "8"))
    expectNext("8", of: &queue)
    try expectAddition(of: makeEntry("9", 9), .nothing, to: &queue)
    expectNext("9", of: &queue)
  }

  @Test func `A mutation with too many interrupted attempts is refused even behind a gap, and blocks nothing`() throws {
    var queue = Queue()
    queue.begin(as: .leading)
    try expectAddition(of: makeEntry("4", 4, interruptedAttempts: 5), .refused, to: &queue)
    expectNext(nil, of: &queue)
    #expect(queue.liveCount == 0)
    try expectAddition(of: makeEntry("1", 1), .nothing, to: &queue)
    expectNext("1", of: &queue)
  }

  @Test func `If several attempts were interrupted together, none counts, and the mutations are sent one at a time`()
    throws
  {
    var queue = Queue(maximumInterruptedAttempts: 1)
    for text in ["1", "2", "3"] {
      var record = try MutationRecord.sample(NotesMutation.add(text), key: text, sequence: UInt64(text)!)
      record.isMarked = text != "3"
      let lane = LaneID(userID: nil, orderingKey: text)
      queue.restore(
        Queue.Entry(
          id: MutationID(rawValue: text), key: text, lane: lane, mutation: .add(text), record: record, tag: StoreTag()))
    }
    let (refused, refusedByLeader) = (queue.endRestoring(at: Self.start), queue.lead(as: .leading).refused)
    #expect(refused + refusedByLeader == [])
    guard case .send(let first) = queue.next(at: .zero), case .wait = queue.next(at: .zero) else {
      throw CancellationError()
    }
    #expect(first.id.rawValue == "1")
    #expect(first.record.interruptedAttempts == 0)
    #expect(first.record.isOutcomeUnknown)
    queue.recordAnswer(to: first)
    queue.remove(first.id)
    expectNext("2", of: &queue)
    expectNext("3", of: &queue)
  }

  @Test func `A lone interrupted attempt counts`() throws {
    var queue = Queue(maximumInterruptedAttempts: 1)
    try queue.restore(makeEntry("1", 1, interruptedAttempts: 1))
    let (refused, refusedByLeader) = (queue.endRestoring(at: Self.start), queue.lead(as: .leading).refused)
    #expect(refused == [])
    #expect(refusedByLeader.map(\.rawValue) == ["1"])
  }

  @Test func `A follower accepts external mutations in any order, and sends them in order only once it leads`() throws {
    var queue = Queue()
    try expectAddition(of: makeEntry("8", 8), .nothing, to: &queue)
    try expectAddition(of: makeEntry("7", 7), .nothing, to: &queue)
    expectNext(nil, of: &queue)
    queue.recordReading(upTo: 8)
    let (refused, behindGap) = queue.lead(as: .leading)
    #expect(refused == [])
    #expect(behindGap == [])
    expectNext("7", of: &queue)
    expectNext("8", of: &queue)
  }

  @Test func `Mutations that are noticed while another one is being stored keep their places before later ones`() throws
  {
    var queue = Queue()
    func add(_ text: String) throws {
      let record = try MutationRecord.sample(NotesMutation.add(text), sequence: .max)
      queue.add(MutationID(rawValue: text), .add(text), key: "a", lane: "a", record: record)
    }
    func recordAddition(_ text: String) {
      let (id, sequence) = (MutationID(rawValue: text), UInt64(text)!)
      let isBehindGap = queue.recordAddition(of: id, sequence: sequence, tag: StoreTag(), revision: sequence)
      #expect(!isBehindGap)
      queue.release(id)
    }
    for text in ["1", "3", "5"] {
      try add(text)
      recordAddition(text)
    }
    try add("7")
    // Another repository has stored these, which is noticed late.
    for sequence: UInt64 in [2, 4, 6] {
      try expectAddition(of: makeEntry("\(sequence)", sequence), .nothing, to: &queue)
    }
    recordAddition("7")
    queue.recordReading(upTo: 7)
    let behindGap = queue.lead(as: .leading).behindGap
    #expect(behindGap == [])
    for number in 1...7 { expectNext("\(number)", of: &queue) }
  }

  @Test func `A new leader sends its own mutation only once the mutations stored before it are known`() throws {
    var queue = Queue()
    queue.recordReading(upTo: 5)
    let ownID = MutationID(rawValue: "own")
    // A mutation that isn't durable yet has the greatest possible sequence number.
    queue.add(ownID, .add("own"), key: "a", lane: "a", record: try makeEntry("own", .max).record)
    // Mutation 6 isn't known yet, but only a leader has to wait for it.
    let isBehindGap = queue.recordAddition(of: ownID, sequence: 7, tag: StoreTag(), revision: 7)
    #expect(!isBehindGap)
    let (refused, behindGap) = queue.lead(as: .leading)
    #expect(refused == [])
    #expect(behindGap == [ownID])
    // The mutation is durable now, but still waits at the gap.
    queue.release(ownID)
    expectNext(nil, of: &queue)
    try expectAddition(of: makeEntry("6", 6), .nothing, to: &queue)
    expectNext("6", of: &queue)
    queue.recordPredecessors(of: ownID)
    expectNext("own", of: &queue)
  }

  @Test func `A new mutation of a user who has to sign in isn't marked, because it isn't sent at once`() throws {
    var queue = Queue()
    queue.begin(as: .leading)
    let secondID = MutationID(rawValue: "2")
    try expectAddition(of: makeEntry("1", 1), .nothing, to: &queue)
    guard case .send(let first) = queue.next(at: .zero) else {
      // Any error fails the test.
      throw CancellationError()
    }
    let (begun, waiting) = (queue.beginRequest(first.id), queue.waitForSignIn(first))
    #expect(begun?.record.attempts == 1)
    #expect(waiting == [first.id])
    #expect(queue[first.id]?.record.attempts == 0)
    queue.add(secondID, .add("2"), key: "b", lane: "b", record: try makeEntry("2", 2).record)
    #expect(queue[secondID]?.record.isMarked == false)
    // The keys name no user, so the mutations belong to the user `nil`.
    queue.signedIn(userID: nil)
    queue.remove(secondID)
    queue.add(secondID, .add("2"), key: "b", lane: "b", record: try makeEntry("2", 2).record)
    #expect(queue[secondID]?.record.isMarked == true)
  }
}

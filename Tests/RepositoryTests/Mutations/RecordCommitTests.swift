import DataStore
import Foundation
import RepositoryTesting
import Testing

@testable import Repository

/// The decision which of the waiting writes of records the next commit contains.
@Suite struct RecordCommitTests {
  private typealias Queue = MutationQueue<String, NotesMutation>
  private typealias Commit = RecordCommit<String, NotesMutation>

  private let keys = MutationKeys(repository: "notes")
  private let first = MutationID(rawValue: "1")
  private let second = MutationID(rawValue: "2")

  private func add(_ id: MutationID, to queue: inout Queue, sequence: UInt64? = nil) throws {
    queue.add(id, .add(id.rawValue), key: "a", lane: "a", record: try .sample(NotesMutation.add(id.rawValue)))
    guard let sequence else { return }
    _ = queue.recordAddition(of: id, sequence: sequence, tag: StoreTag(), revision: sequence)
    queue.release(id)
  }

  private func commit(_ writes: [RecordWrite], of queue: Queue, _ shared: SharedRecords = SharedRecords()) -> Commit {
    Commit(writes, of: queue, shared, keys) { _ in nil }
  }

  @Test func `Additions of one commit get consecutive sequence numbers`() throws {
    var (queue, shared) = (Queue(), SharedRecords())
    shared.lastSequence = 4
    for id in [first, second] { try add(id, to: &queue) }
    let commit = commit([first, second].map { .init(id: $0, change: .add(replacing: nil)) }, of: queue, shared)
    #expect(commit.fates == [.included, .included])
    #expect(commit.added == [first, second])
    commit.apply(StoreCommit(revision: 1, tag: StoreTag(), savedAt: .now), to: &queue, &shared)
    #expect(queue[first]?.record.sequence == 5)
    #expect(queue[second]?.record.sequence == 6)
    #expect(shared.lastSequence == 6)
  }

  @Test func `An addition that was made although its call has failed isn't made again`() throws {
    var queue = Queue()
    try add(first, to: &queue, sequence: 1)
    #expect(commit([.init(id: first, change: .add(replacing: nil))], of: queue).fates == [.made])
  }

  @Test func `A removal that was made although its call has failed counts as made`() {
    var shared = SharedRecords()
    shared.withdrawals.add([first])
    let writes = [first, second].map { RecordWrite(id: $0, change: .remove(.unsent)) }
    #expect(commit(writes, of: Queue(), shared).fates == [.made, .void])
  }

  @Test func `A record isn't saved by the commit that removes it, and is saved afterwards if the removal fails`() throws
  {
    var queue = Queue()
    try add(first, to: &queue, sequence: 1)
    queue.recordNeedForSave(of: first)
    let removal = RecordWrite(id: first, change: .remove(.refused))
    let save = RecordWrite(id: first, change: .save)
    #expect(commit([removal, save], of: queue).fates == [.included, .postponed])
    #expect(commit([save], of: queue).fates == [.included])
    queue.remove(first)
    #expect(commit([save], of: queue).fates == [.void])
  }

  @Test func `A mutation that is sent again doesn't replace one that another process sends`() throws {
    var queue = Queue()
    for id in [first, second] { try add(id, to: &queue, sequence: 1) }
    queue.recordVerdict(.refused(reason: "a reason"), on: first)
    // Under its id.
    try add(first, to: &queue)
    let again = RecordWrite(id: first, change: .add(replacing: first))
    #expect(commit([again], of: queue).fates == [.included])
    queue.recordReplaced(by: first, tag: nil)
    #expect(commit([again], of: queue).fates == [.void])
    // Under another id.
    let third = MutationID(rawValue: "3")
    try add(third, to: &queue)
    let replacement = RecordWrite(id: third, change: .add(replacing: second))
    #expect(commit([replacement], of: queue).fates == [.void])
    queue.recordVerdict(.refused(reason: "a reason"), on: second)
    #expect(commit([replacement], of: queue).fates == [.included])
  }

  @Test func `Only writes that need the failed precondition are stuck on it`() throws {
    var queue = Queue()
    try add(first, to: &queue, sequence: 1)
    try add(second, to: &queue)
    queue.recordNeedForSave(of: first)
    let writes: [RecordWrite] = [.init(id: first, change: .save), .init(id: second, change: .add(replacing: nil))]
    let earlier = commit(writes, of: queue)
    #expect(commit(writes, of: queue).writes(stuckOn: keys.record(first).keyName, since: earlier) == [0])
    #expect(commit(writes, of: queue).writes(stuckOn: keys.counter.keyName, since: earlier) == [1])
    queue.recordWrite(try .sample(NotesMutation.add("1")), of: first, tag: StoreTag(), revision: 2)
    #expect(commit(writes, of: queue).writes(stuckOn: keys.record(first).keyName, since: earlier) == [])
  }
}

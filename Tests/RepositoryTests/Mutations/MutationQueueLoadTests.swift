import DataStore
import Multicast
import Repository
import Testing

/// Queues so long that any step whose cost grew with the length would be felt.
@Suite(.timeLimit(.minutes(5))) struct MutationQueueLoadTests {
  typealias Harness = MutationQueueHarness

  @Test(arguments: [1, 10_000])
  func `Ten thousand mutations are kept, watched, restored and sent in order`(keys: Int) async throws {
    let count = 10_000
    let harness = Harness()
    let watching = Task { [queue = harness.queue] in
      for await snapshot in queue.snapshots where snapshot.count == count { return snapshot.waitingCount }
      return 0
    }
    for number in 0..<count { try await harness.enqueue(number, key: "\(number % keys)") }
    #expect(await watching.value == count)

    let relaunched = Harness(storage: harness.storage)
    try await relaunched.running { await relaunched.drained() }
    #expect(harness.storage.names == [])
    let sent = relaunched.server.attempts.map(\.number)
    #expect(sent.count == count)
    if keys == 1 { #expect(sent == Array(0..<count)) }
  }
}

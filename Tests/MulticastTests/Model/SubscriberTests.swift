import MulticastTesting
import Testing

@testable import Multicast

/// The interplay of a channel and its subscribers: batches of elements that were taken, and subscribers that left.
@Suite(.timeLimit(.minutes(15))) struct SubscriberTests {
  @Test func `A subscriber that took a batch stays readable until another read finds nothing`() {
    var state = ChannelState<Int>(replayLimit: 0)
    let id = subscribe(to: &state, capacity: .max)
    for _ in 0..<3 { _ = state.send() }
    guard case .take(count: 3) = state.read(id, limit: 64) else {
      Issue.record("The only cursor subscriber didn't take the three elements.")
      return
    }
    // The log is empty, but the batch may have elements left, so a concurrent call must not suspend yet.
    #expect(state.isReadable(id))
    // A subscriber reads again only when its batch is empty.
    guard case .suspend = state.read(id, limit: 64) else {
      Issue.record("The read didn't find the log empty.")
      return
    }
    #expect(!state.isReadable(id))
  }

  @Test func `A subscriber that has left is no longer one of the cursor subscribers`() {
    var state = ChannelState<Int>(replayLimit: 0)
    let ids = (0..<1_000).map { _ in subscribe(to: &state, capacity: 1) }
    let remainingID = ids[500]
    for id in ids where id != remainingID {
      _ = state.cancel(id)
      state.remove(id)
    }
    #expect(state.cursorSubscribers == [remainingID])
    // The remaining subscriber needs only the newest element. Every sixteenth send releases the elements that are no
    // longer needed, which are the 15 older ones.
    let releaseCounts = (0..<16).map { _ in state.send().releaseCount }
    #expect(releaseCounts == Array(repeating: 0, count: 15) + [15])
    let newID = subscribe(to: &state, capacity: .max)
    #expect(state.cursorSubscribers == [remainingID, newID])
    _ = state.cancel(remainingID)
    #expect(state.cursorSubscribers == [newID])
  }

  @Test func `A read of a single element leaves no batch to check`() {
    var state = ChannelState<Int>(replayLimit: 0)
    let id = subscribe(to: &state, capacity: .max)
    _ = state.send()
    _ = state.read(id, limit: 64)
    #expect(!state.isReadable(id))
  }

  @Test func `Cancelling a subscriber while a call takes from its batch releases the rest of the batch`() async {
    let core = ChannelCore<Token, Never>(replay: 0)
    let subscriber = ChannelSubscriber(core: core, policy: .unbounded)
    let released = Recorder<Int>()
    let lastReleaseGate = Gate()
    for id in 1...3 {
      let token = Token(id) { releasedID in
        released.record(releasedID)
        if releasedID == 3 { lastReleaseGate.open() }
      }
      core.send(token)
    }
    // Like `next()`, this test calls `advance()`, then `takeFromBatch()`. The subscriber's lock, its `gate`, is held in
    // between, so `cancel()` can't discard the batch yet.
    guard case .batch = await subscriber.advance() else {
      Issue.record("The subscriber didn't find the three elements.")
      return
    }
    subscriber.cancel()
    #expect(subscriber.takeFromBatch().id == 1)
    // `next()` isn't called again, and the subscriber stays alive.
    await lastReleaseGate.pass()
    #expect(released.values == [1, 2, 3])
    #expect(subscriber.droppedCount == 2)
    withExtendedLifetime(subscriber) {}
  }

  /// Registers a cursor subscriber, and returns its id.
  private func subscribe(to state: inout ChannelState<Int>, capacity: Int) -> Int {
    guard case .readKept(let id) = state.subscribe(capacity: capacity, overflow: nil) else {
      preconditionFailure("A subscriber without an overflow behavior is a cursor subscriber.")
    }
    return id
  }
}

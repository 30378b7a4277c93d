import MulticastTesting
import Testing

@testable import Multicast

/// What a channel and a reader know of each other: the batch that one has given away, and who is still there.
@Suite(.timeLimit(.minutes(15))) struct ReaderTests {
  @Test func `A reader with a batch does not wait before it was seen empty`() {
    var state = ChannelState<Int>(replayLimit: 0)
    let id = state.subscribe(capacity: .max, overflow: nil)
    for _ in 0..<3 { _ = state.send() }
    guard case .take(count: 3) = state.read(id, limit: 64) else {
      Issue.record("Three elements were sent to the only follower.")
      return
    }
    // Nothing is left in the log, but another call of the same reader must look at the batch.
    #expect(state.isReadable(id))
    guard case .wait = state.read(id, limit: 64) else {
      Issue.record("There is nothing left in the log.")
      return
    }
    #expect(!state.isReadable(id))
  }

  @Test func `Who has left is not looked at any more`() {
    var state = ChannelState<Int>(replayLimit: 0)
    let ids = (0..<1_000).map { _ in state.subscribe(capacity: 1, overflow: nil) }
    for id in ids where id != 500 {
      _ = state.cancel(id)
      state.remove(id)
    }
    #expect(state.followers == [500])
    for _ in 0..<16 { _ = state.send() }
    #expect(state.raiseFloor() == 15)
    let next = state.subscribe(capacity: .max, overflow: nil)
    #expect(state.followers == [500, next])
    _ = state.cancel(500)
    #expect(state.followers == [next])
  }

  @Test func `One element is no batch`() {
    var state = ChannelState<Int>(replayLimit: 0)
    let id = state.subscribe(capacity: .max, overflow: nil)
    _ = state.send()
    _ = state.read(id, limit: 64)
    #expect(!state.isReadable(id))
  }

  @Test func `A batch goes also where the cancellation meets a call that is taking from it`() async {
    let core = ChannelCore<Token, Never>(replay: 0)
    let reader = ChannelReader(core: core, policy: .unbounded)
    let released = Recorder<Int>()
    let gate = Gate()
    for id in 1...3 {
      let token = Token(id) { id in
        released.record(id)
        if id == 3 { gate.open() }
      }
      core.send(token)
    }
    guard case .batch = await reader.advance() else {
      Issue.record("Three elements wait.")
      return
    }
    reader.cancel()
    #expect(reader.takeFromBatch().id == 1)
    // Nobody calls again, and the reader is held.
    await gate.pass()
    #expect(released.values == [1, 2, 3])
    #expect(reader.droppedCount == 2)
    withExtendedLifetime(reader) {}
  }
}

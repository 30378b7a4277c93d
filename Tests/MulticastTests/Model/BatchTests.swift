import Testing

@testable import Multicast

/// What the state knows of a reader's batch, whose elements it has given away.
@Suite struct BatchTests {
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

  @Test func `One element is no batch`() {
    var state = ChannelState<Int>(replayLimit: 0)
    let id = state.subscribe(capacity: .max, overflow: nil)
    _ = state.send()
    _ = state.read(id, limit: 64)
    #expect(!state.isReadable(id))
  }
}

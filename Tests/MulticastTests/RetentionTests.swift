import Multicast
import MulticastTesting
import Testing

/// C26: how long a channel keeps an element alive.
@Suite struct RetentionTests {
  let executor = ManualTaskExecutor()
  let live = Counter()

  private func token(_ id: Int) -> Token {
    live.add(1)
    return Token(id) { [live] _ in live.add(-1) }
  }

  @Test(arguments: [0, 1, 3])
  func `While every reader waits, nothing is alive but the replay`(replay: Int) {
    let channel = MulticastChannel<Token, Never>(replay: replay, buffering: .unbounded)
    let policies: [BufferingPolicy<Never>] = [.unbounded, .latest, .dropOldest(2), .dropNewest(2), .replaceNewest(2)]
    let readers = policies.map { Reader(channel.stream.buffering($0), on: executor) { _ in } }
    executor.runUntilIdle()
    for id in 0..<40 {
      channel.send(token(id))
      if id.isMultiple(of: 3) { executor.runUntilIdle() }
    }
    executor.runUntilIdle()
    for reader in readers { _ = reader.newEvents() }
    #expect(live.value == replay)
    channel.finish()
    executor.runUntilIdle()
    #expect(live.value == replay)
  }

  @Test(arguments: [0, 1, 3])
  func `Without readers nothing is alive but the replay`(replay: Int) {
    let channel = MulticastChannel<Token, Never>(replay: replay, buffering: .unbounded)
    for id in 0..<40 {
      channel.send(token(id))
      #expect(live.value == min(id + 1, replay))
    }
    channel.resetReplay()
    #expect(live.value == 0)
  }

  @Test(arguments: [1, 4, 100])
  func `A stalled reader keeps its window alive, and at most 16 elements more`(capacity: Int) {
    let channel = MulticastChannel<Token, Never>(buffering: .dropOldest(capacity))
    let subscription = channel.stream.subscribe()
    for id in 0..<1_000 {
      channel.send(token(id))
      #expect(live.value >= min(id + 1, capacity))
      #expect(live.value <= capacity + 16)
    }
    #expect(subscription.droppedCount == 1_000 - capacity)
  }

  @Test func `What the slowest reader has taken is released within 16 sends`() async {
    let channel = MulticastChannel<Token, Never>(buffering: .unbounded)
    let subscription = channel.stream.subscribe()
    for id in 0..<200 { channel.send(token(id)) }
    var iterator = subscription.makeAsyncIterator()
    for _ in 0..<150 { _ = await iterator.next() }
    for id in 200..<216 { channel.send(token(id)) }
    #expect(live.value == 216 - 150)
  }

  @Test func `A reader that leaves lets go of its backlog at once`() {
    let channel = MulticastChannel<Token, Never>(buffering: .unbounded)
    let leaving = channel.stream.subscribe()
    let staying = channel.stream.subscribe()
    for id in 0..<100 { channel.send(token(id)) }
    leaving.cancel()
    #expect(live.value == 100)
    staying.cancel()
    #expect(live.value == 0)
  }

  @Test(arguments: [10, 64, 65, 1_000])
  func `A backlog is released oldest first, and all of it`(count: Int) async {
    let released = Recorder<Int>()
    let channel = MulticastChannel<Token, Never>(buffering: .unbounded)
    let subscription = channel.stream.subscribe()
    // So that the log's memory is not used from its beginning.
    for id in 0..<24 { channel.send(token(id)) }
    _ = await subscription.read(24)
    #expect(live.value == 0)
    for id in 0..<count { channel.send(Token(id) { released.record($0) }) }
    subscription.cancel()
    #expect(released.values == Array(0..<count))
  }

  @Test func `A batch that was taken and not read goes when its reader does`() async {
    let channel = MulticastChannel<Token, Never>(buffering: .unbounded)
    var subscription: MulticastSubscription? = channel.stream.subscribe()
    for id in 0..<100 { channel.send(token(id)) }
    _ = await subscription?.read(1)
    for id in 100..<116 { channel.send(token(id)) }
    #expect(live.value == 115)
    #expect(subscription?.droppedCount == 0)
    subscription?.cancel()
    #expect(live.value == 0)
    #expect(subscription?.droppedCount == 115)
    subscription = nil

    subscription = channel.stream.subscribe()
    for id in 0..<100 { channel.send(token(id)) }
    _ = await subscription?.read(1)
    subscription = nil
    #expect(live.value == 0)
  }

  @Test(arguments: [BufferingPolicy<Never>.unbounded, .dropOldest(10), .dropNewest(10)])
  func `A reader that has read to the end keeps nothing alive, however long it is held`(
    _ policy: BufferingPolicy<Never>
  ) async {
    let channel = MulticastChannel<Token, Never>(buffering: policy)
    let subscriptions = [channel.stream.subscribe(), channel.stream.subscribe()]
    for id in 0..<10 { channel.send(token(id)) }
    channel.finish()
    for subscription in subscriptions { #expect(await subscription.read(11).last == .finished) }
    #expect(live.value == 0)
    withExtendedLifetime(subscriptions) {}
  }

  @Test func `When the channel and its readers are gone, nothing is alive`() {
    var channel: MulticastChannel<Token, Never>? = MulticastChannel(replay: 2, buffering: .unbounded)
    var subscriptions = [
      channel!.stream.subscribe(), channel!.stream.buffering(.dropNewest(3)).subscribe(),
      channel!.stream.buffering(.latest).subscribe(),
    ]
    for id in 0..<50 { channel!.send(token(id)) }
    channel = nil
    #expect(live.value > 0)
    subscriptions.removeAll()
    #expect(live.value == 0)
  }
}

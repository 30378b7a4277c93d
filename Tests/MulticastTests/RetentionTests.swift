import Multicast
import MulticastTesting
import Testing

/// Guarantee C26: the time for which a channel keeps an element alive.
@Suite struct RetentionTests {
  let executor = ManualTaskExecutor()
  let liveCount = Counter()

  private func makeToken(_ id: Int) -> Token {
    liveCount.add(1)
    return Token(id) { [liveCount] _ in liveCount.add(-1) }
  }

  @Test(arguments: [0, 1, 3])
  func `While every subscriber is suspended, only the replay is alive`(replay: Int) {
    let channel = MulticastChannel<Token, Never>(replay: replay, buffering: .unbounded)
    let policies: [BufferingPolicy<Never>] = [.unbounded, .latest, .dropOldest(2), .dropNewest(2), .replaceNewest(2)]
    let readers = policies.map { Reader(channel.stream.buffering($0), on: executor) { _ in } }
    executor.runUntilIdle()
    for id in 0..<40 {
      channel.send(makeToken(id))
      if id.isMultiple(of: 3) { executor.runUntilIdle() }
    }
    executor.runUntilIdle()
    // Discards the recorded events, because they keep their elements alive.
    for reader in readers { _ = reader.takeEvents() }
    #expect(liveCount.value == replay)
    channel.finish()
    executor.runUntilIdle()
    // The replay stays alive after termination, for late subscribers.
    #expect(liveCount.value == replay)
  }

  @Test(arguments: [0, 1, 3])
  func `Without subscribers, only the replay is alive`(replay: Int) {
    let channel = MulticastChannel<Token, Never>(replay: replay, buffering: .unbounded)
    for id in 0..<40 {
      channel.send(makeToken(id))
      #expect(liveCount.value == min(id + 1, replay))
    }
    channel.resetReplay()
    #expect(liveCount.value == 0)
  }

  @Test(arguments: [1, 4, 100])
  func `A stalled subscriber keeps its window alive, and at most 16 elements more`(capacity: Int) {
    let channel = MulticastChannel<Token, Never>(buffering: .dropOldest(capacity))
    let subscription = channel.stream.subscribe()
    for id in 0..<1_000 {
      channel.send(makeToken(id))
      #expect(liveCount.value >= min(id + 1, capacity))
      #expect(liveCount.value <= capacity + 16)
    }
    #expect(subscription.droppedCount == 1_000 - capacity)
  }

  @Test func `Elements that the slowest subscriber has taken are released within 16 sends`() async {
    let channel = MulticastChannel<Token, Never>(buffering: .unbounded)
    let subscription = channel.stream.subscribe()
    for id in 0..<200 { channel.send(makeToken(id)) }
    var iterator = subscription.makeAsyncIterator()
    for _ in 0..<150 { _ = await iterator.next() }
    for id in 200..<216 { channel.send(makeToken(id)) }
    #expect(liveCount.value == 216 - 150)
  }

  @Test func `A subscriber that leaves releases at once the elements that no other subscriber needs`() {
    let channel = MulticastChannel<Token, Never>(buffering: .unbounded)
    let firstToLeave = channel.stream.subscribe()
    let lastToLeave = channel.stream.subscribe()
    for id in 0..<100 { channel.send(makeToken(id)) }
    firstToLeave.cancel()
    #expect(liveCount.value == 100)
    lastToLeave.cancel()
    #expect(liveCount.value == 0)
  }

  @Test(arguments: [10, 64, 65, 1_000])
  func `A whole backlog is released, oldest element first`(count: Int) async {
    let releasedIDs = Recorder<Int>()
    let channel = MulticastChannel<Token, Never>(buffering: .unbounded)
    let subscription = channel.stream.subscribe()
    // These elements move the start of the log's ring, so that the backlog may wrap around.
    for id in 0..<24 { channel.send(makeToken(id)) }
    _ = await subscription.read(24)
    #expect(liveCount.value == 0)
    for id in 0..<count { channel.send(Token(id) { releasedIDs.record($0) }) }
    subscription.cancel()
    #expect(releasedIDs.values == Array(0..<count))
  }

  @Test func `Cancelling or releasing a subscriber releases the unread elements of its batch`() async {
    let channel = MulticastChannel<Token, Never>(buffering: .unbounded)
    var subscription: MulticastSubscription? = channel.stream.subscribe()
    for id in 0..<100 { channel.send(makeToken(id)) }
    // An unbounded subscriber that lags takes a batch of elements from the log, and returns them one by one. No other
    // subscriber needs these elements, so they are moved out of the log, and only the batch keeps them alive.
    _ = await subscription?.read(1)
    for id in 100..<116 { channel.send(makeToken(id)) }
    #expect(liveCount.value == 115)
    #expect(subscription?.droppedCount == 0)
    subscription?.cancel()
    #expect(liveCount.value == 0)
    #expect(subscription?.droppedCount == 115)
    subscription = nil

    subscription = channel.stream.subscribe()
    for id in 0..<100 { channel.send(makeToken(id)) }
    _ = await subscription?.read(1)
    subscription = nil
    #expect(liveCount.value == 0)
  }

  @Test(arguments: [BufferingPolicy<Never>.unbounded, .dropOldest(10), .dropNewest(10)])
  func `A subscriber that has finished keeps no elements alive while it is retained`(
    _ policy: BufferingPolicy<Never>
  ) async {
    let channel = MulticastChannel<Token, Never>(buffering: policy)
    let subscriptions = [channel.stream.subscribe(), channel.stream.subscribe()]
    for id in 0..<10 { channel.send(makeToken(id)) }
    channel.finish()
    for subscription in subscriptions { #expect(await subscription.read(11).last == .finished) }
    #expect(liveCount.value == 0)
    withExtendedLifetime(subscriptions) {}
  }

  @Test func `Releasing the channel and its subscribers releases all elements`() {
    var channel: MulticastChannel<Token, Never>? = MulticastChannel(replay: 2, buffering: .unbounded)
    var subscriptions = [
      channel!.stream.subscribe(), channel!.stream.buffering(.dropNewest(3)).subscribe(),
      channel!.stream.buffering(.latest).subscribe(),
    ]
    for id in 0..<50 { channel!.send(makeToken(id)) }
    channel = nil
    #expect(liveCount.value > 0)
    subscriptions.removeAll()
    #expect(liveCount.value == 0)
  }
}

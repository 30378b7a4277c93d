import Multicast
import Testing

/// Guarantees C1–C4, C21 and C25: the elements that a subscriber receives, their order, and the start of a
/// subscription.
@Suite struct OrderingTests {
  @Test func `A subscriber receives the replay, then later elements, in the order of sending`() async {
    let channel = MulticastChannel<Int, Never>(replay: 3, buffering: .unbounded)
    for element in 1...5 { channel.send(element) }
    let subscription = channel.stream.subscribe()
    for element in 6...9 { channel.send(element) }
    #expect(await subscription.read(7) == Event.elements(3, 4, 5, 6, 7, 8, 9))
  }

  @Test func `A new subscriber receives all elements of a replay that isn't full yet`() async {
    let channel = MulticastChannel<Int, Never>(replay: 3, buffering: .unbounded)
    channel.send(1)
    channel.send(2)
    channel.finish()
    #expect(await channel.stream.subscribe().read(3) == [.element(1), .element(2), .finished])
  }

  @Test func `Equal values are kept`() async {
    let channel = MulticastChannel<Int, Never>(replay: 2, buffering: .unbounded)
    channel.send(7)
    channel.send(7)
    let subscription = channel.stream.subscribe()
    channel.send(7)
    channel.finish()
    #expect(await subscription.read(4) == [.element(7), .element(7), .element(7), .finished])
  }

  @Test func `The elements of many senders have the same order for every subscriber, the replay and latest`() async {
    let channel = MulticastChannel<Int, Never>(replay: 4_000, buffering: .unbounded)
    let subscriptions = (0..<4).map { _ in channel.stream.subscribe() }
    await withTaskGroup { group in
      for sender in 0..<4 {
        group.addTask { for element in 0..<1_000 { channel.send(sender * 1_000 + element) } }
      }
    }
    let latest = channel.latest
    channel.finish()
    // 4,000 elements and the completion.
    let eventCount = 4_001
    let orders = await [
      subscriptions[0].read(eventCount), subscriptions[1].read(eventCount), subscriptions[2].read(eventCount),
      subscriptions[3].read(eventCount), channel.stream.subscribe().read(eventCount),
    ]
    for order in orders.dropFirst() { #expect(order == orders[0]) }
    #expect(orders[0].dropLast().last == latest.map { .element($0) })
    for sender in 0..<4 {
      // The elements of each sender keep that sender's order.
      let elementsOfSender = orders[0].compactMap { event -> Int? in
        if case .element(let element) = event, element / 1_000 == sender { element } else { nil }
      }
      #expect(elementsOfSender == Array(sender * 1_000..<(sender + 1) * 1_000))
    }
  }

  @Test func `A subscriber is registered when subscribe returns`() async {
    let channel = MulticastChannel<Int, Never>(buffering: .unbounded)
    let subscription = channel.stream.subscribe()
    #expect(channel.subscriberCount == 1)
    channel.send(1)
    #expect(await subscription.read(1) == Event.elements(1))
  }

  @Test func `A subscriber is registered when makeAsyncIterator returns`() async {
    let channel = MulticastChannel<Int, Never>(buffering: .unbounded)
    var iterator = channel.stream.makeAsyncIterator()
    #expect(channel.subscriberCount == 1)
    channel.send(1)
    #expect(await iterator.next() == 1)
  }

  @Test func `Each loop over a stream is a subscription of its own`() async {
    let channel = MulticastChannel<Int, Never>(replay: 1, buffering: .unbounded)
    channel.send(1)
    channel.finish()
    let stream = channel.stream
    for _ in 0..<3 {
      var seen: [Int] = []
      for await element in stream { seen.append(element) }
      #expect(seen == [1])
    }
  }

  @Test func `The iterators of one subscription share its elements`() async {
    let channel = MulticastChannel<Int, Never>(buffering: .unbounded)
    let subscription = channel.stream.subscribe()
    var first = subscription.makeAsyncIterator()
    var second = subscription.makeAsyncIterator()
    channel.send(1)
    channel.send(2)
    channel.finish()
    #expect(await first.next() == 1)
    #expect(await second.next() == 2)
    #expect(await first.next() == nil)
    #expect(await second.next() == nil)
  }

  @Test func `resetReplay empties the replay and keeps the backlogs`() async {
    let channel = MulticastChannel<Int, Never>(replay: 2, buffering: .unbounded)
    channel.send(1)
    channel.send(2)
    let early = channel.stream.subscribe()
    channel.resetReplay()
    #expect(channel.latest == nil)
    let late = channel.stream.subscribe()
    channel.send(3)
    #expect(channel.latest == 3)
    channel.finish()
    #expect(await early.read(4) == [.element(1), .element(2), .element(3), .finished])
    #expect(await late.read(2) == [.element(3), .finished])
  }

  @Test func `latest is nil without a replay`() {
    let channel = MulticastChannel<Int, Never>(buffering: .unbounded)
    channel.send(1)
    #expect(channel.latest == nil)
  }
}

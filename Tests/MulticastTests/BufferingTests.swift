import Multicast
import MulticastTesting
import Testing

/// Guarantees C5–C8, C19, C20 and C22: the elements that a busy subscriber's buffer keeps, drops and counts.
@Suite struct BufferingTests {
  let executor = ManualTaskExecutor()

  struct Example: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let policy: BufferingPolicy<any Error>
    let received: [Event<Int>]
    let droppedCount: Int
  }

  /// The results of sending the elements 1 to 5 to a subscriber that reads only after the channel has finished.
  ///
  /// The capacity is 3 if the policy has a parameter for it.
  static let examples = [
    Example(
      testDescription: "unbounded", policy: .unbounded,
      received: Event.elements(1, 2, 3, 4, 5) + [.finished], droppedCount: 0),
    Example(testDescription: "latest", policy: .latest, received: Event.elements(5) + [.finished], droppedCount: 4),
    Example(
      testDescription: "dropOldest", policy: .dropOldest(3), received: Event.elements(3, 4, 5) + [.finished],
      droppedCount: 2),
    Example(
      testDescription: "dropNewest", policy: .dropNewest(3), received: Event.elements(1, 2, 3) + [.finished],
      droppedCount: 2),
    Example(
      testDescription: "replaceNewest", policy: .replaceNewest(3), received: Event.elements(1, 2, 5) + [.finished],
      droppedCount: 2),
    // The fourth element fails the subscriber, so the fifth isn't sent to it and doesn't count as dropped.
    Example(
      testDescription: "error", policy: .error(3),
      received: Event.elements(1, 2, 3) + [.failed("\(BufferOverflow(capacity: 3))"), .finished], droppedCount: 1),
  ]

  @Test(arguments: examples)
  func `Of five unread elements, each policy keeps those that it promises`(_ example: Example) async {
    let channel = MulticastChannel<Int, any Error>(buffering: example.policy)
    let subscription = channel.stream.subscribe()
    for element in 1...5 { #expect(channel.send(element) == .sent) }
    channel.finish()
    #expect(subscription.droppedCount == example.droppedCount)
    #expect(await subscription.read(example.received.count + 1) == example.received + [.finished])
    #expect(subscription.droppedCount == example.droppedCount)
  }

  @Test(arguments: [
    (BufferingPolicy<Never>.dropOldest(2), Event<Int>.elements(2, 3)),
    (.dropNewest(2), Event.elements(1, 2)),
    (.replaceNewest(2), Event.elements(1, 3)),
  ])
  func `Each dropping policy keeps two of three elements at capacity two`(
    _ policy: BufferingPolicy<Never>, _ expected: [Event<Int>]
  ) async {
    let channel = MulticastChannel<Int, Never>(buffering: policy)
    let subscription = channel.stream.subscribe()
    for element in 1...3 { channel.send(element) }
    #expect(await subscription.read(2) == expected)
    #expect(subscription.droppedCount == 1)
    // The subscriber has caught up with the channel, so nothing more is dropped.
    channel.send(4)
    channel.finish()
    #expect(await subscription.read(2) == [.element(4), .finished])
    #expect(subscription.droppedCount == 1)
  }

  @Test func `A suspended subscriber receives an element by hand-off, which doesn't use its buffer`() {
    let channel = MulticastChannel<Int, any Error>(buffering: .error(1))
    let subscription = channel.stream.subscribe()
    let reader = Reader(subscription, on: executor)
    executor.runUntilIdle()
    // The first element is handed off and the second fills the buffer, so nothing overflows.
    channel.send(1)
    channel.send(2)
    #expect(channel.subscriberCount == 1)
    executor.runUntilIdle()
    #expect(reader.events == Event.elements(1, 2))
    #expect(subscription.droppedCount == 0)
    channel.finish()
    executor.runUntilIdle()
    #expect(reader.events == Event.elements(1, 2) + [.finished])
  }

  @Test func `A full buffer affects neither the sender, nor the replay, nor another subscriber`() async {
    let channel = MulticastChannel<Int, any Error>(replay: 1, buffering: .unbounded)
    let stalled = channel.stream.buffering(.error(1)).subscribe()
    let healthy = channel.stream.subscribe()
    for element in 1...3 { #expect(channel.send(element) == .sent) }
    #expect(channel.subscriberCount == 1)
    #expect(channel.latest == 3)
    channel.finish()
    #expect(await healthy.read(4) == Event.elements(1, 2, 3) + [.finished])
    #expect(await stalled.read(2) == [.element(1), .failed("\(BufferOverflow(capacity: 1))")])
    #expect(await channel.stream.subscribe().read(2) == [.element(3), .finished])
  }

  @Test func `A subscriber of a current-value channel converges on the last value`() async {
    let channel = CurrentValueChannel<Int, Never>(0)
    let subscription = channel.stream.subscribe()
    for element in 1...100 { channel.send(element) }
    channel.finish()
    #expect(await subscription.read(2) == [.element(100), .finished])
    #expect(subscription.droppedCount == 100)
  }

  @Test func `An overflow error is made once, in next, outside any lock`() async {
    let overflowCapacities = Recorder<Int>()
    let subscriberCounts = Recorder<Int>()
    let channel = MulticastChannel<Int, Failure>(buffering: .unbounded)
    let policy = BufferingPolicy<Failure>.error(2) { [weak channel] overflow in
      overflowCapacities.record(overflow.capacity)
      // This call would deadlock if a lock were held here.
      subscriberCounts.record(channel?.subscriberCount ?? -1)
      return .first
    }
    let subscription = channel.stream.buffering(policy).subscribe()
    for element in 1...5 { channel.send(element) }
    #expect(overflowCapacities.values == [])
    #expect(
      await subscription.read(5) == [.element(1), .element(2), .failed("first"), .finished, .finished])
    #expect(overflowCapacities.values == [2])
    #expect(subscriberCounts.values == [0])
    #expect(subscription.droppedCount == 1)
  }

  @Test func `After an overflow, a subscriber throws its own error, not the channel's`() async {
    let channel = MulticastChannel<Int, Failure>(buffering: .error(1) { _ in .first })
    let subscription = channel.stream.subscribe()
    channel.send(1)
    channel.send(2)
    channel.finish(throwing: .second)
    #expect(await subscription.read(3) == [.element(1), .failed("first"), .finished])
  }

  @Test func `A replay never overflows a buffer, because the buffer holds at least the replay`() async {
    let channel = MulticastChannel<Int, any Error>(replay: 3, buffering: .error(1))
    for element in 1...3 { channel.send(element) }
    let subscription = channel.stream.subscribe()
    #expect(channel.subscriberCount == 1)
    #expect(subscription.droppedCount == 0)
    channel.send(4)
    #expect(channel.subscriberCount == 0)
    #expect(
      await subscription.read(4) == Event.elements(1, 2, 3) + [.failed("\(BufferOverflow(capacity: 3))")])
  }

  @Test func `Without capacity, an element fails the subscriber if no call of next is suspended`() {
    let channel = MulticastChannel<Int, any Error>(buffering: .error(0))
    let subscription = channel.stream.subscribe()
    let reader = Reader(subscription, on: executor)
    executor.runUntilIdle()
    for element in 1...3 {
      channel.send(element)
      executor.runUntilIdle()
    }
    #expect(reader.takeEvents() == Event.elements(1, 2, 3))
    #expect(subscription.droppedCount == 0)

    // The subscriber is handed 4, but 5 is sent before it calls `next()` again.
    channel.send(4)
    channel.send(5)
    #expect(channel.subscriberCount == 0)
    channel.send(6)
    executor.runUntilIdle()
    #expect(reader.events == [.element(4), .failed("\(BufferOverflow(capacity: 0))")])
    #expect(subscription.droppedCount == 1)
  }

  @Test func `Without capacity, an element sent before the first call of next fails the subscriber`() async {
    // The error `first` shows that the overflow states a capacity of 0.
    let channel = MulticastChannel<Int, Failure>(
      buffering: .error(0) { $0.capacity == 0 ? .first : .second })
    let subscription = channel.stream.subscribe()
    let other = channel.stream.buffering(.unbounded).subscribe()
    channel.send(1)
    channel.send(2)
    channel.finish()
    #expect(await subscription.read(3) == [.failed("first"), .finished, .finished])
    #expect(subscription.droppedCount == 1)
    #expect(await other.read(3) == Event.elements(1, 2) + [.finished])
  }

  @Test func `Without capacity, a finish still terminates the subscriber`() async {
    let channel = MulticastChannel<Int, any Error>(buffering: .error(0))
    let subscription = channel.stream.subscribe()
    channel.finish()
    channel.send(1)
    #expect(await subscription.read(2) == [.finished, .finished])
    #expect(subscription.droppedCount == 0)
  }

  @Test func `A capacity of zero is raised to the size of the replay`() async {
    let channel = MulticastChannel<Int, any Error>(replay: 1, buffering: .error(0))
    channel.send(1)
    let subscription = channel.stream.subscribe()
    #expect(await subscription.read(1) == [.element(1)])
    channel.send(2)
    #expect(channel.subscriberCount == 1)
    channel.send(3)
    #expect(await subscription.read(3) == [.element(2), .failed("\(BufferOverflow(capacity: 1))"), .finished])
    #expect(subscription.droppedCount == 1)
  }

  @Test func `The unbounded policy drops nothing`() async {
    let channel = MulticastChannel<Int, Never>(buffering: .unbounded)
    let subscription = channel.stream.subscribe()
    for element in 0..<10_000 { channel.send(element) }
    channel.finish()
    let events = await subscription.read(10_001)
    #expect(events == (0..<10_000).map { .element($0) } + [.finished])
    #expect(subscription.droppedCount == 0)
  }

  @Test(arguments: [BufferingPolicy<Never>.dropOldest(4), .dropNewest(4), .replaceNewest(4), .unbounded, .latest])
  func `Received and dropped elements add up to the replayed and sent ones`(
    _ policy: BufferingPolicy<Never>
  ) async {
    let channel = MulticastChannel<Int, Never>(replay: 2, buffering: policy)
    for element in 0..<3 { channel.send(element) }
    let subscription = channel.stream.subscribe()
    // The replayed elements, and later also the sent ones.
    var offeredCount = 2
    var receivedCount = 0
    for round in 0..<50 {
      let burstSize = round % 7
      for element in 0..<burstSize { channel.send(element) }
      offeredCount += burstSize
      // If no element were buffered, the read would never return.
      if round % 3 == 0, receivedCount + subscription.droppedCount < offeredCount {
        receivedCount += await subscription.read(1).count
      }
    }
    channel.finish()
    for await _ in subscription { receivedCount += 1 }
    #expect(receivedCount + subscription.droppedCount == offeredCount)
  }

  @Test(arguments: 0..<4)
  func `A capacity below the policy's minimum stops the program with a message that names the argument`(
    policyIndex: Int
  ) async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { [policyIndex] in
      switch policyIndex {
      case 0: _ = BufferingPolicy<BufferOverflow>.dropOldest(0)
      case 1: _ = BufferingPolicy<BufferOverflow>.dropNewest(0)
      case 2: _ = BufferingPolicy<BufferOverflow>.replaceNewest(0)
      default: _ = BufferingPolicy<BufferOverflow>.error(-1)
      }
    }
    let rule = policyIndex == 3 ? "at least 0, but is -1" : "at least 1, but is 0"
    #expect(message(of: result).contains("'capacity' must be \(rule)"))
  }

  @Test func `A negative replay stops the program with a message that names the argument`() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = MulticastChannel<Int, Never>(replay: -1, buffering: .unbounded)
    }
    #expect(message(of: result).contains("'replay' must be at least 0, but is -1"))
  }

  private func message(of result: ExitTest.Result?) -> String {
    String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
  }
}

import Multicast
import MulticastTesting
import Testing

/// Guarantees C9–C12 and C17: the termination of a channel, and its behavior afterwards.
@Suite struct EndTests {
  let executor = ManualTaskExecutor()

  @Test func `After a finish, the backlog arrives, and every later call of next returns nil`() async {
    let channel = MulticastChannel<Int, Failure>(buffering: .unbounded)
    let subscription = channel.stream.subscribe()
    channel.send(1)
    channel.finish()
    #expect(await subscription.read(4) == [.element(1), .finished, .finished, .finished])
  }

  @Test func `A failure arrives once, after the backlog, and every later call of next returns nil`() async {
    let channel = MulticastChannel<Int, Failure>(buffering: .unbounded)
    let subscription = channel.stream.subscribe()
    channel.send(1)
    channel.finish(throwing: .first)
    #expect(await subscription.read(4) == [.element(1), .failed("first"), .finished, .finished])
  }

  @Test func `A finish resumes suspended subscribers`() {
    let channel = MulticastChannel<Int, Failure>(buffering: .unbounded)
    let readers = (0..<3).map { _ in Reader(channel.stream, on: executor) }
    executor.runUntilIdle()
    channel.finish()
    executor.runUntilIdle()
    for reader in readers { #expect(reader.events == [.finished]) }
  }

  @Test func `A failure resumes suspended subscribers`() {
    let channel = MulticastChannel<Int, Failure>(buffering: .unbounded)
    let readers = (0..<3).map { _ in Reader(channel.stream, on: executor) }
    executor.runUntilIdle()
    channel.finish(throwing: .second)
    executor.runUntilIdle()
    for reader in readers { #expect(reader.events == [.failed("second")]) }
  }

  @Test func `The first termination takes effect, and later ones change nothing`() async {
    let failedChannel = MulticastChannel<Int, Failure>(buffering: .unbounded)
    let failedSubscription = failedChannel.stream.subscribe()
    failedChannel.finish(throwing: .first)
    failedChannel.finish(throwing: .second)
    failedChannel.finish()
    #expect(await failedSubscription.read(2) == [.failed("first"), .finished])

    let finishedChannel = MulticastChannel<Int, Failure>(buffering: .unbounded)
    let finishedSubscription = finishedChannel.stream.subscribe()
    finishedChannel.finish()
    finishedChannel.finish(throwing: .first)
    #expect(await finishedSubscription.read(2) == [.finished, .finished])
  }

  @Test func `A late subscriber receives the replay, then the completion or the error`() async {
    let finishedChannel = MulticastChannel<Int, Failure>(replay: 2, buffering: .unbounded)
    let failedChannel = MulticastChannel<Int, Failure>(replay: 2, buffering: .unbounded)
    for channel in [finishedChannel, failedChannel] { for element in 1...3 { channel.send(element) } }
    finishedChannel.finish()
    failedChannel.finish(throwing: .first)
    for _ in 0..<2 {
      #expect(await finishedChannel.stream.subscribe().read(4) == [.element(2), .element(3), .finished, .finished])
      #expect(
        await failedChannel.stream.subscribe().read(4) == [.element(2), .element(3), .failed("first"), .finished])
    }
    #expect(finishedChannel.subscriberCount == 0)
  }

  @Test func `A late subscriber of a current-value channel receives the last value, then the error`() async {
    let channel = CurrentValueChannel<Int, Failure>(1)
    channel.send(2)
    channel.finish(throwing: .first)
    #expect(channel.value == 2)
    #expect(await channel.stream.subscribe().read(3) == [.element(2), .failed("first"), .finished])
  }

  @Test func `Sending after termination changes nothing`() async {
    let channel = MulticastChannel<Int, Never>(replay: 1, buffering: .unbounded)
    channel.send(1)
    channel.finish()
    #expect(channel.send(2) == .terminated)
    #expect(channel.latest == 1)
    #expect(await channel.stream.subscribe().read(2) == [.element(1), .finished])

    let currentValueChannel = CurrentValueChannel<Int, Never>(1)
    currentValueChannel.finish()
    #expect(currentValueChannel.send(2) == .terminated)
    #expect(currentValueChannel.value == 1)
  }

  @Test func `After a channel is released, its subscribers read their backlogs, then finish`() async {
    var channel: MulticastChannel<Int, Never>? = MulticastChannel(replay: 1, buffering: .unbounded)
    let stream = channel!.stream
    let laggingSubscription = stream.subscribe()
    let suspendedReader = Reader(stream, on: executor)
    executor.runUntilIdle()
    channel!.send(1)
    channel!.send(2)
    channel = nil
    executor.runUntilIdle()
    #expect(await laggingSubscription.read(3) == [.element(1), .element(2), .finished])
    #expect(suspendedReader.events == [.element(1), .element(2), .finished])
    #expect(await stream.subscribe().read(2) == [.element(2), .finished])
  }

  @Test func `Streams and subscriptions do not keep a channel alive`() {
    weak var weakChannel: MulticastChannel<Int, Never>?
    var streamAndSubscription: (MulticastStream<Int, Never>, MulticastSubscription<Int, Never>)?
    do {
      let channel = MulticastChannel<Int, Never>(buffering: .unbounded)
      weakChannel = channel
      streamAndSubscription = (channel.stream, channel.stream.subscribe())
    }
    #expect(weakChannel == nil)
    withExtendedLifetime(streamAndSubscription) {}
  }

  @Test func `Releasing a relay ends its subscribers' loops`() {
    var relay: MulticastRelay<Int>? = MulticastRelay(replay: 1, buffering: .unbounded)
    let reader = Reader(relay!.stream, on: executor)
    relay!.send(1)
    executor.runUntilIdle()
    relay = nil
    executor.runUntilIdle()
    #expect(reader.events == [.element(1), .finished])
  }
}

import Multicast
import Testing

/// Guarantee C13: code that runs inside a method of a channel may use the channel.
///
/// If the channel ran such code under its lock, the test would hang.
@Suite(.timeLimit(.minutes(15))) struct ReentrancyTests {
  /// An executor that runs each job inside `enqueue`, and therefore inside the `resume` that made the job ready.
  final class InlineExecutor: TaskExecutor {
    func enqueue(_ job: consuming ExecutorJob) {
      UnownedJob(job).runSynchronously(on: asUnownedTaskExecutor())
    }
  }

  typealias TokenChannel = MulticastChannel<Token, Never>

  @Test func `A subscriber resumed inside send may send, subscribe and finish`() {
    let channel = MulticastChannel<Int, Never>(replay: 1, buffering: .unbounded)
    let executor = InlineExecutor()
    let nestedSubscriptions = Recorder<MulticastSubscription<Int, Never>>()
    let reader = Reader(channel.stream, on: executor) { element in
      if element < 3 { channel.send(element + 1) }
      nestedSubscriptions.record(channel.stream.subscribe())
      if element == 3 { channel.finish() }
    }
    channel.send(1)
    #expect(reader.events == [.element(1), .element(2), .element(3), .finished])
    #expect(nestedSubscriptions.values.count == 3)
    #expect(channel.subscriberCount == 0)
  }

  @Test func `A subscriber resumed inside finish may use the channel`() {
    let channel = MulticastChannel<Int, Never>(replay: 1, buffering: .unbounded)
    let results = Recorder<SendResult>()
    let task = Task(executorPreference: InlineExecutor()) {
      for await _ in channel.stream {}
      results.record(channel.send(1))
      // Here, `.terminated` only marks that subscribing has returned.
      results.record(channel.stream.subscribe().droppedCount == 0 ? .terminated : .sent)
    }
    channel.finish()
    #expect(results.values == [.terminated, .terminated])
    withExtendedLifetime(task) {}
  }

  @Test func `A subscriber resumed inside cancel may use the channel`() {
    let channel = MulticastChannel<Int, Never>(replay: 1, buffering: .unbounded)
    let results = Recorder<SendResult>()
    let subscription = channel.stream.subscribe()
    let task = Task(executorPreference: InlineExecutor()) {
      for await _ in subscription {}
      results.record(channel.send(1))
    }
    subscription.cancel()
    #expect(results.values == [.sent])
    withExtendedLifetime(task) {}
  }

  @Test func `A subscriber resumed inside the cancellation of its task is unregistered and may use the channel`() {
    let channel = MulticastChannel<Int, Never>(replay: 1, buffering: .unbounded)
    let results = Recorder<SendResult>()
    let task = Task(executorPreference: InlineExecutor()) {
      for await _ in channel.stream {}
      results.record(channel.send(1))
      results.record(channel.send(2))
    }
    #expect(channel.subscriberCount == 1)
    task.cancel()
    #expect(results.values == [.sent, .sent])
    #expect(channel.subscriberCount == 0)
    #expect(channel.latest == 2)
  }

  @Test func `The deinit of an element released inside a call of next may read the same subscription`() async {
    let channel = TokenChannel(buffering: .unbounded)
    let subscriptions = [channel.stream.subscribe(), channel.stream.subscribe()]
    let eventsReadInDeinit = Recorder<[Event<Token>]>()
    for id in 1...3 {
      channel.send(
        Token(id) { _ in
          Task(executorPreference: InlineExecutor()) { eventsReadInDeinit.record(await subscriptions[0].read(1)) }
        })
    }
    for subscription in subscriptions { #expect(await subscription.read(3).count == 3) }
    channel.finish()
    // A single subscription would take the elements out of the channel. With two, reading copies them, so the channel
    // keeps them at first. The next read ends the first subscription, and releases them.
    #expect(eventsReadInDeinit.values == [])
    #expect(await subscriptions[0].read(1) == [.finished])
    #expect(eventsReadInDeinit.values == [[.finished], [.finished], [.finished]])
  }

  /// A way in which a channel releases an element.
  struct Release: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let policy: BufferingPolicy<Never>
    var replay = 0
    /// The ids of the released tokens, in order.
    let expectedIDs: [Int]
    let perform: @Sendable (TokenChannel, MulticastSubscription<Token, Never>, (Int) -> Token) -> Void
  }

  static let releases = [
    Release(testDescription: "dropOldest", policy: .dropOldest(1), expectedIDs: Array(1...15)) {
      channel, _, makeToken in
      // The sixteenth send releases all elements that are no longer needed.
      for id in 1...16 { channel.send(makeToken(id)) }
    },
    Release(testDescription: "dropNewest", policy: .dropNewest(1), expectedIDs: [2]) { channel, _, makeToken in
      channel.send(makeToken(1))
      channel.send(makeToken(2))
    },
    Release(testDescription: "replaceNewest", policy: .replaceNewest(1), expectedIDs: [1]) { channel, _, makeToken in
      channel.send(makeToken(1))
      channel.send(makeToken(2))
    },
    Release(testDescription: "replay advances", policy: .latest, replay: 1, expectedIDs: [1]) {
      channel, subscription, makeToken in
      subscription.cancel()
      channel.send(makeToken(1))
      channel.send(makeToken(2))
    },
    Release(testDescription: "resetReplay", policy: .latest, replay: 1, expectedIDs: [1]) {
      channel, subscription, makeToken in
      channel.send(makeToken(1))
      subscription.cancel()
      channel.resetReplay()
    },
    Release(testDescription: "cancel", policy: .unbounded, expectedIDs: [1, 2]) { channel, subscription, makeToken in
      channel.send(makeToken(1))
      channel.send(makeToken(2))
      subscription.cancel()
    },
    Release(testDescription: "send after termination", policy: .unbounded, expectedIDs: [1]) { channel, _, makeToken in
      channel.finish()
      channel.send(makeToken(1))
    },
  ]

  @Test(arguments: releases)
  func `An element's deinit may use the channel`(_ release: Release) {
    let channel = TokenChannel(replay: release.replay, buffering: release.policy)
    let subscription = channel.stream.subscribe()
    let releasedIDs = Recorder<Int>()
    release.perform(channel, subscription) { id in
      Token(id) { [weak channel] id in
        releasedIDs.record(id)
        // Each of these calls needs the lock.
        _ = channel?.subscriberCount
        _ = channel?.stream.subscribe()
      }
    }
    #expect(releasedIDs.values == release.expectedIDs)
    withExtendedLifetime((channel, subscription)) {}
  }

  @Test func `Releasing a subscription releases its backlog outside the lock`() {
    let channel = TokenChannel(buffering: .unbounded)
    let releasedIDs = Recorder<Int>()
    var subscription: MulticastSubscription? = channel.stream.subscribe()
    for id in 1...2 {
      channel.send(
        Token(id) { [weak channel] id in
          releasedIDs.record(id)
          _ = channel?.subscriberCount
        })
    }
    withExtendedLifetime(subscription) {}
    subscription = nil
    #expect(releasedIDs.values == [1, 2])
  }

  @Test func `An element's deinit may send`() async {
    let channel = TokenChannel(buffering: .replaceNewest(1))
    let subscription = channel.stream.subscribe()
    channel.send(Token(1) { [weak channel] _ in channel?.send(Token(3)) })
    channel.send(Token(2))
    channel.finish()
    // Token 2 replaced token 1, whose deinit sent token 3, which replaced token 2.
    #expect(await subscription.read(2) == [.element(Token(3)), .finished])
    #expect(subscription.droppedCount == 2)
  }

  @Test func `The captures of an error policy's closure are released outside the lock`() {
    let channel = MulticastChannel<Int, Failure>(buffering: .unbounded)
    let subscriberCountsAtRelease = Recorder<Int>()
    let makeToken = {
      Token(1) { [weak channel] _ in subscriberCountsAtRelease.record(channel?.subscriberCount ?? -1) }
    }
    for overflows in [true, false] {
      // Only the closure refers to the token, and only the subscription to the closure.
      let subscription = channel.stream
        .buffering(.error(1) { [token = makeToken()] _ in token.id == 1 ? .first : .second }).subscribe()
      channel.send(1)
      if overflows { channel.send(2) }
      subscription.cancel()
    }
    #expect(subscriberCountsAtRelease.values == [0, 0])
  }
}

import Multicast
import Testing

/// Guarantee C13: code that runs inside a call of a channel may use the channel.
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
    let nested = Recorder<MulticastSubscription<Int, Never>>()
    let reader = Reader(channel.stream, on: executor) { element in
      if element < 3 { channel.send(element + 1) }
      nested.record(channel.stream.subscribe())
      if element == 3 { channel.finish() }
    }
    channel.send(1)
    #expect(reader.events == [.element(1), .element(2), .element(3), .finished])
    #expect(nested.values.count == 3)
    #expect(channel.subscriberCount == 0)
  }

  @Test func `A subscriber resumed inside finish may use the channel`() {
    let channel = MulticastChannel<Int, Never>(replay: 1, buffering: .unbounded)
    let results = Recorder<SendResult>()
    let task = Task(executorPreference: InlineExecutor()) {
      for await _ in channel.stream {}
      results.record(channel.send(1))
      // The second result shows only that subscribing returns.
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

  @Test func `A subscriber resumed inside the cancellation of its task may use the channel, and ends`() {
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

  @Test func `An element's deinit may read the subscription whose call of next released the element`() async {
    let channel = TokenChannel(buffering: .unbounded)
    let subscriptions = [channel.stream.subscribe(), channel.stream.subscribe()]
    let results = Recorder<[Event<Token>]>()
    for id in 1...3 {
      channel.send(
        Token(id) { _ in
          Task(executorPreference: InlineExecutor()) { results.record(await subscriptions[0].read(1)) }
        })
    }
    for subscription in subscriptions { #expect(await subscription.read(3).count == 3) }
    channel.finish()
    #expect(results.values == [])
    #expect(await subscriptions[0].read(1) == [.finished])
    #expect(results.values == [[.finished], [.finished], [.finished]])
  }

  /// A way in which a channel releases an element.
  struct Release: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let policy: BufferingPolicy<Never>
    var replay = 0
    /// The ids of the released tokens, in order.
    let expected: [Int]
    let act: @Sendable (TokenChannel, MulticastSubscription<Token, Never>, (Int) -> Token) -> Void
  }

  static let releases = [
    Release(testDescription: "dropOldest", policy: .dropOldest(1), expected: Array(1...15)) { channel, _, token in
      // Elements that are no longer needed are released by the sixteenth send.
      for id in 1...16 { channel.send(token(id)) }
    },
    Release(testDescription: "dropNewest", policy: .dropNewest(1), expected: [2]) { channel, _, token in
      channel.send(token(1))
      channel.send(token(2))
    },
    Release(testDescription: "replaceNewest", policy: .replaceNewest(1), expected: [1]) { channel, _, token in
      channel.send(token(1))
      channel.send(token(2))
    },
    Release(testDescription: "replay advances", policy: .latest, replay: 1, expected: [1]) {
      channel, subscription, token in
      subscription.cancel()
      channel.send(token(1))
      channel.send(token(2))
    },
    Release(testDescription: "resetReplay", policy: .latest, replay: 1, expected: [1]) { channel, subscription, token in
      channel.send(token(1))
      subscription.cancel()
      channel.resetReplay()
    },
    Release(testDescription: "cancel", policy: .unbounded, expected: [1, 2]) { channel, subscription, token in
      channel.send(token(1))
      channel.send(token(2))
      subscription.cancel()
    },
    Release(testDescription: "send after termination", policy: .unbounded, expected: [1]) { channel, _, token in
      channel.finish()
      channel.send(token(1))
    },
  ]

  @Test(arguments: releases)
  func `An element's deinit may use the channel`(_ release: Release) {
    let channel = TokenChannel(replay: release.replay, buffering: release.policy)
    let subscription = channel.stream.subscribe()
    let released = Recorder<Int>()
    release.act(channel, subscription) { id in
      Token(id) { [weak channel] id in
        released.record(id)
        // Each of these calls needs the lock.
        _ = channel?.subscriberCount
        _ = channel?.stream.subscribe()
      }
    }
    #expect(released.values == release.expected)
  }

  @Test func `Releasing a subscription releases its backlog outside the lock`() {
    let channel = TokenChannel(buffering: .unbounded)
    let released = Recorder<Int>()
    var subscription: MulticastSubscription? = channel.stream.subscribe()
    for id in 1...2 {
      channel.send(
        Token(id) { [weak channel] id in
          released.record(id)
          _ = channel?.subscriberCount
        })
    }
    withExtendedLifetime(subscription) {}
    subscription = nil
    #expect(released.values == [1, 2])
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
    let released = Recorder<Int>()
    for ends in [true, false] {
      let captured = Token(1) { [weak channel] _ in released.record(channel?.subscriberCount ?? -1) }
      let subscription = channel.stream.buffering(.error(1) { _ in captured.id == 1 ? .first : .second }).subscribe()
      channel.send(1)
      if ends { channel.send(2) }
      subscription.cancel()
    }
    #expect(released.values == [0, 0])
  }
}

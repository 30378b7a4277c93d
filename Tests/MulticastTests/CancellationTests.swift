import Multicast
import MulticastTesting
import Testing

/// Guarantees C14–C16, C18 and C23: cancelling and releasing subscribers.
@Suite struct CancellationTests {
  let executor = ManualTaskExecutor()

  @Test func `A subscriber cancelled while suspended returns nil from then on, and is unregistered`() async {
    let channel = MulticastChannel<Int, Never>(replay: 1, buffering: .unbounded)
    let subscription = channel.stream.subscribe()
    let reader = Reader(subscription, on: executor)
    executor.runUntilIdle()
    reader.task.cancel()
    #expect(channel.subscriberCount == 0)
    executor.runUntilIdle()
    #expect(reader.events == [.finished])
    channel.send(1)
    #expect(await subscription.read(2) == [.finished, .finished])
  }

  @Test func `A task cancelled before it subscribes doesn't receive the replay, and leaves no subscriber`() {
    let channel = MulticastChannel<Int, Never>(replay: 1, buffering: .unbounded)
    channel.send(1)
    let reader = Reader(channel.stream, on: executor)
    reader.task.cancel()
    executor.runUntilIdle()
    #expect(reader.events == [.finished])
    #expect(channel.subscriberCount == 0)
  }

  @Test func `A subscriber cancelled with a backlog releases it, and the next call returns nil`() async {
    let releasedIDs = Recorder<Int>()
    let channel = MulticastChannel<Token, Never>(buffering: .unbounded)
    let subscription = channel.stream.subscribe()
    let readerTask = Lock<Task<Void, Never>?>(nil)
    let reader = Reader(subscription, on: executor) { _ in readerTask.withLock { $0?.cancel() } }
    readerTask.withLock { $0 = reader.task }
    for id in 1...3 { channel.send(Token(id) { releasedIDs.record($0) }) }
    #expect(releasedIDs.values == [])
    executor.runUntilIdle()
    #expect(reader.takeEvents() == [.element(Token(1)), .finished])
    // The received element is released last, because the reader's events contained it.
    #expect(releasedIDs.values == [2, 3, 1])
    #expect(channel.subscriberCount == 0)
    // One element was received, and the two others count as dropped.
    #expect(subscription.droppedCount == 2)
    channel.send(Token(4))
    #expect(await subscription.read(1) == [.finished])
  }

  @Test func `An element that was handed off is returned even if the task is cancelled before it resumes`() {
    let channel = MulticastChannel<Int, Never>(buffering: .unbounded)
    let reader = Reader(channel.stream, on: executor)
    executor.runUntilIdle()
    channel.send(1)
    reader.task.cancel()
    executor.runUntilIdle()
    #expect(reader.events == [.element(1), .finished])
    #expect(channel.subscriberCount == 0)
  }

  @Test func `subscriberCount falls before a cancelled call of next returns`() async {
    let channel = MulticastChannel<Int, Never>(buffering: .unbounded)
    let countsAtReturn = Recorder<Int>()
    let subscription = channel.stream.subscribe()
    let task = Task(executorPreference: executor) {
      var iterator = subscription.makeAsyncIterator()
      _ = await iterator.next()
      countsAtReturn.record(channel.subscriberCount)
    }
    executor.runUntilIdle()
    task.cancel()
    executor.runUntilIdle()
    #expect(countsAtReturn.values == [0])
  }

  @Test func `Cancelling a subscription ends all its iterators`() async {
    let channel = MulticastChannel<Int, Never>(buffering: .unbounded)
    let subscription = channel.stream.subscribe()
    let readers = (0..<2).map { _ in Reader(subscription, on: executor) }
    executor.runUntilIdle()
    subscription.cancel()
    // Cancelling again changes nothing.
    subscription.cancel()
    #expect(channel.subscriberCount == 0)
    executor.runUntilIdle()
    for reader in readers { #expect(reader.events == [.finished]) }
    #expect(await subscription.read(1) == [.finished])
  }

  @Test func `Cancelling one subscriber doesn't affect the others`() async {
    let channel = MulticastChannel<Int, Never>(buffering: .unbounded)
    let leaving = Reader(channel.stream, on: executor)
    let staying = Reader(channel.stream, on: executor)
    executor.runUntilIdle()
    channel.send(1)
    leaving.task.cancel()
    executor.runUntilIdle()
    channel.send(2)
    channel.finish()
    executor.runUntilIdle()
    #expect(leaving.events == [.element(1), .finished])
    #expect(staying.events == [.element(1), .element(2), .finished])
  }

  @Test func `Leaving a loop unregisters the subscriber and releases its backlog at once`() async {
    let releasedIDs = Recorder<Int>()
    let channel = MulticastChannel<Token, Never>(replay: 3, buffering: .unbounded)
    for id in 1...3 { channel.send(Token(id) { releasedIDs.record($0) }) }
    for await element in channel.stream {
      #expect(element.id == 1)
      #expect(channel.subscriberCount == 1)
      // Otherwise the replay would keep the elements.
      channel.resetReplay()
      break
    }
    #expect(channel.subscriberCount == 0)
    #expect(releasedIDs.values == [1, 2, 3])
  }

  @Test func `Releasing both a subscription and its last iterator unregisters the subscriber`() async {
    let channel = MulticastChannel<Int, Never>(buffering: .unbounded)
    var subscription: MulticastSubscription? = channel.stream.subscribe()
    var iterator = subscription?.makeAsyncIterator()
    subscription = nil
    #expect(channel.subscriberCount == 1)
    channel.send(1)
    #expect(await iterator?.next() == 1)
    iterator = nil
    #expect(channel.subscriberCount == 0)
  }

  @Test func `Two tasks on one subscription receive its elements in turn, and both finish with the channel`() {
    let channel = MulticastChannel<Int, Never>(buffering: .unbounded)
    let subscription = channel.stream.subscribe()
    let first = Reader(subscription, on: executor)
    let second = Reader(subscription, on: executor)
    executor.runUntilIdle()
    for element in 1...4 {
      channel.send(element)
      executor.runUntilIdle()
    }
    #expect(first.events == Event.elements(1, 3))
    #expect(second.events == Event.elements(2, 4))
    channel.finish()
    executor.runUntilIdle()
    #expect(first.events.last == .finished)
    #expect(second.events.last == .finished)
  }

  @Test func `If the channel fails, one of two tasks on a subscription throws the error, and the other finishes`() {
    let channel = MulticastChannel<Int, Failure>(buffering: .unbounded)
    let subscription = channel.stream.subscribe()
    let first = Reader(subscription, on: executor)
    let second = Reader(subscription, on: executor)
    executor.runUntilIdle()
    channel.finish(throwing: .first)
    executor.runUntilIdle()
    #expect(first.events == [.failed("first")])
    #expect(second.events == [.finished])
  }

  @Test func `subscriberCount is exact after overflow, cancel, release and finish`() {
    let channel = MulticastChannel<Int, any Error>(buffering: .error(1))
    let overflowingSubscription = channel.stream.subscribe()
    let cancelledSubscription = channel.stream.buffering(.unbounded).subscribe()
    var releasedSubscription: MulticastSubscription? = channel.stream.buffering(.unbounded).subscribe()
    let finishedSubscription = channel.stream.buffering(.unbounded).subscribe()
    #expect(channel.subscriberCount == 4)
    channel.send(1)
    channel.send(2)
    #expect(channel.subscriberCount == 3)
    overflowingSubscription.cancel()
    #expect(channel.subscriberCount == 3)
    cancelledSubscription.cancel()
    #expect(channel.subscriberCount == 2)
    withExtendedLifetime(releasedSubscription) {}
    releasedSubscription = nil
    #expect(channel.subscriberCount == 1)
    channel.finish()
    #expect(channel.subscriberCount == 0)
    withExtendedLifetime((overflowingSubscription, cancelledSubscription, finishedSubscription)) {}
  }
}

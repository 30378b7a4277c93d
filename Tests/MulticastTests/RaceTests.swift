import Foundation
import Multicast
import Synchronization
import TestRounds
import Testing

/// Races of two or three operations, repeated many times to meet many interleavings.
@Suite(.serialized, .timeLimit(.minutes(15))) struct RaceTests {
  static let rounds = Rounds.count(200, full: 10_000)

  /// Runs the operations concurrently, and begins each one only after the tasks of all of them have started.
  private func race(_ operations: (@Sendable () async -> Void)...) async {
    let unstartedCount = Counter(operations.count)
    await withTaskGroup { group in
      for operation in operations {
        group.addTask {
          unstartedCount.add(-1)
          while unstartedCount.value > 0 { await Task.yield() }
          await operation()
        }
      }
    }
  }

  /// Reads a sequence until it terminates.
  private static func readEvents<Failure: Error>(
    of sequence: some AsyncSequence<Int, Failure>
  ) async -> [Event<Int>] {
    var events: [Event<Int>] = []
    do {
      for try await element in sequence { events.append(.element(element)) }
      return events + [.finished]
    } catch {
      return events + [.failed("\(error)")]
    }
  }

  @Test(arguments: [0, 1, 3], [BufferingPolicy<Never>.unbounded, .dropNewest(20)])
  func `Subscribing while sending causes no gap and no duplicate`(replay: Int, policy: BufferingPolicy<Never>) async {
    for _ in 0..<Self.rounds {
      let channel = MulticastChannel<Int, Never>(replay: replay, buffering: policy)
      let eventLists = Recorder<[Event<Int>]>()
      await race(
        {
          for element in 0..<20 { channel.send(element) }
          channel.finish()
        },
        { eventLists.record(await Self.readEvents(of: channel.stream)) })
      let events = eventLists.values[0]
      // The last event is the termination. The elements before it are consecutive and end with the last one sent.
      // There are at least as many as the replay keeps.
      #expect(events == (20 - (events.count - 1)..<20).map { .element($0) } + [.finished])
      #expect(events.count > replay)
    }
  }

  @Test(arguments: [BufferingPolicy<Never>.unbounded, .dropNewest(20)])
  func `Each of many subscribers receives its replay and the elements sent next without a gap`(
    policy: BufferingPolicy<Never>
  ) async {
    let channel = MulticastChannel<Int, Never>(replay: 2, buffering: policy)
    channel.send(0)
    let finishedReaderCount = Counter()
    await race(
      {
        var element = 1
        while finishedReaderCount.value == 0 {
          channel.send(element)
          element += 1
        }
      },
      {
        for _ in 0..<Self.rounds {
          var iterator = channel.stream.makeAsyncIterator()
          let first = await iterator.next()!
          for distance in 1..<5 { #expect(await iterator.next() == first + distance) }
        }
        finishedReaderCount.add(1)
      })
  }

  @Test func `A subscriber that subscribes while the channel fails receives the replay and the error`() async {
    for _ in 0..<Self.rounds {
      let channel = MulticastChannel<Int, Failure>(replay: 1, buffering: .unbounded)
      channel.send(1)
      let eventLists = Recorder<[Event<Int>]>()
      await race(
        { channel.finish(throwing: .first) },
        { eventLists.record(await Self.readEvents(of: channel.stream)) })
      #expect(eventLists.values == [[.element(1), .failed("first")]])
      #expect(channel.subscriberCount == 0)
    }
  }

  @Test func `A subscriber cancelled while elements are sent receives a prefix, then nil`() async {
    for _ in 0..<Self.rounds {
      let channel = MulticastChannel<Int, Never>(buffering: .unbounded)
      let subscription = channel.stream.subscribe()
      let reader = Task { await Self.readEvents(of: subscription) }
      await race(
        { for element in 0..<10 { channel.send(element) } },
        { reader.cancel() })
      let events = await reader.value
      #expect(events == (0..<events.count - 1).map { .element($0) } + [.finished])
      #expect(channel.subscriberCount == 0)
      channel.send(10)
      // Elements that were sent after the cancellation don't count as dropped.
      #expect(subscription.droppedCount <= 10 - (events.count - 1))
    }
  }

  @Test func `Concurrent cancellation, finish and failure terminate a subscriber once`() async {
    for _ in 0..<Self.rounds {
      let channel = MulticastChannel<Int, Failure>(buffering: .unbounded)
      let subscription = channel.stream.subscribe()
      let reader = Task { await Self.readEvents(of: subscription) }
      await race(
        { channel.finish() },
        { channel.finish(throwing: .first) },
        { reader.cancel() })
      let events = await reader.value
      #expect(events == [.finished] || events == [.failed("first")])
      #expect(await subscription.read(1) == [.finished])
      #expect(channel.subscriberCount == 0)
    }
  }

  @Test(arguments: [0, 2])
  func `A subscriber that may overflow while reading receives everything, or a prefix and the error`(
    capacity: Int
  ) async {
    for _ in 0..<Self.rounds {
      let channel = MulticastChannel<Int, any Error>(buffering: .error(capacity))
      let subscription = channel.stream.subscribe()
      let eventLists = Recorder<[Event<Int>]>()
      await race(
        {
          for element in 0..<20 { channel.send(element) }
          channel.finish()
        },
        { eventLists.record(await Self.readEvents(of: subscription)) })
      let events = eventLists.values[0]
      let overflow = Event<Int>.failed("\(BufferOverflow(capacity: capacity))")
      let expectedTermination: Event<Int> = subscription.droppedCount == 0 ? .finished : overflow
      #expect(events == (0..<events.count - 1).map { .element($0) } + [expectedTermination])
      #expect(expectedTermination == overflow ? subscription.droppedCount == 1 : events.count == 21)
    }
  }

  @Test(arguments: [BufferingPolicy<Never>.dropOldest(3), .dropNewest(3), .replaceNewest(3), .latest])
  func `Elements that are dropped while a subscriber reads are counted, and the others arrive in order`(
    _ policy: BufferingPolicy<Never>
  ) async {
    for _ in 0..<Self.rounds {
      let channel = MulticastChannel<Int, Never>(replay: 1, buffering: policy)
      channel.send(0)
      let subscription = channel.stream.subscribe()
      let elementLists = Recorder<[Int]>()
      await race(
        {
          for element in 1..<30 { channel.send(element) }
          channel.finish()
        },
        {
          var elements: [Int] = []
          for await element in subscription { elements.append(element) }
          elementLists.record(elements)
        })
      let elements = elementLists.values[0]
      for (left, right) in zip(elements, elements.dropFirst()) { #expect(left < right) }
      #expect(elements.count + subscription.droppedCount == 30)
    }
  }

  @Test func `Releasing an iterator while elements are sent leaves no element alive`() async {
    let liveCount = Counter()
    for round in 0..<Self.rounds {
      let channel = MulticastChannel<Token, Never>(buffering: .unbounded)
      await race(
        {
          for id in 0..<10 {
            liveCount.add(1)
            channel.send(Token(id) { _ in liveCount.add(-1) })
          }
        },
        {
          var iterator = channel.stream.makeAsyncIterator()
          // In every other round, the iterator reads an element before its release. The read doesn't suspend, because
          // an element was just sent.
          if round.isMultiple(of: 2) {
            channel.send(Token(10))
            _ = await iterator.next()
          }
        })
      #expect(channel.subscriberCount == 0)
      #expect(liveCount.value == 0)
    }
  }

  @Test func `Releasing the channel while a subscriber reads finishes the subscriber`() async {
    for _ in 0..<Self.rounds {
      let holder = Lock<MulticastChannel<Int, Never>?>(MulticastChannel(replay: 1, buffering: .unbounded))
      let stream = holder.withLock { $0!.stream }
      holder.withLock { _ = $0!.send(1) }
      let eventLists = Recorder<[Event<Int>]>()
      await race(
        {
          // Releases the channel after the holder is unlocked.
          withExtendedLifetime(holder.withLock { $0.take() }) {}
        },
        { eventLists.record(await Self.readEvents(of: stream)) })
      #expect(eventLists.values == [[.element(1), .finished]])
    }
  }

  @Test func `Each element sent while two tasks share a subscription is received once, and both tasks end`() async {
    for _ in 0..<Self.rounds {
      let channel = MulticastChannel<Int, Never>(buffering: .unbounded)
      let subscription = channel.stream.subscribe()
      let seenByFirstTask = Recorder<Int>()
      let seenBySecondTask = Recorder<Int>()
      await race(
        {
          for element in 0..<20 { channel.send(element) }
          channel.finish()
        },
        { for await element in subscription { seenByFirstTask.record(element) } },
        { for await element in subscription { seenBySecondTask.record(element) } })
      for elements in [seenByFirstTask.values, seenBySecondTask.values] {
        for (left, right) in zip(elements, elements.dropFirst()) { #expect(left < right) }
      }
      #expect(seenByFirstTask.values.count + seenBySecondTask.values.count == 20)
      #expect(Set(seenByFirstTask.values).union(seenBySecondTask.values) == Set(0..<20))
    }
  }

  @Test func `Each of two concurrent calls of next on one subscription receives one of the first two elements`() async {
    for _ in 0..<Self.rounds {
      let channel = MulticastChannel<Int, Never>(buffering: .unbounded)
      let subscription = channel.stream.subscribe()
      let seen = Recorder<Int>()
      let callNext: @Sendable () async -> Void = {
        var iterator = subscription.makeAsyncIterator()
        if let element = await iterator.next() { seen.record(element) }
      }
      await race(
        {
          channel.send(0)
          channel.send(1)
          while seen.values.isEmpty { await Task.yield() }
          // One call has an element now. The other call must receive the other of the two, and not this third element.
          channel.send(2)
        }, callNext, callNext)
      #expect(Set(seen.values) == [0, 1])
    }
  }

  @Test func `If two tasks share a backlog, each element goes to one of them, in ascending order`() async {
    // There are fewer rounds than in the other tests, because each round sends thousands of elements.
    for _ in 0..<Self.rounds / 20 {
      let channel = MulticastChannel<Int, Never>(buffering: .unbounded)
      let subscription = channel.stream.subscribe()
      // The tasks read many batches as fast as possible, so that they collide while one of them takes from a batch. The
      // last batch isn't full.
      for element in 0..<10_001 { channel.send(element) }
      let elementLists = Recorder<[Int]>()
      let readAll: @Sendable () async -> Void = {
        var elements: [Int] = []
        elements.reserveCapacity(20_000)
        for await element in subscription { elements.append(element) }
        elementLists.record(elements)
      }
      await race(
        {
          for element in 10_001..<10_020 { channel.send(element) }
          channel.finish()
        }, readAll, readAll)
      for elements in elementLists.values {
        for (left, right) in zip(elements, elements.dropFirst()) { #expect(left < right) }
      }
      let all = elementLists.values.joined()
      #expect(all.count == 10_020)
      #expect(Set(all).count == 10_020)
    }
  }

  @Test func `A subscriber cancelled within a batch receives a prefix, then nil, and leaves no element alive`() async {
    let liveCount = Counter()
    for _ in 0..<Self.rounds {
      let channel = MulticastChannel<Token, Never>(buffering: .unbounded)
      let subscription = channel.stream.subscribe()
      for id in 0..<40 {
        liveCount.add(1)
        channel.send(Token(id) { _ in liveCount.add(-1) })
      }
      let seenIDs = Recorder<Int>()
      await race(
        { for await element in subscription { seenIDs.record(element.id) } },
        { subscription.cancel() })
      // The batch of a concurrent call of `next()` is released shortly after that call.
      while liveCount.value > 0 { await Task.yield() }
      let count = seenIDs.values.count
      #expect(seenIDs.values == Array(0..<count))
      #expect(subscription.droppedCount == 40 - count)
      #expect(channel.subscriberCount == 0)
    }
  }

  @Test func `A subscriber cancelled while it reads a few elements leaves none alive and counts the rest as dropped`()
    async
  {
    let liveCount = Counter()
    for round in 0..<Self.rounds {
      let channel = MulticastChannel<Token, Never>(buffering: .unbounded)
      let subscription = channel.stream.subscribe()
      for id in 0..<64 {
        liveCount.add(1)
        channel.send(Token(id) { _ in liveCount.add(-1) })
      }
      let seenIDs = Recorder<Int>()
      await race(
        {
          var iterator = subscription.makeAsyncIterator()
          for _ in 0...round % 4 { if let element = await iterator.next() { seenIDs.record(element.id) } }
        },
        { subscription.cancel() })
      while liveCount.value > 0 { await Task.yield() }
      #expect(seenIDs.values.count + subscription.droppedCount == 64)
      #expect(seenIDs.values == Array(0..<seenIDs.values.count))
    }
  }

  @Test(arguments: [BufferingPolicy<Never>.latest, .dropOldest(5), .dropOldest(20), .unbounded])
  func `A subscriber that may lag receives elements in order, up to the last, and only the replay stays alive`(
    _ policy: BufferingPolicy<Never>
  ) async {
    let liveCount = Counter()
    for round in 0..<Self.rounds {
      let replay = round % 3
      let channel = MulticastChannel<Token, Never>(replay: replay, buffering: .unbounded)
      let subscription = channel.stream.buffering(policy).subscribe()
      let other = channel.stream.subscribe()
      let idLists = Recorder<[Int]>()
      await race(
        {
          for id in 0..<40 {
            liveCount.add(1)
            channel.send(Token(id) { _ in liveCount.add(-1) })
          }
          channel.finish()
        },
        {
          var ids: [Int] = []
          for await element in subscription { ids.append(element.id) }
          idLists.record(ids)
        },
        { for await _ in other {} })
      let ids = idLists.values[0]
      for (left, right) in zip(ids, ids.dropFirst()) { #expect(left < right) }
      #expect(ids.last == 39)
      #expect(ids.count + subscription.droppedCount == 40)
      subscription.cancel()
      other.cancel()
      #expect(liveCount.value == replay)
      channel.resetReplay()
      #expect(liveCount.value == 0)
    }
  }

  @Test func `An element handed off to a call that has not suspended yet is fully initialized when the call reads it`()
    async
  {
    for _ in 0..<Self.rounds {
      let channel = MulticastChannel<Token, Never>(buffering: .unbounded)
      let isParking = UnorderedFlag()
      let isSent = UnorderedFlag()
      Thread.detachNewThread {
        isParking.wait()
        channel.send(Token(1))
        isSent.raise()
        channel.finish()
      }
      let subscriptions = [channel.stream.subscribe(), channel.stream.subscribe()]
      // Each subscriber reads this element, then parks its continuation. The second one to do so releases the element,
      // before its task has suspended.
      channel.send(
        Token(0) { _ in
          isParking.raise()
          isSent.wait()
        })
      await withTaskGroup { group in
        for subscription in subscriptions {
          group.addTask {
            var ids: [Int] = []
            for await element in subscription { ids.append(element.id) }
            #expect(ids == [0, 1])
          }
        }
      }
    }
  }
}

/// A flag without memory ordering, so that the thread sanitizer sees only the order that the code under test
/// establishes.
private final class UnorderedFlag: Sendable {
  private let isRaised = Atomic(false)

  func raise() { isRaised.store(true, ordering: .relaxed) }
  func wait() { while !isRaised.load(ordering: .relaxed) { sched_yield() } }
}

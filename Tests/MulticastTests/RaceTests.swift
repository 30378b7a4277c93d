import Foundation
import Multicast
import Synchronization
import Testing

/// Races of two or three operations, repeated many times to meet many interleavings.
///
/// The environment variable `MOMENTS_RACE_ROUNDS` sets the number of rounds.
@Suite(.serialized, .timeLimit(.minutes(15))) struct RaceTests {
  static let rounds = ProcessInfo.processInfo.environment["MOMENTS_RACE_ROUNDS"].flatMap { Int($0) } ?? 1_000

  /// Runs the operations concurrently, and begins each one only after the tasks of all of them have started.
  private func race(_ operations: (@Sendable () async -> Void)...) async {
    let waiting = Counter(operations.count)
    await withTaskGroup { group in
      for operation in operations {
        group.addTask {
          waiting.add(-1)
          while waiting.value > 0 { await Task.yield() }
          await operation()
        }
      }
    }
  }

  /// Reads a sequence until it terminates.
  private static func events<Failure: Error>(
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
      let seen = Recorder<[Event<Int>]>()
      await race(
        {
          for element in 0..<20 { channel.send(element) }
          channel.finish()
        },
        { seen.record(await Self.events(of: channel.stream)) })
      let events = seen.values[0]
      // The elements are consecutive and end with the last one sent. There are at least as many as the replay keeps.
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
    let isDone = Counter()
    await race(
      {
        var element = 1
        while isDone.value == 0 {
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
        isDone.add(1)
      })
  }

  @Test func `A subscriber that subscribes while the channel fails receives the replay and the error`() async {
    for _ in 0..<Self.rounds {
      let channel = MulticastChannel<Int, Failure>(replay: 1, buffering: .unbounded)
      channel.send(1)
      let seen = Recorder<[Event<Int>]>()
      await race(
        { channel.finish(throwing: .first) },
        { seen.record(await Self.events(of: channel.stream)) })
      #expect(seen.values == [[.element(1), .failed("first")]])
      #expect(channel.subscriberCount == 0)
    }
  }

  @Test func `A subscriber cancelled while elements are sent receives a prefix, then nil`() async {
    for _ in 0..<Self.rounds {
      let channel = MulticastChannel<Int, Never>(buffering: .unbounded)
      let subscription = channel.stream.subscribe()
      let reader = Task { await Self.events(of: subscription) }
      await race(
        { for element in 0..<10 { channel.send(element) } },
        { reader.cancel() })
      let events = await reader.value
      #expect(events == (0..<events.count - 1).map { .element($0) } + [.finished])
      #expect(channel.subscriberCount == 0)
      channel.send(10)
      #expect(subscription.droppedCount <= 10 - (events.count - 1))
    }
  }

  @Test func `Concurrent cancellation, finish and failure terminate a subscriber once`() async {
    for _ in 0..<Self.rounds {
      let channel = MulticastChannel<Int, Failure>(buffering: .unbounded)
      let subscription = channel.stream.subscribe()
      let reader = Task { await Self.events(of: subscription) }
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
      let seen = Recorder<[Event<Int>]>()
      await race(
        {
          for element in 0..<20 { channel.send(element) }
          channel.finish()
        },
        { seen.record(await Self.events(of: subscription)) })
      let events = seen.values[0]
      let overflow = Event<Int>.failed("\(BufferOverflow(capacity: capacity))")
      let last: Event<Int> = subscription.droppedCount == 0 ? .finished : overflow
      #expect(events == (0..<events.count - 1).map { .element($0) } + [last])
      #expect(last == overflow ? subscription.droppedCount == 1 : events.count == 21)
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
      let seen = Recorder<[Int]>()
      await race(
        {
          for element in 1..<30 { channel.send(element) }
          channel.finish()
        },
        {
          var elements: [Int] = []
          for await element in subscription { elements.append(element) }
          seen.record(elements)
        })
      let elements = seen.values[0]
      for (left, right) in zip(elements, elements.dropFirst()) { #expect(left < right) }
      #expect(elements.count + subscription.droppedCount == 30)
    }
  }

  @Test func `Releasing an iterator while elements are sent leaves no element alive`() async {
    let live = Counter()
    for round in 0..<Self.rounds {
      let channel = MulticastChannel<Token, Never>(buffering: .unbounded)
      await race(
        {
          for id in 0..<10 {
            live.add(1)
            channel.send(Token(id) { _ in live.add(-1) })
          }
        },
        {
          var iterator = channel.stream.makeAsyncIterator()
          // In every other round, the iterator reads an element before its release. The read doesn't suspend, because
          // an element was just sent.
          if round.isMultiple(of: 2) { channel.send(Token(10)) }
          if round.isMultiple(of: 2) { _ = await iterator.next() }
        })
      #expect(channel.subscriberCount == 0)
      #expect(live.value == 0)
    }
  }

  @Test func `Releasing the channel while a subscriber reads finishes the subscriber`() async {
    for _ in 0..<Self.rounds {
      let holder = Lock<MulticastChannel<Int, Never>?>(MulticastChannel(replay: 1, buffering: .unbounded))
      let stream = holder.withLock { $0!.stream }
      holder.withLock { _ = $0!.send(1) }
      let seen = Recorder<[Event<Int>]>()
      await race(
        { withExtendedLifetime(holder.withLock { $0.take() }) {} },
        { seen.record(await Self.events(of: stream)) })
      #expect(seen.values == [[.element(1), .finished]])
    }
  }

  @Test func `Each element sent while two tasks share a subscription is received once, and both tasks end`() async {
    for _ in 0..<Self.rounds {
      let channel = MulticastChannel<Int, Never>(buffering: .unbounded)
      let subscription = channel.stream.subscribe()
      let first = Recorder<Int>()
      let second = Recorder<Int>()
      await race(
        {
          for element in 0..<20 { channel.send(element) }
          channel.finish()
        },
        { for await element in subscription { first.record(element) } },
        { for await element in subscription { second.record(element) } })
      for seen in [first.values, second.values] {
        for (left, right) in zip(seen, seen.dropFirst()) { #expect(left < right) }
      }
      #expect(first.values.count + second.values.count == 20)
      #expect(Set(first.values).union(second.values) == Set(0..<20))
    }
  }

  @Test func `Each of two concurrent calls on one subscription receives one of the first two elements`() async {
    for _ in 0..<Self.rounds {
      let channel = MulticastChannel<Int, Never>(buffering: .unbounded)
      let subscription = channel.stream.subscribe()
      let seen = Recorder<Int>()
      let call: @Sendable () async -> Void = {
        var iterator = subscription.makeAsyncIterator()
        if let element = await iterator.next() { seen.record(element) }
      }
      await race(
        {
          channel.send(0)
          channel.send(1)
          while seen.values.isEmpty { await Task.yield() }
          // One call has one of the two elements, and the other call gets the other, so neither may receive a third.
          channel.send(2)
        }, call, call)
      #expect(Set(seen.values) == [0, 1])
    }
  }

  @Test func `If two tasks share a backlog, each element goes to one of them, in ascending order`() async {
    for _ in 0..<Self.rounds / 20 {
      let channel = MulticastChannel<Int, Never>(buffering: .unbounded)
      let subscription = channel.stream.subscribe()
      // The tasks read many batches as fast as possible, so that they collide while one of them takes from a batch. The
      // last batch isn't full.
      for element in 0..<10_001 { channel.send(element) }
      let seen = Recorder<[Int]>()
      let read: @Sendable () async -> Void = {
        var elements: [Int] = []
        elements.reserveCapacity(20_000)
        for await element in subscription { elements.append(element) }
        seen.record(elements)
      }
      await race(
        {
          for element in 10_001..<10_020 { channel.send(element) }
          channel.finish()
        }, read, read)
      for elements in seen.values {
        for (left, right) in zip(elements, elements.dropFirst()) { #expect(left < right) }
      }
      let all = seen.values.joined()
      #expect(all.count == 10_020)
      #expect(Set(all).count == 10_020)
    }
  }

  @Test func `A subscriber cancelled within a batch receives a prefix, then nil, and leaves no element alive`() async {
    let live = Counter()
    for _ in 0..<Self.rounds {
      let channel = MulticastChannel<Token, Never>(buffering: .unbounded)
      let subscription = channel.stream.subscribe()
      for id in 0..<40 {
        live.add(1)
        channel.send(Token(id) { _ in live.add(-1) })
      }
      let seen = Recorder<Int>()
      await race(
        { for await element in subscription { seen.record(element.id) } },
        { subscription.cancel() })
      // The batch of a concurrent call of `next()` is released shortly after that call.
      while live.value > 0 { await Task.yield() }
      let count = seen.values.count
      #expect(seen.values == Array(0..<count))
      #expect(subscription.droppedCount == 40 - count)
      #expect(channel.subscriberCount == 0)
    }
  }

  @Test func `A subscriber cancelled after a few elements leaves no element alive and counts the rest as dropped`()
    async
  {
    let live = Counter()
    for round in 0..<Self.rounds {
      let channel = MulticastChannel<Token, Never>(buffering: .unbounded)
      let subscription = channel.stream.subscribe()
      for id in 0..<64 {
        live.add(1)
        channel.send(Token(id) { _ in live.add(-1) })
      }
      let seen = Recorder<Int>()
      await race(
        {
          var iterator = subscription.makeAsyncIterator()
          for _ in 0...round % 4 { if let element = await iterator.next() { seen.record(element.id) } }
        },
        { subscription.cancel() })
      while live.value > 0 { await Task.yield() }
      #expect(seen.values.count + subscription.droppedCount == 64)
      #expect(seen.values == Array(0..<seen.values.count))
    }
  }

  @Test(arguments: [BufferingPolicy<Never>.latest, .dropOldest(5), .dropOldest(20), .unbounded])
  func `A lagging subscriber receives its window in order while other elements are released`(
    _ policy: BufferingPolicy<Never>
  ) async {
    let live = Counter()
    for round in 0..<Self.rounds {
      let channel = MulticastChannel<Token, Never>(replay: round % 3, buffering: .unbounded)
      let lagging = channel.stream.buffering(policy).subscribe()
      let other = channel.stream.subscribe()
      let seen = Recorder<[Int]>()
      await race(
        {
          for id in 0..<40 {
            live.add(1)
            channel.send(Token(id) { _ in live.add(-1) })
          }
          channel.finish()
        },
        {
          var elements: [Int] = []
          for await element in lagging { elements.append(element.id) }
          seen.record(elements)
        },
        { for await _ in other {} })
      let elements = seen.values[0]
      for (left, right) in zip(elements, elements.dropFirst()) { #expect(left < right) }
      #expect(elements.last == 39)
      #expect(elements.count + lagging.droppedCount == 40)
      lagging.cancel()
      other.cancel()
      #expect(live.value == round % 3)
      channel.resetReplay()
      #expect(live.value == 0)
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
      // The subscriber that parks its continuation second then releases this element, before its task has suspended.
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

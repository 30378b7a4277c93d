import Multicast
import MulticastTesting
import Testing

/// The sharing of one iteration of a sequence.
@Suite(.timeLimit(.minutes(15))) struct MulticastSequenceTests {
  let executor = ManualTaskExecutor()

  /// A base sequence that counts its iterations, requests and cancelled requests.
  ///
  /// It yields what a test's closure returns, and ends if its task is cancelled. The closure receives the number of the
  /// iteration and the number of the request in it, both counted from 1.
  struct Base: AsyncSequence, Sendable {
    let iterationCount = CurrentValueRelay(0)
    let requestCount = CurrentValueRelay(0)
    let cancellationCount = CurrentValueRelay(0)
    /// The number of requests that returned without an error before their task was cancelled.
    let completionCount = CurrentValueRelay(0)
    let yield: @Sendable (_ iteration: Int, _ request: Int) async throws(Failure) -> Int?

    init(yield: @escaping @Sendable (_ iteration: Int, _ request: Int) async throws(MulticastTests.Failure) -> Int?) {
      self.yield = yield
    }

    typealias Failure = MulticastTests.Failure

    struct AsyncIterator: AsyncIteratorProtocol {
      let base: Base
      let iteration: Int
      var request = 0

      mutating func next(isolation actor: isolated (any Actor)?) async throws(Failure) -> Int? {
        request += 1
        base.requestCount.update { $0 += 1 }
        let element = try await base.yield(iteration, request)
        if Task.isCancelled {
          base.cancellationCount.update { $0 += 1 }
          return nil
        }
        base.completionCount.update { $0 += 1 }
        return element
      }
    }

    func makeAsyncIterator() -> AsyncIterator {
      AsyncIterator(
        base: self,
        iteration: iterationCount.update {
          $0 += 1; return $0
        })
    }
  }

  /// Suspends until the task is cancelled.
  private static func waitForCancellation() async {
    let relay = CurrentValueRelay(0)
    for await _ in relay.stream {}
  }

  /// Suspends until the relay's value is at least `value`.
  private func waitUntil(_ relay: CurrentValueRelay<Int>, reaches value: Int) async {
    for await current in relay.stream where current >= value { return }
  }

  @Test func `Subscribers that register before the first element share one iteration, and receive all elements`()
    async throws
  {
    let gate = Gate()
    let base = Base { _, request in
      if request == 1 { await gate.pass() }
      return request <= 3 ? request : nil
    }
    let shared = base.multicast(buffering: .unbounded)
    #expect(base.iterationCount.value == 0)
    var iterators = (0..<3).map { _ in shared.makeAsyncIterator() }
    gate.open()
    for index in iterators.indices {
      for element in 1...3 { #expect(try await iterators[index].next() == element) }
      #expect(try await iterators[index].next() == nil)
    }
    #expect(base.iterationCount.value == 1)
  }

  @Test func `A late subscriber of a shared sequence receives the replay, then later elements`() async throws {
    let gate = Gate()
    let base = Base { _, request in
      if request == 4 { await gate.pass() }
      return request <= 4 ? request : nil
    }
    let shared = base.multicast(replay: 2, buffering: .unbounded)
    var early = shared.makeAsyncIterator()
    for element in 1...3 { #expect(try await early.next() == element) }
    var late = shared.makeAsyncIterator()
    gate.open()
    for element in 2...4 { #expect(try await late.next() == element) }
    #expect(try await late.next() == nil)
  }

  @Test func `The iteration is cancelled when the last subscriber leaves, and the next subscriber starts a new one`()
    async throws
  {
    let base = Base { iteration, request in
      if request == 2 { await Self.waitForCancellation() }
      return iteration * 10 + request
    }
    let shared = base.multicast(replay: 1, buffering: .unbounded)
    do {
      var first = shared.makeAsyncIterator()
      #expect(try await first.next() == 11)
      do {
        var second = shared.makeAsyncIterator()
        #expect(try await second.next() == 11)
      }
      #expect(base.cancellationCount.value == 0)
    }
    await waitUntil(base.cancellationCount, reaches: 1)
    var third = shared.makeAsyncIterator()
    // This is the first element of the second iteration, and not the replay of the first iteration.
    #expect(try await third.next() == 21)
    #expect(base.iterationCount.value == 2)
  }

  @Test func `Cancelling the only subscriber cancels the iteration even if the base never yields`() async {
    let base = Base { _, _ in
      await Self.waitForCancellation()
      return nil
    }
    let shared = base.multicast(buffering: .unbounded)
    let reader = Reader(shared, on: executor)
    executor.runUntilIdle()
    await waitUntil(base.requestCount, reaches: 1)
    reader.task.cancel()
    executor.runUntilIdle()
    #expect(reader.events == [.finished])
    await waitUntil(base.cancellationCount, reaches: 1)
  }

  @Test func `If the base ends without an element, early and late subscribers receive only nil`() async throws {
    let base = Base { _, _ in nil }
    let shared = base.multicast(replay: 1, buffering: .unbounded)
    for _ in 0..<3 {
      var iterator = shared.makeAsyncIterator()
      #expect(try await iterator.next() == nil)
      #expect(try await iterator.next() == nil)
    }
    #expect(base.iterationCount.value == 1)
  }

  @Test func `A base that fails passes its error to early and late subscribers after their backlogs`() async throws {
    let base = Base { _, request throws(Failure) in
      if request == 3 { throw .first }
      return request
    }
    let shared = base.multicast(replay: 1, buffering: .unbounded)
    var early = shared.makeAsyncIterator()
    #expect(try await early.next() == 1)
    #expect(try await early.next() == 2)
    await #expect(throws: Failure.first) { try await early.next() }
    #expect(try await early.next() == nil)
    var late = shared.makeAsyncIterator()
    #expect(try await late.next() == 2)
    await #expect(throws: Failure.first) { try await late.next() }
    #expect(base.iterationCount.value == 1)
  }

  @Test func `An element that the only subscriber would drop is not requested`() async throws {
    let base = Base { _, request in request }
    let shared = base.multicast(buffering: .dropNewest(2))
    var iterator = shared.makeAsyncIterator()
    await waitUntil(base.requestCount, reaches: 2)
    for element in 1...100 {
      #expect(try await iterator.next() == element)
      // The buffer holds two elements again, and no third one is requested.
      await waitUntil(base.requestCount, reaches: element + 2)
      #expect(base.requestCount.value == element + 2)
    }
  }

  /// A base that opens a gate when its iterator is released.
  private struct WatchedBase: AsyncSequence, Sendable {
    let base: Base
    let releaseGate = Gate()

    struct AsyncIterator: AsyncIteratorProtocol {
      var iterator: Base.AsyncIterator
      let token: Token

      mutating func next(isolation actor: isolated (any Actor)?) async throws(MulticastTests.Failure) -> Int? {
        try await iterator.next(isolation: actor)
      }
    }

    func makeAsyncIterator() -> AsyncIterator {
      AsyncIterator(iterator: base.makeAsyncIterator(), token: Token(0) { [releaseGate] _ in releaseGate.open() })
    }
  }

  @Test func `No further element is requested when the last subscriber leaves`() async {
    for _ in 0..<100 {
      let base = Base { _, request in request }
      let watchedBase = WatchedBase(base: base)
      var iterator: MulticastSequence<WatchedBase>.AsyncIterator? =
        watchedBase.multicast(buffering: .dropNewest(2)).makeAsyncIterator()
      await waitUntil(base.completionCount, reaches: 2)
      withExtendedLifetime(iterator) {}
      iterator = nil
      await watchedBase.releaseGate.pass()
      #expect(base.requestCount.value == 2)
      #expect(base.cancellationCount.value == 0)
    }
  }

  @Test func `An element that would overflow the only subscriber is not requested`() async throws {
    let base = Base { _, request in request <= 100 ? request : nil }
    let shared = base.multicast(buffering: .error(3) { _ in .second })
    var received: [Int] = []
    for try await element in shared { received.append(element) }
    #expect(received == Array(1...100))
  }

  @Test func `A subscriber without capacity requests an element only while it is suspended`() async throws {
    let base = Base { _, request in request <= 100 ? request : nil }
    let shared = base.multicast(buffering: .error(0) { _ in .second })
    var iterator = shared.makeAsyncIterator()
    for element in 1...100 {
      // The element isn't requested before the call of `next()`.
      for _ in 0..<10 { await Task.yield() }
      #expect(base.requestCount.value == element - 1)
      #expect(try await iterator.next() == element)
    }
    #expect(try await iterator.next() == nil)
  }

  @Test func `A subscriber whose policy is latest always requests another element`() async throws {
    let base = Base { _, request in
      if request == 1_000 { await Self.waitForCancellation() }
      return request
    }
    let shared = base.multicast(buffering: .latest)
    var iterator = shared.makeAsyncIterator()
    await waitUntil(base.requestCount, reaches: 1_000)
    #expect(try await iterator.next() == 999)
  }

  @Test func `Each subscriber of a shared sequence may have its own buffering`() async throws {
    let gate = Gate()
    let base = Base { _, request in
      if request == 1 { await gate.pass() }
      if request == 11 { await Self.waitForCancellation() }
      return request
    }
    let shared = base.multicast(buffering: .unbounded)
    var unboundedIterator = shared.makeAsyncIterator()
    var latestIterator = shared.buffering(.latest).makeAsyncIterator()
    gate.open()
    await waitUntil(base.requestCount, reaches: 11)
    for element in 1...10 { #expect(try await unboundedIterator.next() == element) }
    #expect(try await latestIterator.next() == 10)
  }

  @Test func `Subscribers that join and leave while the base yields receive consecutive elements`() async throws {
    for _ in 0..<300 {
      let base = Base { _, request in request <= 50 ? request : nil }
      let shared = base.multicast(replay: 1, buffering: .unbounded)
      try await withThrowingTaskGroup { group in
        for limit in [3, 10, 100] {
          group.addTask {
            var received: [Int] = []
            for try await element in shared {
              received.append(element)
              if received.count == limit { break }
            }
            // A subscriber that joins after the end receives the replay.
            let first = try #require(received.first)
            #expect(received == Array(first..<first + received.count))
            if received.count < limit { #expect(received.last == 50) }
          }
        }
        try await group.waitForAll()
      }
    }
  }
}

import Multicast
import MulticastTesting
import Testing

/// The sharing of one iteration of a sequence.
@Suite(.timeLimit(.minutes(15))) struct MulticastSequenceTests {
  let executor = ManualTaskExecutor()

  /// A base sequence that counts its iterations, requests and cancellations, and yields what a test's closure returns.
  struct Base: AsyncSequence, Sendable {
    let iterations = CurrentValueRelay(0)
    let pulls = CurrentValueRelay(0)
    let cancellations = CurrentValueRelay(0)
    let yield: @Sendable (_ iteration: Int, _ pull: Int) async throws(Failure) -> Int?

    init(yield: @escaping @Sendable (_ iteration: Int, _ pull: Int) async throws(MulticastTests.Failure) -> Int?) {
      self.yield = yield
    }

    typealias Failure = MulticastTests.Failure

    struct AsyncIterator: AsyncIteratorProtocol {
      let base: Base
      let iteration: Int
      var pull = 0

      mutating func next(isolation actor: isolated (any Actor)?) async throws(Failure) -> Int? {
        pull += 1
        base.pulls.update { $0 += 1 }
        let element = try await base.yield(iteration, pull)
        if Task.isCancelled {
          base.cancellations.update { $0 += 1 }
          return nil
        }
        return element
      }
    }

    func makeAsyncIterator() -> AsyncIterator {
      AsyncIterator(
        base: self,
        iteration: iterations.update {
          $0 += 1; return $0
        })
    }
  }

  /// Suspends until the task is cancelled.
  private static func wait() async {
    let never = CurrentValueRelay(0)
    for await _ in never.stream {}
  }

  /// Suspends until the relay's value is at least `value`.
  private func reached(_ relay: CurrentValueRelay<Int>, _ value: Int) async {
    for await current in relay.stream where current >= value { return }
  }

  @Test func `Subscribers that register before the first element share one iteration, and receive all elements`()
    async throws
  {
    let gate = Gate()
    let base = Base { _, pull in
      if pull == 1 { await gate.pass() }
      return pull <= 3 ? pull : nil
    }
    let shared = base.multicast(buffering: .unbounded)
    #expect(base.iterations.value == 0)
    var iterators = (0..<3).map { _ in shared.makeAsyncIterator() }
    gate.open()
    for index in iterators.indices {
      for element in 1...3 { #expect(try await iterators[index].next() == element) }
      #expect(try await iterators[index].next() == nil)
    }
    #expect(base.iterations.value == 1)
  }

  @Test func `A late subscriber of a shared sequence receives the replay, then later elements`() async throws {
    let gate = Gate()
    let base = Base { _, pull in
      if pull == 4 { await gate.pass() }
      return pull <= 4 ? pull : nil
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
    let base = Base { iteration, pull in
      if pull == 2 { await Self.wait() }
      return iteration * 10 + pull
    }
    let shared = base.multicast(replay: 1, buffering: .unbounded)
    do {
      var first = shared.makeAsyncIterator()
      #expect(try await first.next() == 11)
      do {
        var second = shared.makeAsyncIterator()
        #expect(try await second.next() == 11)
      }
      #expect(base.cancellations.value == 0)
    }
    await reached(base.cancellations, 1)
    var third = shared.makeAsyncIterator()
    // This is the first element of the second iteration, and not the replay of the first iteration.
    #expect(try await third.next() == 21)
    #expect(base.iterations.value == 2)
  }

  @Test func `Cancelling the only subscriber cancels the iteration even if the base never yields`() async {
    let base = Base { _, _ in
      await Self.wait()
      return nil
    }
    let shared = base.multicast(buffering: .unbounded)
    let reader = Reader(shared, on: executor)
    executor.runUntilIdle()
    await reached(base.pulls, 1)
    reader.task.cancel()
    executor.runUntilIdle()
    #expect(reader.events == [.finished])
    await reached(base.cancellations, 1)
  }

  @Test func `If the base ends without an element, early and late subscribers receive only nil`() async throws {
    let base = Base { _, _ in nil }
    let shared = base.multicast(replay: 1, buffering: .unbounded)
    for _ in 0..<3 {
      var reader = shared.makeAsyncIterator()
      #expect(try await reader.next() == nil)
      #expect(try await reader.next() == nil)
    }
    #expect(base.iterations.value == 1)
  }

  @Test func `A base that fails passes its error to early and late subscribers after their backlogs`() async throws {
    let base = Base { _, pull throws(Failure) in
      if pull == 3 { throw .first }
      return pull
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
    #expect(base.iterations.value == 1)
  }

  @Test func `An element that the only subscriber would drop is not requested`() async throws {
    let base = Base { _, pull in pull }
    let shared = base.multicast(buffering: .dropNewest(2))
    var iterator = shared.makeAsyncIterator()
    await reached(base.pulls, 2)
    for element in 1...100 {
      #expect(try await iterator.next() == element)
      // The buffer holds two elements again, and no third one is requested.
      await reached(base.pulls, element + 2)
      #expect(base.pulls.value == element + 2)
    }
  }

  /// A base that opens a gate when its iterator is released.
  private struct Watched: AsyncSequence, Sendable {
    let base: Base
    let isOver = Gate()

    struct AsyncIterator: AsyncIteratorProtocol {
      var iterator: Base.AsyncIterator
      let token: Token

      mutating func next(isolation actor: isolated (any Actor)?) async throws(MulticastTests.Failure) -> Int? {
        try await iterator.next(isolation: actor)
      }
    }

    func makeAsyncIterator() -> AsyncIterator {
      AsyncIterator(iterator: base.makeAsyncIterator(), token: Token(0) { [isOver] _ in isOver.open() })
    }
  }

  @Test func `No further element is requested when the last subscriber leaves`() async {
    for _ in 0..<100 {
      let base = Base { _, pull in pull }
      let watched = Watched(base: base)
      var iterator: MulticastSequence<Watched>.AsyncIterator? =
        watched.multicast(buffering: .dropNewest(2)).makeAsyncIterator()
      await reached(base.pulls, 2)
      withExtendedLifetime(iterator) {}
      iterator = nil
      await watched.isOver.pass()
      #expect(base.pulls.value == 2)
      #expect(base.cancellations.value == 0)
    }
  }

  @Test func `An element that would overflow the only subscriber is not requested`() async throws {
    let base = Base { _, pull in pull <= 100 ? pull : nil }
    let shared = base.multicast(buffering: .error(3) { _ in .second })
    var received: [Int] = []
    for try await element in shared { received.append(element) }
    #expect(received == Array(1...100))
  }

  @Test func `A subscriber without capacity requests an element only while it is suspended`() async throws {
    let base = Base { _, pull in pull <= 100 ? pull : nil }
    let shared = base.multicast(buffering: .error(0) { _ in .second })
    var iterator = shared.makeAsyncIterator()
    for element in 1...100 {
      // The element isn't requested before the call of `next()`.
      for _ in 0..<10 { await Task.yield() }
      #expect(base.pulls.value == element - 1)
      #expect(try await iterator.next() == element)
    }
    #expect(try await iterator.next() == nil)
  }

  @Test func `A subscriber whose policy is latest always requests another element`() async throws {
    let base = Base { _, pull in
      if pull == 1_000 { await Self.wait() }
      return pull
    }
    let shared = base.multicast(buffering: .latest)
    var iterator = shared.makeAsyncIterator()
    await reached(base.pulls, 1_000)
    #expect(try await iterator.next() == 999)
  }

  @Test func `Each subscriber of a shared sequence may have its own buffering`() async throws {
    let base = Base { _, pull in
      if pull == 11 { await Self.wait() }
      return pull
    }
    let shared = base.multicast(buffering: .unbounded)
    var all = shared.makeAsyncIterator()
    var latest = shared.buffering(.latest).makeAsyncIterator()
    await reached(base.pulls, 11)
    for element in 1...10 { #expect(try await all.next() == element) }
    #expect(try await latest.next() == 10)
  }

  @Test func `Subscribers that join and leave while the base yields receive consecutive elements`() async throws {
    for _ in 0..<300 {
      let base = Base { _, pull in pull <= 50 ? pull : nil }
      let shared = base.multicast(replay: 1, buffering: .unbounded)
      try await withThrowingTaskGroup { group in
        for count in [3, 10, 100] {
          group.addTask {
            var received: [Int] = []
            for try await element in shared {
              received.append(element)
              if received.count == count { break }
            }
            if let first = received.first { #expect(received == Array(first..<first + received.count)) }
            if received.count < count { #expect(received.isEmpty || received.last == 50) }
          }
        }
        try await group.waitForAll()
      }
    }
  }
}

import DataStore
import Foundation
import Multicast
import MulticastTesting
import Repository
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct MutationQueueTests {
  typealias Harness = MutationQueueHarness

  // MARK: - Delivery

  @Test func `A mutation is sent with its key, answered, and gone`() async throws {
    let harness = Harness()
    let fate = try await harness.running { () async throws in
      let ticket = try await harness.enqueue(1)
      return try await ticket.fate()
    }
    #expect(fate == .delivered("1"))
    #expect(harness.server.attempts == [.init(number: 1, key: "key-1")])
    #expect(harness.storage.names == [])
    #expect(try await harness.entries() == [])
    #expect(
      await harness.events.stream.first(5) == [
        .mutationEnqueued(Harness.id(1), orderingKey: "a"), .queueLength(waiting: 1, dead: 0),
        .mutationSending(Harness.id(1), attempt: 1), .mutationDelivered(Harness.id(1)),
        .queueLength(waiting: 0, dead: 0),
      ])
  }

  @Test func `What is enqueued without anybody sending is there after a relaunch, under the same key`() async throws {
    let harness = Harness()
    try await harness.enqueue(1)
    try await harness.enqueue(2)
    let relaunched = Harness(storage: harness.storage)
    #expect(try await relaunched.entries() == ["1 waiting(nextTry: nil)", "2 waiting(nextTry: nil)"])
    #expect(try await relaunched.queue.entries().map(\.enqueuedAt) == [Harness.date, Harness.date])
    try await relaunched.running { await relaunched.drained() }
    #expect(relaunched.server.attempts == [.init(number: 1, key: "key-1"), .init(number: 2, key: "key-2")])
    #expect(harness.storage.names == [])
  }

  @Test(.timeLimit(.minutes(5)))
  func `Each mutation that cannot be read is told, also when the store remembers fewer`() async throws {
    let harness = Harness()
    for number in 1...40 { try await harness.enqueue(number) }
    for name in harness.storage.names where !name.hasSuffix("key-17") { harness.storage[name] = Data("{ half".utf8) }
    let relaunched = Harness(storage: harness.storage)
    // Read before it is run.
    #expect(try await relaunched.entries() == ["17 waiting(nextTry: nil)"])
    try await relaunched.running {
      var untold = Set((1...40).map { Harness.id($0) }).subtracting([Harness.id(17)])
      for await event in relaunched.events.stream {
        if case .mutationUnreadable(let id, _, _) = event { #expect(untold.remove(id) != nil) }
        if untold.isEmpty { break }
      }
      await relaunched.drained()
    }
    #expect(relaunched.server.attempts == [.init(number: 17, key: "key-17")])
  }

  @Test func `Each mutation that cannot be read is told, also when the queue is stopped at once`() async throws {
    let harness = Harness()
    let numbers = 1...40
    for number in numbers { try await harness.enqueue(number) }
    for name in harness.storage.names { harness.storage[name] = Data("{ half".utf8) }
    let relaunched = Harness(storage: harness.storage)
    #expect(try await relaunched.entries() == [])
    let run = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      try await relaunched.queue.run()
    }
    try await run.value
    var untold = Set(numbers.map { Harness.id($0) })
    for await event in relaunched.events.stream {
      if case .mutationUnreadable(let id, _, _) = event { #expect(untold.remove(id) != nil) }
      if untold.isEmpty { break }
    }
    #expect(untold == [])
  }

  @Test func `A queue that has read its store is released, and those who ask for a fate are told`() async throws {
    let store = InMemoryStore()
    var queue: Harness.Queue? = Harness.Queue(store: store, name: "likes") { _, _ in .delivered("") }
    let ticket = try #require(await queue?.enqueue(Like(number: 1), orderingKey: "a"))
    weak let released = queue
    queue = nil
    await #expect(throws: CancellationError.self) { try await ticket.fate() }
    #expect(released == nil)
  }

  @Test func `Each mutation has a key of its own that fits the store`() async throws {
    let harness = Harness()
    let first = try await harness.queue.enqueue(Like(number: 1), orderingKey: "a").id
    let second = try await harness.queue.enqueue(Like(number: 1), orderingKey: "a").id
    #expect(first != second)
    #expect(UUID(uuidString: first.rawValue) != nil)
    let relaunched = Harness(storage: harness.storage)
    #expect(try await relaunched.queue.entries().map(\.id) == [first, second])
  }

  @Test func `A reply that was lost is asked for again under the same key, also after a relaunch`() async throws {
    let server = LikeServer { _, attempt in attempt < 3 ? .retryLater(ServerFailure("lost")) : .delivered("ok") }
    let harness = Harness(server: server)
    try await harness.running { () async throws in
      let ticket = try await harness.enqueue(1)
      #expect(try await ticket.fate() == .queued)
      await harness.clock.sleepers()
      harness.clock.advance(by: .seconds(1))
      await server.attempts(2)
    }
    let relaunched = Harness(storage: harness.storage, server: server)
    try await relaunched.running { await relaunched.drained() }
    #expect(server.attempts == Array(repeating: .init(number: 1, key: "key-1"), count: 3))
  }

  @Test func `A mutation with the id of another in the queue is refused`() async throws {
    let harness = Harness()
    try await harness.enqueue(1)
    await #expect(throws: MutationQueueError.alreadyQueued(Harness.id(1))) { try await harness.enqueue(1) }
    #expect(try await harness.entries() == ["1 waiting(nextTry: nil)"])
  }

  @Test func `A restored mutation tells its fate as well`() async throws {
    let harness = Harness()
    try await harness.enqueue(1)
    let relaunched = Harness(storage: harness.storage)
    try await relaunched.queue.load()
    let ticket = try #require(await relaunched.queue.ticket(for: Harness.id(1)))
    try await relaunched.running { () async throws in #expect(try await ticket.settled() == .delivered("1")) }
    #expect(await relaunched.queue.ticket(for: Harness.id(1)) == nil)
    // The fate can still be asked for.
    #expect(try await ticket.fate() == .delivered("1"))
  }

  // MARK: - Order

  @Test func `One key's mutations go one after another, in the order they were enqueued`() async throws {
    let gates = [1: Gate(), 2: Gate()]
    let server = LikeServer { like, _ in
      await gates[like.number]?.pass()
      return .delivered("")
    }
    let harness = Harness(server: server)
    for number in 1...4 { try await harness.enqueue(number) }
    try await harness.running { () async throws in
      await gates[1]!.arrivals()
      #expect(try await harness.entries().prefix(2) == ["1 sending", "2 waiting(nextTry: nil)"])
      gates[1]!.open()
      await gates[2]!.arrivals()
      #expect(server.attempts.map(\.number) == [1, 2])
      gates[2]!.open()
      await harness.drained()
    }
    #expect(server.attempts.map(\.number) == [1, 2, 3, 4])
  }

  @Test func `Different keys go at the same time, up to the limit, first come first served`() async throws {
    let gate = Gate()
    let server = LikeServer { _, _ in
      await gate.pass()
      return .delivered("")
    }
    let harness = Harness(server: server, maximumConcurrentSends: 2)
    for number in 1...4 { try await harness.enqueue(number, key: "\(number)") }
    try await harness.running { () async throws in
      await gate.arrivals(2)
      #expect(
        try await harness.entries() == [
          "1 sending", "2 sending", "3 waiting(nextTry: nil)", "4 waiting(nextTry: nil)",
        ])
      gate.open()
      await harness.drained()
    }
    #expect(Set(server.attempts.map(\.number).prefix(2)) == [1, 2])
    #expect(server.attempts.count == 4)
  }

  @Test func `A key that waits holds up only itself`() async throws {
    let server = LikeServer { like, _ in like.number == 1 ? .retryLater(ServerFailure("away")) : .delivered("") }
    let harness = Harness(server: server)
    try await harness.running { () async throws in
      let first = try await harness.enqueue(1, key: "a")
      let second = try await harness.enqueue(2, key: "a")
      let other = try await harness.enqueue(3, key: "b")
      #expect(try await first.fate() == .queued)
      #expect(try await second.fate() == .queued)
      #expect(try await other.fate() == .delivered(""))
      let late = try await harness.enqueue(4, key: "a")
      #expect(try await late.fate() == .queued)
    }
    #expect(server.attempts.count { $0.number != 3 } == 1)
  }

  @Test func `One that was being written while others failed is told that it has to wait`() async throws {
    let gate = Gate()
    let store = InterposedStore(beforeSaving: { if $0.id == Harness.id(2).rawValue { await gate.pass() } })
    let answers = CurrentValueRelay(1)
    let server = LikeServer { _, attempt in
      await answers.stream.reaches { $0 >= attempt }
      return .retryLater(ServerFailure("away"))
    }
    let harness = Harness(store: store, server: server)
    try await harness.running { () async throws in
      #expect(try await harness.enqueue(1).fate() == .queued)
      let late = Task { try await harness.enqueue(2).fate() }
      await gate.arrivals()
      // An attempt fails while the second is being written, and another is under way when it is there.
      answers.send(2)
      harness.clock.advance(by: .seconds(1))
      await harness.events.stream.reaches {
        $0 == .retryScheduled(Harness.id(1), attempt: 2, delay: .seconds(2), reason: "away")
      }
      await harness.clock.sleepers()
      harness.clock.advance(by: .seconds(2))
      await server.attempts(3)
      gate.open()
      await harness.queue.snapshots.reaches { $0.waitingCount == 2 }
      answers.send(3)
      #expect(try await late.value == .queued)
    }
  }

  // MARK: - Retrying

  @Test func `The waits grow, and end with a success`() async throws {
    let server = LikeServer { _, attempt in attempt < 4 ? .retryLater(ServerFailure("away")) : .delivered("ok") }
    let harness = Harness(server: server)
    try await harness.running { () async throws in
      let ticket = try await harness.enqueue(1)
      for seconds in [1, 2, 4] {
        await harness.clock.sleepers()
        #expect(harness.clock.pendingSleeps == [.seconds(seconds)])
        let entry = try #require(await harness.queue.entries().first)
        #expect(entry.state == .waiting(nextTry: Harness.date + Double(seconds)))
        #expect(entry.lastFailure == "away")
        harness.clock.advance(by: .seconds(seconds))
      }
      #expect(try await ticket.settled() == .delivered("ok"))
    }
    let retries = await harness.events.stream.first(11).filter { if case .retryScheduled = $0 { true } else { false } }
    #expect(
      retries
        == zip(1...3, [1, 2, 4]).map { attempt, seconds in
          .retryScheduled(Harness.id(1), attempt: attempt, delay: .seconds(seconds), reason: "away")
        })
  }

  @Test func `When the network is back, waits end and begin from the shortest again`() async throws {
    let server = LikeServer { _, _ in .retryLater(ServerFailure("away")) }
    let harness = Harness(server: server)
    try await harness.running { () async throws in
      try await harness.enqueue(1)
      await harness.clock.sleepers()
      harness.clock.advance(by: .seconds(1))
      await harness.clock.sleepers()
      #expect(harness.clock.pendingSleeps == [.seconds(2)])
      await harness.queue.retryNow()
      await server.attempts(3)
      await harness.events.stream.reaches {
        $0 == .retryScheduled(Harness.id(1), attempt: 3, delay: .seconds(1), reason: "away")
      }
    }
  }

  @Test func `When its attempts are used up, a mutation is a dead letter`() async throws {
    let server = LikeServer { _, _ in .retryLater(ServerFailure("away")) }
    let harness = Harness(server: server, retryPolicy: RetryPolicy(maximumAttempts: 2, base: .seconds(1)))
    try await harness.running { () async throws in
      let ticket = try await harness.enqueue(1)
      await harness.clock.sleepers()
      harness.clock.advance(by: .seconds(1))
      #expect(try await ticket.settled() == .refused(ServerFailure("away")))
    }
    #expect(try await harness.entries() == ["1 dead(reason: \"away\", since: \(Harness.date))"])
  }

  @Test func `A paused queue sends nothing, and says so`() async throws {
    let harness = Harness()
    try await harness.running { () async throws in
      await harness.queue.pause()
      let ticket = try await harness.enqueue(1)
      #expect(try await ticket.fate() == .queued)
      #expect(harness.server.attempts == [])
      await harness.queue.resume()
      #expect(try await ticket.settled() == .delivered("1"))
    }
  }

  @Test func `A pause tells those who wait already`() async throws {
    let harness = Harness()
    let ticket = try await harness.enqueue(1)
    let fate = Task { try await ticket.fate() }
    await harness.queue.pause()
    #expect(try await fate.value == .queued)
  }

  @Test func `One that was under way when the queue was paused is told once the queue is stopped`() async throws {
    let gate = Gate()
    let harness = Harness(
      server: LikeServer { _, _ in
        await gate.pass()
        return .retryLater(ServerFailure("cancelled"))
      })
    let ticket = try await harness.enqueue(1)
    try await harness.running {
      await gate.arrivals()
      await harness.queue.pause()
    }
    #expect(try await ticket.fate() == .queued)
  }

  @Test func `A queue that is stopped keeps what it was sending, and sends it again`() async throws {
    let gate = Gate()
    let server = LikeServer { _, attempt in
      if attempt > 1 { return .delivered("ok") }
      await gate.pass()
      return .retryLater(ServerFailure("cancelled"))
    }
    let harness = Harness(server: server)
    let ticket = try await harness.enqueue(1)
    try await harness.running { await gate.arrivals() }
    #expect(try await harness.entries() == ["1 waiting(nextTry: nil)"])
    try await harness.running { () async throws in #expect(try await ticket.settled() == .delivered("ok")) }
    #expect(server.attempts == Array(repeating: .init(number: 1, key: "key-1"), count: 2))
  }

  @Test func `Who is cancelled while asking hears so, and the mutation stays`() async throws {
    let harness = Harness()
    let ticket = try await harness.enqueue(1)
    let asking = Task { try await ticket.fate() }
    asking.cancel()
    await #expect(throws: CancellationError.self) { try await asking.value }
    #expect(try await harness.entries() == ["1 waiting(nextTry: nil)"])
  }

  // MARK: - Dead letters

  @Test func `A refused mutation is kept with the reason, and the next ones go on`() async throws {
    let server = LikeServer { like, _ in like.number == 1 ? .refused(ServerFailure("no")) : .delivered("") }
    let harness = Harness(server: server)
    try await harness.running { () async throws in
      let refused = try await harness.enqueue(1)
      let next = try await harness.enqueue(2)
      #expect(try await refused.fate() == .refused(ServerFailure("no")))
      #expect(try await next.settled() == .delivered(""))
    }
    let relaunched = Harness(storage: harness.storage)
    #expect(try await relaunched.entries() == ["1 dead(reason: \"no\", since: \(Harness.date))"])
    #expect(await relaunched.queue.ticket(for: Harness.id(1)) == nil)
    try await relaunched.running { await relaunched.drained() }
    #expect(relaunched.server.attempts == [])
  }

  @Test func `A dead letter is sent again behind the others, under its old key`() async throws {
    let server = LikeServer { like, attempt in
      like.number == 1 && attempt == 1 ? .refused(ServerFailure("no")) : .delivered("")
    }
    let harness = Harness(server: server)
    try await harness.running { () async throws in
      _ = try await harness.enqueue(1).settled()
    }
    try await harness.enqueue(2)
    try await harness.queue.requeue(Harness.id(1))
    await #expect(throws: MutationQueueError.isNotDead(Harness.id(1))) {
      try await harness.queue.requeue(Harness.id(1))
    }
    // Durable, with its place.
    let relaunched = Harness(storage: harness.storage, server: server)
    #expect(try await relaunched.entries() == ["2 waiting(nextTry: nil)", "1 waiting(nextTry: nil)"])
    try await relaunched.running { await relaunched.drained() }
    #expect(server.attempts.map(\.key) == ["key-1", "key-2", "key-1"])
  }

  @Test func `What is enqueued while a dead letter is being written again goes behind it`() async throws {
    let refusing = Harness(server: LikeServer { _, _ in .refused(ServerFailure("no")) })
    try await refusing.running { _ = try await refusing.enqueue(1).settled() }
    let gate = Gate()
    let store = InterposedStore(
      InMemoryStore(storage: refusing.storage),
      beforeSaving: { if $0.id == Harness.id(1).rawValue { await gate.pass() } })
    let harness = Harness(storage: refusing.storage, store: store)
    let requeued = Task { try await harness.queue.requeue(Harness.id(1)) }
    await gate.arrivals()
    let later = try await harness.enqueue(2)
    try await harness.running { () async throws in
      gate.open()
      #expect(try await requeued.value.settled() == .delivered("1"))
      #expect(try await later.settled() == .delivered("2"))
    }
    #expect(harness.server.attempts.map(\.number) == [1, 2])
  }

  @Test func `A dead letter that cannot be written again stays, and holds up nothing`() async throws {
    let refusing = Harness(server: LikeServer { _, _ in .refused(ServerFailure("no")) })
    try await refusing.running { _ = try await refusing.enqueue(1).settled() }
    let gate = Gate()
    let failing = BackedStore(
      backend: FaultyBackend(storage: refusing.storage, plan: FaultPlan { $0 == 2 ? .refused : nil }))
    let store = InterposedStore(
      failing, beforeSaving: { if $0.id == Harness.id(1).rawValue { await gate.pass() } })
    let harness = Harness(storage: refusing.storage, store: store)
    let requeued = Task { try await harness.queue.requeue(Harness.id(1)) }
    await gate.arrivals()
    let later = try await harness.enqueue(2)
    try await harness.running { () async throws in
      gate.open()
      await #expect(throws: MutationQueueError.store(.writeFailed(FaultyBackend.error))) { try await requeued.value }
      #expect(try await later.settled() == .delivered("2"))
    }
    #expect(try await harness.entries() == ["1 dead(reason: \"no\", since: \(Harness.date))"])
  }

  @Test func `A discarded dead letter is gone for good`() async throws {
    let harness = Harness(server: LikeServer { _, _ in .refused(ServerFailure("no")) })
    try await harness.running { _ = try await harness.enqueue(1).settled() }
    await #expect(throws: MutationQueueError.isDead(Harness.id(1))) { try await harness.queue.cancel(Harness.id(1)) }
    try await harness.queue.discard(Harness.id(1))
    #expect(harness.storage.names == [])
    #expect(try await harness.entries() == [])
    await #expect(throws: MutationQueueError.unknown(Harness.id(1))) {
      try await harness.queue.discard(Harness.id(1))
    }
  }

  // MARK: - Cancelling

  @Test func `A mutation that waits can be cancelled, and is gone for good`() async throws {
    let harness = Harness()
    let first = try await harness.enqueue(1)
    let second = try await harness.enqueue(2)
    try await harness.queue.cancel(Harness.id(1))
    #expect(try await first.fate() == .cancelled)
    #expect(harness.storage.names == ["likes.key-2"])
    await #expect(throws: MutationQueueError.unknown(Harness.id(1))) { try await harness.queue.cancel(Harness.id(1)) }
    await #expect(throws: MutationQueueError.isNotDead(Harness.id(2))) {
      try await harness.queue.discard(Harness.id(2))
    }
    try await harness.running { () async throws in #expect(try await second.settled() == .delivered("2")) }
    #expect(harness.server.attempts.map(\.number) == [2])
  }

  @Test func `For a mutation that is on its way it is too late`() async throws {
    let gate = Gate()
    let harness = Harness(
      server: LikeServer { _, _ in
        await gate.pass()
        return .delivered("ok")
      })
    try await harness.running { () async throws in
      let ticket = try await harness.enqueue(1)
      await gate.arrivals()
      await #expect(throws: MutationQueueError.alreadySending(Harness.id(1))) {
        try await harness.queue.cancel(Harness.id(1))
      }
      gate.open()
      #expect(try await ticket.settled() == .delivered("ok"))
    }
  }

  @Test func `When the one that waits for its next attempt is cancelled, the next one goes`() async throws {
    let server = LikeServer { like, _ in like.number == 1 ? .retryLater(ServerFailure("away")) : .delivered("") }
    let harness = Harness(server: server)
    try await harness.running { () async throws in
      let first = try await harness.enqueue(1)
      let second = try await harness.enqueue(2)
      #expect(try await first.fate() == .queued)
      try await harness.queue.cancel(Harness.id(1))
      #expect(try await first.settled() == .cancelled)
      #expect(try await second.settled() == .delivered(""))
    }
  }

  // MARK: - Watching

  @Test func `A reader of snapshots sees what is pending, and what becomes of it`() async throws {
    let harness = Harness(server: LikeServer { _, _ in .refused(ServerFailure("no")) })
    let snapshots = harness.queue.snapshots.buffering(.unbounded).subscribe()
    try await harness.running { _ = try await harness.enqueue(1).settled() }
    let seen = await snapshots.first(5).map {
      "\($0.isLoaded) \($0.entries.map(\.state)) \($0.waitingCount) \($0.deadCount)"
    }
    #expect(
      seen == [
        "false [] 0 0", "true [] 0 0",
        "true [Repository.MutationEntry<RepositoryTests.Like>.State.waiting(nextTry: nil)] 1 0",
        "true [Repository.MutationEntry<RepositoryTests.Like>.State.sending] 1 0",
        "true [Repository.MutationEntry<RepositoryTests.Like>.State.dead(reason: \"no\", since: \(Harness.date.debugDescription))] 0 1",
      ])
  }

  @Test func `A snapshot does not change any more`() async throws {
    let harness = Harness()
    for number in 1...200 { try await harness.enqueue(number, key: "\(number)") }
    let snapshot = try #require(await harness.queue.snapshots.first(1).first)
    try await harness.running { await harness.drained() }
    #expect(snapshot.entries.map(\.mutation.number) == Array(1...200))
    #expect(snapshot.entries.allSatisfy { $0.state == .waiting(nextTry: nil) })
    #expect(snapshot.count == 200)
  }
}

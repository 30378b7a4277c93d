import DataStore
import Foundation
import MulticastTesting
import Repository
import Testing

/// What becomes of mutations when the store fails, or the process ends.
@Suite(.timeLimit(.minutes(5))) struct MutationQueueFaultTests {
  typealias Harness = MutationQueueHarness

  private func harness(
    _ plan: FaultPlan, server: LikeServer = LikeServer(),
    retryPolicy: RetryPolicy = RetryPolicy(base: .seconds(1), multiplier: 2, cap: .seconds(60))
  ) -> Harness {
    let storage = InMemoryStorage()
    let store = BackedStore(backend: FaultyBackend(storage: storage, plan: plan))
    return Harness(storage: storage, store: store, server: server, retryPolicy: retryPolicy)
  }

  // MARK: - A store that fails

  @Test func `A mutation whose key no store can keep is refused before anything depends on it`() async throws {
    let store = InMemoryStore()
    let name = String(repeating: "a", count: 199)
    let queue = MutationQueue<Int, Void, ServerFailure>(store: store, name: name) { _, _ in .delivered(()) }
    let error = MutationQueueError.store(.invalidKey(.tooLong(encodedLength: 201)))
    await #expect(throws: error) { try await queue.enqueue(1, orderingKey: "a", id: MutationID(rawValue: "1")) }
    #expect(try await queue.entries() == [])
  }

  @Test func `What could not be written is not queued, and holds up nothing`() async throws {
    let harness = harness(FaultPlan { $0 == 1 ? .refused : nil })
    await #expect(throws: MutationQueueError.store(.writeFailed(FaultyBackend.error))) { try await harness.enqueue(1) }
    #expect(try await harness.entries() == [])
    try await harness.enqueue(2)
    try await harness.enqueue(1)
    try await harness.running { await harness.drained() }
    #expect(harness.server.attempts.map(\.number) == [2, 1])
  }

  @Test func `A delivered mutation that cannot be removed is told, not sent again, and goes first`() async throws {
    // Two are written, then the first removal fails twice.
    let harness = harness(FaultPlan { [3, 4].contains($0) ? .refused : nil })
    let first = try await harness.enqueue(1)
    let second = try await harness.enqueue(2)
    try await harness.running { () async throws in
      #expect(try await first.settled() == .delivered("1"))
      for seconds in [1, 2] {
        await harness.clock.sleepers()
        #expect(harness.clock.pendingSleeps == [.seconds(seconds)])
        #expect(harness.server.attempts.map(\.number) == [1])
        harness.clock.advance(by: .seconds(seconds))
      }
      #expect(try await second.settled() == .delivered("2"))
    }
    #expect(harness.server.attempts.map(\.number) == [1, 2])
    #expect(harness.storage.names == [])
    let failures = await harness.events.stream.first(11).filter { if case .storeFailed = $0 { true } else { false } }
    #expect(failures.count == 2)
  }

  @Test func `Who waits behind a mutation that cannot be removed is told so`() async throws {
    // Two are written, then the first removal fails.
    let harness = harness(FaultPlan { $0 == 3 ? .refused : nil })
    let first = try await harness.enqueue(1)
    let second = try await harness.enqueue(2)
    try await harness.running { () async throws in
      #expect(try await first.fate() == .delivered("1"))
      #expect(try await second.fate() == .queued)
      #expect(try await harness.enqueue(3).fate() == .queued)
      await harness.clock.sleepers()
      harness.clock.advance(by: .seconds(1))
      #expect(try await second.settled() == .delivered("2"))
    }
  }

  @Test func `A queue that is stopped before the removal sends again, under the same key`() async throws {
    let harness = harness(FaultPlan { $0 == 2 ? .refused : nil })
    try await harness.running { () async throws in
      _ = try await harness.enqueue(1).settled()
      await harness.clock.sleepers()
    }
    #expect(try await harness.entries() == ["1 waiting(nextTry: nil)"])
    // The server has it, and its callers know.
    await #expect(throws: MutationQueueError.alreadySending(Harness.id(1))) {
      try await harness.queue.cancel(Harness.id(1))
    }
    try await harness.running { await harness.drained() }
    #expect(harness.server.attempts == Array(repeating: .init(number: 1, key: "key-1"), count: 2))
  }

  @Test func `A cancellation that cannot be written leaves the mutation in the queue`() async throws {
    let harness = harness(FaultPlan { $0 == 2 ? .refused : nil })
    try await harness.enqueue(1)
    await #expect(throws: MutationQueueError.store(.removeFailed(FaultyBackend.error))) {
      try await harness.queue.cancel(Harness.id(1))
    }
    try await harness.running { await harness.drained() }
    #expect(harness.server.attempts.map(\.number) == [1])
  }

  @Test func `A store that cannot be read is an error, and is read at the next call`() async throws {
    let plan = FaultPlan { _ in nil }
    let harness = harness(plan)
    plan.readsFail = true
    await #expect(throws: StoreError.readFailed(FaultyBackend.error)) { try await harness.queue.run() }
    await #expect(throws: MutationQueueError.store(.readFailed(FaultyBackend.error))) { try await harness.enqueue(1) }
    plan.readsFail = false
    try await harness.enqueue(1)
    try await harness.running { await harness.drained() }
    #expect(harness.server.attempts.map(\.number) == [1])
  }

  // MARK: - Values that cannot be read

  @Test func `A mutation that cannot be decoded is kept aside and told, and the others go on`() async throws {
    let harness = Harness()
    for number in 1...3 { try await harness.enqueue(number) }
    harness.storage["likes.key-2"] = Data("spoiled".utf8)
    let relaunched = Harness(storage: harness.storage)
    try await relaunched.running { () async throws in
      await relaunched.events.stream.reaches {
        guard case .mutationUnreadable(Harness.id(2), let movedTo, _) = $0 else { return false }
        return harness.storage[movedTo] == Data("spoiled".utf8)
      }
      await relaunched.drained()
    }
    #expect(relaunched.server.attempts.map(\.number) == [1, 3])
  }

  @Test func `A mutation of a newer program is left as it is and told`() async throws {
    let harness = Harness()
    for number in 1...2 { try await harness.enqueue(number) }
    let newer = Data("{\"checksum\":\"7913ee3e\",\"format\":99}\n?".utf8)
    harness.storage["likes.key-1"] = newer
    let relaunched = Harness(storage: harness.storage)
    try await relaunched.running { () async throws in
      await relaunched.events.stream.reaches { $0 == .mutationOfNewerProgram(Harness.id(1)) }
      await relaunched.drained()
    }
    #expect(relaunched.server.attempts.map(\.number) == [2])
    #expect(harness.storage["likes.key-1"] == newer)
  }

  // MARK: - The end of the process

  /// A process that does all a queue can do, and ends at its n-th change of the store.
  ///
  /// The last change was made or not; nothing after it is. In either case the process does not hear of it.
  @Test(arguments: 1...13, [FaultPlan.Fault.refused, .appliedUnheard])
  func `At whichever instant the process ends, nothing acknowledged is lost and no key is new`(
    lastChange: Int, fault: FaultPlan.Fault
  ) async throws {
    let server = LikeServer { like, attempt in
      switch like.number {
      case 2: .refused(ServerFailure("no"))
      // The server has done it, but nobody hears of it.
      case 3 where attempt == 1: .retryLater(ServerFailure("lost"))
      default: .delivered("ok")
      }
    }
    let first = harness(
      FaultPlan { change in change < lastChange ? nil : change == lastChange ? fault : .refused }, server: server,
      retryPolicy: RetryPolicy(base: .zero))
    var acknowledged: [Int] = []
    var ids: [Int: MutationID] = [:]
    for number in 1...6 {
      do throws(MutationQueueError) {
        let ticket = try await first.queue.enqueue(Like(number: number), orderingKey: number % 3 == 0 ? "b" : "a")
        ids[number] = ticket.id
        acknowledged.append(number)
      } catch {
        guard case .store(.writeFailed) = error else { throw error }
      }
    }
    var isCancelled = false
    if let id = ids[5] {
      do throws(MutationQueueError) {
        try await first.queue.cancel(id)
        isCancelled = true
      } catch {
        #expect(error == .store(.removeFailed(FaultyBackend.error)))
      }
    }
    try await first.running {
      // From its end on the process gets nowhere.
      await withTaskGroup { group in
        group.addTask { await first.drained() }
        group.addTask { await first.events.stream.reaches { if case .storeFailed = $0 { true } else { false } } }
        await group.next()
        group.cancelAll()
      }
    }

    let second = Harness(storage: first.storage, server: server, retryPolicy: RetryPolicy(base: .zero))
    try await second.running { await second.drained() }

    let sent = server.attempts
    let reached = Set(sent.map(\.number))
    // A cancellation that nobody heard of may have been made, or not.
    #expect(reached.isSuperset(of: acknowledged.filter { $0 != 5 }))
    if isCancelled { #expect(!reached.contains(5)) }
    // One key for each, the one that was made when it was enqueued.
    for number in 1...6 {
      let keys = Set(sent.filter { $0.number == number }.map(\.key))
      #expect(keys.count <= 1)
      if let id = ids[number], let key = keys.first { #expect(key == id.rawValue) }
    }
    // In order, but for repetitions.
    for lane in [[1, 2, 4, 5], [3, 6]] {
      var firsts: [Int] = []
      for attempt in sent where lane.contains(attempt.number) && !firsts.contains(attempt.number) {
        firsts.append(attempt.number)
      }
      #expect(firsts == lane.filter { firsts.contains($0) })
    }
    // What is left is what was refused.
    let dead = try await second.queue.entries()
    #expect(dead.map(\.mutation.number) == (reached.contains(2) ? [2] : []))
    #expect(dead.map(\.isDead) == dead.map { _ in true })
    #expect(second.storage.names.count == dead.count)
  }
}

internal import DataStore
internal import Foundation
internal import Multicast
internal import MulticastTesting
public import Repository

/// The laws of a `SyncedRepository`, as checks for a custom source and a custom store.
///
/// A repository keeps its laws only if its source and its store meet their requirements. The source must send the id of
/// a mutation as its idempotency key, classify failures correctly, and acknowledge only changes that the server made.
/// The store must commit each batch atomically, and keep what it has committed. Each check runs repositories over a
/// ``SimulatedNetwork``. Depending on the check, the network is reliable or unreachable, or it loses, duplicates and
/// delays packets. A check that fails throws a ``Failure`` that names the law.
///
/// The checks don't depend on a test library. With Swift Testing, each check becomes a separate test case:
///
/// ```swift
/// @Test(arguments: RepositoryConformance<CommentsSource>.checks)
/// func `The comments keep the laws`(check: RepositoryConformance<CommentsSource>.Check) async throws {
///   try await check.run(on: harness)
/// }
/// ```
public enum RepositoryConformance<Source: MutableSource> {
  /// A check of a law, or of a part of one.
  public struct Check: Sendable, CustomStringConvertible {
    /// The name of the law.
    public let law: String

    /// The condition that must hold, as a sentence.
    public let rule: String

    private let body: @Sendable (RepositoryHarness<Source>) async throws -> Void

    init(_ law: String, _ rule: String, body: @escaping @Sendable (RepositoryHarness<Source>) async throws -> Void) {
      self.law = law
      self.rule = rule
      self.body = body
    }

    /// The law and the rule.
    public var description: String { "\(law): \(rule)" }

    /// Runs the check.
    ///
    /// - Throws: A ``RepositoryConformance/Failure`` if the law is broken, or if the check threw an error or didn't
    ///   finish in time.
    public func run(on harness: RepositoryHarness<Source>) async throws {
      do {
        let body = body
        try await RepositoryConformance.finish(within: harness.timeLimit) { try await body(harness) }
      } catch let mismatch as Mismatch {
        throw Failure(law: law, rule: rule, explanation: mismatch.explanation)
      } catch {
        throw Failure(law: law, rule: rule, explanation: "The check threw an error: \(error)")
      }
    }
  }

  /// The error of a failed check: the law is broken, or the check threw an error or didn't finish in time.
  public struct Failure: Error, Hashable, Sendable, CustomStringConvertible {
    /// The name of the law.
    public let law: String

    /// The condition that must hold, as a sentence.
    public let rule: String

    /// What the check observed, or why it ended early.
    public let explanation: String

    /// The law, the rule, and the explanation.
    public var description: String { "Broken law \(law): \(rule). \(explanation)" }
  }

  /// The checks for every source.
  ///
  /// For a `BidirectionalPagedSource`, there are more in ``pagingChecks``. The laws L1 to L3 and L9 have no check here:
  /// only the package's own tests check them. L1 and L2 concern what observers see, L3 the age of the stored value, and
  /// L9 the isolation of users.
  public static var checks: [Check] {
    [
      Check("L4 No flicker", "An effect that an observer has seen stays visible", body: checkFlicker),
      Check("L5 FIFO", "Mutations of a lane are applied in the order they were made in, even across a relaunch") {
        try await checkOrder($0)
      },
      Check("L6 Once", "A mutation is applied once, even if the network loses or duplicates packets", body: checkOnce),
      Check("L7 Durable", "A mutation whose call has returned survives a relaunch", body: checkDurability),
      Check("L8 Atomic", "Whenever the process ends, an accepted mutation is in either the queue or the stored value") {
        try await checkAtomicity($0)
      },
      Check("L10 Sign-out", "Sign-out erases all data of a key's user, even when it repeats an interrupted sign-out") {
        try await checkSignOut($0)
      },
      Check("L11 Bounds", "A full queue refuses new mutations, and keeps the existing ones", body: checkBounds),
      Check("L12 Live", "When the server can be reached, the queue drains", body: checkDraining),
      Check("L13 Truthful", "The stored value includes a confirmed mutation, and a queued one is pending") {
        try await checkTruth($0)
      },
      Check("L14 Convergence", "After a reload with nothing pending, every repository shows the server's value") {
        try await checkConvergence($0)
      },
    ]
  }
}

// MARK: - Checks

extension RepositoryConformance {
  @Sendable private static func checkFlicker(_ harness: RepositoryHarness<Source>) async throws {
    for seed in 1...5 as ClosedRange<UInt64> {
      let bench = Bench(harness, seed: seed, .rough)
      let openStore = try await harness.makePlace()
      let store = try await openStore()
      let values = try await bench.whileNetworkRuns {
        let repository = bench.makeRepository(store)
        try await bench.load(repository)
        let values = repository.values(of: harness.key).subscribe()
        try await withThrowingTaskGroup(of: Void.self) { group in
          group.addTask {
            for mutation in harness.mutations { try await repository.perform(mutation, on: harness.key) }
          }
          group.addTask {
            // A load may fail, because packets are lost. `settle` loads the value in any case.
            for _ in 0..<8 { try? await repository.reload(harness.key) }
          }
          try await group.waitForAll()
        }
        try await bench.settle(repository)
        return values
      }
      // The subscription has buffered every value, and finishes because the repository is released.
      var visibleIndices: Set<Int> = []
      for await value in values {
        let currentIndices = Set(harness.mutations.indices.filter { isIncluded(harness.mutations[$0], in: value) })
        if let lostIndex = visibleIndices.subtracting(currentIndices).min() {
          throw Mismatch("\(harness.mutations[lostIndex]) was visible, but is missing from \(value) (seed \(seed)).")
        }
        visibleIndices = currentIndices
      }
      try expect(visibleIndices, is: Set(harness.mutations.indices), "the visible mutations (seed \(seed))")
    }
  }

  @Sendable private static func checkOrder(_ harness: RepositoryHarness<Source>) async throws {
    for seed in 1...5 as ClosedRange<UInt64> {
      let bench = Bench(harness, seed: seed, .rough)
      let openStore = try await harness.makePlace()
      let half = harness.mutations.count / 2
      bench.network.isReachable = false
      try await bench.performOffline(
        harness.mutations[..<half], on: bench.makeRepository(try await openStore(), pausesRetries: true))
      bench.network.isReachable = true
      try await bench.whileNetworkRuns {
        let repository = bench.makeRepository(try await openStore())
        for mutation in harness.mutations[half...] { try await repository.perform(mutation, on: harness.key) }
        try await bench.settle(repository)
      }
      let source = harness.makeSource(bench.server, bench.network)
      func textsByLane(_ mutations: [Source.Mutation]) throws -> [String: [String]] {
        try Dictionary(grouping: mutations) { source.orderingKey(of: $0, on: harness.key) }
          .mapValues { try $0.map(text) }
      }
      let applied = try textsByLane(bench.server.applied.map(\.mutation))
      try expect(applied, is: try textsByLane(harness.mutations), "the applied mutations by lane (seed \(seed))")
    }
  }

  @Sendable private static func checkOnce(_ harness: RepositoryHarness<Source>) async throws {
    for outcome in [SimulatedNetwork.PlannedOutcome.loseReply, .duplicateRequest, .loseRequest, .failToSend] {
      let bench = Bench(harness)
      let openStore = try await harness.makePlace()
      let store = try await openStore()
      try await bench.whileNetworkRuns {
        let repository = bench.makeRepository(store)
        try await bench.load(repository)
        for mutation in harness.mutations {
          bench.network.plan(outcome)
          try await repository.perform(mutation, on: harness.key)
          try await repository.waitForPendingMutations()
        }
        try await bench.settle(repository)
      }
      try bench.expectAllAppliedOnce("when the first attempt of each has the outcome \(outcome)")
      try expect(
        Set(bench.server.received).count, is: harness.mutations.count,
        "the number of different ids that the server received")
    }
  }

  @Sendable private static func checkDurability(_ harness: RepositoryHarness<Source>) async throws {
    let bench = Bench(harness)
    let openStore = try await harness.makePlace()
    try await bench.whileNetworkRuns { try await bench.load(bench.makeRepository(try await openStore())) }
    bench.network.isReachable = false
    try await bench.performOffline(
      harness.mutations[...], on: bench.makeRepository(try await openStore(), pausesRetries: true))
    let relaunched = bench.makeRepository(try await openStore(), pausesRetries: true)
    let queuedTexts = try await relaunched.mutations.list().map { try text($0.mutation) }
    try expect(queuedTexts, is: try harness.mutations.map(text), "the queue after a relaunch")
    for await value in relaunched.values(of: harness.key) {
      try expectIncluded(harness.mutations, in: value, "after a relaunch")
      break
    }
    bench.network.isReachable = true
    try await bench.whileNetworkRuns {
      await relaunched.retryNow()
      try await bench.settle(relaunched)
    }
    try bench.expectAllAppliedOnce("after a relaunch")
  }

  @Sendable private static func checkAtomicity(_ harness: RepositoryHarness<Source>) async throws {
    for commitCount in 0... {
      let bench = Bench(harness)
      let openStore = try await harness.makePlace()
      let store = InterruptedStore(try await openStore(), commitCount: commitCount)
      let mutations = harness.mutations.prefix(3)
      let accepted = try await bench.whileNetworkRuns {
        let repository = bench.makeRepository(store, pausesRetries: true)
        do throws(RepositoryError<Source.Failure>) {
          try await repository.reload(harness.key)
        } catch {
          try expectStoreFailure(error)
        }
        var accepted: [Source.Mutation] = []
        for mutation in mutations {
          do throws(RepositoryError<Source.Failure>) {
            try await repository.perform(mutation, on: harness.key)
            accepted.append(mutation)
          } catch {
            try expectStoreFailure(error)
          }
        }
        return accepted
      }
      bench.network.isReachable = false
      let reopenedStore = try await openStore()
      let repository = bench.makeRepository(reopenedStore, pausesRetries: true)
      let queuedTexts = Set(try await repository.mutations.list().map { try text($0.mutation) })
      let storedValue = try await bench.storedValue(in: reopenedStore)
      let situation = "when the process ended after \(counted(commitCount, "commit"))"
      for mutation in mutations {
        let isStored = storedValue.map { isIncluded(mutation, in: $0) } ?? false
        let isQueued = queuedTexts.contains(try text(mutation))
        if isStored, isQueued { throw Mismatch("\(mutation) is in the queue and in the stored value \(situation).") }
        if !isStored, !isQueued, try accepted.contains(where: { try text($0) == text(mutation) }) {
          throw Mismatch("\(mutation) is neither in the queue nor in the stored value \(situation).")
        }
      }
      bench.network.isReachable = true
      try await bench.whileNetworkRuns {
        await repository.retryNow()
        try await bench.settle(repository)
      }
      let applied = try bench.server.applied.map { try text($0.mutation) }
      for mutation in accepted {
        let appliedCount = applied.count { $0 == (try? text(mutation)) }
        try expect(appliedCount, is: 1, "the number of times that the server applied \(mutation) \(situation)")
      }
      // The process made all its commits, so a higher limit would make no difference.
      if !store.wasInterrupted { return }
    }
  }

  @Sendable private static func checkBounds(_ harness: RepositoryHarness<Source>) async throws {
    let bench = Bench(harness)
    bench.network.isReachable = false
    var configuration = bench.configuration(pausesRetries: true)
    configuration.queueLimits = QueueLimits(maximumCount: 2)
    let openStore = try await harness.makePlace()
    let repository = SyncedRepository(
      harness.makeSource(bench.server, bench.network), store: try await openStore(), configuration: configuration)
    for mutation in harness.mutations.prefix(2) { try await repository.perform(mutation, on: harness.key) }
    var isRefused = false
    do throws(RepositoryError<Source.Failure>) {
      try await repository.perform(harness.mutations[2], on: harness.key)
    } catch {
      if case .queueFull = error { isRefused = true }
    }
    try expect(isRefused, is: true, "whether the third mutation is refused with `queueFull`")
    let queuedTexts = try await repository.mutations.list().map { try text($0.mutation) }
    try expect(queuedTexts, is: try harness.mutations.prefix(2).map(text), "the queue")
  }

  @Sendable private static func checkDraining(_ harness: RepositoryHarness<Source>) async throws {
    for seed in 1...3 as ClosedRange<UInt64> {
      let bench = Bench(harness, seed: seed, .rough)
      let openStore = try await harness.makePlace()
      bench.network.isReachable = false
      try await bench.performOffline(
        harness.mutations[...], on: bench.makeRepository(try await openStore(), pausesRetries: true))
      bench.network.isReachable = true
      try await bench.whileNetworkRuns {
        let repository = bench.makeRepository(try await openStore())
        try await repository.waitForPendingMutations()
        let remaining = try await repository.mutations.list()
        try expect(
          remaining.map(\.standing), is: [], "the standings of the mutations that are left in the queue (seed \(seed))")
      }
      try bench.expectAllAppliedOnce("after the queue drained (seed \(seed))")
    }
  }

  @Sendable private static func checkTruth(_ harness: RepositoryHarness<Source>) async throws {
    let bench = Bench(harness)
    let openStore = try await harness.makePlace()
    let store = try await openStore()
    let (first, second) = (harness.mutations[0], harness.mutations[1])
    try await bench.whileNetworkRuns {
      let repository = bench.makeRepository(store, pausesRetries: true)
      try await expectFirstState(isPending: false, hasValue: false, of: repository, harness, "when nothing is stored")
      try await bench.load(repository)
      let result = try await repository.perform(first, on: harness.key)
      try expect(result, is: .confirmed, "the result over a reliable network")
      let storedValue = try await bench.storedValue(in: try await openStore())
      try expect(
        storedValue.map { isIncluded(first, in: $0) } ?? false, is: true,
        "whether the stored value includes a confirmed mutation")
      try await expectFirstState(isPending: false, of: repository, harness, "after a confirmation")
      bench.network.isReachable = false
      let offlineResult = try await repository.perform(second, on: harness.key)
      try expect(offlineResult, is: .queued, "the result without a network")
      try await expectFirstState(isPending: true, of: repository, harness, "while a mutation waits")
      let relaunched = bench.makeRepository(try await openStore(), pausesRetries: true)
      try await expectFirstState(isPending: true, of: relaunched, harness, "after a relaunch while a mutation waits")
      let valueStoredOffline = try await bench.storedValue(in: try await openStore())
      try expect(
        valueStoredOffline.map { isIncluded(second, in: $0) } ?? false, is: false,
        "whether the stored value includes a waiting mutation")
      bench.network.isReachable = true
      await repository.retryNow()
      try await repository.waitForPendingMutations()
      try await expectFirstState(isPending: false, of: repository, harness, "after the queue drained")
    }
  }

  @Sendable private static func checkConvergence(_ harness: RepositoryHarness<Source>) async throws {
    for seed in 1...3 as ClosedRange<UInt64> {
      let bench = Bench(harness, seed: seed, .rough)
      let openStore = try await harness.makePlace()
      try await bench.whileNetworkRuns {
        let repositories = [bench.makeRepository(try await openStore()), bench.makeRepository(try await openStore())]
        for repository in repositories { try await bench.load(repository) }
        for (index, mutation) in harness.mutations.dropLast().enumerated() {
          try await repositories[index % 2].perform(mutation, on: harness.key)
        }
        // Another user makes the last mutation.
        _ = try bench.server.apply(harness.mutations.last!, to: harness.key, id: MutationID())
        for repository in repositories { try await repository.waitForPendingMutations() }
        bench.network.conditions = .reliable
        for repository in repositories { try await repository.reload(harness.key) }
        let newRepository = bench.makeRepository(InMemoryStore())
        try await newRepository.reload(harness.key)
        guard let expected = try await firstValue(of: newRepository, harness) else {
          throw Mismatch("A new repository has no value.")
        }
        try expectIncluded(harness.mutations, in: expected, "in a new repository (seed \(seed))")
        for repository in repositories {
          try await expectShown(expected, by: repository, harness, "when nothing is pending (seed \(seed))")
        }
      }
      try bench.expectAllAppliedOnce("when nothing is pending (seed \(seed))")
    }
  }
}

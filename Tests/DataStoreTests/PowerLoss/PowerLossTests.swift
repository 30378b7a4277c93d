import DataStore
import Foundation
import Multicast
import MulticastTesting
import TestRounds
import TestSupport
import Testing

/// Acknowledged changes survive a loss of power, and no change is made in part.
///
/// A failure names its seed. To reproduce it, set the environment variable `MOMENTS_SEED` to that seed, and
/// `MOMENTS_ROUNDS` as in the failed run.
@Suite(.requiresPowerLossVolume, .timeLimit(.minutes(15))) struct PowerLossTests {
  private static let roundCount = Rounds.count(10, full: 200)
  /// The step between the operations after which the power is cut.
  ///
  /// Some tests repeat a commit or a recovery in new stores, and cut the power after later and later operations, which
  /// begin with a random one of the first step.
  private static let step = Rounds.step(4)

  private let seed: UInt64
  private let random: SplitMix64

  init() {
    seed = Rounds.fixedSeed ?? .random(in: .min ... .max)
    random = SplitMix64(seed: seed)
  }

  @Test(arguments: DurableStore.allCases)
  func `A loss of power at any instant undoes no acknowledged change`(
    kind: DurableStore
  ) async throws {
    let seed = seed
    var random = random
    try await run { volume, stores in
      let place = kind.place(inFolder: volume.url.appending(path: "outer/inner", directoryHint: .isDirectory))
      var progress = CommitProgress(.mixed)
      for round in 1...Self.roundCount {
        // If there are few commits, all may succeed. The power is then cut while the child closes the store, or by
        // `restore`.
        let (first, count) = (progress.number + 1, Int.random(in: 1...20, using: &random))
        let (operation, cutsAgain) = (Int.random(in: 1...200, using: &random), Bool.random(using: &random))
        let restoration = Self.restoration(forgets: round.isMultiple(of: 2), &random)
        try await volume.arm(after: operation)
        var child = try ChildProcess("commit", place, ["mixed", "\(first)", "\(first + count - 1)"])
        let lines = await child.allLines()
        let end = await child.end()
        do {
          guard end == .success else { throw Failure.unexpectedOutcome(end, lines: lines) }
          let acknowledged = lines.last { Int($0) != nil }.flatMap { Int($0) } ?? progress.number
          guard lines.count >= acknowledged - progress.number else {
            throw Failure.unexpectedOutcome(end, lines: lines)
          }
          try await volume.restore(restoration)
          if cutsAgain {
            // The power is cut again while a store of this process finishes the interrupted commit.
            try await volume.arm(after: Int.random(in: 1...10, using: &random))
            await stores.recover { kind.openPatiently(at: place) }
            try await volume.restore(Self.restoration(forgets: Bool.random(using: &random), &random))
          }
          try await progress.catchUp(acknowledged: acknowledged) { stores.open { kind.openPatiently(at: place) } }
          await stores.waitUntilClosed()
        } catch {
          Issue.record(
            """
            MOMENTS_SEED=\(seed), round \(round), cut after operation \(operation), \(restoration): \(error)
            """)
          return
        }
      }
    }
  }

  @Test(arguments: DurableStore.allCases)
  func `The first save makes the folder of a store durable, even if the store didn't create the folder`(
    kind: DurableStore
  ) async throws {
    try await run { volume, stores in
      let folder = volume.url.appending(path: "existing", directoryHint: .isDirectory)
      let place = kind.place(inFolder: folder)
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
      let commits = NumberedCommits.values
      var progress = CommitProgress(commits)
      try await commits.make(1, in: stores.open { kind.openPatiently(at: place) })
      await stores.waitUntilClosed()
      try await volume.restore(.forget)
      try await progress.catchUp(acknowledged: 1) { stores.open { kind.openPatiently(at: place) } }
      #expect(progress.number == 1)
    }
  }

  /// A commit that a test makes again and again, with power cuts after different operations.
  enum InterruptedCommit: CaseIterable {
    case firstOfNewStore
    case fiveValues
    case fourValuesAndRemoval
    case oneValue
    case oneRemoval
    case partsAndValueAndRemoval

    var kindAndNumber: (kind: NumberedCommits, number: Int) {
      switch self {
      case .firstOfNewStore: (.batches, 1)
      case .fiveValues: (.batches, 2)
      case .fourValuesAndRemoval: (.batches, 3)
      case .oneValue: (.values, 4)
      case .oneRemoval: (.values, 7)
      case .partsAndValueAndRemoval: (.mixed, 13)
      }
    }
  }

  @Test(arguments: DurableStore.allCases, InterruptedCommit.allCases)
  func `A loss of power after any operation of a commit leaves all of the commit or none`(
    kind: DurableStore, interruptedCommit: InterruptedCommit
  ) async throws {
    let seed = seed
    var random = random
    let (commits, number) = interruptedCommit.kindAndNumber
    try await run { volume, stores in
      let firstOperation = Int.random(in: 1...Self.step, using: &random)
      operations: for operation in stride(from: firstOperation, through: .max, by: Self.step) {
        // One attempt loses all changes that weren't synchronized, and two lose random ones.
        for attempt in 0..<3 {
          let restoration = Self.restoration(forgets: attempt == 0, &random)
          let folder = volume.url.appending(path: "\(operation)-\(attempt)/store", directoryHint: .isDirectory)
          let place = kind.place(inFolder: folder)
          do {
            var progress = CommitProgress(commits)
            let openStore = { @Sendable in stores.open { kind.openPatiently(at: place) } }
            let acknowledged = try await Self.commit(
              commits, upTo: number, in: openStore(), beforeLast: { try await volume.arm(after: operation) })
            let isCut = try await volume.isCut()
            if !isCut, acknowledged != number { throw Failure.commitFailedWithPower }
            await stores.waitUntilClosed()
            try await volume.restore(restoration)
            try await progress.catchUp(acknowledged: acknowledged, open: openStore)
            progress.advance()
            try await commits.make(progress.number, in: openStore())
            try await progress.catchUp(acknowledged: progress.number, open: openStore)
            await stores.waitUntilClosed()
            // The commit has fewer than `operation` operations, so the power can't be cut after a later one.
            if !isCut { break operations }
          } catch {
            Issue.record("MOMENTS_SEED=\(seed), cut after operation \(operation), \(restoration): \(error)")
            return
          }
        }
      }
    }
  }

  @Test func `A commit is complete or absent after a kill of its process and a loss of power during recovery`()
    async throws
  {
    let seed = seed
    var random = random
    let (commits, number) = InterruptedCommit.partsAndValueAndRemoval.kindAndNumber
    try await run { volume, stores in
      fatalCalls: for fatalCall in 1... {
        let firstOperation = Int.random(in: 1...Self.step, using: &random)
        operations: for operation in stride(from: firstOperation, through: .max, by: Self.step) {
          for attempt in 0..<3 {
            let restoration = Self.restoration(forgets: attempt == 0, &random)
            let place = volume.url.appending(path: "\(fatalCall)-\(operation)-\(attempt)", directoryHint: .isDirectory)
            do {
              var progress = CommitProgress(commits)
              let simulatedKill = SimulatedKill()
              let store = FileStore(folder: place, fileSystem: simulatedKill.fileSystem)
              let acknowledged = try await Self.commit(
                commits, upTo: number, in: store, beforeLast: { simulatedKill.schedule(atCall: fatalCall) })
              guard simulatedKill.hasHappened else { break fatalCalls }
              try await volume.arm(after: operation)
              await stores.recover { FileStore(folder: place) }
              let isCut = try await volume.isCut()
              try await volume.restore(restoration)
              try await progress.catchUp(acknowledged: acknowledged) { FileStore(folder: place) }
              if !isCut { break operations }
            } catch {
              Issue.record(
                """
                MOMENTS_SEED=\(seed), killed at call \(fatalCall), cut after operation \(operation), \
                \(restoration): \(error)
                """)
              return
            }
          }
        }
      }
    }
  }

  /// Makes the commits numbered from 1 to `last`.
  ///
  /// - Parameter prepare: Called before the last commit, which is the only one that may fail.
  /// - Returns: The number of the last commit that was acknowledged.
  private static func commit(
    _ commits: NumberedCommits, upTo last: Int, in store: any KeyValueStore, beforeLast prepare: () async throws -> Void
  ) async throws -> Int {
    for number in 1..<last { try await commits.make(number, in: store) }
    try await prepare()
    do throws(StoreError) {
      try await commits.make(last, in: store)
      return last
    } catch {
      return last - 1
    }
  }

  /// Mounts a volume, calls `body`, and unmounts the volume once all stores on it are closed.
  private func run(_ body: (PowerLossVolume, OpenedStores) async throws -> Void) async throws {
    try await PowerLossVolume.run { volume in
      let stores = OpenedStores()
      let result: Result<Void, any Error>
      do {
        result = .success(try await body(volume, stores))
      } catch {
        result = .failure(error)
      }
      await stores.waitUntilClosed()
      try result.get()
    }
  }

  /// The stores that this process opened on a volume.
  ///
  /// All of them must be closed before the volume is unmounted. SQLite maps a file into memory, so closing a database
  /// later would end the process with `SIGBUS`.
  private final class OpenedStores: Sendable {
    private let eventSubscriptions = Lock<[MulticastSubscription<StoreEvent, Never>]>([])

    func open(_ makeStore: () -> any KeyValueStore) -> any KeyValueStore {
      let store = makeStore()
      // The events finish when the store and its backend are released.
      eventSubscriptions.withLock { $0.append(store.events.subscribe()) }
      return store
    }

    func waitUntilClosed() async {
      let subscriptions = eventSubscriptions.withLock { subscriptions in
        defer { subscriptions = [] }
        return subscriptions
      }
      for events in subscriptions { for await _ in events {} }
    }

    /// Lets a new store finish an interrupted commit, and waits until the store is closed.
    func recover(_ makeStore: () -> any KeyValueStore) async {
      do throws(StoreError) {
        _ = try await NumberedCommits.load(from: open(makeStore))
      } catch {
        // Reads fail without power. The contents are checked when the power is back.
      }
      await waitUntilClosed()
    }
  }

  /// Simulates that the process is killed at a certain call: this call and all later ones fail.
  private final class SimulatedKill: Sendable {
    private let remainingCallCount = Lock(Int.max)

    var hasHappened: Bool { remainingCallCount.withLock { $0 <= 0 } }

    /// Makes a future call and all calls after it fail.
    ///
    /// - Parameter fatalCall: The number of the call. Only renames, removals and synchronizations count; the next one
    ///   is 1.
    func schedule(atCall fatalCall: Int) {
      remainingCallCount.withLock { $0 = fatalCall }
    }

    var fileSystem: FileSystem {
      FileSystem { call in
        self.remainingCallCount.withLock { remainingCallCount in
          if ["rename", "unlink", "fsync"].contains(call.operation) { remainingCallCount -= 1 }
          return remainingCallCount <= 0 ? EIO : nil
        }
      }
    }
  }

  private static func restoration(
    forgets: Bool, _ random: inout SplitMix64
  ) -> PowerLossVolume.Restoration {
    // The seed is always drawn, so that the later random numbers don't depend on `forgets`.
    let seed = UInt64.random(in: .min ... .max, using: &random)
    return forgets ? .forget : .keep(seed: seed)
  }

  private enum Failure: Error {
    /// A child didn't succeed, or didn't print a line for each acknowledged commit.
    case unexpectedOutcome(ChildProcess.End, lines: [String])
    /// A commit failed although there was power.
    case commitFailedWithPower
  }
}

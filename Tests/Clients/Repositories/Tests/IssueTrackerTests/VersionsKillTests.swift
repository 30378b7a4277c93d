import Foundation
import MulticastTesting
import Synchronization
import Testing

/// Two versions of one app, `EditorV1` and `EditorV2`, use one store in turn and at the same time, and are killed.
///
/// Each edit that one of them has accepted is sent once, and until then listed by both versions.
@Suite(.timeLimit(.minutes(60))) struct VersionsKillTests {
  /// The number of runs that each test makes at the same time.
  private static let workerCount = 2

  @Test(arguments: EditorStore.Kind.available, EditorUpdate.allCases)
  func `A queue survives ten changes of the version, whichever version is first`(
    store: EditorStore.Kind, update: EditorUpdate
  ) async throws {
    let totals = Totals()
    try await Self.sideBySide { worker in
      for round in stride(from: worker, to: Rounds.count(2, full: 20), by: Self.workerCount) {
        try await Self.run(store, update, seed: Rounds.seed + UInt64(round), totals) { run in
          var version = EditorVersion.allCases[round % 2]
          for _ in 0..<10 {
            let reads = Int.random(in: 0..<3, using: &run.random) == 0
            let isDone =
              reads
              ? try await run.run(version, "read")
              : try await run.queue(version, count: .random(in: 1...2, using: &run.random))
            #expect(isDone)
            version = version.other
          }
        }
      }
    }
    totals.print("changes", store, update)
  }

  @Test(arguments: EditorStore.Kind.inFileSystem, EditorUpdate.allCases)
  func `A queue survives the kill of the other version at any call of its first read`(
    store: EditorStore.Kind, update: EditorUpdate
  ) async throws {
    let step = Rounds.step(150)
    let firstCall = Int.random(in: 1...step)
    let totals = Totals()
    try await Self.sideBySide { worker in
      let first = EditorVersion.allCases[worker]
      for call in stride(from: firstCall, through: .max, by: step) {
        var isDone = false
        try await Self.run(store, update, seed: Rounds.seed + UInt64(call), totals) { run in
          // The first version has values too.
          try await run.run(first, "read")
          try await run.queue(first, count: 2)
          isDone = try await run.run(first.other, "read", [call])
          try await run.queue(first.other, count: 1)
        }
        if isDone { break }
      }
    }
    totals.print("first read", store, update)
  }

  @Test(arguments: EditorStore.Kind.available, EditorUpdate.allCases)
  func `No edit is lost or made twice when both versions run at the same time and are killed`(
    store: EditorStore.Kind, update: EditorUpdate
  ) async throws {
    let totals = Totals()
    try await Self.sideBySide { worker in
      for round in stride(from: worker, to: Rounds.count(2, full: 50), by: Self.workerCount) {
        try await Self.run(store, update, seed: Rounds.seed + UInt64(round), totals) { run in
          var editors = [try run.launchEditor(.first), try run.launchEditor(.second)]
          editors.shuffle(using: &run.random)
          for _ in 0..<4 {
            try await run.setFaults(rate: 0.3, seed: run.random.next())
            for _ in 0..<4 {
              let index = Int.random(in: 0...1, using: &run.random)
              await run.read(.random(in: 0...4, using: &run.random), of: &editors[index])
            }
            let index = Int.random(in: 0...1, using: &run.random)
            try await run.kill(&editors[index])
            editors[index] = try run.launchEditor(editors[index].version)
          }
          for index in editors.indices { try await run.kill(&editors[index]) }
          // Each version sends what the other one can't.
          try await run.setFaults(rate: 0, seed: 0)
          editors = [try run.launch(.first, "deliver"), try run.launch(.second, "deliver")]
          for index in editors.indices { _ = try await run.finish(&editors[index]) }
        }
      }
    }
    totals.print("both", store, update)
  }

  // MARK: - Running

  /// What all runs of a test have done, which is printed if `MOMENTS_ROUNDS` is set.
  private final class Totals: Sendable {
    private let counts = Mutex((runs: 0, processes: 0, kills: 0, edits: 0, unreadable: 0))

    func add(_ run: EditorRun) {
      counts.withLock {
        $0.runs += 1
        $0.processes += run.processCount
        $0.kills += run.killCount
        $0.edits += run.history.acceptedCount
        $0.unreadable += run.history.unreadableCount
      }
    }

    func print(_ test: String, _ store: EditorStore.Kind, _ update: EditorUpdate) {
      guard Rounds.areSet else { return }
      let counts = counts.withLock(\.self)
      Swift.print(
        "\(test), \(store), \(update): \(counts.runs) runs, \(counts.processes) processes, \(counts.kills) kills,",
        "\(counts.edits) edits, listed as unreadable \(counts.unreadable) times")
    }
  }

  /// Makes a run, sends what is left at its end, and reports what was wrong.
  private static func run(
    _ store: EditorStore.Kind, _ update: EditorUpdate, seed: UInt64, _ totals: Totals,
    _ body: (inout EditorRun) async throws -> Void
  ) async throws {
    var run = try await EditorRun(store, update, seed: seed)
    let result: Result<Void, any Error>
    do {
      try await body(&run)
      try await run.deliver()
      result = .success(())
    } catch {
      result = .failure(error)
    }
    await run.stop()
    totals.add(run)
    let violations = run.history.violations
    if !violations.isEmpty { Testing.Issue.record("\(store), \(update), seed \(seed): \(violations.prefix(5))") }
    try result.get()
  }

  private static func sideBySide(_ work: @escaping @Sendable (Int) async throws -> Void) async throws {
    try await withThrowingTaskGroup { group in
      for worker in 0..<workerCount { group.addTask { try await work(worker) } }
      try await group.waitForAll()
    }
  }
}

extension EditorRun {
  /// Lets an editor make edits while the network is away.
  @discardableResult
  fileprivate mutating func queue(_ version: EditorVersion, count: Int) async throws -> Bool {
    try await run(version, "queue", [Int(random.next() >> 1), count])
  }

  /// Starts an editor that makes a few edits, while the other one may be running.
  fileprivate mutating func launchEditor(_ version: EditorVersion) throws -> EditorProcess {
    try launch(version, "edit", [Int(random.next() >> 1), 3])
  }
}

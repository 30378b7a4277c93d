import Foundation
import MulticastTesting
import Testing

/// Runs in which a seed determines the order of the events.
///
/// The events are operations, replies that are late, lost or repeated, calls of the store that are slow or fail, and
/// processes that end at any time. The laws are those of ``Journal``.
///
/// `MOMENTS_INTERLEAVINGS` in the environment sets the number of runs that are checked for violations. A twentieth of
/// it, but at least 10, is the number of runs that are repeated and compared. `MOMENTS_INTERLEAVING_SEED` repeats and
/// prints the run of a single seed.
@Suite(.timeLimit(.minutes(15))) struct InterleavingTests {
  private static let environment = ProcessInfo.processInfo.environment
  private static let runCount = environment["MOMENTS_INTERLEAVINGS"].flatMap { Int($0) } ?? 1_000

  @Test func `No interleaving violates a law`() async {
    if let seed = Self.environment["MOMENTS_INTERLEAVING_SEED"].flatMap({ UInt64($0) }) {
      let (trace, violations) = Self.run(seed: seed)
      print(trace.joined(separator: "\n"))
      #expect(violations == [])
      return
    }
    let firstSeed = UInt64.random(in: 0...UInt64(UInt32.max))
    for seed in firstSeed..<firstSeed + UInt64(Self.runCount) {
      await Task.yield()
      let violations = Self.run(seed: seed).violations
      #expect(violations == [], "Seed \(seed)")
    }
  }

  @Test func `A seed determines a run completely`() async {
    let firstSeed = UInt64.random(in: 0...UInt64(UInt32.max))
    for seed in firstSeed..<firstSeed + UInt64(max(Self.runCount / 20, 10)) {
      await Task.yield()
      let (firstTrace, secondTrace) = (Self.run(seed: seed).trace, Self.run(seed: seed).trace)
      if firstTrace == secondTrace { continue }
      let differingIndex = zip(firstTrace, secondTrace).enumerated().first { $0.element.0 != $0.element.1 }?.offset
      let index = differingIndex ?? min(firstTrace.count, secondTrace.count)
      let firstEvent = firstTrace.dropFirst(index).first ?? "the end"
      let secondEvent = secondTrace.dropFirst(index).first ?? "the end"
      Issue.record("Seed \(seed), trace index \(index): \(firstEvent) in the first run, \(secondEvent) in the second")
    }
  }

  private static func run(seed: UInt64) -> (trace: [String], violations: [String]) {
    var acknowledgement = Acknowledgement.allCases[Int(seed / 8 % 3)]
    let (isPaged, storeMayFail, hasConcurrentProcesses) = (seed % 2 == 1, seed / 2 % 2 == 1, seed / 4 % 2 == 1)
    // In unpaged runs, the source has no `empty`, so `done` stores nothing if nothing is stored. Another process may
    // then store a late reply to its fetch: a value without the confirmed change, which would violate a law.
    if hasConcurrentProcesses, !isPaged, acknowledgement == .done { acknowledgement = .patch }
    if isPaged {
      var run = InterleavedRun<PagedMarksSource>(
        seed: seed,
        .init(
          acknowledgement: acknowledgement, storeMayFail: storeMayFail, hasConcurrentProcesses: hasConcurrentProcesses))
      return run.run()
    }
    var run = InterleavedRun<WholeMarksSource>(
      seed: seed,
      .init(
        acknowledgement: acknowledgement, storeMayFail: storeMayFail, hasConcurrentProcesses: hasConcurrentProcesses))
    return run.run()
  }
}

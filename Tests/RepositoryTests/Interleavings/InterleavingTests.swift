import Foundation
import MulticastTesting
import TestRounds
import Testing

/// Runs in which a seed determines the order of the events.
///
/// The events are operations, replies that are late, lost or repeated, calls of the store that are slow or fail, and
/// processes that end at any time. The laws are those of ``Journal``.
///
/// A seed in `MOMENTS_SEED` repeats and prints its run.
@Suite(.timeLimit(.minutes(15))) struct InterleavingTests {
  @Test func `No interleaving violates a law`() async {
    if let seed = Rounds.fixedSeed {
      let (trace, violations) = Self.run(seed: seed)
      print(trace.joined(separator: "\n"))
      #expect(violations == [])
      return
    }
    let firstSeed = UInt64.random(in: 0...UInt64(UInt32.max))
    for seed in firstSeed..<firstSeed + UInt64(Rounds.count(100, full: 1_500)) {
      await Task.yield()
      let violations = Self.run(seed: seed).violations
      #expect(violations == [], "Seed \(seed)")
    }
  }

  @Test func `A seed determines a run completely`() async {
    let firstSeed = UInt64.random(in: 0...UInt64(UInt32.max))
    for seed in firstSeed..<firstSeed + UInt64(Rounds.count(10, full: 75)) {
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

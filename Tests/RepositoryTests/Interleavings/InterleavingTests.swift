import Foundation
import MulticastTesting
import Testing

/// Runs in which a seed determines the order of the events.
///
/// The events are operations, replies that are late, lost or repeated, calls of the store that are slow or fail, and
/// processes that end at any time. The laws are those of ``Journal``.
///
/// `MOMENTS_INTERLEAVINGS` in the environment sets the number of runs, and `MOMENTS_INTERLEAVING_SEED` repeats and
/// prints a single run.
@Suite(.timeLimit(.minutes(15))) struct InterleavingTests {
  private static let environment = ProcessInfo.processInfo.environment
  private static let count = environment["MOMENTS_INTERLEAVINGS"].flatMap { Int($0) } ?? 1_000

  @Test func `No interleaving violates a law`() async {
    if let seed = Self.environment["MOMENTS_INTERLEAVING_SEED"].flatMap({ UInt64($0) }) {
      let (trace, violations) = Self.run(seed: seed)
      print(trace.joined(separator: "\n"))
      #expect(violations == [])
      return
    }
    let first = UInt64.random(in: 0...UInt64(UInt32.max))
    for seed in first..<first + UInt64(Self.count) {
      await Task.yield()
      let violations = Self.run(seed: seed).violations
      #expect(violations == [], "Seed \(seed)")
    }
  }

  @Test func `A seed determines a run completely`() async {
    let first = UInt64.random(in: 0...UInt64(UInt32.max))
    for seed in first..<first + UInt64(max(Self.count / 20, 10)) {
      await Task.yield()
      let (trace, again) = (Self.run(seed: seed).trace, Self.run(seed: seed).trace)
      if trace == again { continue }
      let index = zip(trace, again).enumerated().first { $0.element.0 != $0.element.1 }?.offset
      let place = index ?? min(trace.count, again.count)
      let (expected, found) = (trace.dropFirst(place).first ?? "the end", again.dropFirst(place).first ?? "the end")
      Issue.record("Seed \(seed), trace index \(place): first \(expected), then \(found)")
    }
  }

  private static func run(seed: UInt64) -> (trace: [String], violations: [String]) {
    var acknowledgement = Acknowledgement.allCases[Int(seed / 8 % 3)]
    let (isPaged, failsStore, isShared) = (seed % 2 == 1, seed / 2 % 2 == 1, seed / 4 % 2 == 1)
    // If nothing is stored, `done` stores nothing, so a late reply in another process may store a value without the
    // confirmed change.
    if isShared, !isPaged, acknowledgement == .done { acknowledgement = .patch }
    if isPaged {
      var run = InterleavedRun<PagedMarks>(
        seed: seed, .init(acknowledgement: acknowledgement, failsStore: failsStore, isShared: isShared))
      return run.run()
    }
    var run = InterleavedRun<WholeMarks>(
      seed: seed, .init(acknowledgement: acknowledgement, failsStore: failsStore, isShared: isShared))
    return run.run()
  }
}

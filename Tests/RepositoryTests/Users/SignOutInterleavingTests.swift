import Foundation
import MulticastTesting
import TestRounds
import Testing

/// Runs in which a user signs out during fetches, replies, mutations, failures of the store, and terminations of
/// processes.
///
/// A seed in `MOMENTS_SEED` repeats and prints its run.
@Suite(.timeLimit(.minutes(15))) struct SignOutInterleavingTests {
  @Test func `No data of a user who has signed out reappears`() async {
    for seed in Self.seeds(count: Rounds.count(60, full: 1_500)) {
      await Task.yield()
      var run = SignOutRun(seed: seed)
      Self.check(run.run(), seed)
    }
  }

  /// The stores' own threads influence the order of events, so a seed doesn't reproduce a run exactly.
  @Test(arguments: RealPlace.Kind.allCases)
  func `No data of a user who has signed out is left in the folder`(kind: RealPlace.Kind) async {
    for seed in Self.seeds(count: Rounds.count(4, full: 75)) {
      let result = await withCheckedContinuation { continuation in
        // The run blocks while it waits for the stores, and must not block a thread of other tests.
        Thread.detachNewThread {
          var run = SignOutRun(seed: seed, on: RealPlace(kind))
          continuation.resume(returning: run.run())
        }
      }
      Self.check(result, seed)
    }
  }

  /// Returns the seed that the environment sets, or successive seeds from a random one.
  private static func seeds(count: Int) -> Range<UInt64> {
    if let seed = Rounds.fixedSeed { return seed..<seed + 1 }
    let first = UInt64.random(in: 0...UInt64(UInt32.max))
    return first..<first + UInt64(count)
  }

  private static func check(_ result: (trace: [String], violations: [String]), _ seed: UInt64) {
    let trace = result.trace.joined(separator: "\n")
    if Rounds.fixedSeed != nil { print(trace) }
    #expect(result.violations == [], "Seed \(seed):\n\(trace)")
  }
}

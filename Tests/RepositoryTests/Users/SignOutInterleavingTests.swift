import Foundation
import MulticastTesting
import Testing

/// Runs in which a user signs out during fetches, replies, mutations, failures of the store, and terminations of
/// processes.
///
/// `MOMENTS_INTERLEAVINGS` in the environment sets the number of runs on a ``SimulatedPlace``, and a twentieth of it is
/// the number on each kind of ``RealPlace``. The defaults are 500 and 20. `MOMENTS_INTERLEAVING_SEED` repeats and
/// prints the run of a single seed.
@Suite(.timeLimit(.minutes(15))) struct SignOutInterleavingTests {
  private static let environment = ProcessInfo.processInfo.environment

  @Test func `No data of a user who has signed out reappears`() async {
    for seed in Self.seeds(defaultCount: 500) {
      await Task.yield()
      var run = SignOutRun(seed: seed)
      Self.check(run.run(), seed)
    }
  }

  /// The stores' own threads influence the order of events, so a seed doesn't reproduce a run exactly.
  @Test(arguments: RealPlace.Kind.allCases)
  func `No data of a user who has signed out is left in the folder`(kind: RealPlace.Kind) async {
    for seed in Self.seeds(defaultCount: 400, divisor: 20) {
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
  ///
  /// The number of successive seeds is the one in the environment or the default, divided by `divisor`.
  private static func seeds(defaultCount: UInt64, divisor: UInt64 = 1) -> Range<UInt64> {
    if let seed = environment["MOMENTS_INTERLEAVING_SEED"].flatMap({ UInt64($0) }) { return seed..<seed + 1 }
    let first = UInt64.random(in: 0...UInt64(UInt32.max))
    return first..<first + (environment["MOMENTS_INTERLEAVINGS"].flatMap { UInt64($0) } ?? defaultCount) / divisor
  }

  private static func check(_ result: (trace: [String], violations: [String]), _ seed: UInt64) {
    let trace = result.trace.joined(separator: "\n")
    if environment["MOMENTS_INTERLEAVING_SEED"] != nil { print(trace) }
    #expect(result.violations == [], "Seed \(seed):\n\(trace)")
  }
}

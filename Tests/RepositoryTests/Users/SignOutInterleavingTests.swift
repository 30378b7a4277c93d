import Foundation
import MulticastTesting
import Testing

/// Runs in which a user signs out amid fetches, replies, mutations, failures of the store, and processes that end.
///
/// `MOMENTS_INTERLEAVINGS` in the environment says how many runs are made, a twentieth of it on real places, and
/// `MOMENTS_INTERLEAVING_SEED` makes one again and prints it.
@Suite(.timeLimit(.minutes(15))) struct SignOutInterleavingTests {
  private static let environment = ProcessInfo.processInfo.environment

  @Test func `Nothing of a user who has signed out comes back`() async {
    for seed in Self.seeds(500) {
      await Task.yield()
      var run = SignOutRun(seed: seed)
      Self.check(run.run(), seed)
    }
  }

  /// Here the threads of the stores decide the order, too, and a seed is a beginning and no proof.
  @Test(arguments: RealPlace.Kind.allCases)
  func `No byte of a user who has signed out is left in a folder`(kind: RealPlace.Kind) async {
    for seed in Self.seeds(400, divisor: 20) {
      let result = await withCheckedContinuation { continuation in
        // It waits for the stores, which must not take a thread from other tests.
        Thread.detachNewThread {
          var run = SignOutRun(seed: seed, on: RealPlace(kind))
          continuation.resume(returning: run.run())
        }
      }
      Self.check(result, seed)
    }
  }

  /// The seeds of the runs to be made: those of the environment, or so many.
  private static func seeds(_ defaultCount: UInt64, divisor: UInt64 = 1) -> Range<UInt64> {
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

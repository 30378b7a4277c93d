import Foundation
import MulticastTesting
import Testing

/// Runs in which a user signs out during fetches, replies, mutations, failures of the store, and ends of processes.
///
/// `MOMENTS_INTERLEAVINGS` in the environment sets the number of runs on a ``SimulatedPlace``. Each kind of
/// ``RealPlace`` gets a twentieth of them. `MOMENTS_INTERLEAVING_SEED` repeats and prints a single run.
@Suite(.timeLimit(.minutes(15))) struct SignOutInterleavingTests {
  private static let environment = ProcessInfo.processInfo.environment

  @Test func `No data of a user who has signed out returns`() async {
    for seed in Self.seeds(500) {
      await Task.yield()
      var run = SignOutRun(seed: seed)
      Self.check(run.run(), seed)
    }
  }

  /// Threads of the stores influence the order here, so a seed doesn't reproduce a run exactly.
  @Test(arguments: RealPlace.Kind.allCases)
  func `No byte of a user who has signed out is left in the folder`(kind: RealPlace.Kind) async {
    for seed in Self.seeds(400, divisor: 20) {
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

  /// The seeds of the runs: those that the environment sets, or the default number.
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

import Foundation
import MulticastTesting
import Testing

/// Runs in which a user signs out amid fetches, replies, mutations, failures of the store, and processes that end.
///
/// `MOMENTS_INTERLEAVINGS` in the environment says how many runs are made, and `MOMENTS_INTERLEAVING_SEED` makes one again
/// and prints it.
@Suite(.timeLimit(.minutes(15))) struct SignOutInterleavingTests {
  private static let environment = ProcessInfo.processInfo.environment

  @Test func `Nothing of a user who has signed out comes back`() async {
    await check(defaultCount: 500) { SimulatedPlace() }
  }

  /// Here the threads of the stores decide the order, too, and a seed is a beginning and no proof.
  @Test(arguments: RealPlace.Kind.allCases)
  func `No byte of a user who has signed out is left in a folder`(kind: RealPlace.Kind) async {
    await check(defaultCount: 20) { RealPlace(kind) }
  }

  private func check(defaultCount: UInt64, _ makePlace: () -> any SignOutPlace) async {
    if let seed = Self.environment["MOMENTS_INTERLEAVING_SEED"].flatMap({ UInt64($0) }) {
      var run = SignOutRun(seed: seed, on: makePlace())
      let (trace, violations) = run.run()
      print(trace.joined(separator: "\n"))
      #expect(violations == [])
      return
    }
    let first = UInt64.random(in: 0...UInt64(UInt32.max))
    let count = Self.environment["MOMENTS_INTERLEAVINGS"].flatMap { UInt64($0) } ?? defaultCount
    for seed in first..<first + count {
      await Task.yield()
      var run = SignOutRun(seed: seed, on: makePlace())
      let (trace, violations) = run.run()
      #expect(violations == [], "Seed \(seed):\n\(trace.joined(separator: "\n"))")
    }
  }
}

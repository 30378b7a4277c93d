import Foundation
import MulticastTesting
import Testing

@testable import Repository

/// Checks the laws of a ``SyncWorld`` after each event of all short histories and of random long ones.
///
/// The world has one key.
@Suite struct SyncStateModelTests {
  private static let environment = ProcessInfo.processInfo.environment

  /// `MOMENTS_MODEL_DEPTH` sets the number of events of each history.
  @Test(.timeLimit(.minutes(15)), arguments: [nil, Tally()])
  func `No short history breaks a law`(empty: Tally?) async {
    let depth = Self.environment["MOMENTS_MODEL_DEPTH"].flatMap { Int($0) } ?? 4
    var count = 0
    await explore(SyncWorld(empty: empty), [], depth: depth, &count)
    #expect(count > 1_000)
  }

  private func explore(_ world: SyncWorld, _ events: [SyncWorld.Event], depth: Int, _ count: inout Int) async {
    // Lets other tests run, which share the threads.
    await Task.yield()
    if depth == 0 {
      count += 1
      var end = world
      end.settle()
      if let violation = end.violation { Issue.record("\(events), then settled: \(violation)") }
      return
    }
    for event in world.possible {
      var next = world
      next.process(event)
      if let violation = next.violation {
        Issue.record("\(events + [event]): \(violation)")
      } else {
        await explore(next, events + [event], depth: depth - 1, &count)
      }
    }
  }

  /// `MOMENTS_MODEL_STEPS` sets the total number of events.
  @Test(.timeLimit(.minutes(15)), arguments: [nil, Tally()])
  func `No long history breaks a law`(empty: Tally?) async {
    let steps = Self.environment["MOMENTS_MODEL_STEPS"].flatMap { Int($0) } ?? 20_000
    let seed = UInt64.random(in: .min ... .max)
    var random = SplitMix64(seed: seed)
    var world = SyncWorld(empty: empty)
    var events: [SyncWorld.Event] = []
    for _ in 0..<steps {
      await Task.yield()
      let event = world.possible.randomElement(using: &random)!
      events.append(event)
      world.process(event)
      if events.count == 60 { world.settle() }
      if let violation = world.violation {
        Issue.record("Seed \(seed), \(events): \(violation)")
        return
      }
      if events.count == 60 { (world, events) = (SyncWorld(empty: empty), []) }
    }
  }
}

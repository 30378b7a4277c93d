import Foundation
import MulticastTesting
import TestRounds
import Testing

@testable import Repository

/// Checks the laws of a ``SyncWorld`` after each event of all short histories and of random long ones.
///
/// The world has one key. `empty` is the value to which mutations apply while nothing is stored. If it is `nil`, the
/// world begins with a stored value.
@Suite struct SyncStateModelTests {
  @Test(.timeLimit(.minutes(15)), arguments: [nil, Tally()], [false, true])
  func `No short history breaks a law`(empty: Tally?, areRepeatable: Bool) async {
    let depth = Rounds.areFull ? 5 : 3
    var historyCount = 0
    await explore(SyncWorld(empty: empty, areMutationsRepeatable: areRepeatable), [], depth: depth, &historyCount)
    let minimumCount = (0..<depth).reduce(1) { count, _ in 5 * count }
    #expect(historyCount > minimumCount, "More than five events must be possible on average.")
  }

  /// Continues the history `events`, which led to `world`, by `depth` events in all possible ways.
  private func explore(_ world: SyncWorld, _ events: [SyncWorld.Event], depth: Int, _ historyCount: inout Int) async {
    // Lets other tests run, because all tests share the threads.
    await Task.yield()
    if depth == 0 {
      historyCount += 1
      var settledWorld = world
      settledWorld.settle()
      if let violation = settledWorld.violation { Issue.record("\(events), then settled: \(violation)") }
      return
    }
    for event in world.possibleEvents {
      var nextWorld = world
      nextWorld.process(event)
      if let violation = nextWorld.violation {
        Issue.record("\(events + [event]): \(violation)")
      } else {
        await explore(nextWorld, events + [event], depth: depth - 1, &historyCount)
      }
    }
  }

  @Test(.timeLimit(.minutes(15)), arguments: [nil, Tally()], [false, true])
  func `No long history breaks a law`(empty: Tally?, areRepeatable: Bool) async {
    let totalEventCount = Rounds.count(5_000, full: 1_000_000)
    let historyLength = 60
    let seed = Rounds.fixedSeed ?? .random(in: .min ... .max)
    var random = SplitMix64(seed: seed)
    var world = SyncWorld(empty: empty, areMutationsRepeatable: areRepeatable)
    var events: [SyncWorld.Event] = []
    for number in 1...totalEventCount {
      await Task.yield()
      let event = world.possibleEvents.randomElement(using: &random)!
      events.append(event)
      world.process(event)
      let isAtEnd = events.count == historyLength || number == totalEventCount
      if isAtEnd, world.violation == nil { world.settle() }
      if let violation = world.violation {
        Issue.record("Seed \(seed), \(events)\(isAtEnd ? ", perhaps settled" : ""): \(violation)")
        return
      }
      if isAtEnd { (world, events) = (SyncWorld(empty: empty, areMutationsRepeatable: areRepeatable), []) }
    }
  }
}

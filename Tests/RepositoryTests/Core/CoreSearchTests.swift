import MulticastTesting
import TestRounds
import Testing

@testable import Repository

/// The laws of two processes on one store, for all short histories and for many long ones.
@Suite(.timeLimit(.minutes(15))) struct CoreSearchTests {
  @Test func `No short history of two processes breaks a law`() {
    let depth = Rounds.areFull ? 5 : 3
    var historyCount = 0
    explore(CoreWorld(), [], depth: depth, &historyCount)
    print("\(historyCount) histories of \(depth) events")
  }

  private func explore(_ world: CoreWorld, _ events: [CoreWorld.Event], depth: Int, _ historyCount: inout Int) {
    if let violation = world.violation {
      Issue.record("\(violation) after \(events)")
      return
    }
    if depth == 0 {
      historyCount += 1
      return
    }
    for event in world.possibleEvents where isFirst(event, among: events) {
      var next = world
      next.apply(event)
      explore(next, events + [event], depth: depth - 1, &historyCount)
    }
  }

  /// Whether an event must be considered although the processes and the keys are interchangeable: the first event is
  /// one of the first process, and the first key is `a`.
  private func isFirst(_ event: CoreWorld.Event, among earlier: [CoreWorld.Event]) -> Bool {
    guard earlier.isEmpty else { return true }
    switch event {
    case .perform(let process, let key), .reload(let process, let key): return process == 0 && key == "a"
    case .edit(let key): return key == "a"
    case .relaunch(let process), .observe(let process), .work(let process, _): return process == 0
    case .serve, .reply, .lose, .wait: return true
    }
  }

  @Test func `No long history of two processes breaks a law`() {
    let (historyCount, length) = (Rounds.count(150, full: 20_000), 50)
    let seed = Rounds.fixedSeed ?? .random(in: 0..<1_000_000)
    var stepCount = 0
    for number in 0..<historyCount {
      var generator = SplitMix64(seed: seed &+ UInt64(number))
      var limits = CoreWorld.Limits()
      (limits.performs, limits.reloads, limits.edits, limits.relaunches, limits.waits) = (4, 3, 2, 2, 6)
      var world = CoreWorld(limits)
      var events: [CoreWorld.Event] = []
      for _ in 0..<length {
        guard let event = world.possibleEvents.randomElement(using: &generator) else { break }
        events.append(event)
        world.apply(event)
        if world.violation != nil { break }
      }
      complete(&world, &events, &generator)
      stepCount += events.count
      if let violation = world.violation {
        Issue.record("\(violation) with seed \(seed &+ UInt64(number)) after \(events)")
        return
      }
    }
    print("\(historyCount) histories with \(stepCount) events, from seed \(seed)")
  }

  /// Completes everything that has begun.
  private func complete(
    _ world: inout CoreWorld, _ events: inout [CoreWorld.Event], _ generator: inout SplitMix64
  ) {
    for _ in 0..<20 {
      for _ in 0..<200 {
        guard world.violation == nil, let event = world.completingEvents.randomElement(using: &generator) else { break }
        events.append(event)
        world.apply(event)
      }
      world.pass(.seconds(3_600))
    }
    world.checkCompletion()
  }
}

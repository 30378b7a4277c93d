import TestRounds
import Testing

/// Comparisons of the state machine with the model, for every short sequence of events.
///
/// There are at most two subscribers at a time, each with at most two suspended calls.
@Suite struct ExhaustiveTests {
  /// A depth-first search through the sequences of events, which copies the state at each branch.
  private struct Search {
    let depth: Int
    let policies: [ModelPolicy]
    var path: [ChannelEvent] = []
    var sequenceCount = 0
    var fault: String?

    mutating func extendPath(from lockstep: Lockstep) {
      guard path.count < depth else { return }
      for event in events(for: lockstep.model) {
        path.append(event)
        var branch = lockstep
        sequenceCount += 1
        if let difference = branch.apply(event) {
          fault = "\(path): \(difference)"
          return
        }
        extendPath(from: branch)
        if fault != nil { return }
        path.removeLast()
      }
    }

    /// Returns the events to try in the model's state.
    ///
    /// For a subscriber that has ended, only its release is tried.
    private func events(for model: ChannelModel) -> [ChannelEvent] {
      var events: [ChannelEvent] = [.send]
      // After termination, a send, a finish and a failure all change nothing, so only the send is tried. Resetting the
      // replay after termination is left to the random tests.
      if model.termination == nil { events += [.finish, .fail, .resetReplay] }
      if model.subscribers.count(where: { $0 != nil }) < 2 { events += policies.map { .subscribe($0) } }
      for slot in model.subscribers.indices {
        guard let subscriber = model.subscribers[slot] else { continue }
        if !subscriber.hasEnded {
          if subscriber.waiters.count < 2 { events.append(.next(slot)) }
          events.append(.cancel(slot))
        }
        if subscriber.waiters.isEmpty { events.append(.releaseSubscriber(slot)) }
      }
      return events
    }
  }

  @Test(arguments: zip(0...2, Rounds.areFull ? [340_621, 341_476, 341_476] : [33_530, 33_542, 33_542]))
  func `Every short sequence of events agrees with the model`(replay: Int, expectedSequenceCount: Int) {
    var search = Search(depth: Rounds.areFull ? 5 : 4, policies: ModelPolicy.all(capacities: 1...2))
    search.extendPath(from: Lockstep(replayLimit: replay))
    #expect(search.fault == nil)
    // The number of sequences follows from the model alone. A smaller number would mean that some are skipped.
    #expect(search.sequenceCount == expectedSequenceCount)
  }
}

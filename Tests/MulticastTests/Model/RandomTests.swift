import Foundation
import MulticastTesting
import TestRounds
import Testing

@testable import Multicast

/// Comparisons of the state machine and of a real channel with the ``ChannelModel``, in long random runs.
///
/// A failure reports its seed. Set the environment variable `MOMENTS_SEED` to that seed to repeat the run.
@Suite struct RandomTests {
  static let stepCount = Rounds.count(10_000, full: 100_000)
  /// The number of steps after which a terminated channel is replaced by a new one.
  static let stepLimitAfterTermination = 50
  let seed = Rounds.fixedSeed ?? .random(in: 0...(.max))

  @Test(arguments: RandomEvents.configurations)
  func `A long random run of the state machine agrees with the model`(_ configuration: RandomEvents.Configuration) {
    var events = RandomEvents(configuration: configuration, random: SplitMix64(seed: seed))
    print("\(configuration.testDescription): seed \(seed)")
    var recent = RecentEvents()
    var step = 0
    while step < Self.stepCount {
      var lockstep = Lockstep(replayLimit: configuration.replay)
      var retention = Retention()
      var stepsAfterTermination = 0
      while step < Self.stepCount, stepsAfterTermination < Self.stepLimitAfterTermination {
        let event = events.next(for: lockstep.model)
        recent.append(event)
        // Backlogs are compared only now and then, because comparing long ones is slow.
        var fault = lockstep.apply(event, comparingBacklogs: step.isMultiple(of: 64))
        retention.record(lockstep.model)
        let floor = lockstep.driver.state.floor
        if floor < retention.oldestAllowed {
          fault = "position \(floor) is kept, but the oldest position allowed is \(retention.oldestAllowed)"
        }
        if let fault {
          Issue.record("seed \(seed), step \(step): \(fault)\nafter \(recent)")
          return
        }
        if lockstep.model.termination != nil { stepsAfterTermination += 1 }
        step += 1
      }
    }
  }

  @Test(arguments: RandomEvents.configurations)
  func `A long random run of a channel agrees with the model`(_ configuration: RandomEvents.Configuration) {
    var events = RandomEvents(configuration: configuration, random: SplitMix64(seed: seed))
    print("\(configuration.testDescription): seed \(seed)")
    var recent = RecentEvents()
    var step = 0
    while step < Self.stepCount {
      let channel = ChannelDriver(replayLimit: configuration.replay)
      var model = ChannelModel(replayLimit: configuration.replay)
      var retention = Retention()
      var stepsAfterTermination = 0
      while step < Self.stepCount, stepsAfterTermination < Self.stepLimitAfterTermination {
        let event = events.next(for: model)
        recent.append(event)
        let expected = model.apply(event, callNumber: step)
        // As in `Lockstep`, the order of the answers is specified only for the calls of one subscriber.
        let answers = channel.apply(event, callNumber: step).enumerated()
          .sorted { ($0.element.call.slot, $0.offset) < ($1.element.call.slot, $1.offset) }.map(\.element)
        retention.record(model)
        let fault =
          answers != expected ? "answers \(answers), not \(expected)" : difference(channel, model, retention)
        if let fault {
          Issue.record("seed \(seed), step \(step): \(fault)\nafter \(recent)")
          return
        }
        if model.termination != nil { stepsAfterTermination += 1 }
        step += 1
      }
    }
  }

  private func difference(_ channel: ChannelDriver, _ model: ChannelModel, _ retention: Retention) -> String? {
    if channel.subscriberCount != model.subscriberCount {
      return "subscriberCount \(channel.subscriberCount), not \(model.subscriberCount)"
    }
    if channel.latest != model.latest { return "latest \(channel.latest as Any), not \(model.latest as Any)" }
    for slot in model.subscribers.indices {
      guard let subscriber = model.subscribers[slot] else { continue }
      let dropped = channel.droppedCount(slot)
      if dropped != subscriber.droppedCount {
        return "slot \(slot): droppedCount \(dropped), not \(subscriber.droppedCount)"
      }
    }
    return retentionFault(channel.liveCount.value, model, retention)
  }

  private func retentionFault(_ liveCount: Int, _ model: ChannelModel, _ retention: Retention) -> String? {
    // While all cursor subscribers wait, the log keeps exactly the needed elements. Otherwise, it may release elements
    // up to `Retention.releaseInterval` sends late. Elements before `oldest` are alive only in subscribers' buffers.
    let allWait = model.allCursorSubscribersWait
    let oldest = allWait ? model.oldestNeeded : retention.oldestAllowed
    var onlyBuffered = Set<Int>()
    for case let subscriber? in model.subscribers where !subscriber.policy.usesCursor {
      onlyBuffered.formUnion(subscriber.backlog.prefix { $0 < oldest })
    }
    let allowedCount = model.sentCount - oldest + onlyBuffered.count
    if allWait ? liveCount == allowedCount : liveCount <= allowedCount { return nil }
    return "\(liveCount) elements are alive, not \(allowedCount)\(allWait ? "" : " or fewer")"
  }
}

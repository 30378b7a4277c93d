import Foundation
import MulticastTesting
import Testing

@testable import Multicast

/// Comparisons of the state machine and of a real channel with the ``ChannelModel``, in long random runs.
///
/// A failure reports its seed. Set the environment variable `MOMENTS_SEED` to that seed to repeat the run.
@Suite struct RandomTests {
  static let stepCount = 100_000
  let seed =
    ProcessInfo.processInfo.environment["MOMENTS_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 0...(.max))

  @Test(arguments: RandomEvents.configurations)
  func `A long random run of the state machine agrees with the model`(_ configuration: RandomEvents.Configuration) {
    var events = RandomEvents(configuration: configuration, generator: SplitMix64(seed: seed))
    print("\(configuration.testDescription): seed \(seed)")
    var recent = RecentEvents()
    var step = 0
    while step < Self.stepCount {
      var channel = Lockstep(replayLimit: configuration.replay)
      var retention = Retention()
      var stepsAfterEnd = 0
      while step < Self.stepCount, stepsAfterEnd < 50 {
        let event = events.next(for: channel.model)
        recent.append(event)
        // Backlogs are compared only now and then, because comparing long ones is slow.
        var fault = channel.apply(event, comparingBacklogs: step.isMultiple(of: 64))
        retention.record(channel.model)
        if channel.driver.state.floor < retention.oldestAllowed {
          fault = "\(channel.driver.state.floor) is kept, but the oldest position allowed is \(retention.oldestAllowed)"
        }
        if let fault {
          Issue.record("seed \(seed), step \(step): \(fault)\nafter \(recent)")
          return
        }
        if channel.model.end != nil { stepsAfterEnd += 1 }
        step += 1
      }
    }
  }

  @Test(arguments: RandomEvents.configurations)
  func `A long random run of a channel agrees with the model`(_ configuration: RandomEvents.Configuration) {
    var events = RandomEvents(configuration: configuration, generator: SplitMix64(seed: seed))
    print("\(configuration.testDescription): seed \(seed)")
    var recent = RecentEvents()
    var step = 0
    while step < Self.stepCount {
      let channel = ChannelDriver(replayLimit: configuration.replay)
      var model = ChannelModel(replayLimit: configuration.replay)
      var retention = Retention()
      var stepsAfterEnd = 0
      while step < Self.stepCount, stepsAfterEnd < 50 {
        let event = events.next(for: model)
        recent.append(event)
        let expected = model.apply(event, call: step)
        // As in `Lockstep`, the order of the answers is specified only for the calls of one subscriber.
        let answers = channel.apply(event, call: step).enumerated()
          .sorted { ($0.element.call.slot, $0.offset) < ($1.element.call.slot, $1.offset) }.map(\.element)
        retention.record(model)
        let fault =
          answers != expected ? "answers \(answers), not \(expected)" : difference(channel, model, retention)
        if let fault {
          Issue.record("seed \(seed), step \(step): \(fault)\nafter \(recent)")
          return
        }
        if model.end != nil { stepsAfterEnd += 1 }
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
    return retentionFault(channel.live.value, model, retention)
  }

  private func retentionFault(_ live: Int, _ model: ChannelModel, _ retention: Retention) -> String? {
    let allWait = model.allCursorSubscribersWait
    let oldest = allWait ? model.oldestNeeded : retention.oldestAllowed
    var buffered = Set<Int>()
    for case let subscriber? in model.subscribers where !subscriber.policy.usesCursor {
      buffered.formUnion(subscriber.backlog.prefix { $0 < oldest })
    }
    let allowed = model.sentCount - oldest + buffered.count
    if allWait ? live == allowed : live <= allowed { return nil }
    return "\(live) elements are alive, not \(allowed)\(allWait ? "" : " or fewer")"
  }
}

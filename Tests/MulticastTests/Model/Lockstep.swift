@testable import Multicast

/// A ``ChannelState`` and the model, driven by the same events and compared after each.
struct Lockstep {
  private(set) var driver: StateDriver
  private(set) var model: ChannelModel
  private var callCount = 0
  private var receivedCounts: [Int] = []

  init(replayLimit: Int) {
    driver = StateDriver(replayLimit: replayLimit)
    model = ChannelModel(replayLimit: replayLimit)
  }

  /// Makes an event happen to both.
  ///
  /// - Returns: What differs between them, or contradicts a rule; nil if nothing does.
  mutating func apply(_ event: ChannelEvent, comparingBacklogs: Bool = true) -> String? {
    callCount += 1
    if case .subscribe = event { beginCounting(at: model.nextSlot) }
    let expected = model.apply(event, call: callCount)
    var answers = driver.apply(event, call: callCount)
    // Who of several readers is resumed first is not promised. Within one reader it is: there the calls stand in line.
    if answers.count > 1 { answers.sort { $0.call.slot < $1.call.slot } }
    if answers != expected { return "answers \(answers), not \(expected)" }
    for answer in answers { if case .element = answer.outcome { receivedCounts[answer.call.slot] += 1 } }
    return difference(comparingBacklogs: comparingBacklogs) ?? retentionFault
  }

  /// Counts anew for the reader that is about to subscribe.
  private mutating func beginCounting(at slot: Int) {
    if slot == receivedCounts.count { receivedCounts.append(0) }
    receivedCounts[slot] = 0
  }

  private func difference(comparingBacklogs: Bool) -> String? {
    let state = driver.state
    if state.subscriberCount != model.subscriberCount {
      return "subscriberCount \(state.subscriberCount), not \(model.subscriberCount)"
    }
    if driver.latest != model.latest { return "latest \(driver.latest as Any), not \(model.latest as Any)" }
    for slot in model.readers.indices {
      guard let reader = model.readers[slot] else { continue }
      let dropped = driver.droppedCount(slot)
      if dropped != reader.droppedCount { return "reader \(slot): droppedCount \(dropped), not \(reader.droppedCount)" }
      let isReadable = driver.isReadable(slot)
      if isReadable != reader.isReadable { return "reader \(slot): isReadable \(isReadable)" }
      guard comparingBacklogs else { continue }
      let backlog = driver.backlog(slot)
      if backlog != reader.backlog { return "reader \(slot): left to read \(backlog), not \(reader.backlog)" }
      if receivedCounts[slot] + dropped + backlog.count != reader.offeredCount {
        return """
          reader \(slot): received \(receivedCounts[slot]) + dropped \(dropped) + left \(backlog.count) is not \
          replayed and sent \(reader.offeredCount)
          """
      }
    }
    return nil
  }

  private var retentionFault: String? {
    let floor = driver.state.floor
    if driver.kept.count != driver.state.head - floor { return "kept \(driver.kept) is not from \(floor) to the head" }
    let needed = model.oldestNeeded
    if floor > needed { return "\(needed) is needed, but gone: the floor is \(floor)" }
    // After the end what is left goes with the readers.
    if model.allFollowersWait, floor != needed {
      return "nobody needs what is kept before \(needed), but the floor is \(floor) while all wait"
    }
    return nil
  }
}

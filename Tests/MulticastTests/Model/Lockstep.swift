@testable import Multicast

/// A ``ChannelState`` and a ``ChannelModel``, which are driven by the same events and compared after each.
struct Lockstep {
  private(set) var driver: StateDriver
  private(set) var model: ChannelModel
  private var eventCount = 0
  private var receivedCounts: [Int] = []

  init(replayLimit: Int) {
    driver = StateDriver(replayLimit: replayLimit)
    model = ChannelModel(replayLimit: replayLimit)
  }

  /// Applies an event to the state and to the model.
  ///
  /// - Returns: A description of a difference between the two or of a broken rule, or `nil` if there is neither.
  mutating func apply(_ event: ChannelEvent, comparingBacklogs: Bool = true) -> String? {
    eventCount += 1
    if case .subscribe = event { resetReceivedCount(at: model.nextSlot) }
    let expected = model.apply(event, callNumber: eventCount)
    var answers = driver.apply(event, callNumber: eventCount)
    // Sorted, because the order in which different subscribers are resumed is unspecified. The answers of one
    // subscriber keep their order.
    if answers.count > 1 { answers.sort { $0.call.slot < $1.call.slot } }
    if answers != expected { return "answers \(answers), not \(expected)" }
    for answer in answers { if case .element = answer.outcome { receivedCounts[answer.call.slot] += 1 } }
    return difference(comparingBacklogs: comparingBacklogs) ?? retentionFault
  }

  /// Resets the number of elements received in a slot, before a new subscriber occupies it.
  private mutating func resetReceivedCount(at slot: Int) {
    if slot == receivedCounts.count { receivedCounts.append(0) }
    receivedCounts[slot] = 0
  }

  private func difference(comparingBacklogs: Bool) -> String? {
    let state = driver.state
    if state.subscriberCount != model.subscriberCount {
      return "subscriberCount \(state.subscriberCount), not \(model.subscriberCount)"
    }
    if driver.latest != model.latest { return "latest \(driver.latest as Any), not \(model.latest as Any)" }
    for slot in model.subscribers.indices {
      guard let subscriber = model.subscribers[slot] else { continue }
      let dropped = driver.droppedCount(slot)
      if dropped != subscriber.droppedCount {
        return "slot \(slot): droppedCount \(dropped), not \(subscriber.droppedCount)"
      }
      let isReadable = driver.isReadable(slot)
      if isReadable != subscriber.isReadable { return "slot \(slot): isReadable \(isReadable)" }
      guard comparingBacklogs else { continue }
      let backlog = driver.backlog(slot)
      if backlog != subscriber.backlog { return "slot \(slot): left to read \(backlog), not \(subscriber.backlog)" }
      if receivedCounts[slot] + dropped + backlog.count != subscriber.offeredCount {
        return """
          slot \(slot): received \(receivedCounts[slot]) + dropped \(dropped) + left \(backlog.count) differs from \
          the \(subscriber.offeredCount) replayed and sent
          """
      }
    }
    return nil
  }

  private var retentionFault: String? {
    let floor = driver.state.floor
    if driver.kept.count != driver.state.head - floor { return "kept \(driver.kept) is not from \(floor) to the head" }
    let needed = model.oldestNeeded
    if floor > needed { return "\(needed) is needed, but was released: the floor is \(floor)" }
    // `allCursorSubscribersWait` ignores subscribers that have ended. After termination, it holds only once all cursor
    // subscribers have ended, because no call is suspended any more. The last one to end raises the floor.
    if model.allCursorSubscribersWait, floor != needed {
      return "all cursor subscribers wait and need nothing before \(needed), but the floor is \(floor)"
    }
    return nil
  }
}

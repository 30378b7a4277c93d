import MulticastTesting
import Testing

/// A generator of random events that are possible in a model's state.
struct RandomEvents {
  /// The kind of channel, and the load on its subscribers.
  struct Configuration: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let replay: Int
    let subscriberLimit: Int
    let policies: [ModelPolicy]
    /// The percentage of draws that select a call of `next()`.
    ///
    /// If no such call is possible, the generator draws again.
    let nextShare: Int
    /// The approximate percentage of draws that select a send.
    let sendShare: Int
    /// The maximum number of suspended calls of one subscriber.
    var waiterLimit = 2
  }

  static let configurations = [
    Configuration(
      testDescription: "8 subscribers, all policies, replay 2", replay: 2, subscriberLimit: 8,
      policies: ModelPolicy.all(capacities: [1, 2, 3, 7, 40]), nextShare: 60, sendShare: 25),
    Configuration(
      testDescription: "8 fast subscribers, all policies, no replay", replay: 0, subscriberLimit: 8,
      policies: ModelPolicy.all(capacities: [1, 2, 5]), nextShare: 80, sendShare: 12, waiterLimit: 3),
    Configuration(
      testDescription: "6 lagging cursor subscribers, replay 20", replay: 20, subscriberLimit: 6,
      policies: [.unbounded, .dropOldest(1), .dropOldest(30), .dropOldest(100)], nextShare: 50, sendShare: 46),
    Configuration(
      testDescription: "2 unbounded subscribers, replay 1", replay: 1, subscriberLimit: 2, policies: [.unbounded],
      nextShare: 66, sendShare: 32),
  ]

  let configuration: Configuration
  var generator: SplitMix64

  /// Returns the next event.
  ///
  /// About one draw in 2,000 terminates the channel.
  mutating func next(for model: ChannelModel) -> ChannelEvent {
    while true {
      let draw = Int.random(in: 0..<10_000, using: &generator)
      switch draw {
      case 0..<2: return .finish
      case 2..<5: return .fail
      case 5..<35: return .resetReplay
      case ..<(configuration.sendShare * 100): return .send
      case ..<((configuration.sendShare + configuration.nextShare) * 100):
        guard let slot = slot(in: model) else { continue }
        if model.subscribers[slot]!.waiters.count < configuration.waiterLimit { return .next(slot) }
      default:
        if let event = arrivalOrDeparture(in: model) { return event }
      }
    }
  }

  private mutating func arrivalOrDeparture(in model: ChannelModel) -> ChannelEvent? {
    if model.subscribers.count(where: { $0 != nil }) < configuration.subscriberLimit, Bool.random(using: &generator) {
      return .subscribe(configuration.policies.randomElement(using: &generator)!)
    }
    guard let slot = slot(in: model) else { return nil }
    let subscriber = model.subscribers[slot]!
    // A subscriber that isn't done seldom leaves, because otherwise none would stay long enough to lag.
    guard subscriber.isDone || Int.random(in: 0..<4, using: &generator) == 0 else { return nil }
    if subscriber.waiters.isEmpty, Bool.random(using: &generator) { return .drop(slot) }
    return .cancel(slot)
  }

  private mutating func slot(in model: ChannelModel) -> Int? {
    let slot = Int.random(in: 0..<configuration.subscriberLimit, using: &generator)
    return slot < model.subscribers.count && model.subscribers[slot] != nil ? slot : nil
  }
}

/// The last events of a run, for its failure message.
struct RecentEvents: CustomStringConvertible {
  private var events: [ChannelEvent] = []

  mutating func append(_ event: ChannelEvent) {
    if events.count == 80 { events.removeFirst(40) }
    events.append(event)
  }

  var description: String { events.suffix(40).map { "\($0)" }.joined(separator: ", ") }
}

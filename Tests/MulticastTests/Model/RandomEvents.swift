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
    let nextPercentage: Int
    /// The approximate percentage of draws that select a send.
    let sendPercentage: Int
    /// The maximum number of suspended calls of one subscriber.
    var waiterLimit = 2
  }

  static let configurations = [
    Configuration(
      testDescription: "8 subscribers, all policies, replay 2", replay: 2, subscriberLimit: 8,
      policies: ModelPolicy.all(capacities: [1, 2, 3, 7, 40]), nextPercentage: 60, sendPercentage: 25),
    Configuration(
      testDescription: "8 fast subscribers, all policies, no replay", replay: 0, subscriberLimit: 8,
      policies: ModelPolicy.all(capacities: [1, 2, 5]), nextPercentage: 80, sendPercentage: 12, waiterLimit: 3),
    Configuration(
      testDescription: "6 lagging cursor subscribers, replay 20", replay: 20, subscriberLimit: 6,
      policies: [.unbounded, .dropOldest(1), .dropOldest(30), .dropOldest(100)], nextPercentage: 50,
      sendPercentage: 46),
    Configuration(
      testDescription: "2 unbounded subscribers, replay 1", replay: 1, subscriberLimit: 2, policies: [.unbounded],
      nextPercentage: 66, sendPercentage: 32),
  ]

  let configuration: Configuration
  var random: SplitMix64

  /// Returns the next event.
  ///
  /// About one draw in 2,000 terminates the channel.
  mutating func next(for model: ChannelModel) -> ChannelEvent {
    while true {
      let draw = Int.random(in: 0..<10_000, using: &random)
      switch draw {
      case 0..<2: return .finish
      case 2..<5: return .fail
      case 5..<35: return .resetReplay
      case ..<(configuration.sendPercentage * 100): return .send
      case ..<((configuration.sendPercentage + configuration.nextPercentage) * 100):
        guard let slot = drawSlot(in: model) else { continue }
        if model.subscribers[slot]!.waiters.count < configuration.waiterLimit { return .next(slot) }
      default:
        if let event = drawArrivalOrDeparture(in: model) { return event }
      }
    }
  }

  /// Draws the registration, cancellation or release of a subscriber, or returns `nil` if the caller must draw again.
  private mutating func drawArrivalOrDeparture(in model: ChannelModel) -> ChannelEvent? {
    if model.subscribers.count(where: { $0 != nil }) < configuration.subscriberLimit, Bool.random(using: &random) {
      return .subscribe(configuration.policies.randomElement(using: &random)!)
    }
    guard let slot = drawSlot(in: model) else { return nil }
    let subscriber = model.subscribers[slot]!
    // A subscriber that hasn't ended seldom leaves, because otherwise none would stay long enough to lag.
    guard subscriber.hasEnded || Int.random(in: 0..<4, using: &random) == 0 else { return nil }
    if subscriber.waiters.isEmpty, Bool.random(using: &random) { return .releaseSubscriber(slot) }
    return .cancel(slot)
  }

  /// Draws one of the slots, and returns `nil` if it has no subscriber.
  private mutating func drawSlot(in model: ChannelModel) -> Int? {
    let slot = Int.random(in: 0..<configuration.subscriberLimit, using: &random)
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

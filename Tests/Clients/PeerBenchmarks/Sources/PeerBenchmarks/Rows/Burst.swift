internal import BenchmarkKit

/// The row `burst`: a producer sends as fast as possible to suspended subscribers, and finishes.
///
/// The measurement ends when every subscriber has received all elements. Each subscriber's tally is checked. The lossy
/// system loses an element, so it must fail that check.
struct Burst<Element: Payload>: Sendable {
  private let subscribers: Int
  private let options: Options
  private let pool = Element.pool

  init(subscribers: Int, _ options: Options) {
    self.subscribers = subscribers
    self.options = options
  }

  var comparison: Comparison<Setting> {
    Comparison(
      Setting(row: .burst, element: Element.label, subscribers: subscribers),
      contestants: options.systems.compactMap { system in
        switch system {
        case .multicast: contestant { MulticastSystem<Element>() }
        case .dictionary: contestant { AsyncStreamDictionary<Element>() }
        case .share: contestant { SharedAsyncStream<Element>() }
        case .opencombine: contestant { OpenCombineSubject<Element>() }
        case .lossy: contestant { LossyBroadcast<Element>() }
        case .continuations: nil
        }
      })
  }

  /// The number of sends, for about 400,000 to 1,500,000 deliveries.
  private var unscaledSends: Int {
    switch subscribers {
    case ..<8: 400_000 / subscribers
    case ..<64: 800_000 / subscribers
    case ..<512: 1_280_000 / subscribers
    default: 1_536_000 / subscribers
    }
  }

  private func contestant<System: Broadcast<Element>>(
    _ makeSystem: @escaping @Sendable () -> System
  ) -> Contestant {
    let sends = options.scaled(System.affordable(unscaledSends, subscribers: subscribers))
    return Contestant(label: System.label, count: sends) { try await run(makeSystem(), sends: sends) }
  }

  private func run<System: Broadcast<Element>>(_ system: System, sends: Int) async throws -> [Reading] {
    let expected = pool.tally(of: 0..<sends)
    let registered = Arrivals(expecting: subscribers)
    let acknowledged = Arrivals(expecting: subscribers)
    return try await withThrowingTaskGroup { group in
      for _ in 0..<subscribers {
        group.addTask { try await Self.read(system, registered, acknowledged) }
      }
      await registered.all()
      // Once a subscriber has acknowledged this warm-up element, it suspends before its thread runs another task. After
      // the last acknowledgement, all subscribers are therefore suspended, or about to suspend on other cores.
      system.send(pool[0])
      await acknowledged.all()

      let clock = ContinuousClock()
      let start = clock.now
      for position in 0..<sends { system.send(pool[position]) }
      let sendingEnd = clock.now
      system.finish()
      var tallies: [Tally] = []
      tallies.reserveCapacity(subscribers)
      for try await tally in group { tallies.append(tally) }
      let deliveryEnd = clock.now

      for tally in tallies { try tally.check(against: expected, system: System.label) }
      return [
        Reading(
          metric: "delivery", unit: "ns", value: (deliveryEnd - start).nanoseconds / Double(sends * subscribers)),
        Reading(metric: "producer, each send", unit: "ns", value: (sendingEnd - start).nanoseconds / Double(sends)),
      ]
    }
  }

  private static func read<System: Broadcast<Element>>(
    _ system: System, _ registered: Arrivals, _ acknowledged: Arrivals
  ) async throws -> Tally {
    var iterator = system.subscribe().makeAsyncIterator()
    registered.arrive()
    _ = try await iterator.next(isolation: nil)
    acknowledged.arrive()
    var tally = Tally()
    while let element = try await iterator.next(isolation: nil) { tally.add(element.number) }
    return tally
  }
}

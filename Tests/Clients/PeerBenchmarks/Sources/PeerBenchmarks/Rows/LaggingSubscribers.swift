internal import BenchmarkKit

/// The row `producer`: a producer sends to registered subscribers that never read.
///
/// The figure with 512 subscribers divided by the figure with one shows how much subscribers slow down the producer.
struct LaggingSubscribers<Element: Payload>: Sendable {
  private let subscribers: Int
  private let options: Options
  private let pool = Element.pool

  init(subscribers: Int, _ options: Options) {
    self.subscribers = subscribers
    self.options = options
  }

  var comparison: Comparison<Setting> {
    Comparison(
      Setting(row: .producer, element: Element.label, subscribers: subscribers),
      contestants: options.systems.compactMap { system in
        switch system {
        case .multicast: contestant(unscaledSends: 20_000) { MulticastSystem<Element>() }
        case .dictionary: contestant(unscaledSends: sendsAtLinearCost) { AsyncStreamDictionary<Element>() }
        case .share: contestant(unscaledSends: 20_000) { SharedAsyncStream<Element>() }
        case .opencombine: contestant(unscaledSends: sendsAtLinearCost) { OpenCombineSubject<Element>() }
        case .continuations, .lossy: nil
        }
      })
  }

  /// The number of sends of a system whose `send` takes time in proportion to the number of subscribers.
  private var sendsAtLinearCost: Int { min(20_000, 1_024_000 / subscribers) }

  private func contestant<System: Broadcast<Element>>(
    unscaledSends: Int, _ makeSystem: @escaping @Sendable () -> System
  ) -> Contestant {
    let sends = options.scaled(unscaledSends)
    return Contestant(label: System.label, count: sends) { run(makeSystem(), sends: sends) }
  }

  private func run<System: Broadcast<Element>>(_ system: System, sends: Int) -> [Reading] {
    let iterators = (0..<subscribers).map { _ in system.subscribe().makeAsyncIterator() }
    let time = ContinuousClock().measure {
      for position in 0..<sends { system.send(pool[position]) }
    }
    return withExtendedLifetime(iterators) {
      [Reading(metric: "producer, each send", unit: "ns", value: time.nanoseconds / Double(sends))]
    }
  }
}

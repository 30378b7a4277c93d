internal import BenchmarkKit

/// The row `subscribe`: one task repeatedly subscribes, reads the replayed element, and releases its iterator.
///
/// `share` is left out because it has no replay, and OpenCombine because a subscriber stays registered when its
/// iterator is released. Bare continuations are only in the row `wake`, and the lossy system is only in `burst`.
struct Subscribing<Element: Payload>: Sendable {
  private let options: Options
  private let replayedElement = Element(number: 7)

  init(_ options: Options) {
    self.options = options
  }

  var comparison: Comparison<Setting> {
    Comparison(
      Setting(row: .subscribe, element: Element.label, subscribers: 1),
      contestants: options.systems.compactMap { system in
        switch system {
        case .multicast: contestant { MulticastSystem<Element>(replay: 1) }
        case .dictionary: contestant { AsyncStreamDictionary<Element>(replaysLast: true) }
        case .share, .opencombine, .continuations, .lossy: nil
        }
      })
  }

  private func contestant<System: ReplayingBroadcast<Element>>(
    _ makeSystem: @escaping @Sendable () -> System
  ) -> Contestant {
    let cycles = options.scaled(100_000)
    return Contestant(label: System.label, count: cycles) { try await run(makeSystem(), cycles: cycles) }
  }

  private func run<System: ReplayingBroadcast<Element>>(_ system: System, cycles: Int) async throws -> [Reading] {
    var expected = Tally()
    for _ in 0..<cycles { expected.add(replayedElement.number) }
    system.send(replayedElement)
    var tally = Tally()
    let clock = ContinuousClock()
    let start = clock.now
    for _ in 0..<cycles {
      var iterator = system.subscribe().makeAsyncIterator()
      if let element = try await iterator.next(isolation: nil) { tally.add(element.number) }
    }
    let time = clock.now - start
    try tally.check(against: expected, system: System.label)
    guard system.subscriberCount == 0 else {
      throw BenchmarkError.stillRegistered(system: System.label, subscribers: system.subscriberCount)
    }
    return [Reading(metric: "subscription", unit: "µs", value: time.nanoseconds / 1e3 / Double(cycles))]
  }
}

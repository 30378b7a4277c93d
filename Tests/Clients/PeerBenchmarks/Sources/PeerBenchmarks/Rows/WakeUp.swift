internal import BenchmarkKit

/// The row `wake`: a producer repeatedly sends one element to suspended subscribers and waits for all acknowledgements.
///
/// Bare continuations show the runtime's own share of the time.
struct WakeUp<Element: Payload>: Sendable {
  private let subscribers: Int
  private let options: Options
  private let pool = Element.pool
  private let warmUpRounds = 10

  init(subscribers: Int, _ options: Options) {
    self.subscribers = subscribers
    self.options = options
  }

  var comparison: Comparison<Setting> {
    Comparison(
      Setting(row: .wake, element: Element.label, subscribers: subscribers),
      contestants: options.systems.compactMap { system in
        switch system {
        case .multicast: contestant { MulticastSystem<Element>() }
        case .dictionary: contestant { AsyncStreamDictionary<Element>() }
        case .share: contestant { SharedAsyncStream<Element>() }
        case .opencombine: contestant { OpenCombineSubject<Element>() }
        case .continuations: bareContinuations
        // The lossy system loses an element, so the producer would wait forever for that element's acknowledgements.
        case .lossy: nil
        }
      })
  }

  /// The number of rounds at scale 1, for about 200,000 deliveries.
  private var unscaledRounds: Int { 200_000 / subscribers }

  private func contestant<System: Broadcast<Element>>(
    _ make: @escaping @Sendable () -> System
  ) -> Contestant {
    let rounds = options.scaled(System.affordable(unscaledRounds, subscribers: subscribers))
    return Contestant(label: System.label, count: rounds) { try await run(make(), rounds: rounds) }
  }

  private func run<System: Broadcast<Element>>(_ system: System, rounds: Int) async throws -> [Reading] {
    let expected = pool.tally(of: 0..<warmUpRounds + rounds)
    let registered = Arrivals(expecting: subscribers)
    let acknowledged = Arrivals(expecting: subscribers)
    return try await withThrowingTaskGroup { group in
      for _ in 0..<subscribers {
        group.addTask { try await Self.read(system, registered, acknowledged) }
      }
      await registered.all()
      for position in 0..<warmUpRounds {
        system.send(pool[position])
        await acknowledged.all()
      }

      let clock = ContinuousClock()
      let start = clock.now
      for position in warmUpRounds..<warmUpRounds + rounds {
        system.send(pool[position])
        await acknowledged.all()
      }
      let time = clock.now - start

      system.finish()
      for try await tally in group { try tally.check(against: expected, system: System.label) }
      return [reading(time, rounds: rounds)]
    }
  }

  private static func read<System: Broadcast<Element>>(
    _ system: System, _ registered: Arrivals, _ acknowledged: Arrivals
  ) async throws -> Tally {
    var iterator = system.subscribe().makeAsyncIterator()
    registered.arrive()
    var tally = Tally()
    while let element = try await iterator.next(isolation: nil) {
      tally.add(element.number)
      acknowledged.arrive()
    }
    return tally
  }

  /// The lower limit, which no broadcast can reach.
  private var bareContinuations: Contestant {
    let rounds = options.scaled(unscaledRounds)
    return Contestant(label: "bare continuations", count: rounds) { try await runBareContinuations(rounds: rounds) }
  }

  private func runBareContinuations(rounds: Int) async throws -> [Reading] {
    let slots = (0..<subscribers).map { _ in HandOffSlot<Element>() }
    let sends = warmUpRounds + rounds
    let expected = pool.tally(of: 0..<sends)
    let acknowledged = Arrivals(expecting: subscribers)
    return try await withThrowingTaskGroup { group in
      for slot in slots {
        group.addTask {
          var tally = Tally()
          for _ in 0..<sends {
            tally.add(await slot.take().number)
            acknowledged.arrive()
          }
          return tally
        }
      }
      let clock = ContinuousClock()
      var start = clock.now
      for position in 0..<sends {
        if position == warmUpRounds { start = clock.now }
        for slot in slots { slot.put(pool[position]) }
        await acknowledged.all()
      }
      let time = clock.now - start
      for try await tally in group { try tally.check(against: expected, system: "bare continuations") }
      return [reading(time, rounds: rounds)]
    }
  }

  private func reading(_ time: Duration, rounds: Int) -> Reading {
    Reading(metric: "delivery", unit: "µs", value: time.nanoseconds / 1e3 / Double(rounds * subscribers))
  }
}

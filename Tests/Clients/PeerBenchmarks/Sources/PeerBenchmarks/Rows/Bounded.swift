internal import BenchmarkKit
internal import Multicast

/// The row `bounded`: subscribers with bounded buffers, without and with overflow.
///
/// The producer repeatedly sends a round of elements, and waits until every subscriber has read those that its buffer
/// kept.
struct Bounded<Element: Payload>: Sendable {
  private let options: Options
  private let pool = Element.pool
  private let subscribers = 64
  private let capacity = 64
  private let warmUpRounds = 2

  init(_ options: Options) {
    self.options = options
  }

  /// A comparison with rounds of as many elements as a buffer holds, so that no element is ever dropped.
  var keepingUpComparison: Comparison<Setting> {
    comparison("keeping up") { system in
      switch system {
      case .multicast:
        [contestant(overflows: false, makeDropNewestSystem), contestant(overflows: false, makeErrorSystem)]
      case .dictionary: [contestant(overflows: false, makeDictionarySystem)]
      case .share, .opencombine, .continuations, .lossy: []
      }
    }
  }

  /// A comparison with rounds of twice as many elements as a buffer holds.
  ///
  /// They are sent while no subscriber reads, so that each subscriber drops the second half of each round.
  var overflowingComparison: Comparison<Setting> {
    comparison("overflowing") { system in
      switch system {
      case .multicast: [contestant(overflows: true, makeDropNewestSystem)]
      case .dictionary: [contestant(overflows: true, makeDictionarySystem)]
      case .share, .opencombine, .continuations, .lossy: []
      }
    }
  }

  private func makeDropNewestSystem() -> BoundedMulticastSystem<Element, Never> {
    BoundedMulticastSystem(.dropNewest(capacity))
  }

  private func makeErrorSystem() -> BoundedMulticastSystem<Element, BufferOverflow> {
    BoundedMulticastSystem(.error(capacity))
  }

  private func makeDictionarySystem() -> BoundedAsyncStreamDictionary<Element> {
    BoundedAsyncStreamDictionary(capacity: capacity)
  }

  private func comparison(_ variant: String, _ contestants: (SystemName) -> [Contestant]) -> Comparison<Setting> {
    Comparison(
      Setting(row: .bounded, variant: variant, element: Element.label, subscribers: subscribers),
      contestants: options.systems.flatMap(contestants))
  }

  private func contestant<System: BoundedBroadcast<Element>>(
    overflows: Bool, _ makeSystem: @escaping @Sendable () -> System
  ) -> Contestant {
    let roundSize = overflows ? 2 * capacity : capacity
    // At the default scale, a run sends 12,800 elements after the warm-up.
    let rounds = options.scaled(12_800 / roundSize)
    return Contestant(label: "\(System.label) \(makeSystem().policy)", count: rounds * roundSize) {
      try await run(makeSystem(), overflows: overflows, roundSize: roundSize, rounds: rounds)
    }
  }

  private func run<System: BoundedBroadcast<Element>>(
    _ system: System, overflows: Bool, roundSize: Int, rounds: Int
  ) async throws -> [Reading] {
    let totalRounds = warmUpRounds + rounds
    var expected = Tally()
    for _ in 0..<totalRounds {
      for position in 0..<capacity { expected.add(pool[position].number) }
    }
    let streams = (0..<subscribers).map { _ in system.subscribe() }
    // The gates keep overflowing subscribers from reading until a round is sent.
    let gates = overflows ? streams.map { _ in HandOffSlot<Void>() } : []
    let acknowledged = Arrivals(expecting: subscribers)
    return try await withThrowingTaskGroup { group in
      for (index, stream) in streams.enumerated() {
        let gate = overflows ? gates[index] : nil
        group.addTask { try await read(stream, rounds: totalRounds, gate, acknowledged) }
      }
      let clock = ContinuousClock()
      var start = clock.now
      for round in 0..<totalRounds {
        if round == warmUpRounds { start = clock.now }
        for position in 0..<roundSize { system.send(pool[position]) }
        for gate in gates { gate.put(()) }
        await acknowledged.all()
      }
      let time = clock.now - start

      system.finish()
      var received = 0
      for try await tally in group {
        try tally.check(against: expected, system: System.label)
        received += tally.count
      }
      let dropped = system.droppedCount(streams)
      guard received + dropped == totalRounds * roundSize * subscribers else {
        throw BenchmarkError.wrongDrops(
          system: System.label, sent: totalRounds * roundSize * subscribers, received: received, dropped: dropped)
      }
      let measuredCount = rounds * roundSize * subscribers
      return [
        Reading(
          metric: "element sent to a subscriber", unit: "ns", value: time.nanoseconds / Double(measuredCount))
      ]
    }
  }

  private func read<Elements: AsyncSequence>(
    _ elements: Elements, rounds: Int, _ gate: HandOffSlot<Void>?, _ acknowledged: Arrivals
  ) async throws -> Tally where Elements.Element == Element {
    var iterator = elements.makeAsyncIterator()
    var tally = Tally()
    for _ in 0..<rounds {
      if let gate { await gate.take() }
      for _ in 0..<capacity {
        guard let element = try await iterator.next(isolation: nil) else { return tally }
        tally.add(element.number)
      }
      acknowledged.arrive()
    }
    while let element = try await iterator.next(isolation: nil) { tally.add(element.number) }
    return tally
  }
}

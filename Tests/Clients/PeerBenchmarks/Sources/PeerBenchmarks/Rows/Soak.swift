internal import BenchmarkKit
internal import Multicast

/// The row `soak`: the growth of memory during long use.
///
/// Each system is measured in a process of its own.
struct Soak<Element: Payload>: Sendable {
  private let options: Options

  private static var capacity: Int { 64 }

  init(_ options: Options) {
    self.options = options
  }

  /// A comparison in which one subscriber buffers the newest 64 elements and reads nothing during a million sends.
  var stalledSubscriberComparison: Comparison<Setting> {
    comparison("a stalled subscriber that buffers the newest \(Self.capacity)", .stalledSubscriber)
  }

  /// A comparison in which a million subscribers join and leave, one after the other, with one send for each.
  ///
  /// Subscribers leave alternately by the release of their iterator and by the cancellation of their task.
  var subscriptionsComparison: Comparison<Setting> {
    comparison("subscribers that join and leave", .subscriptions)
  }

  private func comparison(_ variant: String, _ work: Child.Work) -> Comparison<Setting> {
    Comparison(
      Setting(row: .soak, variant: variant, element: Element.label, subscribers: 1),
      contestants: options.systems.compactMap { system in
        switch system {
        case .multicast: contestant(system, MulticastSystem<Element>.label, work)
        case .dictionary: contestant(system, AsyncStreamDictionary<Element>.label, work)
        case .share, .opencombine, .continuations, .lossy: nil
        }
      })
  }

  private func contestant(_ system: SystemName, _ label: String, _ work: Child.Work) -> Contestant {
    let child = Child(
      work: work, system: system.rawValue, element: Element.name.rawValue, subscribers: 1,
      count: options.scaled(1_000_000))
    return Contestant(label: label, count: child.count) { try child.run().readings }
  }

  /// Performs the measurement in the child process.
  static func measureStalledSubscriber(_ system: SystemName, sends: Int) async throws -> MemoryGrowth {
    switch system {
    case .multicast:
      try await measureStalledSubscriber(MulticastSystem<Element>(buffering: .dropOldest(capacity)), sends)
    case .dictionary:
      try await measureStalledSubscriber(AsyncStreamDictionary<Element>(buffering: .bufferingNewest(capacity)), sends)
    case .share, .opencombine, .continuations, .lossy:
      throw BenchmarkError.usage("Row `soak` doesn't support \(system.rawValue).")
    }
  }

  /// Performs the measurement in the child process.
  static func measureSubscriptions(_ system: SystemName, cycles: Int) async throws -> MemoryGrowth {
    switch system {
    case .multicast: try await measureSubscriptions(MulticastSystem<Element>(), cycles)
    case .dictionary: try await measureSubscriptions(AsyncStreamDictionary<Element>(), cycles)
    case .share, .opencombine, .continuations, .lossy:
      throw BenchmarkError.usage("Row `soak` doesn't support \(system.rawValue).")
    }
  }

  private static func measureStalledSubscriber<System: Broadcast<Element>>(
    _ system: System, _ sends: Int
  ) async throws -> MemoryGrowth {
    let pool = ElementPool<Element>()
    var iterator = system.subscribe().makeAsyncIterator()
    let warmUpSends = 10_000
    for position in 0..<warmUpSends { system.send(pool[position]) }
    let growth = try await ResidentMemory.measureGrowth {
      for position in warmUpSends..<warmUpSends + sends { system.send(pool[position]) }
    }
    system.finish()
    var tally = Tally()
    while let element = try await iterator.next(isolation: nil) { tally.add(element.number) }
    let expected = pool.tally(of: warmUpSends + sends - capacity..<warmUpSends + sends)
    try tally.check(against: expected, system: System.label)
    return growth
  }

  private static func measureSubscriptions<System: ReplayingBroadcast<Element>>(
    _ system: System, _ cycles: Int
  ) async throws -> MemoryGrowth {
    let pool = ElementPool<Element>()
    let warmUpCycles = 10_000
    try await joinAndLeave(system, 0..<warmUpCycles, pool)
    return try await ResidentMemory.measureGrowth {
      try await joinAndLeave(system, warmUpCycles..<warmUpCycles + cycles, pool)
      guard system.subscriberCount == 0 else {
        throw BenchmarkError.stillRegistered(system: System.label, subscribers: system.subscriberCount)
      }
    }
  }

  private static func joinAndLeave<System: ReplayingBroadcast<Element>>(
    _ system: System, _ positions: Range<Int>, _ pool: ElementPool<Element>
  ) async throws {
    for position in positions {
      if position.isMultiple(of: 2) {
        let iterator = system.subscribe().makeAsyncIterator()
        withExtendedLifetime(iterator) { system.send(pool[position]) }
      } else {
        let subscriber = Task {
          var iterator = system.subscribe().makeAsyncIterator()
          var tally = Tally()
          while let element = try await iterator.next(isolation: nil) { tally.add(element.number) }
          return tally
        }
        system.send(pool[position])
        subscriber.cancel()
        _ = try await subscriber.value
      }
    }
  }
}

internal import BenchmarkKit

/// The row `memory`: the memory of the backlog of subscribers that never read.
///
/// Each system is measured in a process of its own.
struct Backlog<Element: Payload>: Sendable {
  private let options: Options
  private let subscribers = 512

  init(_ options: Options) {
    self.options = options
  }

  var comparison: Comparison<Setting> {
    Comparison(
      Setting(row: .memory, element: Element.label, subscribers: subscribers),
      contestants: options.systems.compactMap { system in
        switch system {
        case .multicast: contestant(system, MulticastSystem<Element>.label)
        case .dictionary: contestant(system, AsyncStreamDictionary<Element>.label)
        case .share: contestant(system, SharedAsyncStream<Element>.label)
        case .opencombine: contestant(system, OpenCombineSubject<Element>.label)
        case .continuations, .lossy: nil
        }
      })
  }

  private func contestant(_ system: SystemName, _ label: String) -> Contestant {
    let child = Child(
      work: .backlog, system: system.rawValue, element: Element.name.rawValue, subscribers: subscribers,
      count: options.scaled(10_000))
    return Contestant(label: label, count: child.count) { try child.run().readings }
  }

  /// Performs the measurement in the child process.
  static func measure(_ system: SystemName, subscribers: Int, sends: Int) async throws -> MemoryGrowth {
    switch system {
    case .multicast: try await measure(subscribers, sends) { MulticastSystem<Element>() }
    case .dictionary: try await measure(subscribers, sends) { AsyncStreamDictionary<Element>() }
    case .share: try await measure(subscribers, sends) { SharedAsyncStream<Element>() }
    case .opencombine: try await measure(subscribers, sends) { OpenCombineSubject<Element>() }
    case .continuations, .lossy: throw BenchmarkError.usage("Row `memory` doesn't support \(system.rawValue).")
    }
  }

  private static func measure<System: Broadcast<Element>>(
    _ subscribers: Int, _ sends: Int, _ makeSystem: () -> System
  ) async throws -> MemoryGrowth {
    let pool = ElementPool<Element>()
    // A small backlog first, so that code and tables that are loaded on first use don't count.
    buildBacklog(in: makeSystem(), subscribers: 8, sends: 100, pool)
    let system = makeSystem()
    let stalledIterators = (0..<subscribers).map { _ in system.subscribe().makeAsyncIterator() }
    let growth = try await ResidentMemory.measureGrowth {
      for position in 0..<sends { system.send(pool[position]) }
    }
    return withExtendedLifetime(stalledIterators) { growth }
  }

  private static func buildBacklog<System: Broadcast<Element>>(
    in system: System, subscribers: Int, sends: Int, _ pool: ElementPool<Element>
  ) {
    let stalledIterators = (0..<subscribers).map { _ in system.subscribe().makeAsyncIterator() }
    for position in 0..<sends { system.send(pool[position]) }
    withExtendedLifetime(stalledIterators) {}
  }
}

internal import BenchmarkKit

/// The row `memory`: the memory of the backlog of subscribers that never read.
///
/// Each system is measured in a process of its own.
struct Backlog<Element: Payload>: Sendable {
  private let options: Options
  private let readers = 512

  init(_ options: Options) {
    self.options = options
  }

  var comparison: Comparison<Setting> {
    Comparison(
      Setting(row: .memory, element: Element.label, readers: readers),
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
      work: .backlog, system: system.rawValue, element: Element.name.rawValue, readers: readers,
      count: options.scaled(10_000))
    return Contestant(label: label, count: child.count) { try child.run().readings }
  }

  /// Performs the measurement in this process.
  static func measure(_ system: SystemName, readers: Int, sends: Int) async throws -> MemoryGrowth {
    switch system {
    case .multicast: try await measure(readers, sends) { MulticastSystem<Element>() }
    case .dictionary: try await measure(readers, sends) { AsyncStreamDictionary<Element>() }
    case .share: try await measure(readers, sends) { SharedAsyncStream<Element>() }
    case .opencombine: try await measure(readers, sends) { OpenCombineSubject<Element>() }
    case .continuations, .lossy: throw BenchmarkError.usage("Row `memory` doesn't support \(system.rawValue).")
    }
  }

  private static func measure<System: Broadcast<Element>>(
    _ readers: Int, _ sends: Int, _ make: () -> System
  ) async throws -> MemoryGrowth {
    let pool = ElementPool<Element>()
    // A small backlog first, so that code and tables that are loaded on first use don't count.
    keepUnread(make(), readers: 8, sends: 100, pool)
    let system = make()
    let stalled = (0..<readers).map { _ in system.subscribe().makeAsyncIterator() }
    let growth = try await ResidentMemory.growth {
      for position in 0..<sends { system.send(pool[position]) }
    }
    return withExtendedLifetime(stalled) { growth }
  }

  private static func keepUnread<System: Broadcast<Element>>(
    _ system: System, readers: Int, sends: Int, _ pool: ElementPool<Element>
  ) {
    let stalled = (0..<readers).map { _ in system.subscribe().makeAsyncIterator() }
    for position in 0..<sends { system.send(pool[position]) }
    withExtendedLifetime(stalled) {}
  }
}

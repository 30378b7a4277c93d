internal import BenchmarkKit

/// What can be measured.
enum Row: String, CaseIterable, Codable, Sendable {
  case burst, producer, wake, subscribe, bounded, memory, soak

  /// The rows that `--rows` left out stands for.
  static let usual: [Row] = [.burst, .producer, .wake, .subscribe, .bounded, .memory]

  /// The comparisons of this row, in the order of the tables.
  func comparisons(_ options: Options) -> [Comparison<Setting>] {
    options.elements.flatMap { element in
      switch element {
      case .int: comparisons(of: Int.self, options)
      case .owned: comparisons(of: OwnedElement.self, options)
      }
    }
  }

  private func comparisons<Element: Payload>(of element: Element.Type, _ options: Options) -> [Comparison<Setting>] {
    switch self {
    case .burst: options.readers.map { Burst<Element>(readers: $0, options).comparison }
    case .producer: options.readers.map { LaggingProducer<Element>(readers: $0, options).comparison }
    case .wake: options.readers.map { WakeUp<Element>(readers: $0, options).comparison }
    case .subscribe: [Subscribing<Element>(options).comparison]
    case .bounded: [Bounded<Element>(options).keepingUp, Bounded<Element>(options).overflowing]
    case .memory: [Backlog<Element>(options).comparison]
    case .soak: [Soak<Element>(options).stalledReader, Soak<Element>(options).subscriptions]
    }
  }
}

/// A row, or a part of it, with the elements and readers of it.
struct Setting: ComparisonSetting {
  let row: Row
  /// Which part of the row it is, where there is more than one.
  var part: String?
  let element: String
  let readers: Int

  var description: String {
    [row.rawValue, part, element, readers == 1 ? "1 reader" : "\(readers) readers"].compactMap(\.self)
      .joined(separator: " · ")
  }

  /// A process of its own is always a first run.
  var needsWarmUp: Bool { row != .memory && row != .soak }
}

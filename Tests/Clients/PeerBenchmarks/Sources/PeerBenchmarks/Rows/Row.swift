internal import BenchmarkKit

/// A row of measurements, as named by the option `--rows`.
enum Row: String, CaseIterable, Codable, Sendable {
  case burst, producer, wake, subscribe, bounded, memory, soak

  /// The rows that are measured without the option `--rows`.
  static let usual: [Row] = [.burst, .producer, .wake, .subscribe, .bounded, .memory]

  /// Returns the comparisons of this row, in the order of the tables.
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
    case .burst: options.subscribers.map { Burst<Element>(subscribers: $0, options).comparison }
    case .producer: options.subscribers.map { LaggingSubscribers<Element>(subscribers: $0, options).comparison }
    case .wake: options.subscribers.map { WakeUp<Element>(subscribers: $0, options).comparison }
    case .subscribe: [Subscribing<Element>(options).comparison]
    case .bounded: [Bounded<Element>(options).keepingUpComparison, Bounded<Element>(options).overflowingComparison]
    case .memory: [Backlog<Element>(options).comparison]
    case .soak: [Soak<Element>(options).stalledSubscriberComparison, Soak<Element>(options).subscriptionsComparison]
    }
  }
}

/// The parameters of a comparison: its row, the variant of the row, the type of its elements, and its number of
/// subscribers.
struct Setting: ComparisonSetting {
  let row: Row
  /// The variant of the row, if the row has several.
  var variant: String?
  let element: String
  let subscribers: Int

  var description: String {
    let count = subscribers == 1 ? "1 subscriber" : "\(subscribers) subscribers"
    return [row.rawValue, variant, element, count].compactMap(\.self).joined(separator: " · ")
  }

  /// False for rows that run in child processes, because each child process starts cold anyway.
  var needsWarmUp: Bool { row != .memory && row != .soak }
}

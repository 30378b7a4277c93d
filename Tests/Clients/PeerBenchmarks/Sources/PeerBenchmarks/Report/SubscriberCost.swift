internal import BenchmarkKit

/// The time of a `send` with the largest number of lagging subscribers, relative to the time with the smallest.
struct SubscriberCost: Codable, CustomStringConvertible {
  let system: String
  let element: String
  let most: Int
  let fewest: Int
  let ratio: Double

  /// Returns the cost of each element type and system, from the results of the row `producer`; ignores other rows.
  static func all(in results: [ComparisonResult<Setting>]) -> [SubscriberCost] {
    Dictionary(grouping: results.filter { $0.setting.row == .producer }, by: \.setting.element)
      .sorted { $0.key < $1.key }
      .flatMap { element, comparisons in
        costs(element, comparisons.sorted { $0.setting.subscribers < $1.setting.subscribers })
      }
  }

  var description: String {
    "\(system), \(element): send with \(most) lagging subscribers ÷ send with \(fewest) = \(Table.number(ratio))"
  }

  private static func costs(_ element: String, _ comparisons: [ComparisonResult<Setting>]) -> [SubscriberCost] {
    guard let few = comparisons.first, let many = comparisons.last, few.setting.subscribers < many.setting.subscribers
    else {
      return []
    }
    return zip(few.systems, many.systems).map { systemWithFew, systemWithMany in
      // The only figure of this row is the time of a `send`.
      SubscriberCost(
        system: systemWithFew.system, element: element, most: many.setting.subscribers, fewest: few.setting.subscribers,
        ratio: systemWithMany.figures[0].median / systemWithFew.figures[0].median)
    }
  }
}

internal import BenchmarkKit

/// All results of one execution of the program.
struct Report: Codable {
  let conditions: Conditions
  private(set) var comparisons: [ComparisonResult<Setting>] = []
  private(set) var subscriberCosts: [SubscriberCost] = []

  init(_ conditions: Conditions) {
    self.conditions = conditions
  }

  /// Adds the comparisons of one ``Row``.
  mutating func add(_ results: [ComparisonResult<Setting>]) {
    comparisons += results
    subscriberCosts += SubscriberCost.all(in: results)
  }
}

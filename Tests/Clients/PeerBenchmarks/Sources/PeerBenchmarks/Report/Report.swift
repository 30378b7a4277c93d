internal import BenchmarkKit

/// All results of one execution of the program.
struct Report: Codable {
  let conditions: Conditions
  private(set) var comparisons: [ComparisonResult<Setting>] = []
  private(set) var readerCosts: [ReaderCost] = []

  init(_ conditions: Conditions) {
    self.conditions = conditions
  }

  /// Adds the comparisons of one row.
  mutating func add(_ row: [ComparisonResult<Setting>]) {
    comparisons += row
    readerCosts += ReaderCost.all(in: row)
  }
}

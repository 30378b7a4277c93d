internal import BenchmarkKit

/// Everything that one start of the program measured.
struct Report: Codable {
  let conditions: Conditions
  let store: StoreKind
  var comparisons: [ComparisonResult<Setting>] = []
  /// `nil` at another scale than 1, where figures are no measure of them.
  var goals: [Goal]?
}

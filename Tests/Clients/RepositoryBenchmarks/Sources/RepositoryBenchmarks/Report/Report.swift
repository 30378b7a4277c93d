internal import BenchmarkKit

/// All results of one execution of the program.
struct Report: Codable {
  let conditions: Conditions
  let store: StoreKind
  var comparisons: [ComparisonResult<Setting>] = []
  /// The goals; `nil` at a scale other than 1, where figures aren't comparable to them.
  var goals: [Goal]?
}

internal import BenchmarkKit

/// The results of one execution of the program.
struct Report: Codable {
  let conditions: Conditions
  var comparisons: [ComparisonResult<Setting>] = []
  /// The goals; `nil` at any scale except 1, because figures of other scales can't be judged by them.
  var goals: [Goal]?
}

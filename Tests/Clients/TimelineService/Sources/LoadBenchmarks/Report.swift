internal import BenchmarkKit

/// The results of one execution of the program.
struct Report: Codable {
  let conditions: Conditions
  var comparisons: [ComparisonResult<Setting>] = []
  /// The goals; `nil` at a scale other than 1, where figures aren't comparable to them.
  var goals: [Goal]?
}

/// A limit on a figure of ``ServiceKind/memory``, the service with a store in memory.
struct Goal: Codable, CustomStringConvertible {
  let text: String
  let figure: Double
  let limit: Double

  var isMet: Bool { figure <= limit }

  var description: String {
    "\(isMet ? "met    " : "NOT met")  \(text): \(Table.number(figure)) ≤ \(Table.number(limit))"
  }

  /// The goals whose figures were measured.
  static func all(in results: [ComparisonResult<Setting>]) -> [Goal] {
    results.flatMap { result -> [Goal] in
      let figures = result.systems.first { $0.system == ServiceKind.memory.label }?.figures ?? []
      func goal(_ metric: String, _ limit: Double) -> Goal? {
        figures.first { $0.metric == metric }.map {
          Goal(text: "\(result.setting.row.rawValue), \(metric), \($0.unit)", figure: $0.median, limit: limit)
        }
      }
      return [goal(Load.p99Latency, 100), goal(Load.idleStreamMemory, 20)].compactMap(\.self)
    }
  }
}

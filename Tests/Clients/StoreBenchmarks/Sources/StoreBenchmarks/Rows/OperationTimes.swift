internal import BenchmarkKit

/// The times of the operations of one run, taken one by one.
struct OperationTimes {
  private var microseconds: [Double] = []

  /// Adds an operation that began at one instant and was complete at another.
  mutating func add(_ start: ContinuousClock.Instant, _ end: ContinuousClock.Instant) {
    microseconds.append((end - start).microseconds)
  }

  /// Measures an operation.
  mutating func measure<Result>(_ operation: () async throws -> Result) async rethrows -> Result {
    let clock = ContinuousClock()
    let start = clock.now
    let result = try await operation()
    add(start, clock.now)
    return result
  }

  /// The median of the run.
  func reading(_ metric: String) -> Reading {
    Reading(metric: metric, unit: "µs", value: microseconds.median)
  }
}

/// The systems of one row of the tables, each with the run that measures it.
struct Comparison: Sendable {
  let row: Row
  /// Which part of the row it is, where there is more than one.
  var part: String?
  let contestants: [Contestant]
}

/// One system in a comparison.
struct Contestant: Sendable {
  let label: String
  /// How many operations a run has.
  let count: Int
  let measure: @Sendable () async throws -> [Reading]
}

/// One figure of one run.
struct Reading: Sendable {
  let metric: String
  let unit: String
  let value: Double
}

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

extension Duration {
  var microseconds: Double {
    Double(components.seconds) * 1e6 + Double(components.attoseconds) / 1e12
  }

  var milliseconds: Double { microseconds / 1e3 }
}

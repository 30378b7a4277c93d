/// The individually measured durations of the operations of one run.
public struct OperationTimes {
  private var durations: [Duration] = []

  /// Creates an empty collection of durations.
  public init() {}

  /// Adds the duration of an operation from its start to its end.
  public mutating func add(_ start: ContinuousClock.Instant, _ end: ContinuousClock.Instant) {
    durations.append(end - start)
  }

  /// Performs an operation and adds its duration.
  public mutating func measure<Result>(_ operation: () async throws -> Result) async rethrows -> Result {
    let clock = ContinuousClock()
    let start = clock.now
    let result = try await operation()
    add(start, clock.now)
    return result
  }

  /// Returns the median of the durations, in microseconds.
  public func reading(_ metric: String) -> Reading {
    Reading(metric: metric, unit: "µs", value: durations.map(\.microseconds).median)
  }
}

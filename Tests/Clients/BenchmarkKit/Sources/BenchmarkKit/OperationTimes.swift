/// The times of the operations of one run, taken one by one.
public struct OperationTimes {
  private var durations: [Duration] = []

  /// Creates an empty collection of times.
  public init() {}

  /// Adds an operation that began at one instant and was complete at another.
  public mutating func add(_ start: ContinuousClock.Instant, _ end: ContinuousClock.Instant) {
    durations.append(end - start)
  }

  /// Measures an operation.
  public mutating func measure<Result>(_ operation: () async throws -> Result) async rethrows -> Result {
    let clock = ContinuousClock()
    let start = clock.now
    let result = try await operation()
    add(start, clock.now)
    return result
  }

  /// The median of the run.
  public func reading(_ metric: String) -> Reading {
    Reading(metric: metric, unit: "µs", value: durations.map(\.microseconds).median)
  }
}

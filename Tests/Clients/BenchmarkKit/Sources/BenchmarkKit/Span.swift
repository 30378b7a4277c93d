internal import Foundation

/// How long some operations took, on the clock and on the processors.
///
/// The time on the processors, of all threads of this process, is a measure on a busy machine too.
public struct Span: Sendable {
  private let duration: Duration
  private let processorTime: Duration

  /// Measures a piece of work.
  public static func measure(_ work: () async throws -> Void) async rethrows -> Span {
    let (start, processorStart) = (ContinuousClock.now, processorTime)
    try await work()
    return Span(duration: .now - start, processorTime: processorTime - processorStart)
  }

  /// The time of the whole work.
  public func total(_ metric: String) -> Reading {
    Reading(metric: metric, unit: "ms", value: duration.milliseconds, isCompared: false)
  }

  /// The time of each operation, on the clock and on the processors.
  ///
  /// - Parameters:
  ///   - metric: What was measured.
  ///   - count: The number of operations.
  public func each(_ metric: String, of count: Int) -> [Reading] {
    [
      Reading(metric: metric, unit: "µs", value: duration.microseconds / Double(count)),
      Reading(metric: Self.onProcessors(metric), unit: "µs", value: processorTime.microseconds / Double(count)),
    ]
  }

  /// The name of the time on the processors.
  public static func onProcessors(_ metric: String) -> String { "\(metric) CPU" }

  private static var processorTime: Duration {
    var time = timespec()
    guard clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) == 0 else {
      preconditionFailure("The clock of the process's processor time can't be read.")
    }
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
  }
}

internal import Foundation

/// The elapsed time and the processor time of a piece of work.
///
/// The processor time is that of all threads of this process. It excludes other processes, so it is meaningful even on
/// a busy machine.
public struct Span: Sendable {
  private let duration: Duration
  private let processorTime: Duration

  /// Performs a piece of work and measures it.
  public static func measure(_ work: () async throws -> Void) async rethrows -> Span {
    let (start, startProcessorTime) = (ContinuousClock.now, currentProcessorTime)
    try await work()
    return Span(duration: .now - start, processorTime: currentProcessorTime - startProcessorTime)
  }

  /// Returns the elapsed time of the whole work, in milliseconds.
  public func total(_ metric: String) -> Reading {
    Reading(metric: metric, unit: "ms", value: duration.milliseconds, isCompared: false)
  }

  /// Returns the mean elapsed time and the mean processor time of an operation, in microseconds.
  ///
  /// - Parameters:
  ///   - metric: The name of the elapsed time.
  ///   - count: The number of operations.
  public func each(_ metric: String, of count: Int) -> [Reading] {
    [
      Reading(metric: metric, unit: "µs", value: duration.microseconds / Double(count)),
      Reading(metric: Self.onProcessors(metric), unit: "µs", value: processorTime.microseconds / Double(count)),
    ]
  }

  /// Returns the name of the processor time that ``each(_:of:)`` reports along with a metric.
  public static func onProcessors(_ metric: String) -> String { "\(metric) CPU" }

  private static var currentProcessorTime: Duration {
    var time = timespec()
    guard clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) == 0 else {
      preconditionFailure("The process's processor time couldn't be read.")
    }
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
  }
}

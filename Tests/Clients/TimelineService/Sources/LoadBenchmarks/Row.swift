internal import BenchmarkKit

/// A row of measurements, as named by the option `--rows`: a way to spread the event streams over timelines.
enum Row: String, CaseIterable, Codable, Sendable {
  /// Each timeline has about ten streams.
  case spread
  /// One timeline has all streams.
  case one

  func timelineCount(forStreams streamCount: Int) -> Int { self == .one ? 1 : max(1, streamCount / 10) }
}

/// The parameters of a comparison: its row, and the number of timelines.
struct Setting: ComparisonSetting, Equatable {
  let row: Row
  let timelines: Int

  var description: String { "\(row.rawValue): \(timelines) timeline\(timelines == 1 ? "" : "s")" }

  var needsWarmUp: Bool { false }
}

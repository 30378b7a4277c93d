internal import Dispatch

/// Runs comparisons and collects their figures.
public struct Runner {
  private let options: RunOptions
  private let base: String
  private let onHang: @Sendable (_ system: String, _ seconds: Int) -> Never
  /// A queue of its own: busy tasks may leave no thread to another one.
  private let watchdogs = DispatchQueue(label: "watchdogs")
  private var random: SplitMix64

  /// Creates a runner.
  ///
  /// - Parameters:
  ///   - base: What the label of the system begins with to which all others are related.
  ///   - onHang: Ends the program when a run takes too long, because tasks that hang can't be cancelled.
  public init(_ options: RunOptions, base: String, onHang: @escaping @Sendable (String, Int) -> Never) {
    self.options = options
    self.base = base
    self.onHang = onHang
    random = SplitMix64(seed: options.seed)
  }

  /// Runs every system once to warm up, then all of them in a new random order for each counted run.
  public mutating func run<Setting>(_ comparison: Comparison<Setting>) async throws -> ComparisonResult<Setting> {
    var samples = comparison.contestants.map { _ in [[Reading]]() }
    for contestant in comparison.contestants where comparison.setting.needsWarmUp {
      _ = try await measure(contestant)
    }
    for _ in 0..<options.runs {
      for index in comparison.contestants.indices.shuffled(using: &random) {
        samples[index].append(try await measure(comparison.contestants[index]))
      }
    }
    return ComparisonResult(comparison, samples, base: base)
  }

  private func measure(_ contestant: Contestant) async throws -> [Reading] {
    let watchdog = DispatchWorkItem { [onHang, seconds = options.timeout] in onHang(contestant.label, seconds) }
    watchdogs.asyncAfter(deadline: .now() + .seconds(options.timeout), execute: watchdog)
    defer { watchdog.cancel() }
    return try await contestant.measure()
  }
}

/// A small generator with a seed, so that an order of runs can be had again.
private struct SplitMix64: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) {
    state = seed
  }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}

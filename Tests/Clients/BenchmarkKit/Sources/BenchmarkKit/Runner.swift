internal import Dispatch

/// Performs comparisons and collects their figures.
public struct Runner {
  private let options: RunOptions
  private let base: String
  private let onHang: @Sendable (_ system: String, _ seconds: Int) -> Never
  /// The queue of the watchdogs, each of which calls `onHang` if its run exceeds the timeout.
  ///
  /// It is a dispatch queue, because busy tasks may occupy every thread of the concurrency pool.
  private let watchdogQueue = DispatchQueue(label: "watchdogs")
  private var random: SplitMix64

  /// Creates a runner.
  ///
  /// - Parameters:
  ///   - options: The number of runs, their timeout, and the seed of the random order of the systems.
  ///   - base: The prefix of the label of the reference system, with which all systems are compared. If several labels
  ///     have the prefix, the first of them counts.
  ///   - onHang: A closure that is called when a run exceeds the timeout. It must exit the program, because hung tasks
  ///     can't be cancelled.
  public init(_ options: RunOptions, base: String, onHang: @escaping @Sendable (String, Int) -> Never) {
    self.options = options
    self.base = base
    self.onHang = onHang
    random = SplitMix64(seed: options.seed)
  }

  /// Runs each system once to warm up if the comparison needs it, then all systems in a new random order for each
  /// measured run.
  public mutating func run<Setting>(_ comparison: Comparison<Setting>) async throws -> ComparisonResult<Setting> {
    var readings = comparison.contestants.map { _ in [[Reading]]() }
    for contestant in comparison.contestants where comparison.setting.needsWarmUp {
      _ = try await measure(contestant)
    }
    for _ in 0..<options.runs {
      for index in comparison.contestants.indices.shuffled(using: &random) {
        readings[index].append(try await measure(comparison.contestants[index]))
      }
    }
    return ComparisonResult(comparison, readings, referencePrefix: base)
  }

  private func measure(_ contestant: Contestant) async throws -> [Reading] {
    let watchdog = DispatchWorkItem { [onHang, seconds = options.timeout] in onHang(contestant.label, seconds) }
    watchdogQueue.asyncAfter(deadline: .now() + .seconds(options.timeout), execute: watchdog)
    defer { watchdog.cancel() }
    return try await contestant.measure()
  }
}

/// A seeded random number generator, which makes an order of runs reproducible.
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

internal import Dispatch

/// Runs comparisons and collects their figures.
struct Runner {
  let options: Options
  private let watchdogs = DispatchQueue(label: "watchdogs")
  private var random: SplitMix64

  init(_ options: Options) {
    self.options = options
    random = SplitMix64(seed: options.seed)
  }

  /// Runs every system once to warm up, then all of them in a new random order for each counted run.
  mutating func run(_ comparison: Comparison) async throws -> ComparisonResult {
    var samples = comparison.contestants.map { _ in [[Reading]]() }
    for contestant in comparison.contestants where comparison.row.needsWarmUp {
      _ = try await measure(contestant)
    }
    for _ in 0..<options.runs {
      for index in comparison.contestants.indices.shuffled(using: &random) {
        samples[index].append(try await measure(comparison.contestants[index]))
      }
    }
    return ComparisonResult(comparison, samples)
  }

  private func measure(_ contestant: Contestant) async throws -> [Reading] {
    let seconds = options.timeout
    // Tasks that hang can't be cancelled, so the process ends.
    let watchdog = DispatchWorkItem {
      StoreBenchmarks.fail(BenchmarkError.hung(system: contestant.label, seconds: seconds))
    }
    watchdogs.asyncAfter(deadline: .now() + .seconds(seconds), execute: watchdog)
    defer { watchdog.cancel() }
    return try await contestant.measure()
  }
}

/// A small generator with a seed, so that an order of runs can be had again.
struct SplitMix64: RandomNumberGenerator {
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

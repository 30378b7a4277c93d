internal import BenchmarkKit
internal import Foundation

/// The memory used by keys that were fetched once and are no longer used.
///
/// If the system is the store alone, the keys were saved once instead. Each system is measured in a separate process.
/// The time is that of the fetches or saves.
struct IdleKeys: Sendable {
  private let environment: Environment

  init(_ environment: Environment) {
    self.environment = environment
  }

  var comparison: Comparison<Setting> {
    Comparison(Setting(row: .idleKeys), contestants: IdleKeysChild.System.allCases.map(contestant))
  }

  private func contestant(_ system: IdleKeysChild.System) -> Contestant {
    let keyCount = environment.options.scaled(4_000)
    return Contestant(label: system.label, count: keyCount) {
      try await environment.workspace.withFolder { folder in
        let growth = try IdleKeysChild(
          system: system, store: environment.options.store, folder: folder, keys: keyCount
        ).run()
        let bytesPerKey = Double(growth.after - growth.before) / Double(keyCount)
        return [
          Reading(metric: "growth, each key", unit: "bytes", value: bytesPerKey),
          Reading(metric: "time, each key", unit: "µs", value: growth.seconds * 1e6 / Double(keyCount)),
          Reading(metric: "before", unit: "KiB", value: Double(growth.before) / 1024, isCompared: false),
          Reading(metric: "after", unit: "KiB", value: Double(growth.after) / 1024, isCompared: false),
        ]
      }
    }
  }
}

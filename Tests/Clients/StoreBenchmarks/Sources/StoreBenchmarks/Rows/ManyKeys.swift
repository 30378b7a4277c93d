internal import BenchmarkKit
internal import Foundation

/// A large collection: filling it, observing all of it, and a save while it is observed.
struct ManyKeys: Sendable {
  private let options: Options
  private let workspace: Workspace

  init(_ options: Options, _ workspace: Workspace) {
    (self.options, self.workspace) = (options, workspace)
  }

  /// The number of keys in a run of scale 1.
  static let keyCount = 20_000

  var comparison: Comparison<Setting> {
    Comparison(Setting(row: .manyKeys), contestants: SystemName.allCases.map(contestant))
  }

  /// Stores a timeline under each of `count` keys, in commits of 500.
  static func fill(_ system: any StorageSystem, count: Int) async throws {
    for start in stride(from: 0, to: count, by: 500) {
      let serials = start..<min(start + 500, count)
      try await system.save(serials.map { (id: "\($0)", timeline: Timeline(serial: $0)) })
    }
  }

  private func contestant(_ name: SystemName) -> Contestant {
    let count = options.scaled(Self.keyCount)
    return Contestant(label: name.label, count: count) {
      try await workspace.withFolder { folder in
        let clock = ContinuousClock()
        let fillTime = try await clock.measure { try await Self.fill(name.open(in: folder), count: count) }

        // A new store or GRDB pool, which has loaded no value.
        let system = try name.open(in: folder)
        let observationStart = clock.now
        let observation = try await system.observeAll()
        let initialArrival = try await observation.first { _ in true }
        guard Set(initialArrival.value.map(\.serial)) == Set(0..<count) else {
          throw BenchmarkError.wrongValue(system: name.label, id: "one of the keys")
        }

        var times = OperationTimes()
        let saveCount = options.scaled(3)
        for serial in count..<count + saveCount {
          let saveStart = clock.now
          try await system.save(Timeline(serial: serial), as: "\(serial % count)")
          times.add(saveStart, try await observation.first { $0.contains { $0.serial == serial } }.instant)
        }
        observation.cancel()
        return [
          Reading(metric: "fill, each key", unit: "µs", value: fillTime.microseconds / Double(count)),
          Reading(
            metric: "observe all", unit: "ms", value: (initialArrival.instant - observationStart).milliseconds),
          times.reading("save → observer"),
        ]
      }
    }
  }
}

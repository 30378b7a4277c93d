internal import BenchmarkKit
internal import Foundation

/// Many concurrent saves of small values, such as the entries of a queue or settings.
///
/// Each value is a timeline of one post, about 340 bytes of JSON.
struct Burst: Sendable {
  private let options: Options
  private let workspace: Workspace

  init(_ options: Options, _ workspace: Workspace) {
    (self.options, self.workspace) = (options, workspace)
  }

  private var count: Int { options.scaled(400) }

  /// Saves of different keys.
  var ofManyKeys: Comparison<Setting> {
    Comparison(
      Setting(row: .burstKeys), contestants: SystemName.allCases.map { name in contestant(name) { "\($0)" } })
  }

  /// Saves of the same key.
  var ofOneKey: Comparison<Setting> {
    Comparison(Setting(row: .burstKey), contestants: SystemName.allCases.map { name in contestant(name) { _ in "0" } })
  }

  private func contestant(_ name: SystemName, _ makeID: @escaping @Sendable (Int) -> String) -> Contestant {
    Contestant(label: name.label, count: count) {
      try await workspace.withFolder { folder in
        let system = try name.open(in: folder)
        // The keys exist before the clock starts.
        try await save((0..<count).map { (makeID($0), Timeline(serial: $0, postCount: 1)) }, to: system)
        let timelines = (0..<count).map { (id: makeID($0), timeline: Timeline(serial: count + $0, postCount: 1)) }
        let time = try await ContinuousClock().measure { try await save(timelines, to: system) }
        for (id, _) in timelines {
          guard let loaded = try await system.load(id), loaded.serial >= count else {
            throw BenchmarkError.wrongValue(system: name.label, id: id)
          }
        }
        return [
          Reading(metric: "each save", unit: "µs", value: time.microseconds / Double(count)),
          Reading(metric: "burst", unit: "ms", value: time.milliseconds),
        ]
      }
    }
  }

  private func save(_ timelines: [(id: String, timeline: Timeline)], to system: any StorageSystem) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for (id, timeline) in timelines {
        group.addTask { try await system.save(timeline, as: id) }
      }
      try await group.waitForAll()
    }
  }
}

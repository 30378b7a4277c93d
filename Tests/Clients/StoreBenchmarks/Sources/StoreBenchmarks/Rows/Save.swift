internal import BenchmarkKit
internal import Foundation

/// Sequential saves of one key.
struct Save: Sendable {
  static let byHandLabel = "files by hand"

  private let options: Options
  private let workspace: Workspace

  init(_ options: Options, _ workspace: Workspace) {
    (self.options, self.workspace) = (options, workspace)
  }

  private var count: Int { options.scaled(200) }

  var comparison: Comparison<Setting> {
    Comparison(Setting(row: .save), contestants: SystemName.allCases.map(contestant) + [byHand])
  }

  private func contestant(_ name: SystemName) -> Contestant {
    Contestant(label: name.label, count: count) {
      try await workspace.withFolder { folder in
        let system = try name.open(in: folder)
        let readings = try await measureSaves { try await system.save($0, as: "0") }
        guard try await system.load("0")?.serial == count else {
          throw BenchmarkError.wrongValue(system: name.label, id: "0")
        }
        return readings
      }
    }
  }

  private var byHand: Contestant {
    Contestant(label: Self.byHandLabel, count: count) {
      try await workspace.withFolder { folder in
        let files = try FilesByHand(in: folder)
        return try await measureSaves { try files.replace("0", by: JSONEncoder().encode($0)) }
      }
    }
  }

  private func measureSaves(_ save: (Timeline) async throws -> Void) async throws -> [Reading] {
    var timeline = Timeline()
    var times = OperationTimes()
    // Not measured, because the first save creates the entry and the others replace it.
    try await save(timeline)
    for serial in 1...count {
      timeline.serial = serial
      try await times.measure { try await save(timeline) }
    }
    return [times.reading("save")]
  }
}

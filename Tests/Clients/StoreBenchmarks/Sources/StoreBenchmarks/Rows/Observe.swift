internal import BenchmarkKit
internal import Foundation

/// The time from the call of a save until an observer of the key has the value.
struct Observe: Sendable {
  private let options: Options
  private let workspace: Workspace

  init(_ options: Options, _ workspace: Workspace) {
    (self.options, self.workspace) = (options, workspace)
  }

  var comparison: Comparison<Setting> {
    Comparison(Setting(row: .observe), contestants: SystemName.allCases.map(contestant))
  }

  private func contestant(_ name: SystemName) -> Contestant {
    let count = options.scaled(200)
    return Contestant(label: name.label, count: count) {
      try await workspace.withFolder { folder in
        var timeline = Timeline()
        var times = OperationTimes()
        let system = try name.open(in: folder)
        try await system.save(timeline, as: "0")
        let observation = try await system.observe("0")
        _ = try await observation.first { _ in true }
        for serial in 1...count {
          timeline.serial = serial
          let start = ContinuousClock.now
          try await system.save(timeline, as: "0")
          times.add(start, try await observation.first { $0.serial == serial }.instant)
        }
        observation.cancel()
        return [times.reading("save → observer")]
      }
    }
  }
}

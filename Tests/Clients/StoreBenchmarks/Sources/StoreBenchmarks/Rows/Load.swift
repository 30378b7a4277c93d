internal import BenchmarkKit
internal import Foundation

/// Loads of one key.
struct Load: Sendable {
  private let options: Options
  private let workspace: Workspace
  private let timeline = Timeline(serial: 1)

  init(_ options: Options, _ workspace: Workspace) {
    (self.options, self.workspace) = (options, workspace)
  }

  /// Openings of a store or a GRDB pool, each together with its first load.
  var cold: Comparison<Setting> {
    let count = options.scaled(100)
    return Comparison(
      Setting(row: .loadCold),
      contestants: SystemName.allCases.map { name in
        contestant(name, count) { folder, times in
          for _ in 0..<count {
            let (system, loaded) = try await times.measure {
              let system = try name.open(in: folder)
              return (system, try await system.load("0"))
            }
            try check(loaded, name)
            try system.close()
          }
        }
      })
  }

  /// Loads of a key that the store or pool has loaded before and that has not changed since.
  var known: Comparison<Setting> {
    let count = options.scaled(2_000)
    return Comparison(
      Setting(row: .loadKnown),
      contestants: SystemName.allCases.map { name in
        contestant(name, count) { folder, times in
          let system = try name.open(in: folder)
          try check(try await system.load("0"), name)
          for _ in 0..<count {
            try check(try await times.measure { try await system.load("0") }, name)
          }
        }
      })
  }

  private func contestant(
    _ name: SystemName, _ count: Int,
    _ measureLoads: @escaping @Sendable (URL, inout OperationTimes) async throws -> Void
  ) -> Contestant {
    Contestant(label: name.label, count: count) {
      try await workspace.withFolder { folder in
        let system = try name.open(in: folder)
        try await system.save(timeline, as: "0")
        try system.close()
        var times = OperationTimes()
        try await measureLoads(folder, &times)
        return [times.reading("load")]
      }
    }
  }

  private func check(_ loaded: Timeline?, _ name: SystemName) throws {
    guard loaded == timeline else { throw BenchmarkError.wrongValue(system: name.label, id: "0") }
  }
}

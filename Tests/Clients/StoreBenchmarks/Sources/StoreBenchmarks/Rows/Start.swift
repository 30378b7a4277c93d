internal import BenchmarkKit
internal import Foundation

/// The time from the creation of a store or a GRDB pool until an observer of one key has the stored value.
struct Start: Sendable {
  private let options: Options
  private let workspace: Workspace

  init(_ options: Options, _ workspace: Workspace) {
    (self.options, self.workspace) = (options, workspace)
  }

  /// Returns one comparison for each number of keys.
  ///
  /// The keys are stored once, before all runs.
  func comparisons() async throws -> [Comparison<Setting>] {
    var comparisons: [Comparison<Setting>] = []
    for keys in [1, options.scaled(ManyKeys.count)] {
      var contestants: [Contestant] = []
      for name in SystemName.allCases { contestants.append(try await contestant(name, keys)) }
      comparisons.append(
        Comparison(Setting(row: .start, part: keys == 1 ? "1 key" : "\(keys) keys"), contestants: contestants))
    }
    return comparisons
  }

  private func contestant(_ name: SystemName, _ keys: Int) async throws -> Contestant {
    let folder = try workspace.makeFolder()
    let filled = try name.open(in: folder)
    try await ManyKeys.fill(filled, count: keys)
    try filled.close()
    let count = options.scaled(20)
    return Contestant(label: name.label, count: count) {
      var times = OperationTimes()
      for number in 0..<count {
        let serial = number * 7_919 % keys
        let start = ContinuousClock.now
        let system = try name.open(in: folder)
        let observation = try await system.observe("\(serial)")
        times.add(start, try await observation.first { $0.serial == serial }.instant)
        observation.cancel()
        try system.close()
      }
      return [times.reading("first value")]
    }
  }
}

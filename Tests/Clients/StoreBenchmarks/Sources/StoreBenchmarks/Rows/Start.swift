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
    for keyCount in [1, options.scaled(ManyKeys.keyCount)] {
      var contestants: [Contestant] = []
      for name in SystemName.allCases { contestants.append(try await contestant(name, keyCount)) }
      comparisons.append(
        Comparison(
          Setting(row: .start, variant: keyCount == 1 ? "1 key" : "\(keyCount) keys"), contestants: contestants))
    }
    return comparisons
  }

  private func contestant(_ name: SystemName, _ keyCount: Int) async throws -> Contestant {
    let folder = try workspace.makeFolder()
    let systemToFill = try name.open(in: folder)
    try await ManyKeys.fill(systemToFill, count: keyCount)
    try systemToFill.close()
    let count = options.scaled(20)
    return Contestant(label: name.label, count: count) {
      var times = OperationTimes()
      for number in 0..<count {
        // With a prime number as the stride, successive openings observe different keys if there are several.
        let serial = number * 7_919 % keyCount
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

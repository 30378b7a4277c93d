/// The figures of one comparison.
struct ComparisonResult: Codable {
  /// One system's figures.
  struct SystemResult: Codable {
    let system: String
    let count: Int
    var figures: [Figure]
  }

  let row: Row
  let part: String?
  let systems: [SystemResult]

  init(_ comparison: Comparison, _ samples: [[[Reading]]]) {
    row = comparison.row
    part = comparison.part
    var systems = zip(comparison.contestants, samples).map { contestant, runs in
      SystemResult(
        system: contestant.label, count: contestant.count,
        figures: runs[0].indices.map { index in Figure(runs.map { $0[index] }) })
    }
    if let base = systems.first(where: { $0.system.hasPrefix(SystemName.grdb.label) }) {
      for index in systems.indices { systems[index].relate(to: base) }
    }
    self.systems = systems
  }
}

extension ComparisonResult.SystemResult {
  fileprivate mutating func relate(to base: Self) {
    for (index, figure) in base.figures.enumerated() where figure.median > 0 {
      figures[index].ratio = figures[index].median / figure.median
    }
  }
}

/// The median of several runs, and how far they spread.
struct Figure: Codable {
  let metric: String
  let unit: String
  let median: Double
  let minimum: Double
  let maximum: Double
  /// This median divided by the one of GRDB.
  var ratio: Double?

  init(_ readings: [Reading]) {
    let values = readings.map(\.value)
    metric = readings[0].metric
    unit = readings[0].unit
    median = values.median
    minimum = values.min()!
    maximum = values.max()!
  }
}

extension [Double] {
  /// The middle value, or the mean of the two in the middle.
  ///
  /// The array must not be empty.
  var median: Double {
    let sorted = sorted()
    let middle = count / 2
    return count.isMultiple(of: 2) ? (sorted[middle - 1] + sorted[middle]) / 2 : sorted[middle]
  }
}

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
  let element: String
  let readers: Int
  let systems: [SystemResult]

  init(_ comparison: Comparison, _ samples: [[[Reading]]]) {
    row = comparison.row
    part = comparison.part
    element = comparison.element
    readers = comparison.readers
    var systems = zip(comparison.contestants, samples).map { contestant, runs in
      SystemResult(
        system: contestant.label, count: contestant.count,
        figures: runs[0].indices.map { index in Figure(runs.map { $0[index] }) })
    }
    if let base = systems.first(where: { $0.system.hasPrefix("Multicast") }) {
      for index in systems.indices { systems[index].relate(to: base) }
    }
    self.systems = systems
  }
}

extension ComparisonResult.SystemResult {
  fileprivate mutating func relate(to base: Self) {
    for index in figures.indices where figures[index].isCompared && base.figures[index].median > 0 {
      figures[index].ratio = figures[index].median / base.figures[index].median
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
  let isCompared: Bool
  /// This median divided by the one of Multicast.
  var ratio: Double?

  init(_ readings: [Reading]) {
    let values = readings.map(\.value).sorted()
    let middle = values.count / 2
    metric = readings[0].metric
    unit = readings[0].unit
    isCompared = readings[0].isCompared
    median = values.count.isMultiple(of: 2) ? (values[middle - 1] + values[middle]) / 2 : values[middle]
    minimum = values[0]
    maximum = values[values.count - 1]
  }
}

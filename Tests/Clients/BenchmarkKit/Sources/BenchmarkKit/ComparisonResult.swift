/// The figures of one comparison.
public struct ComparisonResult<Setting: ComparisonSetting>: Codable, Sendable {
  /// What sets the comparison apart.
  public let setting: Setting
  /// The systems, in the order of the table.
  public let systems: [SystemResult]

  /// Takes the medians of a comparison.
  ///
  /// - Parameters:
  ///   - samples: For each contestant the readings of its runs.
  ///   - base: What the label of the system begins with to which all others are related.
  init(_ comparison: Comparison<Setting>, _ samples: [[[Reading]]], base: String) {
    setting = comparison.setting
    var systems = zip(comparison.contestants, samples).map { contestant, runs in
      SystemResult(
        system: contestant.label, count: contestant.count,
        figures: runs[0].indices.map { index in Figure(runs.map { $0[index] }) })
    }
    if let base = systems.first(where: { $0.system.hasPrefix(base) }) {
      for index in systems.indices { systems[index].relate(to: base) }
    }
    self.systems = systems
  }
}

/// One system's figures.
public struct SystemResult: Codable, Sendable {
  /// The name of the system.
  public let system: String
  /// How many operations a run has.
  public let count: Int
  /// The figures, the same ones for all systems of a comparison.
  public fileprivate(set) var figures: [Figure]

  fileprivate mutating func relate(to base: Self) {
    for (index, figure) in base.figures.enumerated() where figure.isCompared && figure.median > 0 {
      figures[index].ratio = figures[index].median / figure.median
    }
  }
}

/// The median of several runs, and how far they spread.
public struct Figure: Codable, Sendable {
  /// What was measured.
  public let metric: String
  /// The unit of the figures.
  public let unit: String
  /// The median of the runs.
  public let median: Double
  /// The least figure of all runs.
  public let minimum: Double
  /// The greatest figure of all runs.
  public let maximum: Double
  let isCompared: Bool
  /// This median divided by the one of the system that all are related to.
  public fileprivate(set) var ratio: Double?

  init(_ readings: [Reading]) {
    let values = readings.map(\.value)
    metric = readings[0].metric
    unit = readings[0].unit
    isCompared = readings[0].isCompared
    median = values.median
    minimum = values.min()!
    maximum = values.max()!
  }
}

extension [Double] {
  /// The middle value, or the mean of the two in the middle.
  ///
  /// The array must not be empty.
  public var median: Double {
    let sorted = sorted()
    let middle = count / 2
    return count.isMultiple(of: 2) ? (sorted[middle - 1] + sorted[middle]) / 2 : sorted[middle]
  }
}

extension Duration {
  /// The duration in nanoseconds.
  public var nanoseconds: Double {
    Double(components.seconds) * 1e9 + Double(components.attoseconds) / 1e9
  }

  /// The duration in microseconds.
  public var microseconds: Double { nanoseconds / 1e3 }

  /// The duration in milliseconds.
  public var milliseconds: Double { nanoseconds / 1e6 }
}

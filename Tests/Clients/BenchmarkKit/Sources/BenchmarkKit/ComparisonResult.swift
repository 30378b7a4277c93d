/// The figures of one comparison.
public struct ComparisonResult<Setting: ComparisonSetting>: Codable, Sendable {
  public let setting: Setting
  public let systems: [SystemResult]

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
  public let system: String
  public let count: Int
  public fileprivate(set) var figures: [Figure]

  fileprivate mutating func relate(to base: Self) {
    for (index, figure) in base.figures.enumerated() where figure.isCompared && figure.median > 0 {
      figures[index].ratio = figures[index].median / figure.median
    }
  }
}

/// The median of several runs, and how far they spread.
public struct Figure: Codable, Sendable {
  public let metric: String
  public let unit: String
  public let median: Double
  public let minimum: Double
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
  public var nanoseconds: Double {
    Double(components.seconds) * 1e9 + Double(components.attoseconds) / 1e9
  }

  public var microseconds: Double { nanoseconds / 1e3 }

  public var milliseconds: Double { nanoseconds / 1e6 }
}

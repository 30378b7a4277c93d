/// The figures of one comparison.
public struct ComparisonResult<Setting: ComparisonSetting>: Codable, Sendable {
  /// The parameters that identify the comparison.
  public let setting: Setting
  /// The systems, in the order of the table.
  public let systems: [SystemResult]

  /// Creates the figures from the readings of a comparison's runs.
  ///
  /// - Parameters:
  ///   - comparison: The comparison that was run.
  ///   - readings: For each contestant, the readings of each run.
  ///   - referencePrefix: The prefix of the label of the reference system, with which all systems are compared. If
  ///     several labels have the prefix, the first of them counts.
  init(_ comparison: Comparison<Setting>, _ readings: [[[Reading]]], referencePrefix: String) {
    setting = comparison.setting
    var systems = zip(comparison.contestants, readings).map { contestant, runs in
      SystemResult(
        system: contestant.label, count: contestant.count,
        figures: runs[0].indices.map { metricIndex in Figure(runs.map { $0[metricIndex] }) })
    }
    if let reference = systems.first(where: { $0.system.hasPrefix(referencePrefix) }) {
      for index in systems.indices { systems[index].setRatios(to: reference) }
    }
    self.systems = systems
  }
}

/// The figures of one system.
public struct SystemResult: Codable, Sendable {
  /// The name of the system.
  public let system: String
  /// The number of operations in a run.
  public let count: Int
  /// The figures, which have the same metrics for all systems of a comparison.
  public fileprivate(set) var figures: [Figure]

  fileprivate mutating func setRatios(to reference: Self) {
    for (index, divisor) in reference.figures.enumerated() where divisor.isCompared && divisor.median > 0 {
      figures[index].ratio = figures[index].median / divisor.median
    }
  }
}

/// The median, minimum and maximum of several runs.
public struct Figure: Codable, Sendable {
  /// The name of the measured quantity.
  public let metric: String
  /// The unit of the median, the minimum and the maximum.
  public let unit: String
  /// The median of the runs.
  public let median: Double
  /// The minimum of the runs.
  public let minimum: Double
  /// The maximum of the runs.
  public let maximum: Double
  let isCompared: Bool
  /// This median divided by the reference system's median.
  ///
  /// `nil` if the figure isn't compared, the reference system wasn't measured, or its median is 0.
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
  /// The middle value, or the mean of the two middle values.
  ///
  /// - Precondition: The array is not empty.
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

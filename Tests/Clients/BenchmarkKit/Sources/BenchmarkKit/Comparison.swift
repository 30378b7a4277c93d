/// What sets a comparison apart from all others, and the title of its table.
public protocol ComparisonSetting: Codable, CustomStringConvertible, Sendable {
  /// Whether a first run may be slower than the others and is short enough to be made once more.
  var needsWarmUp: Bool { get }
}

/// The systems of one table, each with the run that measures it.
public struct Comparison<Setting: ComparisonSetting>: Sendable {
  /// What sets the comparison apart.
  public let setting: Setting
  /// The systems, in the order of the table.
  public let contestants: [Contestant]

  /// Creates a comparison.
  public init(_ setting: Setting, contestants: [Contestant]) {
    self.setting = setting
    self.contestants = contestants
  }
}

/// One system in a comparison.
public struct Contestant: Sendable {
  /// The name of the system in the table.
  public let label: String
  /// How many operations a run has.
  public let count: Int
  let measure: @Sendable () async throws -> [Reading]

  /// Creates a contestant.
  ///
  /// - Parameter measure: Makes one run. It returns the same figures each time.
  public init(label: String, count: Int, measure: @escaping @Sendable () async throws -> [Reading]) {
    self.label = label
    self.count = count
    self.measure = measure
  }
}

/// One figure of one run.
public struct Reading: Sendable {
  let metric: String
  let unit: String
  let value: Double
  let isCompared: Bool

  /// Creates a figure.
  ///
  /// - Parameter isCompared: Whether a system is the better the lower the figure; else it only explains another one.
  public init(metric: String, unit: String, value: Double, isCompared: Bool = true) {
    self.metric = metric
    self.unit = unit
    self.value = value
    self.isCompared = isCompared
  }
}

/// The parameters that identify a comparison.
///
/// Their description is the title of the comparison's table.
public protocol ComparisonSetting: Codable, CustomStringConvertible, Sendable {
  /// Whether each compared system is run once before the measured runs, because its first run may be slower.
  var needsWarmUp: Bool { get }
}

/// The systems of one table, each with a closure that measures it.
public struct Comparison<Setting: ComparisonSetting>: Sendable {
  /// The parameters that identify the comparison.
  public let setting: Setting
  /// The systems, in the order of the table.
  public let contestants: [Contestant]

  /// Creates a comparison.
  public init(_ setting: Setting, contestants: [Contestant]) {
    self.setting = setting
    self.contestants = contestants
  }
}

/// A system in a comparison, for example a library.
public struct Contestant: Sendable {
  /// The name of the system in the table.
  public let label: String
  /// The number of operations in a run.
  public let count: Int
  let measure: @Sendable () async throws -> [Reading]

  /// Creates a contestant.
  ///
  /// - Parameters:
  ///   - label: The name of the system in the table.
  ///   - count: The number of operations in a run.
  ///   - measure: A closure that performs one run. It must return readings of the same metrics, in the same order, for
  ///     each run of each contestant.
  public init(label: String, count: Int, measure: @escaping @Sendable () async throws -> [Reading]) {
    self.label = label
    self.count = count
    self.measure = measure
  }
}

/// A value that one run measured.
public struct Reading: Sendable {
  let metric: String
  let unit: String
  let value: Double
  let isCompared: Bool

  /// Creates a reading.
  ///
  /// - Parameters:
  ///   - metric: The name of the measured quantity.
  ///   - unit: The unit of the value.
  ///   - value: The measured value.
  ///   - isCompared: Whether systems are compared by this value; lower is better. A value that isn't compared only
  ///     explains another one.
  public init(metric: String, unit: String, value: Double, isCompared: Bool = true) {
    self.metric = metric
    self.unit = unit
    self.value = value
    self.isCompared = isCompared
  }
}

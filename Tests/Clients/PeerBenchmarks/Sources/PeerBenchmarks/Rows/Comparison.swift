/// The systems of one row of the tables, each with the run that measures it.
struct Comparison: Sendable {
  let row: Row
  /// Which part of the row it is, where there is more than one.
  var part: String?
  let element: String
  let readers: Int
  let contestants: [Contestant]
}

/// One system in a comparison.
struct Contestant: Sendable {
  let label: String
  /// How many sends, rounds or cycles a run has.
  let count: Int
  let measure: @Sendable () async throws -> [Reading]
}

/// One figure of one run.
struct Reading: Sendable {
  let metric: String
  let unit: String
  let value: Double
  /// Whether a system is the better the lower the figure; else it only explains another one.
  var isCompared = true
}

extension Duration {
  var nanoseconds: Double {
    Double(components.seconds) * 1e9 + Double(components.attoseconds) / 1e9
  }
}

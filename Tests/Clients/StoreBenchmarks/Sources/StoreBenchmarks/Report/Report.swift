internal import Foundation

/// Everything that one start of the program measured.
struct Report: Codable {
  let machine: Machine
  let seed: UInt64
  let runs: Int
  let scale: Double
  var comparisons: [ComparisonResult] = []
  /// `nil` at another scale than 1, where figures are no measure of them.
  var goals: [Goal]?

  init(_ options: Options) {
    machine = Machine()
    seed = options.seed
    runs = options.runs
    scale = options.scale
  }

  var header: String {
    """
    \(machine.cores) cores, \(machine.system), Swift \(machine.swift)
    Medians (minimum–maximum) of \(runs) runs; × is the ratio to GRDB. Seed \(seed), scale \(scale).
    """
  }

  func json() throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    return String(decoding: try encoder.encode(self), as: UTF8.self)
  }
}

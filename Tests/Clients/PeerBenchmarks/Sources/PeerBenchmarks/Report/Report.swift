internal import Foundation

/// Everything that one start of the program measured.
struct Report: Codable {
  let machine: Machine
  let seed: UInt64
  let runs: Int
  let scale: Double
  private(set) var comparisons: [ComparisonResult] = []
  private(set) var readerCosts: [ReaderCost] = []

  init(_ options: Options) {
    machine = Machine()
    seed = options.seed
    runs = options.runs
    scale = options.scale
  }

  var header: String {
    """
    \(machine.cores) cores, \(machine.system), Swift \(machine.swift)
    Medians (minimum–maximum) of \(runs) runs; × is the ratio to Multicast. Seed \(seed), scale \(scale).
    """
  }

  /// Takes in the comparisons of one row.
  mutating func add(_ row: [ComparisonResult]) {
    comparisons += row
    readerCosts += ReaderCost.all(in: row)
  }

  func json() throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    return String(decoding: try encoder.encode(self), as: UTF8.self)
  }
}

internal import BenchmarkKit
internal import Foundation

/// The options of the command line.
struct Options: Sendable {
  private(set) var run = RunOptions(timeout: 600)
  private(set) var rows = Row.allCases
  private(set) var serverAddress: String?
  private(set) var folder = FileManager.default.temporaryDirectory

  static let usage = """
    usage: StoreBenchmarks [options]
      --rows \(Row.allCases.map(\.rawValue).joined(separator: ","))
                     the rows to measure
      --runs 5       the number of runs, of which the medians are printed
      --scale 1      the length of a run; 0.01 only checks that everything works
      --folder PATH  the folder of the stores, which are removed afterwards; by default, the temporary directory
      --server ADDR  the address of a PostgreSQL server, in libpq's format; without it, the rows server-… are skipped
      --timeout 600  the number of seconds after which a run counts as hung
      --seed N       the seed of the order of the compared systems in each run
      --json         prints JSON instead of tables
    """

  init(_ arguments: some Sequence<String>) throws(UsageError) {
    var (rows, folder, serverAddress) = (rows, folder, serverAddress)
    try run.read(arguments) { (name, value) throws(UsageError) in
      switch name {
      case "--rows": rows = try RunOptions.parseList(value, Row.init(rawValue:))
      case "--server": serverAddress = value
      case "--folder": folder = URL(filePath: value, directoryHint: .isDirectory)
      default: return false
      }
      return true
    }
    (self.rows, self.folder, self.serverAddress) = (rows, folder, serverAddress)
  }

  /// Returns a number of operations, keys or elements: `count` multiplied by the scale, but at least the smaller of
  /// `minimum` and `count`.
  func scaled(_ count: Int, atLeast minimum: Int = 3) -> Int {
    run.scaled(count, atLeast: minimum)
  }
}

internal import BenchmarkKit
internal import Foundation

/// What the command line asks for.
struct Options: Sendable {
  private(set) var run = RunOptions(timeout: 600)
  private(set) var rows = Row.allCases
  private(set) var server: String?
  private(set) var folder = FileManager.default.temporaryDirectory

  static let usage = """
    usage: StoreBenchmarks [options]
      --rows \(Row.allCases.map(\.rawValue).joined(separator: ","))
                     what to measure
      --runs 5       medians are taken of so many runs
      --scale 1      the length of a run; 0.01 to see that everything works
      --folder PATH  where the stores are made, and removed afterwards; the temporary directory if left out
      --server ADDR  the PostgreSQL server of the rows server-…, as libpq understands it; left out if there is none
      --timeout 600  seconds after which a run counts as hung
      --seed N       orders the systems of each run
      --json
    """

  init(_ arguments: some Sequence<String>) throws(UsageError) {
    var (rows, folder, server) = (rows, folder, server)
    try run.read(arguments) { (name, value) throws(UsageError) in
      switch name {
      case "--rows": rows = try RunOptions.parseList(value, Row.init(rawValue:))
      case "--server": server = value
      case "--folder": folder = URL(filePath: value, directoryHint: .isDirectory)
      default: return false
      }
      return true
    }
    (self.rows, self.folder, self.server) = (rows, folder, server)
  }

  /// The number of operations, keys or elements in a run of this scale.
  func scaled(_ count: Int, atLeast minimum: Int = 3) -> Int {
    run.scaled(count, atLeast: minimum)
  }
}

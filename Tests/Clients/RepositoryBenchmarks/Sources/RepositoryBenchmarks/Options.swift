internal import BenchmarkKit
internal import Foundation

/// The command-line options.
struct Options: Sendable {
  private(set) var run = RunOptions(timeout: 600)
  private(set) var rows = Row.allCases
  private(set) var store = StoreKind.files
  private(set) var folder = FileManager.default.temporaryDirectory

  static let usage = """
    usage: RepositoryBenchmarks [options]
      --rows \(Row.allCases.map(\.rawValue).joined(separator: ","))
                     the rows to measure
      --store files  kind of store of all systems: \(StoreKind.allCases.map(\.rawValue).joined(separator: "|"))
      --runs 5       number of runs, of which the median is taken
      --scale 1      length of a run; 0.01 to check that everything works
      --folder PATH  folder of the stores, which are removed afterwards; by default the temporary directory
      --timeout 600  seconds after which a run counts as hung
      --seed N       seed that determines the order of the systems in each run
      --json         print the results as JSON
    """

  init(_ arguments: some Sequence<String>) throws(UsageError) {
    var (rows, store, folder) = (rows, store, folder)
    try run.read(arguments) { (name, value) throws(UsageError) in
      switch name {
      case "--rows": rows = try RunOptions.parseList(value, Row.init(rawValue:))
      case "--store": store = try RunOptions.parse(value, StoreKind.init(rawValue:))
      case "--folder": folder = URL(filePath: value, directoryHint: .isDirectory)
      default: return false
      }
      return true
    }
    (self.rows, self.store, self.folder) = (rows, store, folder)
  }

  /// Returns a number of operations, keys or mutations: `count` multiplied by the scale, but at least the smaller of
  /// `minimum` and `count`.
  func scaled(_ count: Int, atLeast minimum: Int = 3) -> Int {
    run.scaled(count, atLeast: minimum)
  }
}

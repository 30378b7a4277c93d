internal import BenchmarkKit
internal import Foundation

/// What the command line asks for.
struct Options: Sendable {
  private(set) var run = RunOptions(timeout: 600)
  private(set) var rows = Row.allCases
  private(set) var store = StoreKind.files
  private(set) var folder = FileManager.default.temporaryDirectory

  static let usage = """
    usage: RepositoryBenchmarks [options]
      --rows \(Row.allCases.map(\.rawValue).joined(separator: ","))
                     what to measure
      --store files  where the systems keep what they have: \(StoreKind.allCases.map(\.rawValue).joined(separator: "|"))
      --runs 5       medians are taken of so many runs
      --scale 1      the length of a run; 0.01 to see that everything works
      --folder PATH  where the stores are made, and removed afterwards; the temporary directory if left out
      --timeout 600  seconds after which a run counts as hung
      --seed N       orders the systems of each run
      --json
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

  /// The number of operations, keys or mutations in a run of this scale.
  func scaled(_ count: Int, atLeast minimum: Int = 3) -> Int {
    run.scaled(count, atLeast: minimum)
  }
}

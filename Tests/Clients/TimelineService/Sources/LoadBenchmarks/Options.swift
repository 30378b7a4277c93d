internal import BenchmarkKit
internal import Foundation

/// The options of the command line.
struct Options: Sendable {
  private(set) var run = RunOptions(timeout: 600)
  private(set) var rows = Row.allCases
  private(set) var systems = ServiceKind.allCases
  private(set) var folder = FileManager.default.temporaryDirectory
  private var unscaledStreamCount = 1_000
  private(set) var likesPerSecond = 200

  static let usage = """
    usage: LoadBenchmarks [options]
      --rows \(Row.allCases.map(\.rawValue).joined(separator: ","))
                     the rows to measure
      --systems \(ServiceKind.allCases.map(\.rawValue).joined(separator: ","))
                     the systems to measure
      --streams 1000 the number of open event streams
      --rate 200     the number of likes per second
      --runs 5       the number of runs, of which the medians are reported
      --scale 1      multiplies a run's length and number of streams; 0.01 checks that everything works
      --folder PATH  the parent folder of the stores; the temporary directory by default
      --timeout 600  the number of seconds after which a run counts as hung
      --seed N       the seed of the order of the systems
      --json         prints the report as JSON
    """

  init(_ arguments: some Sequence<String>) throws(UsageError) {
    var (rows, systems, folder) = (rows, systems, folder)
    var (unscaledStreamCount, likesPerSecond) = (unscaledStreamCount, likesPerSecond)
    try run.read(arguments) { (name, value) throws(UsageError) in
      switch name {
      case "--rows": rows = try RunOptions.parseList(value, Row.init(rawValue:))
      case "--systems": systems = try RunOptions.parseList(value, ServiceKind.init(rawValue:))
      case "--folder": folder = URL(filePath: value, directoryHint: .isDirectory)
      case "--streams": unscaledStreamCount = try RunOptions.parse(value, RunOptions.positive)
      case "--rate": likesPerSecond = try RunOptions.parse(value, RunOptions.positive)
      default: return false
      }
      return true
    }
    (self.rows, self.systems, self.folder) = (rows, systems, folder)
    (self.unscaledStreamCount, self.likesPerSecond) = (unscaledStreamCount, likesPerSecond)
  }

  /// The number of open event streams.
  var streamCount: Int { run.scaled(unscaledStreamCount, atLeast: 10) }

  /// A line about the load.
  var summary: String { "\(streamCount) event streams, \(likesPerSecond) likes per second, \(seconds) seconds." }

  /// The time during which likes are made, in seconds.
  var seconds: Int { run.scaled(10, atLeast: 1) }
}

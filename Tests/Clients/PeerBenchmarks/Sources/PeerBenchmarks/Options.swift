internal import BenchmarkKit

/// The command-line options.
struct Options: Sendable {
  private(set) var runOptions = RunOptions(timeout: 300)
  private(set) var rows = Row.usual
  private(set) var subscribers = [1, 8, 64, 512]
  private(set) var elements = ElementName.allCases
  private(set) var systems = SystemName.usual

  static let usage = """
    usage: PeerBenchmarks [options]
      --rows burst,producer,wake,subscribe,bounded,memory
                                 the rows to measure; `soak` is measured only if named here
      --systems multicast,dictionary,share,opencombine,continuations
                                 the systems to compare; `lossy` loses an element and must fail in `burst`
      --subscribers 1,8,64,512   the numbers of subscribers in `burst`, `producer` and `wake`
      --element int|owned|both   the type of the elements
      --runs 5                   the number of runs, of which the medians are reported
      --scale 1                  the length of a run; 0.01 for a quick check
      --timeout 300              the seconds after which a run counts as hung
      --seed N                   the seed of the random order of the systems in each run
      --json                     print JSON instead of tables
    """

  init(_ arguments: some Sequence<String>) throws(UsageError) {
    var (rows, subscribers, elements, systems) = (rows, subscribers, elements, systems)
    try runOptions.read(arguments) { (name, value) throws(UsageError) in
      switch name {
      case "--rows": rows = try RunOptions.parseList(value, Row.init(rawValue:))
      case "--systems": systems = try RunOptions.parseList(value, SystemName.init(rawValue:))
      case "--subscribers": subscribers = try RunOptions.parseList(value, RunOptions.positive)
      case "--element":
        elements = value == "both" ? ElementName.allCases : [try RunOptions.parse(value, ElementName.init(rawValue:))]
      default: return false
      }
      return true
    }
    (self.rows, self.subscribers, self.elements, self.systems) = (rows, subscribers, elements, systems)
  }

  /// Returns `count` sends, rounds or cycles multiplied by the scale, but at least the smaller of 10 and `count`.
  func scaled(_ count: Int) -> Int {
    runOptions.scaled(count, atLeast: 10)
  }
}

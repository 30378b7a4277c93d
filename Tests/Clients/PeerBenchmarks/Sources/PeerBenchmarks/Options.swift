internal import BenchmarkKit

/// What the command line asks for.
struct Options: Sendable {
  private(set) var run = RunOptions(timeout: 300)
  private(set) var rows = Row.usual
  private(set) var readers = [1, 8, 64, 512]
  private(set) var elements = ElementName.allCases
  private(set) var systems = SystemName.usual

  static let usage = """
    usage: PeerBenchmarks [options]
      --rows burst,producer,wake,subscribe,bounded,memory   what to measure; `soak` only on request
      --systems multicast,dictionary,share,opencombine,continuations
                                 what to compare; `lossy` loses an element and must fail a burst
      --readers 1,8,64,512       for burst, producer and wake
      --element int|owned|both
      --runs 5                   medians are taken of so many runs
      --scale 1                  the length of a run; 0.01 to see that everything works
      --timeout 300              seconds after which a run counts as hung
      --seed N                   orders the systems of each run
      --json
    """

  init(_ arguments: some Sequence<String>) throws(UsageError) {
    var (rows, readers, elements, systems) = (rows, readers, elements, systems)
    try run.read(arguments) { (name, value) throws(UsageError) in
      switch name {
      case "--rows": rows = try RunOptions.parseList(value, Row.init(rawValue:))
      case "--systems": systems = try RunOptions.parseList(value, SystemName.init(rawValue:))
      case "--readers": readers = try RunOptions.parseList(value, RunOptions.positive)
      case "--element":
        elements = value == "both" ? ElementName.allCases : [try RunOptions.parse(value, ElementName.init(rawValue:))]
      default: return false
      }
      return true
    }
    (self.rows, self.readers, self.elements, self.systems) = (rows, readers, elements, systems)
  }

  /// The number of sends, rounds or cycles in a run of this scale.
  func scaled(_ count: Int) -> Int {
    run.scaled(count, atLeast: 10)
  }
}

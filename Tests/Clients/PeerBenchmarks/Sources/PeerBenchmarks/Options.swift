/// What the command line asks for.
struct Options: Sendable {
  var printsJSON = false
  var rows = Row.usual
  var readers = [1, 8, 64, 512]
  var elements = ElementName.allCases
  var systems = SystemName.usual
  var runs = 5
  var scale = 1.0
  var timeout = 300
  var seed = UInt64.random(in: 0...UInt64(UInt32.max))

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

  init(_ arguments: some Sequence<String>) throws(BenchmarkError) {
    var arguments = arguments.makeIterator()
    while let argument = arguments.next() {
      if argument == "--json" {
        printsJSON = true
        continue
      }
      guard let value = arguments.next() else { throw .usage("\(argument) is unknown or needs a value.") }
      switch argument {
      case "--rows": rows = try Self.list(value) { Row(rawValue: $0) }
      case "--systems": systems = try Self.list(value) { SystemName(rawValue: $0) }
      case "--readers": readers = try Self.list(value) { Self.positive($0) }
      case "--element":
        elements = value == "both" ? ElementName.allCases : [try Self.one(value) { .init(rawValue: $0) }]
      case "--runs": runs = try Self.one(value, Self.positive)
      case "--scale": scale = try Self.one(value) { Double($0).flatMap { $0 > 0 ? $0 : nil } }
      case "--timeout": timeout = try Self.one(value, Self.positive)
      case "--seed": seed = try Self.one(value) { UInt64($0) }
      default: throw .usage("\(argument) is unknown.")
      }
    }
  }

  /// The number of sends, rounds or cycles in a run of this scale.
  func scaled(_ count: Int) -> Int {
    max(10, Int(Double(count) * scale))
  }

  private static func list<Value>(
    _ text: String, _ parse: (String) -> Value?
  ) throws(BenchmarkError) -> [Value] {
    var values: [Value] = []
    for part in text.split(separator: ",") { values.append(try one(String(part), parse)) }
    return values
  }

  private static func one<Value>(_ text: String, _ parse: (String) -> Value?) throws(BenchmarkError) -> Value {
    guard let value = parse(text) else { throw .usage("\(text) is not a possible value here.") }
    return value
  }

  private static func positive(_ text: String) -> Int? {
    Int(text).flatMap { $0 > 0 ? $0 : nil }
  }
}

internal import Foundation

/// What the command line asks for.
struct Options: Sendable {
  var printsJSON = false
  var rows = Row.allCases
  var runs = 5
  var scale = 1.0
  var folder = FileManager.default.temporaryDirectory
  var timeout = 600
  var seed = UInt64.random(in: 0...UInt64(UInt32.max))

  static let usage = """
    usage: StoreBenchmarks [options]
      --rows \(Row.allCases.map(\.rawValue).joined(separator: ","))
                     what to measure
      --runs 5       medians are taken of so many runs
      --scale 1      the length of a run; 0.01 to see that everything works
      --folder PATH  where the stores are made, and removed afterwards; the temporary directory if left out
      --timeout 600  seconds after which a run counts as hung
      --seed N       orders the systems of each run
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
      case "--rows":
        rows = []
        for name in value.split(separator: ",") { rows.append(try Self.parse(String(name), Row.init(rawValue:))) }
      case "--runs": runs = try Self.parse(value, Self.positive)
      case "--scale": scale = try Self.parse(value) { Double($0).flatMap { $0 > 0 ? $0 : nil } }
      case "--folder": folder = URL(filePath: value, directoryHint: .isDirectory)
      case "--timeout": timeout = try Self.parse(value, Self.positive)
      case "--seed": seed = try Self.parse(value) { UInt64($0) }
      default: throw .usage("\(argument) is unknown.")
      }
    }
  }

  /// The number of operations, keys or elements in a run of this scale.
  func scaled(_ count: Int, atLeast minimum: Int = 3) -> Int {
    max(min(minimum, count), Int(Double(count) * scale))
  }

  private static func parse<Value>(_ text: String, _ parse: (String) -> Value?) throws(BenchmarkError) -> Value {
    guard let value = parse(text) else { throw .usage("\(text) is not a possible value here.") }
    return value
  }

  private static func positive(_ text: String) -> Int? {
    Int(text).flatMap { $0 > 0 ? $0 : nil }
  }
}

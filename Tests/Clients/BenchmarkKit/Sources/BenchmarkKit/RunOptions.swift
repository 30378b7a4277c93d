/// The options that every benchmark has.
public struct RunOptions: Sendable {
  /// Whether the report is printed as JSON, and no tables.
  public private(set) var printsJSON = false
  /// The number of runs that a median is taken of.
  public private(set) var runs = 5
  /// The length of a run, relative to the usual one.
  public private(set) var scale = 1.0
  /// The number of seconds after which a run counts as hung.
  public private(set) var timeout: Int
  /// The seed of the order of the systems.
  public private(set) var seed = UInt64.random(in: 0...UInt64(UInt32.max))

  /// Creates the options of an empty command line.
  ///
  /// - Parameter timeout: In seconds, unless an option says another.
  public init(timeout: Int) {
    self.timeout = timeout
  }

  /// Reads a command line.
  ///
  /// - Parameter other: Takes the name and the value of an option of the program's own, and returns whether it knows it.
  public mutating func read(
    _ arguments: some Sequence<String>, other: (String, String) throws(UsageError) -> Bool
  ) throws(UsageError) {
    var arguments = arguments.makeIterator()
    while let argument = arguments.next() {
      if argument == "--json" {
        printsJSON = true
        continue
      }
      guard let value = arguments.next() else { throw UsageError("\(argument) is unknown or needs a value.") }
      switch argument {
      case "--runs": runs = try Self.parse(value, Self.positive)
      case "--scale": scale = try Self.parse(value) { Double($0).flatMap { $0 > 0 ? $0 : nil } }
      case "--timeout": timeout = try Self.parse(value, Self.positive)
      case "--seed": seed = try Self.parse(value) { UInt64($0) }
      default: if try !other(argument, value) { throw UsageError("\(argument) is unknown.") }
      }
    }
  }

  /// The number of operations in a run of this scale.
  public func scaled(_ count: Int, atLeast minimum: Int) -> Int {
    max(min(minimum, count), Int(Double(count) * scale))
  }

  /// Reads one value.
  public static func parse<Value>(_ text: String, _ parse: (String) -> Value?) throws(UsageError) -> Value {
    guard let value = parse(text) else { throw UsageError("\(text) is not a possible value here.") }
    return value
  }

  /// Reads several values with commas between them.
  public static func parseList<Value>(_ text: String, _ parse: (String) -> Value?) throws(UsageError) -> [Value] {
    var values: [Value] = []
    for part in text.split(separator: ",") { values.append(try Self.parse(String(part), parse)) }
    return values
  }

  /// Reads a number of at least 1.
  public static func positive(_ text: String) -> Int? {
    Int(text).flatMap { $0 > 0 ? $0 : nil }
  }
}

/// What is wrong with a command line.
public struct UsageError: Error {
  /// The problem in words.
  public let problem: String

  init(_ problem: String) {
    self.problem = problem
  }
}

/// The command-line options that all benchmarks have in common.
public struct RunOptions: Sendable {
  /// Whether the report is printed as JSON instead of tables.
  public private(set) var printsJSON = false
  /// The number of measured runs, of which the medians are reported.
  public private(set) var runs = 5
  /// The length of a run, relative to the default length.
  public private(set) var scale = 1.0
  /// The number of seconds after which a run counts as hung.
  public private(set) var timeout: Int
  /// The seed of the random order in which the compared systems are run.
  public private(set) var seed = UInt64.random(in: 0...UInt64(UInt32.max))

  /// Creates the default options.
  ///
  /// - Parameter timeout: The default timeout in seconds.
  public init(timeout: Int) {
    self.timeout = timeout
  }

  /// Parses a command line.
  ///
  /// - Parameters:
  ///   - arguments: The arguments without the program's name.
  ///   - other: A closure that parses an option that isn't common to all benchmarks. It receives the option's name and
  ///     value, and returns whether the option exists.
  /// - Throws: ``UsageError`` if an option is unknown, or its value is missing or invalid.
  public mutating func read(
    _ arguments: some Sequence<String>, other: (String, String) throws(UsageError) -> Bool
  ) throws(UsageError) {
    var iterator = arguments.makeIterator()
    while let option = iterator.next() {
      if option == "--json" {
        printsJSON = true
        continue
      }
      guard let value = iterator.next() else { throw UsageError("Option \(option) is unknown or lacks a value.") }
      switch option {
      case "--runs": runs = try Self.parse(value, Self.positive)
      // The upper limit keeps scaled counts within the range of `Int`.
      case "--scale": scale = try Self.parse(value) { Double($0).flatMap { $0 > 0 && $0 <= 1_000_000 ? $0 : nil } }
      case "--timeout": timeout = try Self.parse(value, Self.positive)
      case "--seed": seed = try Self.parse(value) { UInt64($0) }
      default: if try !other(option, value) { throw UsageError("Option \(option) is unknown.") }
      }
    }
  }

  /// Returns `count` multiplied by the scale, but at least the smaller of `minimum` and `count`.
  public func scaled(_ count: Int, atLeast minimum: Int) -> Int {
    max(min(minimum, count), Int(Double(count) * scale))
  }

  /// Parses the value of an option.
  public static func parse<Value>(_ text: String, _ convert: (String) -> Value?) throws(UsageError) -> Value {
    guard let value = convert(text) else { throw UsageError("Value \(text) is invalid.") }
    return value
  }

  /// Parses a comma-separated list of values.
  public static func parseList<Value>(_ text: String, _ convert: (String) -> Value?) throws(UsageError) -> [Value] {
    var values: [Value] = []
    for part in text.split(separator: ",") { values.append(try Self.parse(String(part), convert)) }
    return values
  }

  /// Parses an integer that is at least 1.
  public static func positive(_ text: String) -> Int? {
    Int(text).flatMap { $0 > 0 ? $0 : nil }
  }
}

/// An error in a command line.
public struct UsageError: Error {
  /// A description of the error.
  public let problem: String

  init(_ problem: String) {
    self.problem = problem
  }
}

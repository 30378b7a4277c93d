#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// How often random tests repeat what they do, and how far exhaustive tests go.
///
/// The environment variable `MOMENTS_ROUNDS` sets it for all tests: `full` is the full size of each test, and a number
/// is the number of rounds of each random test. Without the variable, each test has a default size, with which all
/// tests together take about a minute.
///
/// `MOMENTS_SEED` is the seed of every random test, to repeat a failed run.
package enum Rounds {
  /// Whether exhaustive tests try everything, instead of a part or a smaller depth.
  package static let areFull = setting == "full"

  /// The seed from the environment.
  package static let fixedSeed = variable("MOMENTS_SEED").map { text in
    guard let seed = UInt64(text) else { preconditionFailure("MOMENTS_SEED must be a number, but is “\(text)”.") }
    return seed
  }

  /// Returns the number of rounds of a random test that has the given default and full sizes.
  package static func count(_ defaultCount: Int, full fullCount: Int) -> Int {
    if areFull { return fullCount }
    return fixedCount ?? defaultCount
  }

  /// Returns the step between the positions that an exhaustive test tries: 1 at full size.
  package static func step(_ defaultStep: Int) -> Int {
    areFull ? 1 : defaultStep
  }

  private static let setting = variable("MOMENTS_ROUNDS")
  private static let fixedCount: Int? = setting.flatMap { text in
    if text == "full" { return nil }
    guard let count = Int(text), count > 0 else {
      preconditionFailure("MOMENTS_ROUNDS must be “full” or a positive number, but is “\(text)”.")
    }
    return count
  }

  /// Returns a variable of the environment.
  private static func variable(_ name: String) -> String? {
    getenv(name).map { String(cString: $0) }
  }
}

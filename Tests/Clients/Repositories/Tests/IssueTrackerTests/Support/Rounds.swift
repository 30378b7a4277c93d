import Foundation

/// How often random tests repeat what they do: `MOMENTS_ROUNDS` in the environment is `full` or a number.
enum Rounds {
  private static let environment = ProcessInfo.processInfo.environment

  /// Whether the size isn't the default one.
  static let areSet = environment["MOMENTS_ROUNDS"] != nil

  static func count(_ defaultCount: Int, full fullCount: Int) -> Int {
    let setting = environment["MOMENTS_ROUNDS"]
    return setting == "full" ? fullCount : setting.flatMap(Int.init) ?? defaultCount
  }

  /// The step between the positions that an exhaustive test tries: 1 at full size.
  static func step(_ defaultStep: Int) -> Int { environment["MOMENTS_ROUNDS"] == "full" ? 1 : defaultStep }

  /// The seed of random tests: `MOMENTS_SEED`, or a random one.
  static let seed = environment["MOMENTS_SEED"].flatMap(UInt64.init) ?? .random(in: 0..<1_000_000)
}

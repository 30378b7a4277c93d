internal import Foundation

/// The machine and the options of one execution of a benchmark.
public struct Conditions: Codable, Sendable {
  /// The number of cores.
  public let cores: Int
  /// The operating system.
  public let operatingSystem: String
  /// The version of the compiler.
  public let swift: String
  /// The number of measured runs, of which the medians are reported.
  public let runs: Int
  /// The factor by which the default counts of a run, such as its operations, are multiplied.
  public let scale: Double
  /// The seed of the random order in which the compared systems are run.
  public let seed: UInt64

  /// Describes this machine and the given options.
  public init(_ options: RunOptions) {
    let process = ProcessInfo.processInfo
    cores = process.activeProcessorCount
    operatingSystem = process.operatingSystemVersionString
    swift = Self.swiftVersion
    runs = options.runs
    scale = options.scale
    seed = options.seed
  }

  /// Returns the two lines of text that precede the tables.
  ///
  /// - Parameter base: The name of the reference system.
  public func header(base: String) -> String {
    """
    \(cores) cores, \(operatingSystem), Swift \(swift)
    Medians (minimum–maximum) of \(runs) runs; the column × has the ratio to \(base). Seed \(seed), scale \(scale).
    """
  }

  private static var swiftVersion: String {
    #if compiler(>=6.4)
      "6.4 or later"
    #elseif compiler(>=6.3)
      "6.3"
    #elseif compiler(>=6.2)
      "6.2"
    #else
      "6.1"
    #endif
  }
}

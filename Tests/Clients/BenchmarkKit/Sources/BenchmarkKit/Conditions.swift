internal import Foundation

/// What the figures of one start of a program were taken on, and how.
public struct Conditions: Codable, Sendable {
  /// The number of cores.
  public let cores: Int
  /// The operating system.
  public let system: String
  /// The version of the compiler.
  public let swift: String
  /// The number of runs that a median is taken of.
  public let runs: Int
  /// The length of a run, relative to the usual one.
  public let scale: Double
  /// The seed of the order of the systems.
  public let seed: UInt64

  /// Describes this machine and a command line.
  public init(_ options: RunOptions) {
    let process = ProcessInfo.processInfo
    cores = process.activeProcessorCount
    system = process.operatingSystemVersionString
    swift = Self.swiftVersion
    runs = options.runs
    scale = options.scale
    seed = options.seed
  }

  /// Two lines above the tables.
  ///
  /// - Parameter base: The system that all others are related to.
  public func header(base: String) -> String {
    """
    \(cores) cores, \(system), Swift \(swift)
    Medians (minimum–maximum) of \(runs) runs; × is the ratio to \(base). Seed \(seed), scale \(scale).
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

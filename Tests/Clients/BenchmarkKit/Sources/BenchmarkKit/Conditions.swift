internal import Foundation

/// What the figures of one start of a program were taken on, and how.
public struct Conditions: Codable, Sendable {
  public let cores: Int
  public let system: String
  public let swift: String
  public let runs: Int
  public let scale: Double
  public let seed: UInt64

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

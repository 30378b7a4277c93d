internal import Foundation

/// What the figures were taken on.
struct Machine: Codable {
  let cores: Int
  let system: String
  let swift: String

  init() {
    let process = ProcessInfo.processInfo
    cores = process.activeProcessorCount
    system = process.operatingSystemVersionString
    swift = Self.swiftVersion
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

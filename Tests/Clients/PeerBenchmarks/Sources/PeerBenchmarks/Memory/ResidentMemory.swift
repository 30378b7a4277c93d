internal import BenchmarkKit
internal import Foundation

/// The resident memory of this process.
enum ResidentMemory {
  /// Returns the current resident memory in bytes, which is a multiple of the page size.
  static func bytes() throws(BenchmarkError) -> Int {
    guard
      let statm = FileManager.default.contents(atPath: "/proc/self/statm"),
      let pages = String(decoding: statm, as: UTF8.self).split(separator: " ").dropFirst().first.flatMap({ Int($0) })
    else { throw .unreadableResidentMemory }
    return pages * sysconf(Int32(_SC_PAGESIZE))
  }

  /// Performs a piece of work and measures the resident memory before and after it.
  static func measureGrowth(during work: () async throws -> Void) async throws -> MemoryGrowth {
    // The first reading may need memory itself.
    _ = try bytes()
    let before = try bytes()
    try await work()
    return MemoryGrowth(before: before, after: try bytes())
  }
}

/// The resident memory before and after a piece of work, in bytes.
struct MemoryGrowth: Codable, Sendable {
  let before: Int
  let after: Int

  var readings: [Reading] {
    [
      Reading(metric: "growth", unit: "KiB", value: Double(after - before) / 1024),
      Reading(metric: "before", unit: "KiB", value: Double(before) / 1024, isCompared: false),
      Reading(metric: "after", unit: "KiB", value: Double(after) / 1024, isCompared: false),
    ]
  }
}

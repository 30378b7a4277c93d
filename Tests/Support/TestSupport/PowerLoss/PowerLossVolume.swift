package import Foundation

/// A mounted volume that can lose power: `Tests/Support/power-loss`, in a process of its own.
///
/// One volume serves one test, so tests run side by side. The process unmounts it and ends with its standard input and
/// with its parent, so it never outlives the tests, however they end.
package struct PowerLossVolume: Sendable {
  /// What a loss of power does to changes that were not synchronized.
  package enum Restoration: Sendable {
    /// Loses all of them.
    case forget
    /// Keeps or loses each by chance; a seed always gives the same result.
    case keep(seed: UInt64)
  }

  /// The folder at which the volume is mounted.
  package let url: URL

  private let process: PowerLossProcess

  /// Whether a volume can be mounted, which is tried once.
  package static let isAvailable: Bool = {
    #if os(Linux)
      let check = PowerLossProcess.python(arguments: ["--check"])
      check.standardInput = FileHandle.nullDevice
      check.standardOutput = FileHandle.nullDevice
      check.standardError = FileHandle.nullDevice
      do {
        try check.run()
      } catch {
        return false
      }
      check.waitUntilExit()
      return check.terminationStatus == 0
    #else
      return false
    #endif
  }()

  /// Where a volume can be mounted, as a skipped test states it.
  package static let requirement =
    "needs Linux with /dev/fuse, fusermount3 and Python 3 (MOMENTS_POWER_LOSS_PYTHON names another python3)"

  /// Whether a missing volume is a failure: `MOMENTS_REQUIRE_POWER_LOSS=1` in the environment.
  package static let isRequired = ProcessInfo.processInfo.environment["MOMENTS_REQUIRE_POWER_LOSS"] == "1"

  /// Mounts an empty volume, passes it to `body`, and unmounts it, however `body` ends.
  ///
  /// Files that are still open afterwards fail.
  package static func run<Result>(
    isolation: isolated (any Actor)? = #isolation,
    _ body: (PowerLossVolume) async throws -> sending Result
  ) async throws -> sending Result {
    let folder = FileManager.default.temporaryDirectory.appending(
      path: "PowerLossVolume-\(UUID().uuidString)", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    // Not by removing what is in it, which would empty a volume that could not be unmounted.
    defer { rmdir(folder.path(percentEncoded: false)) }
    let process = PowerLossProcess()
    let result: Swift.Result<Result, any Error>
    do {
      try await process.start(mountPoint: folder)
      result = .success(try await body(PowerLossVolume(url: folder, process: process)))
    } catch {
      result = .failure(error)
    }
    await process.end()
    return try result.get()
  }

  /// Cuts the power: every call on the volume fails with `EIO` until it is restored.
  package func cut() async throws {
    try await process.execute("cut")
  }

  /// Cuts the power once `count` more operations were executed, the last of which still succeeds.
  ///
  /// Operations are what changes or synchronizes something; see `Tests/Support/power-loss/README.md`.
  package func arm(after count: Int) async throws {
    try await process.execute("arm \(count)")
  }

  /// Withdraws ``arm(after:)``.
  package func disarm() async throws {
    try await process.execute("disarm")
  }

  /// Returns how many operations were executed since the volume was mounted.
  package func operationCount() async throws -> Int {
    let reply = try await process.send("count")
    guard let count = Int(reply) else { throw PowerLossProcess.Failure(command: "count", reply: reply) }
    return count
  }

  /// Returns whether the power is cut.
  package func isCut() async throws -> Bool {
    try await process.send("is-cut") == "yes"
  }

  /// Supplies power again, cutting it first if it was not, and ends ``arm(after:)``.
  ///
  /// Files and folders opened earlier stay unusable. What the restored volume has is durable.
  package func restore(_ restoration: Restoration) async throws {
    switch restoration {
    case .forget: try await process.execute("restore forget")
    case .keep(let seed): try await process.execute("restore keep \(seed)")
    }
  }
}

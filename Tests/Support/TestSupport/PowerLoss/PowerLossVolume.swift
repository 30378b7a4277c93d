package import Foundation

/// A mounted volume that can lose power, served by `Tests/Support/power-loss` in a separate process.
///
/// Each test mounts its own volume, so tests can run in parallel. The process unmounts the volume and ends when its
/// standard input is closed or its parent ends, so it never outlives the tests.
package struct PowerLossVolume: Sendable {
  /// The effect of a power loss on changes that weren't synchronized.
  package enum Restoration: Sendable {
    /// All unsynchronized changes are lost.
    case forget
    /// Each unsynchronized change is kept or lost at random; the same seed always gives the same result.
    case keep(seed: UInt64)
  }

  /// The mount point of the volume.
  package let url: URL

  private let process: PowerLossProcess

  /// Whether the tests that need a volume run (`MOMENTS_REQUIRE_POWER_LOSS=1` in the environment).
  package static let isRequested = ProcessInfo.processInfo.environment["MOMENTS_REQUIRE_POWER_LOSS"] == "1"

  /// The requirements of a volume, as the message of a skipped test states them.
  package static let requirement =
    "needs MOMENTS_REQUIRE_POWER_LOSS=1 and Linux with /dev/fuse, fusermount3 and Python 3"

  /// Mounts an empty volume, passes it to `body`, and unmounts it when `body` returns or throws.
  ///
  /// Afterwards, operations on files that are still open fail.
  package static func run<Result>(
    isolation: isolated (any Actor)? = #isolation,
    _ body: (PowerLossVolume) async throws -> sending Result
  ) async throws -> sending Result {
    let folder = FileManager.default.temporaryDirectory.appending(
      path: "PowerLossVolume-\(UUID().uuidString)", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    // Removes only an empty folder, because removing its contents would empty a volume that couldn't be unmounted.
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

  /// Cuts the power, so that every call on the volume fails with `EIO` until the power is restored.
  package func cut() async throws {
    try await process.execute("cut")
  }

  /// Cuts the power after `count` more operations, the last of which still succeeds.
  ///
  /// An operation is a successful call that changes or synchronizes content or names; see
  /// `Tests/Support/power-loss/README.md`.
  package func arm(after count: Int) async throws {
    try await process.execute("arm \(count)")
  }

  /// Cancels ``arm(after:)``.
  package func disarm() async throws {
    try await process.execute("disarm")
  }

  /// Returns the number of operations since the volume was mounted.
  package func operationCount() async throws -> Int {
    let reply = try await process.send("count")
    guard let count = Int(reply) else { throw PowerLossProcess.Failure(command: "count", reply: reply) }
    return count
  }

  /// Returns whether the power is cut.
  package func isCut() async throws -> Bool {
    try await process.send("is-cut") == "yes"
  }

  /// Restores the power after a cut, and cancels ``arm(after:)``.
  ///
  /// If the power isn't cut, cuts it first. Files and folders that were opened earlier stay unusable. The content of
  /// the restored volume is durable.
  package func restore(_ restoration: Restoration) async throws {
    switch restoration {
    case .forget: try await process.execute("restore forget")
    case .keep(let seed): try await process.execute("restore keep \(seed)")
    }
  }
}

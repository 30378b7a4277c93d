import Foundation

/// A folder for a single test, which is removed when the object is released.
final class TemporaryFolder: Sendable {
  let url = FileManager.default.temporaryDirectory.appending(
    path: "IssueTrackerTests-\(UUID().uuidString)", directoryHint: .isDirectory)

  init() throws {
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
  }

  deinit {
    // Files that are left behind don't affect other tests.
    try? FileManager.default.removeItem(at: url)
  }
}

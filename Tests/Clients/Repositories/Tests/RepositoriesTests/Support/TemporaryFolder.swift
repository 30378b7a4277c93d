import Foundation

/// A folder of a test's own, removed when the test ends.
final class TemporaryFolder: Sendable {
  /// A place where nothing is yet.
  let url = FileManager.default.temporaryDirectory.appending(
    path: "RepositoriesTests-\(UUID().uuidString)", directoryHint: .isDirectory)

  deinit {
    // What is left behind harms no other test.
    try? FileManager.default.removeItem(at: url)
  }
}

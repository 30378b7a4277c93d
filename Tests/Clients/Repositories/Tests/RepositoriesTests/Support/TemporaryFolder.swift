import Foundation

/// A folder for a single test, which is removed when the object is released.
final class TemporaryFolder: Sendable {
  /// The URL of the folder, which doesn't exist at first.
  let url = FileManager.default.temporaryDirectory.appending(
    path: "RepositoriesTests-\(UUID().uuidString)", directoryHint: .isDirectory)

  deinit {
    // Files that are left behind don't affect other tests.
    try? FileManager.default.removeItem(at: url)
  }
}

import Foundation

/// A folder of a test's own, removed when the test ends.
final class TemporaryFolder: Sendable {
  let url: URL

  /// A place where nothing is yet.
  init() {
    url = FileManager.default.temporaryDirectory.appending(
      path: "DataStoreTests-\(UUID().uuidString)", directoryHint: .isDirectory)
  }

  deinit {
    if FileManager.default.fileExists(atPath: url.path(percentEncoded: false)) {
      try! FileManager.default.removeItem(at: url)
    }
  }
}

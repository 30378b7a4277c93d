import Foundation

/// A folder for a single test, which is removed when the test ends.
final class TemporaryFolder: Sendable {
  let url: URL

  /// Creates the URL of a folder that doesn't exist yet.
  ///
  /// - Parameter inMemory: Whether the folder may be in memory, where the system supports that, so that nothing waits
  ///   for a disk. Its contents may be lost in a power failure.
  init(inMemory: Bool = false) {
    let memory = URL(filePath: "/dev/shm", directoryHint: .isDirectory)
    let isThere = FileManager.default.isWritableFile(atPath: memory.path(percentEncoded: false))
    url = (inMemory && isThere ? memory : FileManager.default.temporaryDirectory).appending(
      path: "DataStoreTests-\(UUID().uuidString)", directoryHint: .isDirectory)
  }

  /// The names and the bytes of all files.
  var namesAndBytes: [Data] {
    get throws {
      try FileManager.default.contentsOfDirectory(at: url, includingPropertiesForKeys: nil).flatMap {
        [Data($0.lastPathComponent.utf8), try Data(contentsOf: $0)]
      }
    }
  }

  deinit {
    // A store that is still working may move a file in the meantime. Files that are left behind don't affect other
    // tests, so errors are ignored.
    for _ in 0..<10 where FileManager.default.fileExists(atPath: url.path(percentEncoded: false)) {
      try? FileManager.default.removeItem(at: url)
    }
  }
}

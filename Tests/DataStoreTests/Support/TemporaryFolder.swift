import Foundation

/// A folder for one test, which is removed when the test ends.
final class TemporaryFolder: Sendable {
  let url: URL

  /// Chooses the URL of a folder that doesn't exist yet.
  ///
  /// - Parameter inMemory: Whether the folder is on a volume in memory, if the system has one. There, no call waits for a
  ///   disk, and the files don't survive a loss of power.
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
    // A store that is still running may move a file meanwhile, so the removal is repeated. Files that remain don't affect
    // other tests, so an error is ignored.
    for _ in 0..<10 where FileManager.default.fileExists(atPath: url.path(percentEncoded: false)) {
      try? FileManager.default.removeItem(at: url)
    }
  }
}

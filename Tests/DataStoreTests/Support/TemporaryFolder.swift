import Foundation

/// A folder of a test's own, removed when the test ends.
final class TemporaryFolder: Sendable {
  let url: URL

  /// A place where nothing is yet.
  ///
  /// - Parameter inMemory: Whether the folder may be lost with the power, where the system has a place for such: there
  ///   nothing waits for a disk.
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
    // A store that still works may move a file meanwhile. What is left behind harms no other test, so that needs no answer.
    for _ in 0..<10 where FileManager.default.fileExists(atPath: url.path(percentEncoded: false)) {
      try? FileManager.default.removeItem(at: url)
    }
  }
}

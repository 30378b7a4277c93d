package import Foundation

/// A test's folder, which is removed when the object is released.
package final class TemporaryFolder: Sendable {
  package let url: URL

  /// Chooses the URL of a folder that doesn't exist yet.
  ///
  /// - Parameter inMemory: Whether the folder is on a volume in memory, if the system has one. There, no call waits for
  ///   a disk, and the files don't survive a loss of power.
  package init(inMemory: Bool = false) {
    let memoryVolume = URL(filePath: "/dev/shm", directoryHint: .isDirectory)
    let hasMemoryVolume = FileManager.default.isWritableFile(atPath: memoryVolume.path(percentEncoded: false))
    url = (inMemory && hasMemoryVolume ? memoryVolume : FileManager.default.temporaryDirectory).appending(
      path: "moments-tests-\(UUID().uuidString)", directoryHint: .isDirectory)
  }

  /// Creates an empty folder, and returns it.
  package static func created() throws -> TemporaryFolder {
    let folder = TemporaryFolder()
    try folder.create()
    return folder
  }

  deinit {
    // Files that remain don't affect other tests, so an error is ignored.
    if FileManager.default.fileExists(atPath: url.path(percentEncoded: false)) { try? remove() }
  }

  /// The name of each file, followed by the bytes of the file.
  package var namesAndBytes: [Data] {
    get throws {
      try FileManager.default.contentsOfDirectory(at: url, includingPropertiesForKeys: nil).flatMap {
        [Data($0.lastPathComponent.utf8), try Data(contentsOf: $0)]
      }
    }
  }

  /// Returns the paths, relative to the folder, that contain a text or lead to a file that contains it.
  ///
  /// Searches again if a store has renamed or removed a file meanwhile. If a file belongs to a database, closing it
  /// after the read releases this process's locks on it.
  package func files(mentioning text: String) throws -> [String] {
    while true {
      do {
        return try searchOnce(for: text)
      } catch let error as CocoaError where [.fileReadNoSuchFile, .fileNoSuchFile].contains(error.code) {}
    }
  }

  private func searchOnce(for text: String) throws -> [String] {
    try FileManager.default.subpathsOfDirectory(atPath: url.path(percentEncoded: false)).filter { path in
      if path.contains(text) { return true }
      let file = url.appending(path: path)
      guard try file.resourceValues(forKeys: [.isRegularFileKey]).isRegularFile ?? false else { return false }
      return try Data(contentsOf: file).range(of: Data(text.utf8)) != nil
    }
  }

  /// Creates the folder.
  ///
  /// - Throws: An error if the folder exists already.
  package func create() throws {
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false)
  }

  /// Removes the folder, in which a store may still be renaming files.
  ///
  /// - Throws: The error of the last of eleven attempts.
  package func remove() throws {
    for _ in 0..<10 {
      do {
        return try FileManager.default.removeItem(at: url)
      } catch {
        // A listed file may have been renamed in the meantime.
      }
    }
    try FileManager.default.removeItem(at: url)
  }
}

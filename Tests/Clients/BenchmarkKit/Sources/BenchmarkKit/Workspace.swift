public import Foundation
internal import Synchronization

/// A folder of this process's own, in which all systems keep their files: they share one volume.
public final class Workspace: Sendable {
  private let folder: URL
  private let count = Atomic(0)

  /// Creates the folder.
  ///
  /// - Parameters:
  ///   - program: What its name begins with.
  ///   - parent: The folder that it is made in.
  public init(of program: String, in parent: URL) throws {
    folder = parent.appending(path: "\(program)-\(UUID().uuidString)", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  }

  /// Makes an empty folder.
  public func makeFolder() throws -> URL {
    let number = count.add(1, ordering: .relaxed).newValue
    let new = folder.appending(path: "\(number)", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: new, withIntermediateDirectories: false)
    return new
  }

  /// Calls `body` with an empty folder, which it removes afterwards.
  public func withFolder<Result>(_ body: (URL) async throws -> Result) async throws -> Result {
    let folder = try makeFolder()
    let result = try await body(folder)
    remove(folder)
    return result
  }

  /// Removes a folder.
  ///
  /// A store that still works may make a file meanwhile. What is left behind goes with the workspace.
  private func remove(_ folder: URL) {
    for _ in 0..<10 where FileManager.default.fileExists(atPath: folder.path(percentEncoded: false)) {
      try? FileManager.default.removeItem(at: folder)
    }
  }

  /// Removes the folder and everything in it.
  public func remove() throws {
    try FileManager.default.removeItem(at: folder)
  }
}

public import Foundation
internal import Synchronization

/// A temporary folder for the files of all compared systems, which keeps them on one volume.
public final class Workspace: Sendable {
  private let rootFolder: URL
  private let madeFolderCount = Atomic(0)

  /// Calls `body` with a new workspace, and removes the workspace afterwards, even if `body` throws.
  ///
  /// If the removal fails too, the error of `body` is thrown.
  ///
  /// - Parameters:
  ///   - program: The prefix of the folder's name.
  ///   - parent: The folder in which the workspace is created.
  ///   - isolation: The isolation of the caller, in which `body` runs.
  ///   - body: The use of the workspace.
  public static func withNew<Result>(
    of program: String, in parent: URL, isolation: isolated (any Actor)? = #isolation,
    _ body: (Workspace) async throws -> Result
  ) async throws -> Result {
    let workspace = try Workspace(of: program, in: parent)
    let result: Result
    do {
      result = try await body(workspace)
    } catch {
      try? FileManager.default.removeItem(at: workspace.rootFolder)
      throw error
    }
    try FileManager.default.removeItem(at: workspace.rootFolder)
    return result
  }

  private init(of program: String, in parent: URL) throws {
    rootFolder = parent.appending(path: "\(program)-\(UUID().uuidString)", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: rootFolder, withIntermediateDirectories: true)
  }

  /// Creates an empty folder in the workspace.
  public func makeFolder() throws -> URL {
    let number = madeFolderCount.add(1, ordering: .relaxed).newValue
    let folder = rootFolder.appending(path: "\(number)", directoryHint: .isDirectory)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    return folder
  }

  /// Calls `body` with an empty folder, and removes the folder afterwards, even if `body` throws.
  public func withFolder<Result>(_ body: (URL) async throws -> Result) async throws -> Result {
    let folder = try makeFolder()
    defer { remove(folder) }
    return try await body(folder)
  }

  /// Removes a folder, and ignores errors.
  ///
  /// A system that is still working may create a file during the removal, so several attempts are made. If the folder
  /// remains, it is removed with the workspace.
  private func remove(_ folder: URL) {
    for _ in 0..<10 where FileManager.default.fileExists(atPath: folder.path(percentEncoded: false)) {
      try? FileManager.default.removeItem(at: folder)
    }
  }
}

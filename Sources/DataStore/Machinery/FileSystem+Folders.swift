internal import Foundation

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

extension FileSystem {
  /// Makes a folder, and those above it where they are missing, durably.
  func makeFolders(_ path: String) throws(SystemError) {
    if try !makeFolderDurably(path) {
      // Whoever made it at the same time may not have made it durable yet.
      try synchronize(openFolder(Self.parent(of: path)))
    }
  }

  /// - Returns: Whether it was not there.
  @discardableResult
  private func makeFolderDurably(_ path: String) throws(SystemError) -> Bool {
    let parent = Self.parent(of: path)
    do throws(SystemError) {
      try makeFolder(path)
    } catch {
      switch error.code {
      case EEXIST: return false
      case ENOENT where parent != path:
        try makeFolderDurably(parent)
        try makeFolder(path)
      default: throw error
      }
    }
    do throws(SystemError) {
      try synchronize(openFolder(parent))
    } catch {
      // Else the next write would find the folder and take it for durable.
      do throws(SystemError) {
        try removeFolder(path)
      } catch {
        // The first failure says more than this one.
      }
      throw error
    }
    return true
  }

  private static func parent(of path: String) -> String {
    URL(filePath: path, directoryHint: .isDirectory).deletingLastPathComponent().path(percentEncoded: false)
  }
}

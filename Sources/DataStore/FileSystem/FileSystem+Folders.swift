internal import Foundation

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

extension FileSystem {
  /// Creates a folder and its missing parents, durably; makes an existing folder durable.
  func makeFolders(_ path: String) throws(SystemError) {
    let parent = Self.parent(of: path)
    do throws(SystemError) {
      guard try makeFolderIfMissing(path) else { return try makeExistingFolderDurable(path) }
    } catch {
      guard error.code == ENOENT, parent != path else { throw error }
      try makeFolders(parent)
      // Another process may create it at the same time.
      guard try makeFolderIfMissing(path) else { return try makeExistingFolderDurable(path) }
      return try makeNewFolderDurable(path)
    }
    do throws(SystemError) {
      try makeExistingFolderDurable(parent)
    } catch {
      removeNewFolder(path)
      throw error
    }
    try makeNewFolderDurable(path)
  }

  /// Returns whether a folder is on a read-only volume.
  func isOnReadOnlyVolume(_ folder: borrowing Descriptor) throws(SystemError) -> Bool {
    var status = statvfs()
    let number = folder.number
    try perform("fstatvfs", folder.path) { fstatvfs(number, &status) }
    #if canImport(Darwin)
      return Int32(truncatingIfNeeded: status.f_flag) & ST_RDONLY != 0
    #else
      // `ST_RDONLY` is 1 on every Linux. Glibc's constant has a type that isn't imported.
      return status.f_flag & 1 != 0
    #endif
  }

  /// Makes the name of an existing folder durable in its parent.
  ///
  /// This is needed because the process that created the folder may have ended before it did so. Errors of permission,
  /// and of volumes on which this isn't possible, are ignored, because a store can't have created the folder there.
  func makeExistingFolderDurable(_ path: String) throws(SystemError) {
    do throws(SystemError) {
      try synchronize(openFolder(Self.parent(of: path)))
    } catch {
      guard [EACCES, EPERM, EROFS, EINVAL, ENOTSUP].contains(error.code) else { throw error }
    }
  }

  /// Makes the name of a new folder durable in its parent, or tries to remove the folder and throws.
  private func makeNewFolderDurable(_ path: String) throws(SystemError) {
    do throws(SystemError) {
      try synchronize(openFolder(Self.parent(of: path)))
    } catch {
      removeNewFolder(path)
      throw error
    }
  }

  /// Removes a new folder that could not be made durable, or whose parent could not, unless it has contents already.
  private func removeNewFolder(_ path: String) {
    do throws(SystemError) {
      try removeFolder(path)
    } catch {
      // The caller throws the failure that led here, which is more specific. The next write finds the folder and makes
      // it durable.
    }
  }

  /// Creates a folder, unless its name is taken, even by a file.
  ///
  /// - Returns: Whether the folder was missing.
  private func makeFolderIfMissing(_ path: String) throws(SystemError) -> Bool {
    do throws(SystemError) {
      try makeFolder(path)
      return true
    } catch {
      if error.code == EEXIST { return false }
      throw error
    }
  }

  private static func parent(of path: String) -> String {
    URL(filePath: path, directoryHint: .isDirectory).deletingLastPathComponent().path(percentEncoded: false)
  }
}

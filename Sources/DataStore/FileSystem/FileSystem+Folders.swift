internal import Foundation

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

extension FileSystem {
  /// Creates a folder and its missing parents, durably; if the folder already exists, only makes its name durable.
  ///
  /// A folder is created only after its parent has become durable. So if another process finds the folder, it only
  /// needs to make the folder durable, and not its parents too.
  func makeFolders(_ path: String) throws(SystemError) {
    let parent = Self.parent(of: path)
    if parent != path, try isMissing(path) {
      try makeFolders(parent)
      // Another process may have created the folder in the meantime.
      if try makeFolderIfMissing(path) { return try makeNewFolderDurable(path) }
    }
    try makeExistingFolderDurable(path)
  }

  /// Returns whether a folder is on a read-only volume.
  func isOnReadOnlyVolume(_ folder: borrowing Descriptor) throws(SystemError) -> Bool {
    var status = statvfs()
    let number = folder.number
    try perform("fstatvfs", folder.path) { fstatvfs(number, &status) }
    return status.f_flag & UInt(ST_RDONLY) != 0
  }

  /// Returns whether an open folder is still the one at the path with which it was opened.
  func isAtItsPath(_ folder: borrowing Descriptor) throws(SystemError) -> Bool {
    var (status, statusAtPath) = (stat(), stat())
    let (number, path) = (folder.number, folder.path)
    try perform("fstat", path) { fstat(number, &status) }
    do throws(SystemError) {
      try perform("stat", path) { stat(path, &statusAtPath) }
    } catch {
      if error.code == ENOENT { return false }
      throw error
    }
    return (status.st_dev, status.st_ino) == (statusAtPath.st_dev, statusAtPath.st_ino)
  }

  /// Makes the name of an existing folder durable in its parent.
  ///
  /// This is needed because the process that created the folder may have ended before it made the name durable. Errors
  /// of permission, and of volumes that can't synchronize a folder, are ignored, because the app may have created the
  /// folder in such a place on purpose.
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

  /// Removes a new folder that could not be made durable, unless it has contents already.
  private func removeNewFolder(_ path: String) {
    do throws(SystemError) {
      try removeFolder(path)
    } catch {
      // This error is ignored: the caller throws the earlier one, which says why the folder could not be made durable.
      // The next write finds the folder and tries again to make it durable.
    }
  }

  /// Returns whether there is no item at a path, perhaps because a parent is missing.
  private func isMissing(_ path: String) throws(SystemError) -> Bool {
    var status = stat()
    do throws(SystemError) {
      try perform("stat", path) { stat(path, &status) }
      return false
    } catch {
      if error.code == ENOENT { return true }
      throw error
    }
  }

  /// Creates a folder, unless a folder or another item already has its name.
  ///
  /// - Returns: Whether the folder was created.
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

internal import Foundation

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

extension FileSystem {
  /// Makes a folder, and those above it where they are missing, durably; one that is there becomes durable too.
  func makeFolders(_ path: String) throws(SystemError) {
    let parent = Self.parent(of: path)
    do throws(SystemError) {
      guard try makeFolderIfMissing(path) else { return try makeFoundFolderDurable(path) }
    } catch {
      guard error.code == ENOENT, parent != path else { throw error }
      try makeFolders(parent)
      // Another process may make it at the same time.
      guard try makeFolderIfMissing(path) else { return try makeFoundFolderDurable(path) }
      return try makeNewFolderDurable(path)
    }
    do throws(SystemError) {
      try makeFoundFolderDurable(parent)
    } catch {
      takeBackFolder(path)
      throw error
    }
    try makeNewFolderDurable(path)
  }

  /// Whether nothing can be changed on the volume of a folder.
  func isOnReadOnlyVolume(_ folder: borrowing Descriptor) throws(SystemError) -> Bool {
    var status = statvfs()
    let number = folder.number
    try perform("fstatvfs", folder.path) { fstatvfs(number, &status) }
    #if canImport(Darwin)
      return Int32(truncatingIfNeeded: status.f_flag) & ST_RDONLY != 0
    #else
      // `ST_RDONLY` is 1 on every Linux; Glibc's is of a type that no module imports.
      return status.f_flag & 1 != 0
    #endif
  }

  /// Makes a folder that was found durable in the one above it: the process that made it may have ended before that.
  ///
  /// Where that cannot be done with our rights, or has no meaning, the folder is not one a store has made.
  func makeFoundFolderDurable(_ path: String) throws(SystemError) {
    do throws(SystemError) {
      try synchronize(openFolder(Self.parent(of: path)))
    } catch {
      guard [EACCES, EPERM, EROFS, EINVAL, ENOTSUP].contains(error.code) else { throw error }
    }
  }

  private func makeNewFolderDurable(_ path: String) throws(SystemError) {
    do throws(SystemError) {
      try synchronize(openFolder(Self.parent(of: path)))
    } catch {
      takeBackFolder(path)
      throw error
    }
  }

  /// Removes a folder that could not be made durable, unless there is something in it already.
  private func takeBackFolder(_ path: String) {
    do throws(SystemError) {
      try removeFolder(path)
    } catch {
      // The failure that led here says more than this one. The next write finds the folder and makes it durable.
    }
  }

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

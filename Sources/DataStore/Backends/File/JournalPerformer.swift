#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// Makes the changes of a journal, or takes them back, in the folder that it is of.
///
/// All of it can be done again after it broke off anywhere, until the journal is removed.
struct JournalPerformer {
  private let journal: CommitJournal
  private let fileSystem: FileSystem

  init(_ journal: CommitJournal, _ fileSystem: FileSystem) {
    (self.journal, self.fileSystem) = (journal, fileSystem)
  }

  /// Whether the new bytes of each file are there, under one of the two names.
  func isComplete(in folder: borrowing Descriptor) throws(SystemError) -> Bool {
    for replacement in journal.replacements where try !fileSystem.exists(replacement.stagedName, in: folder) {
      guard let bytes = try fileSystem.read(replacement.fileName, in: folder), bytes.count == replacement.size,
        CRC32C.checksum(of: bytes) == replacement.checksum
      else { return false }
    }
    return true
  }

  /// Makes the changes of a journal that is in force, and ends it.
  ///
  /// - Parameter hasChanged: Set once a file has changed. New parts don't count, because no stored value has them.
  func finish(in folder: borrowing Descriptor, _ hasChanged: inout Bool) throws(SystemError) {
    for replacement in journal.replacements {
      let wasThere = try renameIfThere(replacement.stagedName, to: replacement.fileName, in: folder)
      if wasThere, !StorePartName.isPart(replacement.fileName) { hasChanged = true }
    }
    for fileName in journal.removals where try removeIfThere(fileName, in: folder) { hasChanged = true }
    try fileSystem.synchronize(folder)
    // Durable with the next commit, before that one is acknowledged. Until then to finish it again changes nothing.
    try fileSystem.unlink(CommitJournal.fileName, in: folder)
  }

  /// Ends a journal by which no value has changed.
  ///
  /// New parts get the names of staged files again, so the journal can be finished until it is removed.
  ///
  /// - Returns: Whether the journal is no longer in force.
  func takeBack(in folder: borrowing Descriptor) -> Bool {
    do throws(SystemError) {
      for replacement in journal.replacements where StorePartName.isPart(replacement.fileName) {
        try renameIfThere(replacement.fileName, to: replacement.stagedName, in: folder)
      }
      try fileSystem.unlink(CommitJournal.fileName, in: folder)
      return true
    } catch {
      // The error that led here says more.
      return false
    }
  }

  /// - Returns: Whether the file was there.
  @discardableResult
  private func renameIfThere(
    _ name: String, to newName: String, in folder: borrowing Descriptor
  ) throws(SystemError) -> Bool {
    do throws(SystemError) {
      try fileSystem.rename(name, to: newName, in: folder)
      return true
    } catch {
      if error.code == ENOENT { return false }
      throw error
    }
  }

  /// Removes a file, and fails for a folder with `EISDIR`, also where the system has the error of a refusal for it.
  ///
  /// - Returns: Whether the file was there.
  private func removeIfThere(_ name: String, in folder: borrowing Descriptor) throws(SystemError) -> Bool {
    do throws(SystemError) {
      try fileSystem.unlink(name, in: folder)
      return true
    } catch {
      if error.code == ENOENT { return false }
      guard error.meansRefusal, try !fileSystem.status(of: name, in: folder).isRegularFile else { throw error }
      throw SystemError(code: EISDIR, operation: error.operation, path: error.path)
    }
  }
}

extension SystemError {
  /// Whether something that isn't a file a store uses, such as a folder, has the name of one.
  var meansObstacle: Bool {
    [EISDIR, ENOTDIR, ENOTEMPTY, EEXIST, EINVAL, ELOOP, EFBIG, ENXIO, EOPNOTSUPP].contains(code)
  }

  /// Whether a file is one that this process may not replace or remove, although it may change the folder: an immutable
  /// one, or one of another user in a folder where each may remove only their own.
  var meansRefusal: Bool { code == EPERM }
}

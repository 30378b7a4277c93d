#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// Makes the changes of a journal in its folder, or rolls them back while no value has changed.
///
/// Until the journal is removed, either can be repeated after an interruption at any point.
struct JournalPerformer {
  private let journal: CommitJournal
  private let fileSystem: FileSystem

  init(_ journal: CommitJournal, _ fileSystem: FileSystem) {
    (self.journal, self.fileSystem) = (journal, fileSystem)
  }

  /// Returns whether the new bytes of each file exist, under the staged name or the final one.
  ///
  /// The bytes of a staged file were synchronized before the journal was written, so they exist if the name does.
  func isComplete(in folder: borrowing Descriptor) throws(SystemError) -> Bool {
    for replacement in journal.replacements where try !fileSystem.exists(replacement.stagedName, in: folder) {
      guard let bytes = try fileSystem.read(replacement.fileName, in: folder), bytes.count == replacement.size,
        CRC32C.checksum(of: bytes) == replacement.checksum
      else { return false }
    }
    return true
  }

  /// Makes the changes of a journal that is in force, and then removes the journal.
  ///
  /// - Parameter hasChangedValue: Set to `true` when the first file has changed. New parts and quarantined bytes don't
  ///   count, because no stored value refers to them.
  func finish(in folder: borrowing Descriptor, _ hasChangedValue: inout Bool) throws(SystemError) {
    for replacement in journal.replacements {
      let existed = try renameIfThere(replacement.stagedName, to: replacement.fileName, in: folder)
      if existed, replacement.holdsValue { hasChangedValue = true }
    }
    for fileName in journal.removals where try removeIfThere(fileName, in: folder) { hasChangedValue = true }
    try fileSystem.synchronize(folder)
    // The removal of the journal becomes durable before the next commit is acknowledged. If a loss of power undoes it
    // before that, finishing the journal again changes no acknowledged value.
    try fileSystem.unlink(CommitJournal.fileName, in: folder)
  }

  /// Rolls back a journal that has not changed any value, and removes it.
  ///
  /// New parts and quarantined bytes get back the names of their staged files, and the backend later discards them. They
  /// aren't removed here, so that the journal can still be finished if its removal fails.
  ///
  /// - Returns: Whether the journal is no longer in force.
  func rollBack(in folder: borrowing Descriptor) -> Bool {
    do throws(SystemError) {
      for replacement in journal.replacements where !replacement.holdsValue {
        try renameIfThere(replacement.fileName, to: replacement.stagedName, in: folder)
      }
      try fileSystem.unlink(CommitJournal.fileName, in: folder)
      return true
    } catch {
      // The journal is still in force, so the caller counts the commit as made. Later calls try again to finish it.
      return false
    }
  }

  /// Renames a file, if it exists.
  ///
  /// - Returns: Whether the file existed.
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

  /// Removes a file, if it exists.
  ///
  /// - Returns: Whether the file existed.
  /// - Throws: `EISDIR` instead of `EPERM` for an item that isn't a regular file, because some systems report `EPERM`
  ///   for a folder.
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
  /// Whether the cause is an unusable item, such as a folder, under the name of one of the store's files.
  var meansObstacle: Bool {
    [EISDIR, ENOTDIR, ENOTEMPTY, EEXIST, EINVAL, ELOOP, EFBIG, ENXIO, ENODEV, EOPNOTSUPP].contains(code)
  }

  /// Whether the system refuses to replace or remove a file, although this process may change the folder.
  ///
  /// Examples are an immutable file, and another user's file in a folder with the sticky bit.
  var meansRefusal: Bool { code == EPERM }
}

internal import Foundation

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// The steps of which reads and writes are made, and how each is undone.
extension FileBackend {
  private static let fileExtension = ".value"
  static let temporaryPrefix = ".DataStore-"

  static func fileName(of name: String) -> String {
    name + fileExtension
  }

  static func name(ofFile fileName: String) -> String? {
    guard fileName.hasSuffix(fileExtension) else { return nil }
    let name = String(fileName.dropLast(fileExtension.count))
    return StoreKeyName(encoded: name) == nil ? nil : name
  }

  mutating func temporaryName() -> String {
    temporaryCount += 1
    return temporaryPrefix + String(temporaryCount)
  }

  /// The folder; nil when it has never been there.
  mutating func openFolder() throws(SystemError) -> Descriptor? {
    defer { watcher?.checkFolder() }
    do throws(SystemError) {
      let descriptor = try fileSystem.openFolder(folder)
      folderWasThere = true
      return descriptor
    } catch {
      // Another one that takes its place is another's work.
      folderIsDurable = false
      if error.code == ENOENT, !folderWasThere { return nil }
      throw error
    }
  }

  /// The folder, made if it has never been there.
  mutating func openOrMakeFolder() throws(SystemError) -> Descriptor {
    if let descriptor = try openFolder() {
      if !folderIsDurable { try fileSystem.makeFoundFolderDurable(folder) }
      folderIsDurable = true
      return descriptor
    }
    try fileSystem.makeFolders(folder)
    let descriptor = try fileSystem.openFolder(folder)
    (folderWasThere, folderIsDurable) = (true, true)
    return descriptor
  }

  /// Waits until nobody else changes names in the folder.
  ///
  /// Needed between a look at a file and the renaming that depends on it, and for no longer, so nobody waits for a
  /// disk. The lock ends with the process that has it. Not every volume knows locks; without one, a file that somebody
  /// puts there in that instant may be taken for the one that was looked at.
  func lock(_ folder: borrowing Descriptor) throws(SystemError) {
    do throws(SystemError) {
      try fileSystem.lock(folder, atMost: lockTimeout)
    } catch {
      guard [ENOTSUP, EOPNOTSUPP, ENOSYS, ENOLCK, EINVAL].contains(error.code) else { throw error }
    }
  }

  /// A file in the place of an older one.
  struct Replacement: ~Copyable {
    /// The older file, whose bytes are within reach as long as it is open; nil when there was none.
    let old: Descriptor?
    /// The new file: as long as it is open, no other one can get its inode.
    let file: Descriptor
    let new: FileSystem.Status
  }

  /// Puts bytes in the place of a file, whole or not at all; durable once the folder is synchronised.
  ///
  /// - Parameter inode: What the older file must be, if it matters.
  /// - Returns: Nil when the older file is another one, which then stays.
  mutating func replace(
    _ fileName: String, by bytes: Data, insteadOf inode: UInt64? = nil, in folder: borrowing Descriptor
  ) throws(SystemError) -> Replacement? {
    let temporaryName = temporaryName()
    let file = try fileSystem.create(temporaryName, in: folder)
    do throws(SystemError) {
      try fileSystem.append(bytes, to: file)
      try fileSystem.synchronize(file)
      let new = try fileSystem.status(of: file)
      try lock(folder)
      defer { fileSystem.unlock(folder) }
      let old = try fileSystem.openFile(fileName, in: folder)
      if let inode, try !isFile(old, inode) {
        discard(temporaryName, in: folder)
        return nil
      }
      try fileSystem.rename(temporaryName, to: fileName, in: folder)
      return Replacement(old: old, file: file, new: new)
    } catch {
      discard(temporaryName, in: folder)
      throw error
    }
  }

  /// Undoes ``replace(_:by:insteadOf:in:)``, unless somebody else has replaced the new file already.
  mutating func putBack(
    _ replacement: borrowing Replacement, as fileName: String, in folder: borrowing Descriptor
  ) throws(SystemError) {
    let inode = replacement.new.inode
    do throws(SystemError) {
      if let bytes = try read(replacement.old) {
        _ = try replace(fileName, by: bytes, insteadOf: inode, in: folder)
      } else {
        try lock(folder)
        defer { fileSystem.unlock(folder) }
        if try isFile(fileSystem.openFile(fileName, in: folder), inode) { try fileSystem.unlink(fileName, in: folder) }
      }
    } catch {
      throw SystemError(code: error.code, operation: "putting back the old value", path: error.path)
    }
  }

  private func read(_ file: borrowing Descriptor?) throws(SystemError) -> Data? {
    switch file {
    case .some(let file): try fileSystem.read(file)
    case nil: nil
    }
  }

  private func isFile(_ file: borrowing Descriptor?, _ inode: UInt64) throws(SystemError) -> Bool {
    switch file {
    case .some(let file): try fileSystem.status(of: file).inode == inode
    case nil: false
    }
  }

  /// Gives a file another name, durably.
  func move(_ name: String, to newName: String, in folder: borrowing Descriptor) throws(SystemError) {
    try renameAlone(name, to: newName, in: folder)
    do throws(SystemError) {
      try fileSystem.synchronize(folder)
    } catch {
      if try !putBack(newName, as: name, in: folder) { discard(newName, in: folder) }
      throw error
    }
  }

  /// Gives a file another name while nobody puts back what had the old one.
  ///
  /// - Parameter inode: What the file must be, if it matters.
  /// - Returns: False when it is another one, which then keeps its name.
  @discardableResult
  private func renameAlone(
    _ name: String, to newName: String, ifItIs inode: UInt64? = nil, in folder: borrowing Descriptor
  ) throws(SystemError) -> Bool {
    try lock(folder)
    defer { fileSystem.unlock(folder) }
    if let inode, try !isFile(fileSystem.openFile(name, in: folder), inode) { return false }
    try fileSystem.rename(name, to: newName, in: folder)
    return true
  }

  /// Gives a file with certain bytes a name for those that are set aside; durable once the folder is synchronised.
  ///
  /// - Returns: The new name; nil when other bytes are there by now.
  func moveAside(
    _ bytes: Data, of name: String, at time: Date, in folder: borrowing Descriptor
  ) throws(SystemError) -> String? {
    let fileName = Self.fileName(of: name)
    guard let file = try fileSystem.openFile(fileName, in: folder), try fileSystem.read(file) == bytes else {
      return nil
    }
    // As long as it is open, no other one can get its inode.
    defer { extendLifetime(file) }
    let inode = try fileSystem.status(of: file).inode
    let asideName = try reserveAsideName(for: name, at: time, in: folder)
    do throws(SystemError) {
      guard try renameAlone(fileName, to: asideName, ifItIs: inode, in: folder) else {
        discard(asideName, in: folder)
        return nil
      }
    } catch {
      discard(asideName, in: folder)
      if error.code == ENOENT { return nil }
      throw error
    }
    let isAnother: Bool
    do throws(SystemError) {
      isAnother = try fileSystem.status(of: asideName, in: folder).inode != inode
    } catch {
      try putBack(asideName, as: fileName, in: folder)
      throw error
    }
    guard isAnother else { return asideName }
    // Whom no lock keeps out has put a good value there since it was read.
    try putBack(asideName, as: fileName, in: folder)
    try fileSystem.synchronize(folder)
    return nil
  }

  /// Undoes the renaming of a file, unless somebody else has given the old name to a newer one already.
  ///
  /// - Returns: Whether the file has its old name again.
  @discardableResult
  func putBack(
    _ name: String, as oldName: String, in folder: borrowing Descriptor
  ) throws(SystemError) -> Bool {
    do throws(SystemError) {
      // Fails where the name is taken, so nobody need be kept out.
      try fileSystem.link(name, to: oldName, in: folder)
    } catch {
      if error.code == EEXIST { return false }
      // Not every volume knows second names.
      return try renameBack(name, to: oldName, in: folder)
    }
    discard(name, in: folder)
    do throws(SystemError) {
      try fileSystem.touch(oldName, in: folder)
    } catch {
      // Who watches learns later that the file is back. The failure that it is put back for is the one to tell.
    }
    return true
  }

  /// - Returns: False when something has the name.
  private func renameBack(
    _ name: String, to oldName: String, in folder: borrowing Descriptor
  ) throws(SystemError) -> Bool {
    try lock(folder)
    defer { fileSystem.unlock(folder) }
    do throws(SystemError) {
      _ = try fileSystem.status(of: oldName, in: folder)
      return false
    } catch {
      guard error.code == ENOENT else { throw error }
    }
    try fileSystem.rename(name, to: oldName, in: folder)
    return true
  }

  /// Makes an empty file in the place for bytes that are set aside, because renaming alone would replace a file that
  /// is there.
  func reserveAsideName(
    for name: String, at time: Date, in folder: borrowing Descriptor
  ) throws(SystemError) -> String {
    var attempt = 1
    while true {
      let asideName = Self.asideName(for: name, at: time, attempt: attempt)
      do throws(SystemError) {
        _ = try fileSystem.create(asideName, in: folder)
        return asideName
      } catch {
        guard error.code == EEXIST else { throw error }
        attempt += 1
      }
    }
  }

  /// Removes a file that holds nothing of value.
  ///
  /// One that stays costs space and nothing else, so a failure is not worth more than the error, or the success, that
  /// is being reported.
  func discard(_ name: String, in folder: borrowing Descriptor) {
    do { try fileSystem.unlink(name, in: folder) } catch {}
  }

  /// Removes temporary files that a process left when it ended in the middle of a write.
  ///
  /// Another store may be writing in the folder at this moment; nobody needs an hour for it. One that did, because it
  /// was stopped for as long, finds its file gone and throws.
  mutating func removeLeftOvers(before now: Int, in folder: borrowing Descriptor) {
    guard !leftOversAreRemoved else { return }
    leftOversAreRemoved = true
    do throws(SystemError) {
      for name in try fileSystem.list(folder) where name.hasPrefix(Self.temporaryPrefix) {
        let status = try fileSystem.status(of: name, in: folder)
        if status.isRegularFile, status.changed <= now - leftOverAge { discard(name, in: folder) }
      }
    } catch {
      // The write that comes with it is done and must not seem to fail. The next store over the folder tries again.
    }
  }
}

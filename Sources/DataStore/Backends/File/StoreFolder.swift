internal import Foundation

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// The open folder of a ``FileBackend``, and the steps of its reads and commits.
///
/// The caller must lock the folder with ``lock(atMost:)`` before it calls a function that creates, renames or removes a
/// file of a value, a part, quarantined bytes or a journal.
final class StoreFolder {
  private let descriptor: Descriptor
  private let fileSystem: FileSystem
  /// Whether the folder is on a volume that doesn't support locks.
  private var hasNoLocks = false

  init(path: String, fileSystem: FileSystem) throws(SystemError) {
    descriptor = try fileSystem.openFolder(path)
    self.fileSystem = fileSystem
  }

  /// Whether this folder is still the one at the path with which it was opened.
  var isAtItsPath: Bool {
    get throws(SystemError) { try fileSystem.isAtItsPath(descriptor) }
  }

  // MARK: - Reading

  /// Returns the bytes of a file, or `nil` if there is no such file.
  func read(_ fileName: String) throws(SystemError) -> Data? {
    try fileSystem.read(fileName, in: descriptor)
  }

  func list() throws(SystemError) -> [String] {
    try fileSystem.list(descriptor)
  }

  /// Whether there is a journal of an unfinished commit.
  var hasJournal: Bool {
    get throws(SystemError) { try fileSystem.exists(CommitJournal.fileName, in: descriptor) }
  }

  // MARK: - Locking

  /// Waits for the lock of the folder, and takes it.
  ///
  /// The lock ends with the process that holds it. On a volume that doesn't support locks, this returns without one,
  /// and concurrent commits of two processes may ignore each other.
  ///
  /// - Throws: `EWOULDBLOCK` if the lock is still held after the timeout, or any other error of `flock`.
  func lock(atMost timeout: Duration) throws(SystemError) {
    do throws(SystemError) {
      try fileSystem.lock(descriptor, atMost: timeout)
    } catch {
      guard error.meansNoLocks else { throw error }
      hasNoLocks = true
    }
  }

  func unlock() {
    fileSystem.unlock(descriptor)
  }

  /// Locks a file of the folder, whether or not the folder is locked.
  func acquireLock(_ fileName: String) throws(SystemError) -> StoreLockResult {
    try fileSystem.acquireLock(fileName, in: descriptor)
  }

  // MARK: - Staging

  /// Creates a staged file with the given bytes, and synchronizes it.
  func stage(_ bytes: Data, _ stagedNames: inout StagedFile.Names) throws(SystemError) -> StagedFile {
    while true {
      let name = stagedNames.next()
      let file = try fileSystem.create(name, in: descriptor)
      do throws(SystemError) {
        // Before the file is locked, another process may mistake it for an abandoned one, lock it and remove it. Then
        // the file is created again under another name.
        let isLockedByOther = try fileSystem.tryToLock(file) == false
        let isRemoved = try fileSystem.status(of: file).linkCount == 0
        if isLockedByOther || isRemoved { continue }
        try fileSystem.append(bytes, to: file)
        try fileSystem.synchronize(file)
      } catch {
        discard(name)
        throw error
      }
      return StagedFile(name: name, bytes: bytes, file: file)
    }
  }

  /// Removes a file that is no longer needed.
  ///
  /// A failure is ignored, because it matters less than the result that the caller reports. The next process that opens
  /// the folder removes the file if it is a staged one.
  func discard(_ name: String) {
    do { try fileSystem.unlink(name, in: descriptor) } catch {}
  }

  /// Removes staged files whose processes have ended.
  ///
  /// The folder must be locked, because a commit closes its staged files, and so unlocks them, before it renames them.
  ///
  /// - Parameter age: The age in seconds after which a file counts as abandoned if files can't be locked.
  func discardAbandonedFiles(olderThan age: Int) throws(SystemError) {
    for name in try list() where StagedFile.isName(name) {
      guard let file = try fileSystem.openFile(name, in: descriptor) else { continue }
      switch try fileSystem.tryToLock(file) {
      case true: discard(name)
      case false: continue
      case nil: if try fileSystem.status(of: file).changeTime <= Int(time(nil)) - age { discard(name) }
      }
    }
  }

  // MARK: - Committing

  /// Makes the changes of a commit, durably: all of them or none.
  ///
  /// A commit of several files writes a journal. Once the journal is in force, a change may be impossible, for example
  /// because a file is immutable, or because a folder has the name of a file. If no value has changed yet, the commit
  /// is then rolled back, and this function throws. After any other error, or if a value has changed or the rollback
  /// fails, the commit counts as made. Each later read or write of a ``FileBackend`` then first calls
  /// ``finishJournal(at:)``, which tries again to finish it.
  ///
  /// A commit of a single file needs no journal, because it can be undone: the old file is restored after an error.
  ///
  /// - Parameter old: The bytes that a commit of a single write replaces; `nil` if there are none.
  /// - Throws: The error that prevented the commit, or an error of unknown outcome if the commit can neither be made
  ///   durable nor be undone.
  func commit(
    _ writes: [(staged: StagedFile, fileName: String)], removing removals: [String], replacing old: Data?,
    _ stagedNames: inout StagedFile.Names
  ) throws(SystemError) {
    for (staged, _) in writes { staged.close() }
    switch (writes.count, removals.count) {
    case (0, 0): break
    case (1, 0): try replace(writes[0].fileName, old, by: writes[0].staged, &stagedNames)
    case (0, 1): try remove(removals[0], via: stagedNames.next())
    default: try commitWithJournal(writes, removing: removals, &stagedNames)
    }
  }

  private func replace(
    _ fileName: String, _ old: Data?, by staged: StagedFile, _ stagedNames: inout StagedFile.Names
  ) throws(SystemError) {
    try fileSystem.rename(staged.name, to: fileName, in: descriptor)
    do throws(SystemError) {
      try fileSystem.synchronize(descriptor)
    } catch {
      try undoChange(of: fileName) { () throws(SystemError) in try restore(old, as: fileName, &stagedNames) }
      throw error
    }
  }

  /// Undoes a change that could not be made durable.
  ///
  /// - Throws: An error of unknown outcome if `undo` throws, because the change may then last.
  private func undoChange(
    of fileName: String, _ undo: () throws(SystemError) -> Void
  ) throws(SystemError) {
    do throws(SystemError) {
      try undo()
    } catch {
      throw .unknownOutcome(ofChanging: descriptor.path(of: fileName), because: error)
    }
  }

  /// Restores the old bytes of a file, or removes the file if it is new.
  private func restore(_ old: Data?, as fileName: String, _ stagedNames: inout StagedFile.Names) throws(SystemError) {
    guard let old else { return try fileSystem.unlink(fileName, in: descriptor) }
    let staged = try stage(old, &stagedNames)
    staged.close()
    try fileSystem.rename(staged.name, to: fileName, in: descriptor)
  }

  /// Removes a file, durably.
  ///
  /// The file has a temporary name until its removal is durable, so that it can get its old name back after an error.
  private func remove(_ fileName: String, via temporaryName: String) throws(SystemError) {
    try fileSystem.rename(fileName, to: temporaryName, in: descriptor)
    do throws(SystemError) {
      try fileSystem.synchronize(descriptor)
    } catch {
      try undoChange(of: fileName) { () throws(SystemError) in
        try fileSystem.rename(temporaryName, to: fileName, in: descriptor)
      }
      throw error
    }
    discard(temporaryName)
  }

  private func commitWithJournal(
    _ writes: [(staged: StagedFile, fileName: String)], removing removals: [String],
    _ stagedNames: inout StagedFile.Names
  ) throws(SystemError) {
    let journal = CommitJournal(
      replacements: writes.map { staged, fileName in
        CommitJournal.Replacement(
          stagedName: staged.name, fileName: fileName, size: staged.bytes.count,
          checksum: CRC32C.checksum(of: staged.bytes))
      }, removals: removals)
    let stagedJournal = try stage(journal.encoded, &stagedNames)
    stagedJournal.close()
    do throws(SystemError) {
      try fileSystem.rename(stagedJournal.name, to: CommitJournal.fileName, in: descriptor)
    } catch {
      discard(stagedJournal.name)
      throw error
    }
    do throws(SystemError) {
      // This makes the names of the staged files and of the journal durable, and so the commit.
      try fileSystem.synchronize(descriptor)
    } catch {
      try undoChange(of: CommitJournal.fileName) { () throws(SystemError) in
        try fileSystem.unlink(CommitJournal.fileName, in: descriptor)
      }
      throw error
    }
    let performer = JournalPerformer(journal, fileSystem)
    var hasChangedValue = false
    do throws(SystemError) {
      try performer.finish(in: descriptor, &hasChangedValue)
    } catch {
      // The commit counts as made while the journal is in force. The next read or write of a `FileBackend` finds the
      // journal and finishes it, throws the reason why it can't, or quarantines the journal.
      let changeIsImpossible = error.meansObstacle || error.meansRefusal
      guard !hasChangedValue, changeIsImpossible, performer.rollBack(in: descriptor) else { return }
      // After a loss of power, the journal of a failed commit must not reappear.
      try undoChange(of: CommitJournal.fileName) { () throws(SystemError) in try fileSystem.synchronize(descriptor) }
      throw error
    }
  }

  // MARK: - Erasing

  /// Removes the files of values, parts and quarantined bytes that `isErased` selects, durably.
  func erase(_ isErased: (StoredItem) -> Bool, _ stagedNames: inout StagedFile.Names) throws(SystemError) {
    let items = try list().compactMap { fileName in
      FileName.storedName(of: fileName).map { (name: $0, fileName: fileName) }
    }
    var keys = StoredItemKeys()
    for (name, fileName) in items { try keys.add(name) { () throws(SystemError) in try bytes(of: fileName) } }
    var fileNames: [String] = []
    for (name, fileName) in items {
      let isSelected = try StoredItem.decide(name: name, keys, isErased) { () throws(SystemError) in
        try self.bytes(of: fileName)
      }
      // A folder may have such a name. It stays, because it can't be removed like a file.
      if isSelected, try fileSystem.status(of: fileName, in: descriptor).isRegularFile { fileNames.append(fileName) }
    }
    // Under the name of a staged file, a file is removed later even if this process ends during the erasure.
    var renamed: [(fileName: String, temporaryName: String)] = []
    do throws(SystemError) {
      for fileName in fileNames {
        let temporaryName = stagedNames.next()
        try fileSystem.rename(fileName, to: temporaryName, in: descriptor)
        renamed.append((fileName, temporaryName))
      }
      // This is done even if no file was renamed now, because an earlier call may have failed after it removed files.
      try fileSystem.synchronize(descriptor)
      if renamed.isEmpty { return }
      while let last = renamed.last {
        try fileSystem.unlink(last.temporaryName, in: descriptor)
        renamed.removeLast()
      }
      try fileSystem.synchronize(descriptor)
    } catch {
      for (fileName, temporaryName) in renamed {
        do throws(SystemError) {
          // A repeated erasure finds the file under its old name.
          try fileSystem.rename(temporaryName, to: fileName, in: descriptor)
        } catch {
          // The first error says more.
        }
      }
      throw error
    }
  }

  /// Returns the bytes of a file; empty if it doesn't exist, or isn't a file that a store could have written.
  private func bytes(of fileName: String) throws(SystemError) -> Data {
    do throws(SystemError) {
      return try read(fileName) ?? Data()
    } catch {
      guard error.meansObstacle else { throw error }
      return Data()
    }
  }

  // MARK: - Recovery

  /// Finishes an interrupted commit, or removes its journal and staged files if any of its new bytes are missing.
  ///
  /// If the system refuses to replace or remove a file, this function throws. The journal then stays in force, with the
  /// staged files that it names, so that a later call can finish it. The same holds if the journal can't be read, for
  /// example because of an I/O error, since all the new bytes may exist.
  ///
  /// So that the store stays usable, a journal that can't be decoded is quarantined. The journal is also quarantined if
  /// an item that a store can't use, such as a folder, has the name of the journal or of a file that the journal names.
  ///
  /// - Returns: The event to report if the journal was quarantined.
  func finishJournal(at time: Date) throws(SystemError) -> StoreEvent? {
    let bytes: Data
    do throws(SystemError) {
      guard let found = try read(CommitJournal.fileName) else { return nil }
      bytes = found
    } catch {
      guard error.meansObstacle, try hasJournal else { throw error }
      return try quarantineJournal(at: time, reason: error.description)
    }
    let journal: CommitJournal
    do throws(CommitJournal.Corruption) {
      journal = try CommitJournal.decode(bytes)
    } catch {
      return try quarantineJournal(at: time, reason: error.reason)
    }
    let performer = JournalPerformer(journal, fileSystem)
    do throws(SystemError) {
      if try performer.isComplete(in: descriptor) {
        // The process that wrote the journal may have ended before the journal was durable. Without this
        // synchronization, a loss of power could keep a part of the following changes and lose the journal.
        try fileSystem.synchronize(descriptor)
        var hasChangedValue = false
        try performer.finish(in: descriptor, &hasChangedValue)
      } else {
        // The commit was not made. Or it was finished, a later commit replaced one of its files, and a loss of power
        // undid the removal of the journal.
        try fileSystem.unlink(CommitJournal.fileName, in: descriptor)
        for replacement in journal.replacements { discard(replacement.stagedName) }
      }
    } catch {
      guard error.meansObstacle else { throw error }
      return try quarantineJournal(at: time, reason: error.description)
    }
    return nil
  }

  private func quarantineJournal(at time: Date, reason: String) throws(SystemError) -> StoreEvent {
    let movedTo = try move(CommitJournal.fileName, toQuarantineOf: CommitJournal.fileName, at: time)
    return .journalQuarantined(movedTo: movedTo, reason: reason)
  }

  // MARK: - Quarantine

  /// Renames a file that has the given bytes to a name for quarantined bytes, durably.
  ///
  /// - Returns: The new path; `nil` if the file has other bytes by now, or doesn't exist.
  func quarantine(_ bytes: Data, in fileName: String, of name: String, at time: Date) throws(SystemError) -> String? {
    guard try read(fileName) == bytes else { return nil }
    let path = try move(fileName, toQuarantineOf: name, at: time)
    // With the lock, no other process can have replaced the file between the read and the rename.
    guard hasNoLocks else { return path }
    let newName = String(path.dropFirst(descriptor.path.count + 1))
    if try read(newName) == bytes { return path }
    // Another process saved a value between the read and the rename, and `newName` now has its bytes. They are moved
    // back, unless a still newer value was saved since.
    if try fileSystem.exists(fileName, in: descriptor) {
      discard(newName)
    } else {
      try fileSystem.rename(newName, to: fileName, in: descriptor)
    }
    try fileSystem.synchronize(descriptor)
    return nil
  }

  /// Renames a file to a name for quarantined bytes, durably.
  ///
  /// - Returns: The new path.
  private func move(_ fileName: String, toQuarantineOf name: String, at time: Date) throws(SystemError) -> String {
    let newName = try reserveQuarantineName(for: name, at: time)
    do throws(SystemError) {
      try rename(fileName, toReserved: newName)
    } catch {
      discard(newName)
      throw error
    }
    do throws(SystemError) {
      try fileSystem.synchronize(descriptor)
    } catch {
      try undoChange(of: fileName) { () throws(SystemError) in
        try fileSystem.rename(newName, to: fileName, in: descriptor)
      }
      throw error
    }
    return descriptor.path(of: newName)
  }

  /// Renames a file, or a folder that has the name of a file, to a name that an empty file reserves.
  private func rename(_ fileName: String, toReserved newName: String) throws(SystemError) {
    do throws(SystemError) {
      try fileSystem.rename(fileName, to: newName, in: descriptor)
    } catch {
      // A folder can't replace the reserving file, so that file is removed. If another file gets the name before the
      // second rename, that rename fails and replaces nothing.
      guard error.code == ENOTDIR else { throw error }
      discard(newName)
      try fileSystem.rename(fileName, to: newName, in: descriptor)
    }
  }

  /// Returns a free name for quarantined bytes, and reserves it by an empty file.
  ///
  /// Without the reservation, the rename could replace a file that got the name in the meantime.
  private func reserveQuarantineName(for name: String, at time: Date) throws(SystemError) -> String {
    var attempt = 1
    while true {
      let newName = FileBackend.quarantineName(for: name, at: time, attempt: attempt)
      do throws(SystemError) {
        _ = try fileSystem.create(newName, in: descriptor)
        return newName
      } catch {
        guard error.code == EEXIST else { throw error }
        attempt += 1
      }
    }
  }
}

internal import Foundation

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// The open folder of a ``FileBackend``, and the steps of which reads and commits are made.
///
/// Functions that change names are called with the folder locked, by ``lock(atMost:)``.
final class StoreFolder {
  private let descriptor: Descriptor
  private let fileSystem: FileSystem
  /// Whether the folder is on a volume that knows no locks.
  private var hasNoLocks = false

  init(path: String, fileSystem: FileSystem) throws(SystemError) {
    descriptor = try fileSystem.openFolder(path)
    self.fileSystem = fileSystem
  }

  // MARK: - Reading

  /// The bytes of a file; `nil` if there is none.
  func read(_ fileName: String) throws(SystemError) -> Data? {
    try fileSystem.read(fileName, in: descriptor)
  }

  func list() throws(SystemError) -> [String] {
    try fileSystem.list(descriptor)
  }

  /// Whether there is a journal of a commit that isn't finished.
  var hasJournal: Bool {
    get throws(SystemError) { try fileSystem.exists(CommitJournal.fileName, in: descriptor) }
  }

  // MARK: - Locking

  /// Waits until no other process has the lock of the folder.
  ///
  /// The lock ends with the process that has it. Not every volume knows locks. Without one, commits of two processes in
  /// the same instant may be made as if the other one didn't exist.
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

  /// Creates a synchronised file with bytes that are about to take the place of another file.
  func stage(_ bytes: Data, _ names: inout StagedFile.Names) throws(SystemError) -> StagedFile {
    while true {
      let name = names.next()
      let file = try fileSystem.create(name, in: descriptor)
      do throws(SystemError) {
        // Another process may take a file for abandoned in the instant before it is locked.
        let isLocked = try fileSystem.tryToLock(file) != false
        let isLinked = try fileSystem.status(of: file).linkCount > 0
        guard isLocked, isLinked else { continue }
        try fileSystem.append(bytes, to: file)
        try fileSystem.synchronize(file)
      } catch {
        discard(name)
        throw error
      }
      return StagedFile(name: name, bytes: bytes, file: file)
    }
  }

  /// Removes a file that holds nothing of value.
  ///
  /// A failure isn't worth more than the error, or the success, that is being reported: a file that stays is removed by
  /// the next process that opens the folder.
  func discard(_ name: String) {
    do { try fileSystem.unlink(name, in: descriptor) } catch {}
  }

  /// Removes staged files whose processes have ended.
  ///
  /// - Parameter age: In seconds; where files can't be locked, older ones are abandoned.
  func discardAbandonedFiles(olderThan age: Int) throws(SystemError) {
    for name in try list() where StagedFile.isName(name) {
      guard let file = try fileSystem.openFile(name, in: descriptor) else { continue }
      switch try fileSystem.tryToLock(file) {
      case true: discard(name)
      case false: continue
      case nil: if try fileSystem.status(of: file).changed <= Int(time(nil)) - age { discard(name) }
      }
    }
  }

  // MARK: - Committing

  /// Makes the changes of a commit, durably: all of them or, if this throws, none.
  ///
  /// The system may refuse to replace or remove a file that can be read, such as an immutable one. If no value has
  /// changed by then, this throws. If one has, the commit is made and its journal stays in force: every later call tries
  /// again to finish it, and throws for as long as the file is refused.
  ///
  /// - Parameter old: The bytes that the only write of a commit replaces; `nil` if there are none.
  func commit(
    _ writes: [(staged: StagedFile, fileName: String)], removing removals: [String], replacing old: Data?,
    _ names: inout StagedFile.Names
  ) throws(SystemError) {
    for (staged, _) in writes { staged.close() }
    switch (writes.count, removals.count) {
    case (0, 0): break
    case (1, 0): try replace(writes[0].fileName, old, by: writes[0].staged, &names)
    case (0, 1): try remove(removals[0], by: names.next())
    default: try commitWithJournal(writes, removing: removals, &names)
    }
  }

  private func replace(
    _ fileName: String, _ old: Data?, by staged: StagedFile, _ names: inout StagedFile.Names
  ) throws(SystemError) {
    try fileSystem.rename(staged.name, to: fileName, in: descriptor)
    do throws(SystemError) {
      try fileSystem.synchronize(descriptor)
    } catch {
      try putBack(old, as: fileName, &names)
      throw error
    }
  }

  private func putBack(
    _ old: Data?, as fileName: String, _ names: inout StagedFile.Names
  ) throws(SystemError) {
    do throws(SystemError) {
      if let old {
        let staged = try stage(old, &names)
        staged.close()
        try fileSystem.rename(staged.name, to: fileName, in: descriptor)
      } else {
        try fileSystem.unlink(fileName, in: descriptor)
      }
    } catch {
      throw SystemError(code: error.code, operation: "putting back the old value", path: error.path)
    }
  }

  private func remove(_ fileName: String, by temporaryName: String) throws(SystemError) {
    try fileSystem.rename(fileName, to: temporaryName, in: descriptor)
    do throws(SystemError) {
      try fileSystem.synchronize(descriptor)
    } catch {
      try fileSystem.rename(temporaryName, to: fileName, in: descriptor)
      throw error
    }
    discard(temporaryName)
  }

  private func commitWithJournal(
    _ writes: [(staged: StagedFile, fileName: String)], removing removals: [String], _ names: inout StagedFile.Names
  ) throws(SystemError) {
    let journal = CommitJournal(
      replacements: writes.map { staged, fileName in
        CommitJournal.Replacement(
          stagedName: staged.name, fileName: fileName, size: staged.bytes.count,
          checksum: CRC32C.checksum(of: staged.bytes))
      }, removals: removals)
    let staged = try stage(journal.encoded, &names)
    staged.close()
    do throws(SystemError) {
      try fileSystem.rename(staged.name, to: CommitJournal.fileName, in: descriptor)
    } catch {
      discard(staged.name)
      throw error
    }
    do throws(SystemError) {
      // Makes the names of the staged files and of the journal durable, and with them the commit.
      try fileSystem.synchronize(descriptor)
    } catch {
      try fileSystem.unlink(CommitJournal.fileName, in: descriptor)
      throw error
    }
    let performer = JournalPerformer(journal, fileSystem)
    var hasChanged = false
    do throws(SystemError) {
      try performer.finish(in: descriptor, &hasChanged)
    } catch {
      // As long as the journal is in force the commit is made. Every later call finds the journal and finishes it, or says
      // why it can't.
      guard !hasChanged, error.meansObstacle || error.meansRefusal, performer.takeBack(in: descriptor) else { return }
      // A loss of power must not bring back a commit that failed.
      try fileSystem.synchronize(descriptor)
      throw error
    }
  }

  // MARK: - Erasing

  /// Removes files of values, of parts and of quarantined bytes, durably.
  func erase(_ isErased: (StoredItem) -> Bool, _ names: inout StagedFile.Names) throws(SystemError) {
    var erased: [String] = []
    for fileName in try list() {
      guard let name = FileName.keptName(of: fileName) else { continue }
      // As a temporary file it is removed later, also if this process ends amid it.
      let temporaryName = names.next()
      guard isErased(StoredItem(name: name, bytes: { self.readable(fileName) })) else { continue }
      try fileSystem.rename(fileName, to: temporaryName, in: descriptor)
      erased.append(temporaryName)
    }
    if erased.isEmpty { return }
    try fileSystem.synchronize(descriptor)
    for temporaryName in erased { try fileSystem.unlink(temporaryName, in: descriptor) }
    try fileSystem.synchronize(descriptor)
  }

  /// The bytes of a file; none if they can't be read.
  private func readable(_ fileName: String) -> Data {
    do throws(SystemError) { return try read(fileName) ?? Data() } catch { return Data() }
  }

  // MARK: - Recovery

  /// Finishes the commit of a process that ended before it did so itself.
  ///
  /// A journal that can be finished later stays in force, with the staged files that it names: where the system refuses
  /// to replace or remove a file, this throws. Where something that isn't a file is in the way, the journal is quarantined
  /// so that the store goes on.
  ///
  /// - Returns: What to report if the journal was quarantined.
  func finishJournal(at time: Date) throws(SystemError) -> StoreEvent? {
    let bytes: Data
    do throws(SystemError) {
      guard let found = try read(CommitJournal.fileName) else { return nil }
      bytes = found
    } catch {
      guard error.concernsOneEntry, try hasJournal else { throw error }
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
        // The process that wrote the journal may have ended before it was durable, and then a loss of power could keep a
        // part of what follows without it.
        try fileSystem.synchronize(descriptor)
        var hasChanged = false
        try performer.finish(in: descriptor, &hasChanged)
      } else {
        // Its commit was never made.
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

  /// Gives a file with certain bytes a name for quarantined bytes, durably.
  ///
  /// - Returns: The new path; `nil` if the file has other bytes by now.
  func quarantine(_ bytes: Data, in fileName: String, of name: String, at time: Date) throws(SystemError) -> String? {
    guard try read(fileName) == bytes else { return nil }
    let path = try move(fileName, toQuarantineOf: name, at: time)
    guard hasNoLocks else { return path }
    let newName = String(path.dropFirst(descriptor.path.count + 1))
    if try read(newName) == bytes { return path }
    // Another process has saved a value in between.
    if try fileSystem.exists(fileName, in: descriptor) {
      discard(newName)
    } else {
      try fileSystem.rename(newName, to: fileName, in: descriptor)
    }
    try fileSystem.synchronize(descriptor)
    return nil
  }

  /// Gives a file a name for quarantined bytes, durably.
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
      try fileSystem.rename(newName, to: fileName, in: descriptor)
      throw error
    }
    return descriptor.path(of: newName)
  }

  /// Renames a file, or a folder that is in the place of one, to a name that an empty file reserves.
  private func rename(_ fileName: String, toReserved newName: String) throws(SystemError) {
    do throws(SystemError) {
      try fileSystem.rename(fileName, to: newName, in: descriptor)
    } catch {
      // A folder takes no file's place. Nor does it take the place of what gets the name between these two calls.
      guard error.code == ENOTDIR else { throw error }
      discard(newName)
      try fileSystem.rename(fileName, to: newName, in: descriptor)
    }
  }

  /// Creates an empty file under the new name, because renaming alone would replace a file that is there.
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

package import Foundation

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// A backend that keeps bytes in a folder, one file for each name: `<name>.value`.
///
/// A commit writes bytes to a staged file, synchronizes it, renames it over the old file, and synchronizes the folder.
/// If a step fails, the earlier steps are rolled back. A commit of several files writes a ``CommitJournal`` before it
/// renames the first staged file. The journal is in force once it is durable. From then on, the commit is rolled back
/// only after an error that means a change is impossible, and only if no value has changed yet. After any other error,
/// or if a value has changed or the rollback fails, the commit counts as made, and later calls finish it.
///
/// Several processes may use the same folder, because no file is ever changed in place, and no two backends share names
/// of staged files. A backend holds the lock of the folder from the reads that a commit depends on until the commit is
/// made, and during a snapshot. A single read takes the lock only if it finds a journal, whose commit it then finishes.
/// So a read never sees a part of a commit.
package struct FileBackend: PlacedBackend {
  private let path: String
  private let fileSystem: FileSystem
  private let abandonedAge: Int
  private let lockTimeout: Duration
  /// Whether the folder has been opened, so that its absence is an error.
  private var folderHasExisted = false
  /// Whether this backend has made the name of the folder durable in its parent.
  private var folderIsDurable = false
  /// Whether this backend has looked for the staged files of processes that have ended.
  private var folderIsSwept = false
  private var watch: FolderWatch?
  /// Asks the store to check for changes.
  private var wake: (@Sendable () -> Void)?
  /// Whether the last check for changes found no folder, or read one that was no longer at the path.
  ///
  /// That check may have taken the only report of the folder that is at the path now; see
  /// ``recheckIfFolderAppeared()`` and ``recheckIfFolderWasReplaced()``.
  private var checkMissedFolder = false
  private var stagedNames = StagedFile.Names()
  private var events: [StoreEvent] = []
  /// The folder, while this backend holds its lock.
  private var lockedFolder: StoreFolder?
  /// Whether the folder counts as missing, because it was missing when the current snapshot or decision began.
  private var folderCountsAsMissing = false
  /// The bytes that were read while the folder was locked, by name.
  private var bytesReadUnderLock: [String: Data?] = [:]

  /// Creates a backend for a folder, which the first write creates if it is missing.
  ///
  /// - Parameters:
  ///   - folder: The folder, as a file URL.
  ///   - fileSystem: Makes the system calls.
  ///   - abandonedAge: The age in seconds after which a staged file counts as abandoned, on volumes without locks.
  ///   - lockTimeout: The longest time that a call waits for the lock of the folder.
  package init(
    folder: URL, fileSystem: FileSystem = FileSystem(), abandonedAge: Int = 3600,
    lockTimeout: Duration = .seconds(5)
  ) {
    var path = folder.isFileURL ? folder.absoluteURL.path(percentEncoded: false) : ""
    while path.count > 1, path.hasSuffix("/") { path.removeLast() }
    self.path = path
    self.fileSystem = fileSystem
    self.abandonedAge = abandonedAge
    self.lockTimeout = lockTimeout
  }

  package var place: StorePlace { .file(path) }

  package mutating func read(_ name: String) throws(StoreError) -> Data? {
    do throws(SystemError) {
      guard let folder = try openFolder() else { return nil }
      try finishJournal(in: folder)
      let bytes = try folder.read(FileName.encode(name))
      if lockedFolder != nil { bytesReadUnderLock[name] = .some(bytes) }
      return bytes
    } catch {
      throw .readFailed(error)
    }
  }

  package mutating func names() throws(StoreError) -> [String] {
    do throws(SystemError) {
      guard let folder = try openFolder() else { return [] }
      try finishJournal(in: folder)
      return try folder.list().compactMap(FileName.decode)
    } catch {
      throw .readFailed(error)
    }
  }

  package mutating func snapshot<Result>(
    _ body: (inout Self) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    let opened = try mapErrors(to: StoreError.readFailed) { (self) throws(SystemError) in try self.openFolder() }
    guard let folder = opened else { return try withoutFolder(body) }
    return try withLock(of: folder, StoreError.readFailed, body)
  }

  package mutating func commit(
    _ writes: [StoreWrite], deciding decide: (inout Self) throws(StoreError) -> CommitDecision
  ) throws(StoreError) -> Bool {
    let failure = writes.isEmpty ? StoreError.removeFailed : StoreError.writeFailed
    let opened = try mapErrors(to: failure) { (self) throws(SystemError) in
      try writes.isEmpty ? self.openFolder() : self.openOrCreateFolder()
    }
    guard let folder = opened else {
      // Without a folder there are no values to remove.
      return try withoutFolder(decide) != .abandon
    }
    var stagedWrites: [(staged: StagedFile, fileName: String)] = []
    // After a successful commit the list is empty: the files have other names, or a journal in force still needs them.
    defer { for (file, _) in stagedWrites { folder.discard(file.name) } }
    for write in writes {
      let file = try mapErrors(to: failure) { (self) throws(SystemError) in
        try folder.stage(write.bytes, &self.stagedNames)
      }
      stagedWrites.append((file, FileName.encode(written: write.name)))
    }
    let isCommitted = try withLock(of: folder, failure) { (self: inout Self) throws(StoreError) in
      guard case .proceed(let removals) = try decide(&self) else { return false }
      try self.mapErrors(to: failure) { (self) throws(SystemError) in
        // A commit of a single write needs the old bytes, to restore them if a later step fails.
        let oldBytes: Data? =
          switch (stagedWrites.count, self.bytesReadUnderLock[writes.first?.name ?? ""]) {
          case (1, let bytes?): bytes
          case (1, nil): try folder.read(stagedWrites[0].fileName)
          default: nil
          }
        try folder.commit(
          stagedWrites, removing: removals.map { FileName.encode($0) }, replacing: oldBytes, &self.stagedNames)
      }
      return true
    }
    if isCommitted { stagedWrites = [] }
    return isCommitted
  }

  package mutating func quarantine(_ bytes: Data, of name: String, at time: Date) throws(StoreError) -> String? {
    let opened = try mapErrors(to: StoreError.writeFailed) { (self) throws(SystemError) in try self.openFolder() }
    guard let folder = opened else { return nil }
    return try withLock(of: folder, StoreError.writeFailed) { (self: inout Self) throws(StoreError) in
      try self.mapErrors(to: StoreError.writeFailed) { (_) throws(SystemError) in
        try folder.quarantine(bytes, in: FileName.encode(name), of: name, at: time)
      }
    }
  }

  package func place(ofQuarantined name: String) -> String { path == "/" ? "/\(name)" : "\(path)/\(name)" }

  package mutating func erase(_ isErased: (StoredItem) -> Bool) throws(StoreError) {
    let opened = try mapErrors(to: StoreError.eraseFailed) { (self) throws(SystemError) in try self.openFolder() }
    guard let folder = opened else { return }
    try withLock(of: folder, StoreError.eraseFailed) { (self: inout Self) throws(StoreError) in
      let age = self.abandonedAge
      try self.mapErrors(to: StoreError.eraseFailed) { (self) throws(SystemError) in
        try folder.discardAbandonedFiles(olderThan: age)
        try folder.erase(isErased, &self.stagedNames)
      }
    }
  }

  /// Locks the file `.DataStore-lock.<name>` beside the values.
  package mutating func acquireLock(_ name: String) throws(StoreError) -> StoreLockResult {
    try mapErrors(to: StoreError.lockFailed) { (self) throws(SystemError) in
      try self.openOrCreateFolder().acquireLock(".DataStore-lock.\(name)")
    }
  }

  package mutating func takeEvents() -> [StoreEvent] {
    defer { events = [] }
    return events
  }

  // MARK: - Watching

  /// Watches the folder or, while it doesn't exist, its nearest existing ancestor.
  package mutating func startWatching(_ onChange: @escaping @Sendable () -> Void) throws(StoreError) {
    do throws(SystemError) {
      try fileSystem.validate(path)
      watch = try FolderWatch(
        folder: path, ignoredPrefix: stagedNames.prefix, fileSystem: fileSystem, onChange: onChange)
      wake = onChange
    } catch {
      throw .readFailed(error)
    }
  }

  /// Ends the watch; every other descriptor is closed when a call ends.
  package mutating func close() {
    watch?.end()
    (watch, wake) = (nil, nil)
  }

  package mutating func takeExternalChanges() throws(StoreError) -> ExternalChanges {
    guard let watch else { return .names([]) }
    do throws(SystemError) {
      let files = try watch.takeChangedFiles()
      let lastCheckMissedFolder = checkMissedFolder
      // A check calls this function in a snapshot or decision, during which the folder counts as missing if it was
      // missing at the beginning.
      checkMissedFolder = folderCountsAsMissing
      if files == nil { recheckIfFolderWasReplaced() }
      guard let files, !lastCheckMissedFolder else { return .unknown }
      return .names(files.compactMap(FileName.decode))
    } catch {
      watch.end()
      self.watch = nil
      throw .readFailed(error)
    }
  }

  /// Requests another check if the last one found no folder and there is a folder now.
  ///
  /// The folder may have appeared after that check looked for it and before the check took the watch's reports. Then no
  /// other report follows.
  private mutating func recheckIfFolderAppeared() {
    guard checkMissedFolder, !folderCountsAsMissing else { return }
    do throws(SystemError) {
      if try openFolder() == nil { return }
    } catch {
      // The requested check meets the same error, and reports it.
    }
    wake?()
  }

  /// Requests another check if the locked folder is no longer at its path.
  ///
  /// The folder may have been replaced or moved away after this backend opened it and before the check took the watch's
  /// reports. The check then reads the old folder, and no other report follows.
  private mutating func recheckIfFolderWasReplaced() {
    guard let lockedFolder else { return }
    do throws(SystemError) {
      if try lockedFolder.isAtItsPath { return }
    } catch {
      // The requested check meets the same error, and reports it.
    }
    checkMissedFolder = true
    wake?()
  }

  // MARK: - Folder

  /// Opens the folder, or returns `nil` if it is missing and this backend has never opened it.
  ///
  /// It also returns `nil` if the folder was missing when the current snapshot or decision began.
  private mutating func openFolder() throws(SystemError) -> StoreFolder? {
    if let lockedFolder { return lockedFolder }
    if folderCountsAsMissing { return nil }
    defer { watch?.checkFolder() }
    do throws(SystemError) {
      let folder = try StoreFolder(path: path, fileSystem: fileSystem)
      folderHasExisted = true
      sweep(folder)
      return folder
    } catch {
      // If another folder appears at the path, another process has created it and may not have made it durable.
      folderIsDurable = false
      if error.code == ENOENT, !folderHasExisted { return nil }
      throw error
    }
  }

  /// Opens the folder, and creates it if it is missing and this backend has never opened it.
  private mutating func openOrCreateFolder() throws(SystemError) -> StoreFolder {
    if let folder = try openFolder() {
      if !folderIsDurable { try fileSystem.makeExistingFolderDurable(path) }
      folderIsDurable = true
      return folder
    }
    try fileSystem.makeFolders(path)
    let folder = try StoreFolder(path: path, fileSystem: fileSystem)
    (folderHasExisted, folderIsDurable) = (true, true)
    return folder
  }

  /// Finishes an interrupted commit and removes abandoned staged files, once, unless the folder is already locked.
  private mutating func sweep(_ folder: StoreFolder) {
    guard !folderIsSwept else { return }
    do throws(SystemError) {
      try folder.lock(atMost: .zero)
      defer { folder.unlock() }
      if let event = try folder.finishJournal(at: Date()) { events.append(event) }
      sweepLocked(folder)
    } catch {
      // A failed sweep must not fail the call that opens the folder. A later call, or another process, tries again.
    }
  }

  /// Removes, once, the staged files of processes that ended during a commit, in the locked folder.
  private mutating func sweepLocked(_ folder: StoreFolder) {
    guard !folderIsSwept else { return }
    folderIsSwept = true
    do throws(SystemError) {
      try folder.discardAbandonedFiles(olderThan: abandonedAge)
    } catch {
      // The useless files stay, and the next backend that opens the folder tries again.
    }
  }

  /// Finishes the commit of a process that has ended, or waits until a running process has finished its commit.
  ///
  /// While this backend holds the lock, there is nothing to do, because it finished the journal when it took the lock.
  private mutating func finishJournal(in folder: StoreFolder) throws(SystemError) {
    guard lockedFolder == nil, try folder.hasJournal else { return }
    try folder.lock(atMost: lockTimeout)
    defer { folder.unlock() }
    if let event = try folder.finishJournal(at: Date()) { events.append(event) }
  }

  /// Runs `body` as if there were no folder, even if another process creates it meanwhile.
  private mutating func withoutFolder<Result>(
    _ body: (inout Self) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    let countedAsMissing = folderCountsAsMissing
    folderCountsAsMissing = true
    defer {
      folderCountsAsMissing = countedAsMissing
      recheckIfFolderAppeared()
    }
    return try body(&self)
  }

  /// Locks the folder, finishes any interrupted commit, and then runs `body`.
  private mutating func withLock<Result>(
    of folder: StoreFolder, _ failure: (SystemError) -> StoreError,
    _ body: (inout Self) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    if lockedFolder != nil { return try body(&self) }
    let timeout = lockTimeout
    try mapErrors(to: failure) { (_) throws(SystemError) in try folder.lock(atMost: timeout) }
    defer { folder.unlock() }
    let event = try mapErrors(to: failure) { (_) throws(SystemError) in try folder.finishJournal(at: Date()) }
    if let event { events.append(event) }
    // If many processes use the folder, its lock is rarely free when `openFolder()` tries to sweep. So the sweep is
    // made here too, where the folder is locked anyway.
    sweepLocked(folder)
    lockedFolder = folder
    defer { (lockedFolder, bytesReadUnderLock) = (nil, [:]) }
    return try body(&self)
  }

  private mutating func mapErrors<Result>(
    to failure: (SystemError) -> StoreError, _ body: (inout Self) throws(SystemError) -> Result
  ) throws(StoreError) -> Result {
    do throws(SystemError) {
      return try body(&self)
    } catch {
      throw failure(error)
    }
  }
}

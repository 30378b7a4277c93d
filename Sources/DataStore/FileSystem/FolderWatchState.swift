/// Identifies a folder that a ``FolderMonitor`` watches; all paths to the same folder have the same descriptor.
struct WatchDescriptor: Hashable, Sendable {
  /// The number by which the system or the monitor identifies the folder.
  let number: CInt
}

/// An event of a watched folder, independent of the operating system.
enum FolderEvent: Hashable, Sendable {
  /// A change of a file in the folder.
  enum FileChange: Hashable, Sendable {
    /// The file was created or linked, and may have no bytes yet.
    case created
    /// Bytes were written to the file.
    case written
    /// The file was closed after it had been open for writing.
    case closed
    case removed
    /// The file lost this name by a rename.
    ///
    /// If it got another name in the same folder, ``movedHere(rename:)`` follows with the same number, which identifies
    /// the rename.
    case movedAway(rename: UInt32)
    /// The file got this name by a rename.
    case movedHere(rename: UInt32)
  }

  case changed(String, FileChange)
  /// The folder was removed, renamed, or unmounted.
  case folderLost
  /// Anything may have changed, because events were lost or the system provides no details.
  case anything
}

/// A pure state machine of one watched folder.
///
/// Methods record events. Properties, and the methods that begin with `take`, return what the caller has to do or to
/// report.
struct FolderWatchState {
  /// The folder that is watched: the requested one or, while it doesn't exist, its nearest existing ancestor.
  struct Target: Hashable, Sendable {
    let descriptor: WatchDescriptor
    /// The name that must appear in this ancestor before a nearer folder can be watched; `nil` if the target is the
    /// requested folder.
    let awaitedName: String?
  }

  private enum Phase {
    case watching(Target)
    /// The watch has failed; a final phase.
    case failed(SystemError)
  }

  /// The prefix of the file names that aren't reported, which are those of the store's own temporary files.
  private let ignoredPrefix: String
  private let reportsWrites: Bool
  private var phase: Phase
  /// Whether a different folder may be at the watched path now.
  private(set) var mustFindFolder = false
  /// Whether any file may have changed.
  private var hasUnknownChanges = false
  /// Whether the last check failed; see ``checked(_:)``.
  private var hasLastCheckFailed = false
  /// Whether the pending changes, or the failure, were reported.
  private var isReported = false
  /// The names of the files that changed, in the order of their first changes.
  private var changedFiles: [String] = []
  /// The elements of ``changedFiles``.
  private var changedFileSet: Set<String> = []
  /// A file that lost its name, until an event shows whether it got another name in the same folder.
  private var movedAway: (name: String, rename: UInt32)?

  init(ignoredPrefix: String, reportsWrites: Bool = false, target: Target) {
    self.ignoredPrefix = ignoredPrefix
    self.reportsWrites = reportsWrites
    phase = .watching(target)
  }

  /// The current target; `nil` after the watch has failed.
  var target: Target? {
    switch phase {
    case .watching(let target): target
    case .failed: nil
    }
  }

  /// Whether there are changes to take, or the watch has failed.
  var hasChanges: Bool {
    if case .failed = phase { return true }
    return hasUnknownChanges || !changedFiles.isEmpty || movedAway.map { !isOwn($0.name) } == true
  }

  /// Records an event of the ``target``.
  ///
  /// Events that only other watches of the same folder requested are ignored.
  mutating func record(_ event: FolderEvent) {
    guard let target else { return }
    switch (event, target.awaitedName) {
    case (.anything, _):
      (hasUnknownChanges, mustFindFolder) = (true, true)
    case (.folderLost, let awaitedName):
      mustFindFolder = true
      if awaitedName == nil { hasUnknownChanges = true }
    case (.changed(let name, let change), nil):
      recordFileChange(name, change)
    case (.changed(let name, .created), let awaitedName), (.changed(let name, .movedHere), let awaitedName):
      if name == awaitedName { mustFindFolder = true }
    case (.changed, _):
      break
    }
  }

  /// Records the target that was found because of ``mustFindFolder``.
  mutating func found(_ newTarget: Target) {
    guard let target else { return }
    mustFindFolder = false
    if newTarget.awaitedName == nil, newTarget != target { hasUnknownChanges = true }
    phase = .watching(newTarget)
  }

  /// Records the target that a check found.
  ///
  /// A check determines which folder is at the watched path, although no event has requested that.
  mutating func checked(_ newTarget: Target) {
    guard let target else { return }
    // If the target has changed, the unread events of the old one are lost. If the previous check failed, the store may
    // have failed to read files for the same reason, and has to read them again.
    if newTarget != target || hasLastCheckFailed { hasUnknownChanges = true }
    hasLastCheckFailed = false
    found(newTarget)
  }

  /// Records that a check failed, which leaves the target unchanged.
  mutating func couldNotCheck() {
    hasLastCheckFailed = true
  }

  /// Records an error that ends the watch, unless the watch has already failed.
  mutating func fail(with error: SystemError) {
    guard target != nil else { return }
    phase = .failed(error)
    mustFindFolder = false
  }

  /// Returns whether changes or a failure must be reported now, and records that they are reported.
  ///
  /// Changes that follow a report aren't reported until the earlier ones are taken.
  mutating func takeReport() -> Bool {
    defer { isReported = hasChanges }
    return hasChanges && !isReported
  }

  /// Returns the names of the files that changed since the last call, each once, or `nil` if any file may have changed.
  ///
  /// If the watch has failed, every call returns the error.
  ///
  /// Call it after all queued events are recorded, because a file that has lost its name without getting another one
  /// counts as moved out of the folder.
  mutating func takeChangedFiles() -> Result<[String]?, SystemError> {
    if case .failed(let error) = phase {
      isReported = true
      return .failure(error)
    }
    recordMoveOut()
    defer { (hasUnknownChanges, isReported, changedFiles, changedFileSet) = (false, false, [], []) }
    return .success(hasUnknownChanges ? nil : changedFiles)
  }

  private mutating func recordFileChange(_ name: String, _ change: FolderEvent.FileChange) {
    switch change {
    case .created:
      // Another event follows when its bytes are written. A linked file isn't reported, because no store links files.
      break
    case .written:
      if reportsWrites { add(name) }
    case .closed, .removed:
      add(name)
    case .movedAway(let rename):
      // The system never mixes the events of two renames in a folder. So an earlier file that got no other name there
      // has left the folder.
      recordMoveOut()
      movedAway = (name, rename)
    case .movedHere(let rename):
      if let previous = movedAway, previous.rename == rename {
        movedAway = nil
        // If either name is the store's own, the rename is a step of a commit of this store.
        if isOwn(previous.name) || isOwn(name) { return }
        add(previous.name)
      } else {
        recordMoveOut()
      }
      add(name)
    }
  }

  /// Records that the file in ``movedAway``, if any, has left the folder.
  private mutating func recordMoveOut() {
    if let movedAway { add(movedAway.name) }
    movedAway = nil
  }

  private mutating func add(_ name: String) {
    // The store's own temporary files are never reported.
    if !isOwn(name), changedFileSet.insert(name).inserted { changedFiles.append(name) }
  }

  private func isOwn(_ name: String) -> Bool {
    name.hasPrefix(ignoredPrefix)
  }
}

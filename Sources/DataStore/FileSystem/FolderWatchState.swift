/// A folder that a ``FolderMonitor`` watches: the same for all paths to one folder.
struct WatchDescriptor: Hashable, Sendable {
  /// What the system or the monitor calls it.
  let number: CInt
}

/// An event of a watched folder, in terms that don't depend on the system.
enum FolderEvent: Hashable, Sendable {
  /// What happened to a file in the folder.
  enum FileChange: Hashable, Sendable {
    /// It was created or linked, and may have no bytes yet.
    case created
    /// Bytes were written to it.
    case written
    /// It was closed after it was open for writing.
    case closed
    case removed
    /// It lost this name. Both events of one rename have the same number.
    case movedAway(rename: UInt32)
    /// It got this name.
    case movedHere(rename: UInt32)
  }

  case changed(String, FileChange)
  /// The folder was removed, renamed, or unmounted.
  case folderLost
  /// Anything may have happened: events were lost, or the system doesn't say more.
  case anything
}

/// A pure state machine of one watched folder: methods record what happened, properties are what is to be done and
/// reported.
struct FolderWatchState {
  /// What is watched: the folder, or as long as it doesn't exist, the nearest one above it.
  struct Target: Hashable, Sendable {
    let descriptor: WatchDescriptor
    /// The name that must appear in a folder above before anything nearer can be watched; `nil` for the folder itself.
    let awaitedName: String?
  }

  private enum Phase {
    case watching(Target)
    /// Final.
    case failed(SystemError)
  }

  private let ownPrefix: String
  private let reportsWrites: Bool
  private var phase: Phase
  /// Whether another folder may have the watched path now.
  private(set) var mustFindFolder = false
  /// Whether any file may have changed.
  private var isUnknown = false
  /// Whether the last check failed.
  private var isUnchecked = false
  /// Whether what is there to take was reported.
  private var isReported = false
  /// The files that changed, in the order of their first changes.
  private var names: [String] = []
  private var knownNames: Set<String> = []
  /// A file that lost its name, until it is known whether it got another one in the same folder.
  private var movedAway: (name: String, rename: UInt32)?

  init(ownPrefix: String, reportsWrites: Bool = false, target: Target) {
    self.ownPrefix = ownPrefix
    self.reportsWrites = reportsWrites
    phase = .watching(target)
  }

  /// What is watched; `nil` once the watch has failed.
  var target: Target? {
    switch phase {
    case .watching(let target): target
    case .failed: nil
    }
  }

  /// Whether there is something to take.
  var hasChanges: Bool {
    if case .failed = phase { return true }
    return isUnknown || !names.isEmpty || movedAway.map { !isOwn($0.name) } == true
  }

  /// Records an event of the ``target``.
  ///
  /// Ignores those that only other watches of the same folder asked for.
  mutating func record(_ event: FolderEvent) {
    guard let target else { return }
    switch (event, target.awaitedName) {
    case (.anything, _):
      (isUnknown, mustFindFolder) = (true, true)
    case (.folderLost, let awaitedName):
      mustFindFolder = true
      if awaitedName == nil { isUnknown = true }
    case (.changed(let name, let change), nil):
      recordFile(name, change)
    case (.changed(let name, .created), let awaitedName), (.changed(let name, .movedHere), let awaitedName):
      if name == awaitedName { mustFindFolder = true }
    case (.changed, _):
      break
    }
  }

  /// Records what is watched after ``mustFindFolder``.
  mutating func found(_ newTarget: Target) {
    guard let target else { return }
    mustFindFolder = false
    if newTarget.awaitedName == nil, newTarget != target { isUnknown = true }
    phase = .watching(newTarget)
  }

  /// Records what is watched after a check that no event asked for.
  mutating func checked(_ newTarget: Target) {
    guard let target else { return }
    // Events of the old target are no longer recorded. If an earlier check failed, reads may have failed with it.
    if newTarget != target || isUnchecked { isUnknown = true }
    isUnchecked = false
    found(newTarget)
  }

  /// Records that a check failed, so that the same target is still watched.
  mutating func couldNotCheck() {
    isUnchecked = true
  }

  /// Records what ends the watch, unless it has ended.
  mutating func fail(with error: SystemError) {
    guard target != nil else { return }
    phase = .failed(error)
    mustFindFolder = false
  }

  /// Returns whether there is something to take that wasn't reported before, and records that it is.
  mutating func takeReport() -> Bool {
    defer { isReported = hasChanges }
    return hasChanges && !isReported
  }

  /// Returns the names of the files that changed since the last call, each once, or `nil` if any file may have changed.
  ///
  /// Call it when all queued events are recorded: a file that lost its name and got none in this folder by now is taken
  /// for one that left the folder.
  mutating func takeChangedFiles() -> Result<[String]?, SystemError> {
    if case .failed(let error) = phase {
      isReported = true
      return .failure(error)
    }
    settleMove()
    defer { (isUnknown, isReported, names, knownNames) = (false, false, [], []) }
    return .success(isUnknown ? nil : names)
  }

  private mutating func recordFile(_ name: String, _ change: FolderEvent.FileChange) {
    switch change {
    case .created:
      // Its bytes come later, and with them another event.
      break
    case .written:
      if reportsWrites { add(name) }
    case .closed, .removed:
      add(name)
    case .movedAway(let rename):
      // The system reports one rename in a folder after the other, so the earlier file has left it.
      settleMove()
      movedAway = (name, rename)
    case .movedHere(let rename):
      if let previous = movedAway, previous.rename == rename {
        movedAway = nil
        // Either name makes the rename a step of the store's own.
        if isOwn(previous.name) || isOwn(name) { return }
        add(previous.name)
      } else {
        settleMove()
      }
      add(name)
    }
  }

  /// Records that a file which lost its name has left the folder.
  private mutating func settleMove() {
    if let movedAway { add(movedAway.name) }
    movedAway = nil
  }

  private mutating func add(_ name: String) {
    // Of a new file its final name is reported.
    if !isOwn(name), knownNames.insert(name).inserted { names.append(name) }
  }

  private func isOwn(_ name: String) -> Bool {
    name.hasPrefix(ownPrefix)
  }
}

#if !canImport(Darwin)
  #if canImport(Glibc)
    internal import Glibc
  #elseif canImport(Musl)
    internal import Musl
  #endif

  /// What inotify told of a folder, and what it means.
  struct FolderWatchState {
    /// What is watched: the folder, or as long as it does not exist, the nearest one above it.
    struct Target: Equatable {
      let number: CInt
      /// What has to appear in a folder above before the folder itself can be watched; nil for the folder itself.
      let awaitedName: String?
    }

    /// One event of inotify.
    struct Event {
      /// The number of the watch.
      let target: CInt
      let mask: UInt32
      /// The same for the two events of one renaming.
      let cookie: UInt32
      let name: String
    }

    private let ownPrefix: String
    private(set) var target: Target
    private(set) var mustFindFolder = false
    /// What ended the watch.
    var failure: SystemError?
    private var isUnknown = false
    /// Whether the last look that no event asked for failed.
    private var isUnchecked = false
    private var names: [String] = []
    /// A file that lost its name, as long as it is not known to which.
    private var movedAway: Event?

    init(ownPrefix: String, target: Target) {
      self.ownPrefix = ownPrefix
      self.target = target
    }

    /// Whether there is something to take.
    var hasSomething: Bool { failure != nil || isUnknown || !names.isEmpty }

    mutating func take(_ event: Event) {
      if has(event, IN_Q_OVERFLOW) {
        // Events were lost.
        (isUnknown, mustFindFolder) = (true, true)
        return
      }
      guard event.target == target.number else { return }
      if has(event, IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED) {
        mustFindFolder = true
        if target.awaitedName == nil { isUnknown = true }
      } else if let awaitedName = target.awaitedName {
        if event.name == awaitedName { mustFindFolder = true }
      } else {
        takeFile(event)
      }
    }

    /// Notes that the folder, or the nearest one above it, is watched again.
    mutating func found(_ newTarget: Target) {
      mustFindFolder = false
      if newTarget.awaitedName == nil, newTarget != target { isUnknown = true }
      target = newTarget
    }

    /// Notes what is watched after a look that no event asked for.
    mutating func checked(_ newTarget: Target) {
      // Events of the old one are no longer taken. Where a check failed before, looks may have failed with it.
      if newTarget != target || isUnchecked { isUnknown = true }
      isUnchecked = false
      found(newTarget)
    }

    /// Notes that it could not be said what is to be watched, so that what was watched so far still is.
    mutating func couldNotCheck() {
      isUnchecked = true
    }

    /// Notes that no more events are there at present.
    mutating func endBatch() {
      if let movedAway { add(movedAway.name) }
      movedAway = nil
    }

    /// What changed since the last call; nil when it could be any file.
    mutating func takeChangedFiles() -> Result<[String]?, SystemError> {
      if let failure { return .failure(failure) }
      defer { (isUnknown, names) = (false, []) }
      return .success(isUnknown ? nil : names)
    }

    private mutating func takeFile(_ event: Event) {
      let previous = movedAway
      if has(event, IN_MOVED_TO), let previous, previous.cookie == event.cookie {
        movedAway = nil
        // Either of the two names tells a step of the store's own.
        if previous.name.hasPrefix(ownPrefix) || event.name.hasPrefix(ownPrefix) { return }
        add(previous.name)
      } else {
        endBatch()
      }
      if has(event, IN_MOVED_FROM) { movedAway = event } else { add(event.name) }
    }

    private mutating func add(_ name: String) {
      // A new file is told when it has its own name.
      if !name.hasPrefix(ownPrefix), names.last != name { names.append(name) }
    }

    private func has(_ event: Event, _ flags: CInt) -> Bool {
      event.mask & UInt32(flags) != 0
    }
  }
#endif

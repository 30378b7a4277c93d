internal import Dispatch
internal import Foundation

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// Watches folders for all stores of a process.
///
/// ## One monitor for all watches
/// On Linux a user has 128 inotify instances by default, for all processes together. If each observed store used its
/// own instance, a process with many stores would exhaust them for all other programs. So the hub has one
/// ``FolderMonitor``, with one instance, for all watches. The monitor is open while any folder is watched.
///
/// The system registers a folder once per instance, even if the folder has several watches. So ``FolderHubState``
/// passes the events of a folder to all of its watches, and each watch ignores the events that it didn't request.
///
/// ## The queue
/// A serial queue protects all state, and the system calls are made on it too. Calls into the hub wait for their turn
/// on the queue. A mutex would be wrong: code that holds one should neither block, as the system calls may, nor call
/// unknown code, such as the closures by which tests inject faults.
///
/// The hub calls a watch's `onChange` after it has changed the state and left the queue, so `onChange` may call the
/// hub. `onChange` runs on the thread of the call that found the change, or on the monitor's queue. Ending a watch
/// doesn't wait for the queue, because the last reference to a ``FolderWatch`` may be released on the queue itself,
/// where waiting would deadlock.
///
/// ## Failures
/// Each watch makes its system calls through its own ``FileSystem``. If such a call fails, only that watch ends. A
/// failure in ``check(_:)`` ends no watch, because it may be temporary. If the hub's own read of the events fails, all
/// watches fail and the monitor stops. The next watch that begins starts the monitor again.
///
/// The watches also share the system's event queue. If that queue overflows, every watch reports that any file may have
/// changed.
actor FolderHub {
  /// The hub of this process.
  static let shared = FolderHub()

  /// The parameters of a watch, except the prefix of the file names that it doesn't report.
  struct Watch: Sendable {
    /// The path of the folder, which may not exist yet.
    let folder: String
    /// Whether each write to a file is reported, and not only the close of a file that was open for writing.
    let reportsWrites: Bool
    let fileSystem: FileSystem
    let onChange: @Sendable () -> Void
  }

  private let executor = DispatchQueueExecutor(label: "DataStore.FolderHub")
  private var monitor: any FolderMonitor
  private var state = FolderHubState()
  private var watches: [FolderHubState.WatchID: Watch] = [:]

  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  init(monitor: sending any FolderMonitor = SystemFolderMonitor()) {
    self.monitor = monitor
  }

  /// Starts a watch.
  nonisolated func begin(_ watch: Watch, ignoredPrefix: String) throws(SystemError) -> FolderHubState.WatchID {
    try performAndReport { $0.add(watch, ignoredPrefix: ignoredPrefix) }.get()
  }

  /// Ends a watch asynchronously.
  nonisolated func end(_ id: FolderHubState.WatchID) {
    executor.enqueue { self.assumeIsolated { $0.remove(id) } }
  }

  /// Ends a watch, and waits until the monitor has closed what it no longer needs.
  ///
  /// The wait is outside of the queue, because the monitor closes its resources on its own queue, which may be waiting
  /// for this one.
  nonisolated func endAndWait(_ id: FolderHubState.WatchID) {
    let closings = executor.queue.sync {
      assumeIsolated { hub in
        hub.remove(id)
        return hub.monitor.closings
      }
    }
    closings.wait()
  }

  /// Re-arms a watch if its path now refers to a different folder.
  nonisolated func check(_ id: FolderHubState.WatchID) {
    performAndReport { $0.checkFolder(of: id) }
  }

  /// Returns the names of the files that changed for a watch since the last call, or `nil` if any file may have
  /// changed.
  nonisolated func takeChangedFiles(of id: FolderHubState.WatchID) throws(SystemError) -> [String]? {
    try performAndReport { $0.readAndTakeChangedFiles(of: id) }.get()
  }

  /// Runs `body` on the queue, and then calls `onChange` of the watches that have new changes or have failed.
  private nonisolated func performAndReport<Result: Sendable>(
    _ body: @Sendable (isolated FolderHub) -> Result
  ) -> Result {
    let (result, callbacks) = executor.queue.sync {
      assumeIsolated { hub in (body(hub), hub.takeCallbacks()) }
    }
    for callback in callbacks { callback() }
    return result
  }

  /// Returns `onChange` of the watches that must report now, and records that they have reported.
  private func takeCallbacks() -> [@Sendable () -> Void] {
    state.takeReports().compactMap { watches[$0]?.onChange }
  }
}

// MARK: - Implementation, on the queue

extension FolderHub {
  private func add(_ watch: Watch, ignoredPrefix: String) -> Result<FolderHubState.WatchID, SystemError> {
    // Events that are already queued are older than the new watch, and belong to the other watches.
    readEvents()
    defer { stopIfIdle() }
    do throws(SystemError) {
      try monitor.start(for: watch.folder, fileSystem: watch.fileSystem) { [weak self] in
        self?.performAndReport { $0.readEvents() }
      }
      let target = try arm(watch, replacing: nil)
      let id = state.add(
        FolderWatchState(ignoredPrefix: ignoredPrefix, reportsWrites: watch.reportsWrites, target: target))
      watches[id] = watch
      return .success(id)
    } catch {
      // The monitor may have been started for this watch only.
      stopIfIdle()
      return .failure(error)
    }
  }

  private func remove(_ id: FolderHubState.WatchID) {
    unwatch(state.remove(id))
    stopIfIdle()
    watches[id] = nil
  }

  private func checkFolder(of id: FolderHubState.WatchID) {
    guard let watch = watches[id], let target = state.target(of: id) else { return }
    do throws(SystemError) {
      // Watching the same folder again changes nothing, and returns the same descriptor.
      unwatch(state.checked(try arm(watch, replacing: target), by: id))
    } catch {
      // The failure may be temporary, so it doesn't end the watch. If the folder is unusable, the backend's call that
      // requested this check fails anyway. The backend's next call checks again.
      state.couldNotCheck(id)
    }
  }

  private func readAndTakeChangedFiles(of id: FolderHubState.WatchID) -> Result<[String]?, SystemError> {
    if let watch = watches[id], state.target(of: id) != nil {
      do throws(SystemError) {
        try readEvents(for: watch.folder, fileSystem: watch.fileSystem)
      } catch {
        fail(id, with: error)
        // The hub's own read shows whether all watches fail. If it succeeds, the other watches get their events.
        readEvents()
      }
    }
    return state.takeChangedFiles(of: id)
  }

  /// Reads all queued events; if this fails, all watches fail.
  private func readEvents() {
    do throws(SystemError) {
      // The path is empty because it would only appear in the error, which each watch reports with its own path.
      try readEvents(for: "", fileSystem: FileSystem())
    } catch {
      for (id, watch) in watches {
        fail(id, with: SystemError(code: error.code, operation: error.operation, path: watch.folder))
      }
    }
  }

  private func readEvents(for folder: String, fileSystem: FileSystem) throws(SystemError) {
    while true {
      let events = try monitor.takeEvents(for: folder, fileSystem: fileSystem)
      if events.isEmpty { return }
      for event in events { state.record(event) }
      for id in state.watchesThatMustFindFolder { findFolder(of: id) }
    }
  }

  private func findFolder(of id: FolderHubState.WatchID) {
    guard let watch = watches[id] else { return }
    do throws(SystemError) {
      unwatch(state.found(try arm(watch, replacing: state.target(of: id)), by: id))
    } catch {
      fail(id, with: error)
    }
  }

  private func fail(_ id: FolderHubState.WatchID, with error: SystemError) {
    unwatch(state.fail(id, with: error))
    stopIfIdle()
  }

  /// Watches the folder of a watch or, while that folder doesn't exist, its nearest existing ancestor.
  ///
  /// - Parameter old: The watch's target so far. This call doesn't unwatch it, even on failure, because the state still
  ///   uses its descriptor.
  /// - Returns: The target that is watched now.
  private func arm(
    _ watch: Watch, replacing old: FolderWatchState.Target?
  ) throws(SystemError) -> FolderWatchState.Target {
    var previous = old
    do throws(SystemError) {
      while true {
        let target = try watchFolderOrAncestor(of: watch)
        if let previous, previous.descriptor != target.descriptor { unwatchIfUnused(previous.descriptor) }
        // A nearer folder may have appeared before the ancestor was watched, so the search is repeated. It ends when it
        // finds the folder itself, or the same ancestor twice.
        if target.awaitedName == nil || target == previous { return target }
        previous = target
      }
    } catch {
      if let previous { unwatchIfUnused(previous.descriptor) }
      throw error
    }
  }

  private func watchFolderOrAncestor(of watch: Watch) throws(SystemError) -> FolderWatchState.Target {
    var path = watch.folder
    var awaitedName: String?
    while true {
      let interest = awaitedName == nil ? FolderInterest.files(reportsWrites: watch.reportsWrites) : .appearance
      do throws(SystemError) {
        let descriptor = try monitor.watch(path, for: interest, fileSystem: watch.fileSystem)
        return FolderWatchState.Target(descriptor: descriptor, awaitedName: awaitedName)
      } catch {
        guard error.code == ENOENT, path != "/" else { throw error }
        let url = URL(filePath: path, directoryHint: .isDirectory)
        awaitedName = url.lastPathComponent
        path = url.deletingLastPathComponent().path(percentEncoded: false)
      }
    }
  }

  private func unwatch(_ descriptor: WatchDescriptor?) {
    if let descriptor { monitor.unwatch(descriptor) }
  }

  private func unwatchIfUnused(_ descriptor: WatchDescriptor) {
    if !state.isUsed(descriptor) { monitor.unwatch(descriptor) }
  }

  private func stopIfIdle() {
    if state.isIdle { monitor.stop() }
  }
}

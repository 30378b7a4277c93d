/// Watches one folder, and reports which files changed in it.
///
/// While the folder doesn't exist, its nearest existing ancestor is watched instead, until the folder appears.
///
/// All watches of a ``FolderHub`` share its system resources. The watch ends when this object is released, or earlier by
/// ``end()``.
final class FolderWatch: Sendable {
  private let hub: FolderHub
  private let id: FolderHubState.WatchID

  /// Starts a watch.
  ///
  /// - Parameters:
  ///   - folder: The path of the folder.
  ///   - ignoredPrefix: The prefix of file names that aren't reported, those of the store's own temporary files.
  ///     Renames from or to such a name aren't reported either, because they are steps of the store's own commits.
  ///   - reportsWrites: Whether each write to a file is reported, or only the close of a file that was open for
  ///     writing. On Darwin neither is reported, because only the names in a folder are watched.
  ///   - fileSystem: Makes the system calls.
  ///   - hub: The hub that receives the system's events.
  ///   - onChange: Called on any thread when there are new changes to take, or the watch has failed.
  /// - Throws: The error of a system call that failed; then nothing is watched.
  init(
    folder: String, ignoredPrefix: String, reportsWrites: Bool = false, fileSystem: FileSystem,
    hub: FolderHub = .shared, onChange: @escaping @Sendable () -> Void
  ) throws(SystemError) {
    self.hub = hub
    id = try hub.begin(
      FolderHub.Watch(folder: folder, reportsWrites: reportsWrites, fileSystem: fileSystem, onChange: onChange),
      ignoredPrefix: ignoredPrefix)
  }

  deinit {
    hub.end(id)
  }

  /// Ends the watch, and waits until the system has closed what only this watch has used.
  ///
  /// Call it neither in `onChange` nor on the queue of the hub.
  func end() {
    hub.endAndWait(id)
  }

  /// Re-arms the watch if the path now refers to a different folder.
  ///
  /// This is needed because the system doesn't report that a parent folder is renamed, or that the folder is removed
  /// while a process has it open.
  func checkFolder() {
    hub.check(id)
  }

  /// Returns the names of the files that changed since the last call, each once, or `nil` if any file may have changed.
  ///
  /// On Linux the result includes every rename and removal that completed before the call. On Darwin a change is
  /// reported some time after it was made, and without a name.
  ///
  /// - Throws: The error that ended the watch.
  func takeChangedFiles() throws(SystemError) -> [String]? {
    try hub.takeChangedFiles(of: id)
  }
}

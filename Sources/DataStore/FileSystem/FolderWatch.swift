/// A watch of one folder, which reports the files that changed there.
///
/// While the folder doesn't exist, the nearest existing folder above it is watched instead, until the folder is there.
///
/// All watches of a ``FolderHub`` share what the system needs to watch. The watch ends when it is released.
final class FolderWatch: Sendable {
  private let hub: FolderHub
  private let id: FolderHubState.WatchID

  /// Begins to watch.
  ///
  /// - Parameters:
  ///   - folder: The path of the folder.
  ///   - ownPrefix: Files whose names begin with it aren't reported, and neither are renames from or to such a name.
  ///   - reportsWrites: Whether each write to a file is reported, or only that a file which was open for writing is
  ///     closed. On Darwin neither is reported, because only the names in a folder are watched.
  ///   - fileSystem: Makes the system calls.
  ///   - hub: Watches for this watch.
  ///   - onChange: Called on any thread when there is something to take that wasn't there before.
  /// - Throws: The call that failed; then nothing is watched.
  init(
    folder: String, ownPrefix: String, reportsWrites: Bool = false, fileSystem: FileSystem, hub: FolderHub = .shared,
    onChange: @escaping @Sendable () -> Void
  ) throws(SystemError) {
    self.hub = hub
    id = try hub.begin(
      FolderHub.Watch(folder: folder, reportsWrites: reportsWrites, fileSystem: fileSystem, onChange: onChange),
      ownPrefix: ownPrefix)
  }

  deinit {
    hub.end(id)
  }

  /// Re-arms the watch if the path now refers to a different folder.
  ///
  /// Needed because the system doesn't report that a folder above is renamed, or that the folder is removed while a
  /// process has it open.
  func checkFolder() {
    hub.check(id)
  }

  /// Returns the names of the files that changed since the last call, each once, or `nil` if any file may have changed.
  ///
  /// On Linux the names include every rename and removal that completed before the call. On Darwin changes are reported
  /// some time later, and without names.
  ///
  /// - Throws: What ended the watch.
  func takeChangedFiles() throws(SystemError) -> [String]? {
    try hub.takeChangedFiles(of: id)
  }
}

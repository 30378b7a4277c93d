/// What the operating system offers to watch folders with, for all watches of a ``FolderHub``.
///
/// The hub calls it on its own queue alone.
protocol FolderMonitor {
  /// Opens what the system needs, unless it is open.
  ///
  /// - Parameters:
  ///   - folder: The folder that is about to be watched, which an error names.
  ///   - fileSystem: Makes the system calls.
  ///   - onEvents: Called on another queue when there are events to take. The first one that was passed stays.
  mutating func start(
    for folder: String, fileSystem: FileSystem, onEvents: @escaping @Sendable () -> Void) throws(SystemError)

  /// Closes what the system needs, which ends all watches.
  mutating func stop()

  /// Watches an existing folder for an interest, and still for those it was watched for before.
  ///
  /// - Returns: A descriptor, the same as long as the same folder is watched.
  /// - Throws: `ENOENT` if there is no folder at the path; then the hub tries the one above it.
  mutating func watch(
    _ path: String, for interest: FolderInterest, fileSystem: FileSystem
  ) throws(SystemError) -> WatchDescriptor

  /// Ends the watch of a folder, unless it has ended with the folder.
  mutating func unwatch(_ descriptor: WatchDescriptor)

  /// Returns the next events in their order, without waiting for any; none if no more are queued.
  ///
  /// - Parameters:
  ///   - folder: A watched folder, which an error names.
  ///   - fileSystem: Makes the system calls.
  mutating func takeEvents(
    for folder: String, fileSystem: FileSystem
  ) throws(SystemError) -> [FolderHubState.Event]
}

/// What a watch has to know of a folder.
///
/// The folder may report more, if other watches asked for it.
enum FolderInterest: Hashable, Sendable {
  /// That files change.
  case files(reportsWrites: Bool)
  /// That a name appears.
  case appearance
}

internal import Dispatch

/// The operating system's facility for watching folders, as used by a ``FolderHub``.
///
/// The hub calls the monitor only on the hub's queue.
protocol FolderMonitor {
  /// Contains the resources that are being closed, which takes the system a moment after ``stop()`` or ``unwatch(_:)``.
  var closings: DispatchGroup { get }

  /// Opens the system's resources, unless they are open.
  ///
  /// - Parameters:
  ///   - folder: The folder that is about to be watched; its path appears in an error.
  ///   - fileSystem: Makes the system calls.
  ///   - onEvents: Called on a queue other than the hub's when there are events to take. A monitor that is open may
  ///     ignore it and keep the closure of an earlier call.
  mutating func start(
    for folder: String, fileSystem: FileSystem, onEvents: @escaping @Sendable () -> Void) throws(SystemError)

  /// Closes the system's resources, which ends all watches.
  mutating func stop()

  /// Watches an existing folder for an interest, in addition to the interests it is already watched for.
  ///
  /// - Returns: The descriptor of the folder, which stays the same while the folder is watched.
  /// - Throws: `ENOENT` if nothing is at the path. The hub then tries to watch the parent folder. After any other error
  ///   it stops trying.
  mutating func watch(
    _ path: String, for interest: FolderInterest, fileSystem: FileSystem
  ) throws(SystemError) -> WatchDescriptor

  /// Ends the watch of a folder, unless it ended when the folder was removed.
  mutating func unwatch(_ descriptor: WatchDescriptor)

  /// Returns the next queued events in order, without waiting, or an empty array if none are queued.
  ///
  /// - Parameters:
  ///   - folder: A watched folder; its path appears in an error.
  ///   - fileSystem: Makes the system calls.
  mutating func takeEvents(
    for folder: String, fileSystem: FileSystem
  ) throws(SystemError) -> [FolderHubState.Event]
}

/// The kind of events that a watch needs from a folder.
///
/// The folder may report further events that other watches need.
enum FolderInterest: Hashable, Sendable {
  /// Renames and removals of files, and the closes of files that were open for writing.
  ///
  /// If `reportsWrites` is `true`, the watch also needs each write to a file. On Darwin, closes and writes aren't
  /// reported.
  case files(reportsWrites: Bool)
  /// The arrival of a new name.
  case appearance
}

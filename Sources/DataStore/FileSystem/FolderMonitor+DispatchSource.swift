#if canImport(Darwin)
  internal import Darwin
  internal import Dispatch
  internal import Multicast

  typealias SystemFolderMonitor = DispatchSourceMonitor

  /// Watches folders with one dispatch source each.
  ///
  /// A source reports that names in its folder changed, but not which ones.
  struct DispatchSourceMonitor: FolderMonitor {
    /// Identifies a folder while it is open.
    private struct FolderID: Hashable {
      let device: dev_t
      let inode: ino_t
    }

    private struct Folder {
      let id: FolderID
      let source: any DispatchSourceFileSystemObject
    }

    /// The folders that the sources have reported and the hub hasn't taken yet, in the order of the reports.
    private final class ReportedFolders: Sendable {
      private let descriptors = Lock<[WatchDescriptor]>([])

      func add(_ descriptor: WatchDescriptor) {
        descriptors.withLock { descriptors in
          if !descriptors.contains(descriptor) { descriptors.append(descriptor) }
        }
      }

      func take() -> [WatchDescriptor] {
        descriptors.withLock { descriptors in
          defer { descriptors = [] }
          return descriptors
        }
      }
    }

    private let queue = DispatchQueue(label: "DataStore.DispatchSourceMonitor")
    private let reportedFolders = ReportedFolders()
    let closings = DispatchGroup()
    private var onEvents: @Sendable () -> Void = {}
    private var folders: [WatchDescriptor: Folder] = [:]
    private var descriptors: [FolderID: WatchDescriptor] = [:]
    /// The number of the newest watch descriptor.
    ///
    /// The monitor counts up instead of using the numbers of file descriptors. The system reuses the number of a closed
    /// file, while reports about that file may still be pending.
    private var lastNumber: CInt = 0

    mutating func start(
      for folder: String, fileSystem: FileSystem, onEvents: @escaping @Sendable () -> Void
    ) throws(SystemError) {
      self.onEvents = onEvents
    }

    mutating func stop() {
      for folder in folders.values { cancel(folder.source) }
      (folders, descriptors) = ([:], [:])
      onEvents = {}
    }

    mutating func watch(
      _ path: String, for interest: FolderInterest, fileSystem: FileSystem
    ) throws(SystemError) -> WatchDescriptor {
      let fileDescriptor = try fileSystem.perform("open", path) { open(path, O_EVTONLY | O_DIRECTORY | O_CLOEXEC) }
      var status = stat()
      do throws(SystemError) {
        try fileSystem.perform("fstat", path) { fstat(fileDescriptor, &status) }
      } catch {
        close(fileDescriptor)
        throw error
      }
      let id = FolderID(device: status.st_dev, inode: status.st_ino)
      if let descriptor = descriptors[id] {
        close(fileDescriptor)
        return descriptor
      }
      lastNumber += 1
      let descriptor = WatchDescriptor(number: lastNumber)
      let source = DispatchSource.makeFileSystemObjectSource(
        fileDescriptor: fileDescriptor, eventMask: [.write, .delete, .rename, .revoke], queue: queue)
      source.setEventHandler { [reportedFolders, onEvents] in
        reportedFolders.add(descriptor)
        onEvents()
      }
      source.setCancelHandler { [closings] in
        close(fileDescriptor)
        closings.leave()
      }
      source.activate()
      folders[descriptor] = Folder(id: id, source: source)
      descriptors[id] = descriptor
      return descriptor
    }

    mutating func unwatch(_ descriptor: WatchDescriptor) {
      guard let folder = folders.removeValue(forKey: descriptor) else { return }
      descriptors[folder.id] = nil
      cancel(folder.source)
    }

    private func cancel(_ source: any DispatchSourceFileSystemObject) {
      closings.enter()
      source.cancel()
    }

    mutating func takeEvents(
      for folder: String, fileSystem: FileSystem
    ) throws(SystemError) -> [FolderHubState.Event] {
      reportedFolders.take().map { FolderHubState.Event(descriptor: $0, folderEvent: .anything) }
    }
  }
#endif

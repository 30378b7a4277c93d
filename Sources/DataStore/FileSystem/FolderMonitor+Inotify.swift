#if !canImport(Darwin)
  internal import Dispatch

  #if canImport(Glibc)
    internal import Glibc
  #elseif canImport(Musl)
    internal import Musl
  #endif

  typealias SystemFolderMonitor = InotifyMonitor

  /// Watches folders with one inotify instance.
  struct InotifyMonitor: FolderMonitor {
    /// The file descriptor of the inotify instance; -1 while there is none.
    private var instance: CInt = -1
    private var source: (any DispatchSourceRead)?
    let closings = DispatchGroup()

    mutating func start(
      for folder: String, fileSystem: FileSystem, onEvents: @escaping @Sendable () -> Void
    ) throws(SystemError) {
      let existingInstance = instance
      // `perform` is called even if there is an instance, so that a test can make any call of `start` fail, not only
      // one that opens the instance.
      let initialInstance = try fileSystem.perform("inotify_init", folder) {
        existingInstance == -1 ? inotify_init1(O_CLOEXEC | O_NONBLOCK) : existingInstance
      }
      guard existingInstance == -1 else { return }
      let instance = Self.moveAboveSockets(initialInstance)
      let source = DispatchSource.makeReadSource(
        fileDescriptor: instance, queue: DispatchQueue(label: "DataStore.InotifyMonitor"))
      source.setEventHandler(handler: onEvents)
      source.setCancelHandler { [closings] in
        close(instance)
        closings.leave()
      }
      source.activate()
      (self.instance, self.source) = (instance, source)
    }

    mutating func stop() {
      // The cancel handler closes the instance, as soon as the source no longer uses it.
      if let source {
        closings.enter()
        source.cancel()
      }
      (instance, source) = (-1, nil)
    }

    mutating func watch(
      _ path: String, for interest: FolderInterest, fileSystem: FileSystem
    ) throws(SystemError) -> WatchDescriptor {
      let (instance, mask) = (instance, Self.mask(for: interest))
      return WatchDescriptor(
        number: try fileSystem.perform("inotify_add_watch", path) { inotify_add_watch(instance, path, mask) })
    }

    mutating func unwatch(_ descriptor: WatchDescriptor) {
      // The call fails if the watch ended when the folder was removed. It can't end another watch by mistake, because
      // the system uses all other numbers before it reuses one.
      _ = inotify_rm_watch(instance, descriptor.number)
    }

    mutating func takeEvents(
      for folder: String, fileSystem: FileSystem
    ) throws(SystemError) -> [FolderHubState.Event] {
      let instance = instance
      if instance == -1 { return [] }
      // The buffer has room for many events: each needs at most 272 bytes, 16 for the header and 256 for the name.
      return try withUnsafeTemporaryAllocation(byteCount: 16 * 1024, alignment: 8) { bytes throws(SystemError) in
        do throws(SystemError) {
          let count = try fileSystem.perform("inotify_read", folder) { read(instance, bytes.baseAddress!, bytes.count) }
          return Self.events(in: UnsafeRawBufferPointer(rebasing: bytes[..<count]))
        } catch {
          if error.code == EAGAIN { return [] }
          throw error
        }
      }
    }

    /// Moves the instance to a descriptor number that sockets rarely get, if the limit of open files allows it.
    ///
    /// The number is at least 512, because few processes have so many files open.
    ///
    /// If a descriptor is closed while a dispatch source watches it, libdispatch never reports events of a later
    /// descriptor with the same number. `URLSession` closes sockets this way, and an instance that got the number of
    /// such a socket would report nothing. Sockets get low numbers, because the system assigns the lowest free number.
    ///
    /// - SeeAlso: https://github.com/swiftlang/swift-corelibs-libdispatch/issues/833
    private static func moveAboveSockets(_ instance: CInt) -> CInt {
      let number = fcntl(instance, F_DUPFD_CLOEXEC, 512)
      if number == -1 { return instance }
      close(instance)
      return number
    }

    private static func mask(for interest: FolderInterest) -> UInt32 {
      // A folder has one mask for all of its watches. Flags that a watch has added stay until the last of the watches
      // ends.
      let always = IN_MASK_ADD | IN_ONLYDIR | IN_DELETE_SELF | IN_MOVE_SELF
      let files = IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE | IN_CLOSE_WRITE
      return switch interest {
      case .files(reportsWrites: false): UInt32(always | files)
      case .files(reportsWrites: true): UInt32(always | files | IN_MODIFY)
      case .appearance: UInt32(always | IN_MOVED_TO | IN_CREATE)
      }
    }

    private static func events(in bytes: UnsafeRawBufferPointer) -> [FolderHubState.Event] {
      var events: [FolderHubState.Event] = []
      var rest = bytes[...]
      while !rest.isEmpty {
        let event = UnsafeRawBufferPointer(rebasing: rest).loadUnaligned(as: inotify_event.self)
        let name = rest.dropFirst(MemoryLayout<inotify_event>.size).prefix(Int(event.len))
        rest = rest[name.endIndex...]
        events.append(
          FolderHubState.Event(
            descriptor: event.wd == -1 ? nil : WatchDescriptor(number: event.wd),
            folderEvent: folderEvent(event, name: String(decoding: name.prefix { $0 != 0 }, as: UTF8.self))))
      }
      return events
    }

    private static func folderEvent(_ event: inotify_event, name: String) -> FolderEvent {
      func has(_ flags: CInt) -> Bool { event.mask & UInt32(flags) != 0 }
      if has(IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT | IN_IGNORED) { return .folderLost }
      if has(IN_CREATE) { return .changed(name, .created) }
      if has(IN_MODIFY) { return .changed(name, .written) }
      if has(IN_CLOSE_WRITE) { return .changed(name, .closed) }
      if has(IN_DELETE) { return .changed(name, .removed) }
      if has(IN_MOVED_FROM) { return .changed(name, .movedAway(rename: event.cookie)) }
      if has(IN_MOVED_TO) { return .changed(name, .movedHere(rename: event.cookie)) }
      // The only remaining event is IN_Q_OVERFLOW. It belongs to no folder, and means that events were lost.
      return .anything
    }
  }
#endif

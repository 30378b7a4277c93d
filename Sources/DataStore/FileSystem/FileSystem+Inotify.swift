#if !canImport(Darwin)
  internal import Foundation

  #if canImport(Glibc)
    internal import Glibc
  #elseif canImport(Musl)
    internal import Musl
  #endif

  /// The system's `read`, whose name means something else in ``FileSystem``.
  private func systemRead(_ number: CInt, _ bytes: UnsafeMutableRawPointer, _ count: Int) -> Int {
    read(number, bytes, count)
  }

  extension FileSystem {
    /// Opens an inotify instance, for a folder that the errors name.
    ///
    /// It gets a number that sockets do not get. libdispatch never tells of a descriptor that has the number of one that
    /// was closed while a source watched it, which `URLSession` does to sockets, so that a watch would be blind.
    ///
    /// - SeeAlso: https://github.com/swiftlang/swift-corelibs-libdispatch/issues/833
    func openInotify(for folder: String) throws(SystemError) -> Descriptor {
      let first = Descriptor(
        number: try perform("inotify_init", folder) { inotify_init1(O_CLOEXEC | O_NONBLOCK) }, path: folder)
      // The system gives away the lowest number that is free.
      let number = fcntl(first.number, F_DUPFD_CLOEXEC, 512)
      // A process that may not have so many keeps the one it got.
      return number == -1 ? first : Descriptor(number: number, path: folder)
    }

    /// Watches a folder; as long as there is none, the nearest one above it.
    ///
    /// - Parameters:
    ///   - tellsWrites: Whether each write to a file is told, or only its end.
    ///   - old: What was watched so far, and still is when this fails.
    func watch(
      _ folder: String, tellsWrites: Bool, instead old: FolderWatchState.Target?, by inotify: borrowing Descriptor
    ) throws(SystemError) -> FolderWatchState.Target {
      var last = old
      do throws(SystemError) {
        while true {
          let target = try watchNearest(to: folder, tellsWrites: tellsWrites, by: inotify)
          if let last, last.number != target.number, last.number != old?.number { removeWatch(last, from: inotify) }
          // Something nearer may have appeared before the one above was watched, but not after it was found twice.
          if target.awaitedName == nil || target == last {
            if let old, old.number != target.number { removeWatch(old, from: inotify) }
            return target
          }
          last = target
        }
      } catch {
        if let last, last.number != old?.number { removeWatch(last, from: inotify) }
        throw error
      }
    }

    /// What inotify has to tell now; nothing when nothing happened.
    func events(of inotify: borrowing Descriptor) throws(SystemError) -> [FolderWatchState.Event] {
      var bytes = [UInt8](repeating: 0, count: 16 * 1024)
      let number = inotify.number
      let count: Int
      do throws(SystemError) {
        count = try perform("inotify_read", inotify.path) { systemRead(number, &bytes, bytes.count) }
      } catch {
        if error.code == EAGAIN { return [] }
        throw error
      }
      return bytes.withUnsafeBytes { Self.events(in: UnsafeRawBufferPointer(rebasing: $0[..<count])) }
    }

    private func watchNearest(
      to folder: String, tellsWrites: Bool, by inotify: borrowing Descriptor
    ) throws(SystemError) -> FolderWatchState.Target {
      // Not when a file is made: its bytes come later, and with them another event.
      let ends = IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE | IN_CLOSE_WRITE | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR
      let inside = tellsWrites ? ends | IN_MODIFY : ends
      let above = IN_MOVED_TO | IN_CREATE | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR
      let number = inotify.number
      var path = folder
      var awaitedName: String?
      while true {
        let flags = UInt32(awaitedName == nil ? inside : above)
        do throws(SystemError) {
          let target = try perform("inotify_add_watch", path) { inotify_add_watch(number, path, flags) }
          return FolderWatchState.Target(number: target, awaitedName: awaitedName)
        } catch {
          let url = URL(filePath: path, directoryHint: .isDirectory)
          guard error.code == ENOENT, path != "/" else { throw error }
          awaitedName = url.lastPathComponent
          path = url.deletingLastPathComponent().path(percentEncoded: false)
        }
      }
    }

    /// Ends a watch, unless it has ended with its folder.
    private func removeWatch(_ target: FolderWatchState.Target, from inotify: borrowing Descriptor) {
      _ = inotify_rm_watch(inotify.number, target.number)
    }

    private static func events(in bytes: UnsafeRawBufferPointer) -> [FolderWatchState.Event] {
      var events: [FolderWatchState.Event] = []
      var rest = bytes[...]
      while !rest.isEmpty {
        let event = UnsafeRawBufferPointer(rebasing: rest).loadUnaligned(as: inotify_event.self)
        let name = rest.dropFirst(MemoryLayout<inotify_event>.size).prefix(Int(event.len))
        rest = rest[name.endIndex...]
        events.append(
          FolderWatchState.Event(
            target: event.wd, mask: event.mask, cookie: event.cookie,
            name: String(decoding: name.prefix { $0 != 0 }, as: UTF8.self)))
      }
      return events
    }
  }
#endif

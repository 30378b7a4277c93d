#if canImport(Darwin)
  internal import Darwin
  internal import Dispatch
  internal import Foundation
  internal import Multicast

  /// Tells that files in a folder were changed, by a dispatch source, which does not say which.
  ///
  /// A folder that does not exist, or vanishes, is waited for: the nearest folder above it that exists is watched until
  /// it is there.
  final class FolderWatcher: Sendable {
    private struct State {
      var source: (any DispatchSourceFileSystemObject)?
      /// Where the watched folder was found.
      var path = ""
      var hasChanged = false
      /// Whether the last look that no event asked for failed.
      var isUnchecked = false
      var failure: SystemError?
    }

    private let folder: String
    private let fileSystem: FileSystem
    private let onChange: @Sendable () -> Void
    private let queue = DispatchQueue(label: "DataStore.FolderWatcher")
    private let state = Lock(State())

    /// Begins to watch.
    ///
    /// - Parameters:
    ///   - folder: The path of the folder.
    ///   - ownPrefix: Of no use here, where changes have no names.
    ///   - tellsWrites: Of no use here, where only the names in a folder are watched.
    ///   - fileSystem: Makes the system calls.
    ///   - onChange: Called, on any thread, when there is something new to take.
    init(
      folder: String, ownPrefix: String, tellsWrites: Bool = false, fileSystem: FileSystem,
      onChange: @escaping @Sendable () -> Void
    ) throws(SystemError) {
      self.folder = folder
      self.fileSystem = fileSystem
      self.onChange = onChange
      try watchNearest()
    }

    deinit {
      let source = state.withLock { $0.source }
      source?.cancel()
    }

    /// Sees to it that the folder is watched that has the name now.
    ///
    /// Nothing tells when one above it gets another name.
    func checkFolder() {
      let isCurrent = isCurrent
      do throws(SystemError) {
        if !isCurrent { try watchNearest() }
      } catch {
        // It may pass, and nobody asked. The call that comes with it meets what is wrong with the folder, and the next
        // one checks again.
        state.withLock { $0.isUnchecked = true }
        return
      }
      let isNews = state.withLock { state in
        defer { state.isUnchecked = false }
        guard !isCurrent || state.isUnchecked else { return false }
        state.hasChanged = true
        return true
      }
      if isNews { onChange() }
    }

    /// Whether the watched folder still has its name, and none is nearer.
    private var isCurrent: Bool {
      let (number, path) = state.withLock { ($0.source.map { CInt($0.handle) }, $0.path) }
      var (watched, found) = (stat(), stat())
      guard let number, fstat(number, &watched) == 0, stat(path, &found) == 0 else { return false }
      guard (watched.st_dev, watched.st_ino) == (found.st_dev, found.st_ino) else { return false }
      return path == folder || stat(folder, &found) != 0
    }

    /// The names of the files that were changed since the last call; nil when it could be any.
    ///
    /// - Throws: What went wrong; the watch is over then.
    func takeChangedFiles() throws(SystemError) -> [String]? {
      let (hasChanged, failure) = state.withLock { state in
        defer { state.hasChanged = false }
        return (state.hasChanged, state.failure)
      }
      if let failure { throw failure }
      return hasChanged ? nil : []
    }

    /// Watches the folder; as long as there is none, the nearest one above it.
    private func watchNearest() throws(SystemError) {
      var watchedPath: String?
      while true {
        let (number, path) = try openNearest()
        // Something nearer may have appeared before the one above was watched, but not after it was found twice.
        if path == watchedPath {
          close(number)
          return
        }
        let source = DispatchSource.makeFileSystemObjectSource(
          fileDescriptor: number, eventMask: [.write, .delete, .rename, .revoke], queue: queue)
        source.setEventHandler { [weak self] in self?.folderChanged() }
        source.setCancelHandler { close(number) }
        let old = state.withLock { state in
          defer { (state.source, state.path) = (source, path) }
          return state.source
        }
        old?.cancel()
        source.activate()
        if path == folder { return }
        watchedPath = path
      }
    }

    /// Opens the folder; as long as there is none, the nearest one above it.
    private func openNearest() throws(SystemError) -> (number: CInt, path: String) {
      var path = folder
      while true {
        do throws(SystemError) {
          let number = try fileSystem.perform("open", path) { open(path, O_EVTONLY | O_DIRECTORY | O_CLOEXEC) }
          return (number, path)
        } catch {
          guard error.code == ENOENT, path != "/" else { throw error }
          path = URL(filePath: path, directoryHint: .isDirectory).deletingLastPathComponent().path(
            percentEncoded: false)
        }
      }
    }

    private func folderChanged() {
      var failure: SystemError?
      do throws(SystemError) {
        // It may be another folder by now that has the name.
        try watchNearest()
      } catch {
        failure = error
      }
      let found = failure
      state.withLock { state in
        state.hasChanged = true
        state.failure = found
      }
      onChange()
    }
  }
#endif

#if !canImport(Darwin)
  internal import Dispatch
  internal import Foundation
  internal import Multicast

  #if canImport(Glibc)
    internal import Glibc
  #elseif canImport(Musl)
    internal import Musl
  #endif

  /// Tells which files in a folder were changed, by inotify.
  ///
  /// A folder that does not exist, or vanishes, is waited for: the nearest folder above it that exists is watched until
  /// it is there.
  final class FolderWatcher: Sendable {
    private let watch: Watch
    private let onChange: @Sendable () -> Void
    private let source: Lock<any DispatchSourceRead>

    /// Begins to watch.
    ///
    /// - Parameters:
    ///   - folder: The path of the folder.
    ///   - ownPrefix: Of files whose renaming is not told, neither from nor to another name.
    ///   - tellsWrites: Whether each write to a file is told, or only its end.
    ///   - fileSystem: Makes the system calls.
    ///   - onChange: Called, on any thread, when there is something new to take.
    init(
      folder: String, ownPrefix: String, tellsWrites: Bool = false, fileSystem: FileSystem,
      onChange: @escaping @Sendable () -> Void
    ) throws(SystemError) {
      let watch = try Watch(folder: folder, ownPrefix: ownPrefix, tellsWrites: tellsWrites, fileSystem: fileSystem)
      self.watch = watch
      self.onChange = onChange
      let source = DispatchSource.makeReadSource(
        fileDescriptor: watch.descriptor.number, queue: DispatchQueue(label: "DataStore.FolderWatcher"))
      // The handlers keep the descriptor open until the source is done with it.
      source.setEventHandler { if watch.collect() { onChange() } }
      source.setCancelHandler { _ = watch }
      source.activate()
      self.source = Lock(source)
    }

    deinit {
      source.withLock { $0.cancel() }
    }

    /// Sees to it that the folder is watched that has the name now.
    ///
    /// Nothing tells when one above it gets another name, or when it is removed while somebody has it open.
    func checkFolder() {
      if watch.checkFolder() { onChange() }
    }

    /// The names of the files that were changed since the last call; nil when it could be any.
    ///
    /// - Throws: What went wrong; the watch is over then.
    func takeChangedFiles() throws(SystemError) -> [String]? {
      try watch.takeChangedFiles()
    }
  }

  /// The open inotify instance of a ``FolderWatcher``, and what it told so far.
  private final class Watch: Sendable {
    let descriptor: Descriptor
    private let folder: String
    private let tellsWrites: Bool
    private let fileSystem: FileSystem
    private let state: Lock<FolderWatchState>

    init(folder: String, ownPrefix: String, tellsWrites: Bool, fileSystem: FileSystem) throws(SystemError) {
      descriptor = try fileSystem.openInotify(for: folder)
      self.folder = folder
      self.tellsWrites = tellsWrites
      self.fileSystem = fileSystem
      state = Lock(
        FolderWatchState(
          ownPrefix: ownPrefix,
          target: try fileSystem.watch(folder, tellsWrites: tellsWrites, instead: nil, by: descriptor)))
    }

    /// Reads what the system has to tell, without waiting for it.
    ///
    /// - Returns: Whether there is something to take that was not there before.
    func collect() -> Bool {
      state.withLock { state in
        let hadSomething = state.hasSomething
        do throws(SystemError) {
          while state.failure == nil {
            let events = try fileSystem.events(of: descriptor)
            if events.isEmpty { break }
            for event in events { state.take(event) }
            if state.mustFindFolder {
              state.found(try fileSystem.watch(folder, tellsWrites: tellsWrites, instead: state.target, by: descriptor))
            }
          }
        } catch {
          // The source goes on calling until the store has taken it and lets the watch go.
          state.failure = error
        }
        state.endBatch()
        return !hadSomething && state.hasSomething
      }
    }

    /// Watches the folder that has the name now.
    ///
    /// - Returns: Whether there is something to take that was not there before.
    func checkFolder() -> Bool {
      state.withLock { state in
        let hadSomething = state.hasSomething
        do throws(SystemError) {
          // To watch the same folder again changes nothing, and says that it is the same.
          state.checked(
            try fileSystem.watch(folder, tellsWrites: tellsWrites, instead: state.target, by: descriptor))
        } catch {
          // It may pass, and nobody asked. The call that comes with it meets what is wrong with the folder, and the
          // next one checks again.
          state.couldNotCheck()
        }
        return !hadSomething && state.hasSomething
      }
    }

    func takeChangedFiles() throws(SystemError) -> [String]? {
      _ = collect()
      return try state.withLock { $0.takeChangedFiles() }.get()
    }
  }
#endif

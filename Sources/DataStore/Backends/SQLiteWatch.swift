#if SQLite
  internal import Dispatch
  internal import Foundation
  internal import Multicast

  #if canImport(Darwin)
    internal import Darwin
  #endif

  /// What a ``SQLiteBackend`` needs to see what others change.
  ///
  /// Any write to the database's files wakes the store, and then the database says what was changed. A commit is first
  /// written to the log, which wakes, and only later to be seen by others, which nothing tells. So a look that finds
  /// somebody writing is not the last: it is repeated until one finds nobody. Then everything is to be seen that was
  /// ever told, and the next write wakes again. Where the database can only be read, nobody can tell: there the looks
  /// end after a minute.
  final class SQLiteWatch {
    /// Up to where a look has seen.
    struct Seen {
      var connectionCount = 0
      var dataVersion: Int64 = 0
      var version: Int64 = 0
      var removal: Int64 = 0
    }

    /// What a look found.
    struct Look {
      var seen: Seen
      var changes: OutsideChanges
      var writing: Writing
    }

    /// Who else was writing during a look.
    enum Writing {
      case nobody
      case somebody
      /// Only the one who may write can tell.
      case unknown
    }

    /// When there is to be another look, without another wake.
    struct Schedule {
      private var delay = 1

      private static let lastDelay = 250
      private static let lastDelayInTheDark = 32_768

      /// Begins anew, with a wake.
      mutating func begin() {
        delay = 1
      }

      /// In how many milliseconds to look again; nil when there is no need to.
      mutating func next(after writing: Writing) -> Int? {
        switch writing {
        case .nobody:
          delay = 1
          return nil
        case .somebody:
          defer { delay = min(2 * delay, Self.lastDelay) }
          return min(delay, Self.lastDelay)
        case .unknown:
          guard delay <= Self.lastDelayInTheDark else { return nil }
          defer { delay *= 2 }
          return delay
        }
      }
    }

    /// What woke the store since the last look: more than a timer.
    private final class Wakes: Sendable {
      private let areThere = Lock(false)

      func note() {
        areThere.withLock { $0 = true }
      }

      func take() -> Bool {
        areThere.withLock { areThere in
          defer { areThere = false }
          return areThere
        }
      }
    }

    /// Nil when the last look failed.
    var seen: Seen?
    let folderWatcher: FolderWatcher
    private let timer: any DispatchSourceTimer
    #if canImport(Darwin)
      private let wake: @Sendable () -> Void
      private var logSource: (any DispatchSourceFileSystemObject)?
    #endif
    private let wakes = Wakes()
    private var schedule = Schedule()

    init(database: SQLiteDatabase, onChange: @escaping @Sendable () -> Void) throws(SystemError) {
      let wake: @Sendable () -> Void = { [wakes] in
        wakes.note()
        onChange()
      }
      folderWatcher = try FolderWatcher(
        folder: database.folder, ownPrefix: database.modelName, tellsWrites: true, fileSystem: database.fileSystem,
        onChange: wake)
      timer = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "DataStore.SQLiteWatch"))
      timer.setEventHandler(handler: onChange)
      timer.schedule(deadline: .distantFuture)
      timer.activate()
      #if canImport(Darwin)
        self.wake = wake
      #endif
    }

    #if canImport(Darwin)
      /// Watches the log of a database with a connection, which keeps it there; writing to it changes no name in the
      /// folder.
      func watchLog(of path: String, fileSystem: FileSystem) throws(SystemError) {
        let number = try fileSystem.perform("open", path) { open("\(path)-wal", O_EVTONLY | O_NOFOLLOW | O_CLOEXEC) }
        let source = DispatchSource.makeFileSystemObjectSource(
          fileDescriptor: number, eventMask: [.write, .extend, .delete, .rename], queue: DispatchQueue.global())
        source.setEventHandler(handler: wake)
        // No lock is on the log, so closing it ends none.
        source.setCancelHandler { close(number) }
        logSource?.cancel()
        source.activate()
        logSource = source
      }
    #endif

    deinit {
      timer.cancel()
      #if canImport(Darwin)
        logSource?.cancel()
      #endif
    }

    /// Begins a look.
    func beginLook() {
      if wakes.take() { schedule.begin() }
    }

    /// Sees to it that there is another look, if there must be one.
    func lookAgain(after writing: Writing) {
      guard let delay = schedule.next(after: writing) else { return }
      timer.schedule(deadline: .now() + .milliseconds(delay))
    }
  }

  extension SQLiteConnection {
    /// Looks at what others changed.
    func look(since seen: SQLiteWatch.Seen?, by writer: Int64) throws(SystemError) -> SQLiteWatch.Look {
      let seen = seen ?? SQLiteWatch.Seen()
      var look = SQLiteWatch.Look(seen: seen, changes: .names([]), writing: try beginLook())
      defer { rollBack() }
      look.seen.dataVersion = try dataVersion
      if look.seen.dataVersion == seen.dataVersion { return look }
      (look.seen.version, look.seen.removal) = try newest()
      // Of removals only the last are kept.
      let oldest = try first(SQLiteLayout.oldestRemoval) { $0.integer(0) } ?? 0
      if oldest > seen.removal + 1 {
        look.changes = .unknown
      } else {
        let saved = try all(SQLiteLayout.savedByOthers, .integer(seen.version), .integer(writer)) { $0.text(0) }
        let removed = try all(SQLiteLayout.removedByOthers, .integer(seen.removal), .integer(writer)) { $0.text(0) }
        look.changes = .names(saved + removed)
      }
      return look
    }

    /// The versions of the newest save and the newest removal.
    func newest() throws(SystemError) -> (version: Int64, removal: Int64) {
      try first(SQLiteLayout.newest) { ($0.integer(0), $0.integer(1)) } ?? (0, 0)
    }

    /// Begins to look without waiting for anybody.
    ///
    /// - Returns: Who else is writing.
    private func beginLook() throws(SystemError) -> SQLiteWatch.Writing {
      setBusyTimeout(.zero)
      defer { setBusyTimeout(busyTimeout) }
      do throws(SystemError) {
        try run("BEGIN IMMEDIATE")
        return .nobody
      } catch {
        guard error.isBusy || error.isReadOnly else { throw error }
        try run("BEGIN")
        return error.isBusy ? .somebody : .unknown
      }
    }
  }

  extension SQLiteBackend {
    /// Watches the folder of the database; where it does not exist yet, those above it.
    public mutating func startWatching(_ onChange: @escaping @Sendable () -> Void) throws(StoreError) {
      do throws(SystemError) {
        watch = try SQLiteWatch(database: database, onChange: onChange)
      } catch {
        throw .readFailed(error)
      }
      database.isWatched = true
      try seeEverything()
    }

    /// The rows that others changed.
    public mutating func takeOutsideChanges() throws(StoreError) -> OutsideChanges {
      guard let watch else { return .names([]) }
      do throws(SystemError) {
        // Which file it was does not matter, but that the watcher tells of the next.
        _ = try watch.folderWatcher.takeChangedFiles()
      } catch {
        self.watch = nil
        throw .readFailed(error)
      }
      watch.beginLook()
      let (seen, writer) = (watch.seen, writer)
      do throws(StoreError) {
        let look = try perform(StoreError.readFailed) { (connection) throws(SystemError) in
          try connection.look(since: seen, by: writer)
        }
        watch.lookAgain(after: look?.writing ?? .nobody)
        guard database.connectionCount == seen?.connectionCount else {
          // It is not the file of the last time.
          try seeEverything()
          return .unknown
        }
        if let look { watch.seen = look.seen }
        return look?.changes ?? .names([])
      } catch {
        try cannotLook(because: error)
        return .unknown
      }
    }

    /// Takes all that is there for seen.
    private mutating func seeEverything() throws(StoreError) {
      do throws(StoreError) {
        #if canImport(Darwin)
          try watchLog()
        #endif
        var seen = SQLiteWatch.Seen()
        try perform(StoreError.readFailed) { (connection) throws(SystemError) in
          seen.dataVersion = try connection.dataVersion
          (seen.version, seen.removal) = try connection.newest()
        }
        seen.connectionCount = database.connectionCount
        watch?.seen = seen
      } catch {
        try cannotLook(because: error)
      }
    }

    /// Notes that nobody knows what others have changed, so that the next look tells so.
    ///
    /// The watch goes on: a database that cannot be read now, because it has vanished for example, may come back. The
    /// store finds out why when it looks itself.
    private func cannotLook(because error: StoreError) throws(StoreError) {
      watch?.seen = nil
      switch error {
      case .damaged: throw error
      case .readFailed(let systemError) where systemError.isBusy: watch?.lookAgain(after: .somebody)
      default: break
      }
    }

    #if canImport(Darwin)
      private mutating func watchLog() throws(StoreError) {
        let path = try perform(StoreError.readFailed) { (connection) throws(SystemError) in
          // The first look into the database makes the log.
          _ = try connection.newest()
          return connection.path
        }
        guard let path else { return }
        do throws(SystemError) {
          try watch?.watchLog(of: path, fileSystem: database.fileSystem)
        } catch {
          throw .readFailed(error)
        }
      }
    #endif
  }
#endif

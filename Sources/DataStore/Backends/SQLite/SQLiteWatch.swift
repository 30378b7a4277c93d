#if SQLite
  internal import Dispatch
  internal import Foundation
  internal import Multicast

  #if canImport(Darwin)
    internal import Darwin
  #endif

  /// Notices external changes for a ``SQLiteBackend``.
  ///
  /// **Visibility in WAL mode.** Every commit is written to the log beside the database, which the system reports. It
  /// would be enough to check for changes at each report, if a commit were visible when it is reported. But a commit
  /// becomes visible to other connections later, by a change of shared memory that nothing reports: a check that comes
  /// in between finds nothing, and no report follows. So a check first tries to take the right to write, without
  /// waiting. If it succeeds, no other connection is amid a commit, and everything that was ever reported is visible to
  /// the check: it is the last one until the next report. If it doesn't, the check reads what is visible and is
  /// repeated soon, until one succeeds. If the database can only be read, no check is conclusive, so the checks end
  /// after a minute.
  ///
  /// For the same reason the watch begins with a check: a commit may have been written before the watch could report it,
  /// and become visible only after the first reads.
  final class SQLiteWatch {
    /// The newest changes that a check has seen.
    struct LastSeen {
      var connectionCount = 0
      var dataVersion: Int64 = 0
      var change: Int64 = 0
    }

    /// The result of a check.
    struct Check {
      var seen: LastSeen
      var changes: ExternalChanges
      var writing: Writing
    }

    /// Whether another connection was writing during a check.
    enum Writing {
      case none
      case other
      /// The database can only be read, so this isn't known.
      case unknown
    }

    /// When to check again without a report.
    struct Schedule {
      private var delay = 1

      private static let lastDelay = 250
      private static let lastDelayIfUnknown = 32_768

      /// Starts again from the shortest delay, at a report.
      mutating func begin() {
        delay = 1
      }

      /// The delay until the next check in milliseconds; `nil` if none is needed.
      mutating func next(after writing: Writing) -> Int? {
        switch writing {
        case .none:
          delay = 1
          return nil
        case .other:
          defer { delay = min(2 * delay, Self.lastDelay) }
          return min(delay, Self.lastDelay)
        case .unknown:
          guard delay <= Self.lastDelayIfUnknown else { return nil }
          defer { delay *= 2 }
          return delay
        }
      }
    }

    /// Whether the system reported a change since the last check; the timer's wakes don't count.
    private final class Reports: Sendable {
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

    /// `nil` if the last check failed.
    var seen: LastSeen?
    let folderWatch: FolderWatch
    private let timer: any DispatchSourceTimer
    /// Asks for a check, as a report does.
    let wake: @Sendable () -> Void
    #if canImport(Darwin)
      private var logSource: (any DispatchSourceFileSystemObject)?
    #endif
    private let reports = Reports()
    private var schedule = Schedule()

    init(database: SQLiteDatabase, onChange: @escaping @Sendable () -> Void) throws(SystemError) {
      wake = { [reports] in
        reports.note()
        onChange()
      }
      folderWatch = try FolderWatch(
        folder: database.folder, ownPrefix: database.permissionsName, reportsWrites: true,
        fileSystem: database.fileSystem,
        onChange: wake)
      timer = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "DataStore.SQLiteWatch"))
      timer.setEventHandler(handler: onChange)
      timer.schedule(deadline: .distantFuture)
      timer.activate()
    }

    #if canImport(Darwin)
      /// Watches the log of a database, because writing to it changes no name in the folder.
      ///
      /// The connection keeps the log in its place.
      func watchLog(of path: String, fileSystem: FileSystem) throws(SystemError) {
        let number = try fileSystem.perform("open", path) { open("\(path)-wal", O_EVTONLY | O_NOFOLLOW | O_CLOEXEC) }
        let source = DispatchSource.makeFileSystemObjectSource(
          fileDescriptor: number, eventMask: [.write, .extend, .delete, .rename], queue: DispatchQueue.global())
        source.setEventHandler(handler: wake)
        // There is no lock on the log that closing it could end.
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

    /// Begins a check.
    func beginCheck() {
      if reports.take() { schedule.begin() }
    }

    /// Schedules another check if one is needed.
    func checkAgain(after writing: Writing) {
      guard let delay = schedule.next(after: writing) else { return }
      timer.schedule(deadline: .now() + .milliseconds(delay))
    }
  }

  extension SQLiteConnection {
    /// Checks for external changes, in a transaction that stays open: what is read in it is what the check saw.
    func checkForChanges(
      since seen: SQLiteWatch.LastSeen?, by writer: Int64
    ) throws(SystemError) -> SQLiteWatch.Check {
      let seen = seen ?? SQLiteWatch.LastSeen()
      var check = SQLiteWatch.Check(seen: seen, changes: .names([]), writing: try beginCheck())
      check.seen.dataVersion = try dataVersion
      if check.seen.dataVersion == seen.dataVersion { return check }
      check.seen.change = try newestChange
      // Only the last changes are kept.
      let oldest = try first(SQLiteLayout.oldestChange) { $0.integer(0) } ?? 0
      if oldest > seen.change + 1 {
        check.changes = .unknown
      } else {
        check.changes = .names(
          try all(
            SQLiteLayout.changedByOthers, .integer(seen.change), .integer(writer)
          ) { $0.text(0) })
      }
      return check
    }

    /// The number of the newest change.
    var newestChange: Int64 {
      get throws(SystemError) { try first(SQLiteLayout.newestChange) { $0.integer(0) } ?? 0 }
    }

    /// Begins a transaction, with the right to write if no other connection has it, without waiting.
    private func beginCheck() throws(SystemError) -> SQLiteWatch.Writing {
      // In a commit nothing else can be written.
      if isWriting { return .none }
      rollBack()
      setBusyTimeout(.zero)
      defer { setBusyTimeout(busyTimeout) }
      do throws(SystemError) {
        try run("BEGIN IMMEDIATE")
        return .none
      } catch {
        guard error.isBusy || error.isReadOnly else { throw error }
        try run("BEGIN")
        return error.isBusy ? .other : .unknown
      }
    }
  }

  extension SQLiteBackend {
    /// Watches the folder of the database; as long as there is none, the nearest one above it.
    package mutating func startWatching(_ onChange: @escaping @Sendable () -> Void) throws(StoreError) {
      do throws(SystemError) {
        watch = try SQLiteWatch(database: database, onChange: onChange)
      } catch {
        throw .readFailed(error)
      }
      database.isWatched = true
      try seeEverything()
      watch?.wake()
    }

    /// Returns the names that were changed externally.
    ///
    /// In a snapshot it comes first, and the snapshot is that of the check.
    package mutating func takeExternalChanges() throws(StoreError) -> ExternalChanges {
      guard let watch else { return .names([]) }
      // A commit needs no report, because nothing else can be written meanwhile. What was reported is left for a check.
      if transaction?.isWriting != true {
        do throws(SystemError) {
          // The names of the files don't matter, but the watch reports the next change only after this.
          _ = try watch.folderWatch.takeChangedFiles()
        } catch {
          self.watch = nil
          throw .readFailed(error)
        }
        watch.beginCheck()
      }
      let (seen, writer) = (watch.seen, writer)
      do throws(StoreError) {
        let check = try snapshot { (backend: inout Self) throws(StoreError) in
          try backend.perform(StoreError.readFailed) { (_, connection) throws(SystemError) in
            try connection.checkForChanges(since: seen, by: writer)
          }
        }
        watch.checkAgain(after: check?.writing ?? .none)
        guard database.connectionCount == seen?.connectionCount else {
          // It isn't the file of the last check.
          try seeEverything()
          return .unknown
        }
        if let check { watch.seen = check.seen }
        return check?.changes ?? .names([])
      } catch {
        try recordFailedCheck(error)
        return .unknown
      }
    }

    /// Asks for another check if there is a database, after a check that found none.
    ///
    /// The check may have taken reports of what came between its look for the database and now. No other reports follow.
    mutating func checkAgainIfDatabaseAppeared() {
      guard let watch, !isMissing else { return }
      do throws(SystemError) {
        if case .success(nil) = try database.connect(making: false) { return }
      } catch {
        // The check meets what is wrong.
      }
      watch.wake()
    }

    /// Takes all that is stored now for seen.
    private mutating func seeEverything() throws(StoreError) {
      do throws(StoreError) {
        #if canImport(Darwin)
          try watchLog()
        #endif
        var seen = SQLiteWatch.LastSeen()
        try perform(StoreError.readFailed) { (_, connection) throws(SystemError) in
          seen.dataVersion = try connection.dataVersion
          seen.change = try connection.newestChange
        }
        seen.connectionCount = database.connectionCount
        watch?.seen = seen
      } catch {
        try recordFailedCheck(error)
      }
    }

    /// Records that it isn't known what changed, so that the next check returns ``ExternalChanges/unknown``.
    ///
    /// The watch goes on: a database that can't be read now, because it has vanished for example, may come back. The
    /// store learns the reason when it reads.
    private func recordFailedCheck(_ error: StoreError) throws(StoreError) {
      watch?.seen = nil
      switch error {
      case .damaged: throw error
      case .readFailed(let systemError) where systemError.isLockedOut: watch?.checkAgain(after: .other)
      default: break
      }
    }

    #if canImport(Darwin)
      private mutating func watchLog() throws(StoreError) {
        let path = try perform(StoreError.readFailed) { (_, connection) throws(SystemError) in
          // The first read of the database makes the log.
          _ = try connection.newestChange
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

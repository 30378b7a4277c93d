#if SQLite
  internal import Dispatch
  internal import Foundation
  internal import Multicast

  #if canImport(Darwin)
    internal import Darwin
  #endif

  /// Notices external changes for a ``SQLiteBackend``.
  ///
  /// ## Visibility in WAL mode
  /// **The problem.** SQLite doesn't notify a connection of the commits of other processes. In WAL mode a commit takes
  /// three steps. It writes its pages to the write-ahead log (the file `<database>-wal`), synchronizes the log, and
  /// publishes the new end of the log in shared memory. Only after the last step can other connections read the commit.
  ///
  /// **The naive way.** The operating system reports each write to the log, and SQLite's `data_version` shows whether
  /// another connection has committed. So it seems enough to read `data_version` at each report.
  ///
  /// **Why it fails.** The report belongs to the first step, and nothing reports the last one, because it only changes
  /// mapped memory. A check for changes that runs between these two steps finds no new commit, and no report follows.
  /// The commit would stay unnoticed until another one is made.
  ///
  /// **The solution.** A writer holds SQLite's write lock from before the first step until after the last one. So a
  /// check first tries to take that lock, with `BEGIN IMMEDIATE` and without waiting:
  /// - If it gets the lock, no other connection is between those steps. Every commit that was reported so far is
  ///   visible to the check, so no other check is needed until the next report.
  /// - If another connection has the lock, the check reads what is visible. It is repeated after 1, 2, 4, … and at most
  ///   250 milliseconds, until a check gets the lock.
  /// - If the database is read-only, no check can get the lock. Checks are then repeated after 1, 2, 4, … and 32,768
  ///   milliseconds, so they end about a minute after the last report.
  ///
  /// The start of the watch has the same gap: a commit may write to the log before the watch begins, and publish the
  /// new end of the log after the backend has first read the database. So the start of the watch requests a check.
  ///
  /// The watch ends when this object is released, or earlier by ``end()``.
  final class SQLiteWatch {
    /// The state of the database when it was last read.
    struct LastSeen {
      /// The ``SQLiteDatabase/connectionCount`` at that time.
      ///
      /// Data versions that different connections read can't be compared.
      var connectionCount = 0
      var dataVersion: Int64 = 0
      /// The number of the newest change in the log of changes.
      var change: Int64 = 0
    }

    /// The result of a check.
    struct Check {
      var seen: LastSeen
      var changes: ExternalChanges
      var otherWriter: OtherWriter
    }

    /// Whether another connection had the write lock when a check began.
    enum OtherWriter {
      case absent
      case present
      /// This isn't known, because the database is read-only.
      case unknown
    }

    /// The schedule of checks that follow a report.
    struct Schedule {
      /// The delay until the next check, in milliseconds.
      private var delay = 1

      /// The longest delay while another connection is writing, in milliseconds.
      private static let longestDelay = 250
      /// The longest delay if the database is read-only, in milliseconds; the check that follows it is the last one.
      private static let longestDelayIfUnknown = 32_768

      /// Restarts from the shortest delay, after a report.
      mutating func restart() {
        delay = 1
      }

      /// Returns the delay in milliseconds until the next check, or `nil` if no check is to follow.
      mutating func next(otherWriter: OtherWriter) -> Int? {
        switch otherWriter {
        case .absent:
          delay = 1
          return nil
        case .present:
          defer { delay = min(2 * delay, Self.longestDelay) }
          return min(delay, Self.longestDelay)
        case .unknown:
          guard delay <= Self.longestDelayIfUnknown else { return nil }
          defer { delay *= 2 }
          return delay
        }
      }
    }

    /// Records whether ``wake`` was called since the last check that wasn't part of a commit.
    ///
    /// A request by the timer isn't a report, because the timer doesn't call ``wake``.
    private final class Reports: Sendable {
      private let isPending = Lock(false)

      func note() {
        isPending.withLock { $0 = true }
      }

      func takeIfPending() -> Bool {
        isPending.withLock { isPending in
          defer { isPending = false }
          return isPending
        }
      }
    }

    /// The state that was read last; `nil` if the last check failed.
    var seen: LastSeen?
    let folderWatch: FolderWatch
    private let timer: any DispatchSourceTimer
    /// Records a report and requests a check.
    ///
    /// The watches of the folder and of the log call it, and so does the backend when it needs a check.
    let wake: @Sendable () -> Void
    #if canImport(Darwin)
      private var logSource: (any DispatchSourceFileSystemObject)?
      /// Contains the descriptors of the log that are being closed.
      private let closings = DispatchGroup()
    #endif
    private let reports = Reports()
    private var schedule = Schedule()

    init(database: SQLiteDatabase, onChange: @escaping @Sendable () -> Void) throws(SystemError) {
      wake = { [reports] in
        reports.note()
        onChange()
      }
      folderWatch = try FolderWatch(
        folder: database.folder, ignoredPrefix: database.permissionsName, reportsWrites: true,
        fileSystem: database.fileSystem,
        onChange: wake)
      timer = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "DataStore.SQLiteWatch"))
      timer.setEventHandler(handler: onChange)
      timer.schedule(deadline: .distantFuture)
      timer.activate()
    }

    #if canImport(Darwin)
      /// Watches the write-ahead log of a database, because on Darwin a folder watch doesn't report writes to files.
      ///
      /// The log exists from the first read of a connection until the connection is closed.
      func watchLog(of path: String, fileSystem: FileSystem) throws(SystemError) {
        let number = try fileSystem.perform("open", path) { open("\(path)-wal", O_EVTONLY | O_NOFOLLOW | O_CLOEXEC) }
        let source = DispatchSource.makeFileSystemObjectSource(
          fileDescriptor: number, eventMask: [.write, .extend, .delete, .rename], queue: DispatchQueue.global())
        source.setEventHandler(handler: wake)
        // SQLite takes no locks on the log, so closing the descriptor can't release one.
        source.setCancelHandler { [closings] in
          close(number)
          closings.leave()
        }
        cancelLogSource()
        source.activate()
        logSource = source
      }

      private func cancelLogSource() {
        guard let logSource else { return }
        closings.enter()
        logSource.cancel()
        self.logSource = nil
      }
    #endif

    /// Ends the watch, and waits until the system has closed what only this watch has used.
    func end() {
      timer.cancel()
      folderWatch.end()
      #if canImport(Darwin)
        cancelLogSource()
        closings.wait()
      #endif
    }

    deinit {
      timer.cancel()
      #if canImport(Darwin)
        cancelLogSource()
      #endif
    }

    /// Restarts the schedule if there was a report since the last check.
    func restartScheduleIfReported() {
      if reports.takeIfPending() { schedule.restart() }
    }

    /// Schedules another check if one is to follow.
    func scheduleRecheck(otherWriter: OtherWriter) {
      guard let delay = schedule.next(otherWriter: otherWriter) else { return }
      timer.schedule(deadline: .now() + .milliseconds(delay))
    }
  }

  extension SQLiteConnection {
    /// Checks for external changes, in a transaction that stays open.
    ///
    /// Further reads in the transaction see the same state of the database as the check.
    ///
    /// - Parameters:
    ///   - seen: The state of the database when it was last read; `nil` if the last check failed.
    ///   - writer: The number of the backend in the log of changes. The backend's own changes are left out.
    func checkForChanges(
      since seen: SQLiteWatch.LastSeen?, notBy writer: Int64
    ) throws(SystemError) -> SQLiteWatch.Check {
      // If the last check failed, the caller ignores the changes that this one finds.
      let seen = seen ?? SQLiteWatch.LastSeen()
      var check = SQLiteWatch.Check(seen: seen, changes: .names([]), otherWriter: try beginWithoutWaiting())
      check.seen.dataVersion = try dataVersion
      if check.seen.dataVersion == seen.dataVersion { return check }
      check.seen.change = try newestChange
      // The log of changes keeps only the latest ones, so some since the last check may be missing.
      let oldest = try first(SQLiteLayout.oldestChange) { $0.integer(0) } ?? 0
      if oldest > seen.change + 1 {
        check.changes = .unknown
      } else {
        check.changes = .names(
          try all(
            SQLiteLayout.externallyChangedNames, .integer(seen.change), .integer(writer)
          ) { $0.text(0) })
      }
      return check
    }

    /// The number of the newest change.
    var newestChange: Int64 {
      get throws(SystemError) { try first(SQLiteLayout.newestChange) { $0.integer(0) } ?? 0 }
    }

    /// Begins a transaction without waiting, and takes the write lock if that is possible.
    ///
    /// - Returns: Whether another connection has the write lock.
    private func beginWithoutWaiting() throws(SystemError) -> SQLiteWatch.OtherWriter {
      // The open transaction has the write lock, so no other connection is writing.
      if isWriting { return .absent }
      // The transaction that begins below replaces that of a snapshot, in which the caller has read nothing yet.
      rollBack()
      setBusyTimeout(.zero)
      defer { setBusyTimeout(busyTimeout) }
      do throws(SystemError) {
        try run("BEGIN IMMEDIATE")
        // In a database that was opened read-only, this begins a read transaction.
        return isWriting ? .absent : .unknown
      } catch {
        guard error.isBusy || error.isReadOnly else { throw error }
        try run("BEGIN")
        return error.isBusy ? .present : .unknown
      }
    }
  }

  extension SQLiteBackend {
    /// Watches the folder of the database or, while that folder doesn't exist, its nearest existing ancestor.
    package mutating func startWatching(_ onChange: @escaping @Sendable () -> Void) throws(StoreError) {
      do throws(SystemError) {
        watch = try SQLiteWatch(database: database, onChange: onChange)
      } catch {
        throw .readFailed(error)
      }
      database.isWatched = true
      try markAllSeen()
      watch?.wake()
    }

    /// Ends the watch, and closes the connection.
    package mutating func close() {
      watch?.end()
      watch = nil
      database.isWatched = false
      database.closeUntilNextCall()
    }

    /// Returns the names that were changed externally.
    ///
    /// The result is ``ExternalChanges/unknown`` if this check or the last one failed, if the database is now another
    /// file, or if the log of changes doesn't reach back to the last check.
    ///
    /// In a snapshot it must be the first call, because the check begins the transaction that the snapshot reads in.
    package mutating func takeExternalChanges() throws(StoreError) -> ExternalChanges {
      guard let watch else { return .names([]) }
      // During a commit no other connection can write, so reports don't matter. They stay for the next check.
      if transaction?.isWriting != true {
        do throws(SystemError) {
          // The names of the files don't matter, but until they are taken the watch reports no further change.
          _ = try watch.folderWatch.takeChangedFiles()
        } catch {
          watch.end()
          self.watch = nil
          throw .readFailed(error)
        }
        watch.restartScheduleIfReported()
        // The database may have been replaced or moved away after the snapshot began and before the report was taken.
        // This check then reads the old database, and no other report follows, so another check is requested.
        if transaction != nil, database.hasMoved { watch.wake() }
      }
      let (seen, writer) = (watch.seen, writer)
      do throws(StoreError) {
        let check = try snapshot { (backend: inout Self) throws(StoreError) in
          try backend.perform(StoreError.readFailed) { (_, connection) throws(SystemError) in
            try connection.checkForChanges(since: seen, notBy: writer)
          }
        }
        watch.scheduleRecheck(otherWriter: check?.otherWriter ?? .absent)
        guard database.connectionCount == seen?.connectionCount else {
          // The database is another file than at the last check, or that check failed.
          try markAllSeen()
          return .unknown
        }
        if let check { watch.seen = check.seen }
        return check?.changes ?? .names([])
      } catch {
        try recordFailedCheck(error)
        return .unknown
      }
    }

    /// Requests another check if a database may have appeared during a snapshot or a decision about a commit.
    ///
    /// A snapshot or decision that began without a database calls this when it ends. If the database has appeared
    /// meanwhile, its appearance may already have been reported to a check that still saw no database. Then no other
    /// report follows.
    mutating func recheckIfDatabaseAppeared() {
      // If `isMissing` is still `true`, a surrounding snapshot or decision calls this again when it ends.
      guard let watch, !isMissing else { return }
      do throws(SystemError) {
        if case .success(nil) = try database.connect(creating: false) { return }
      } catch {
        // The requested check meets the same error.
      }
      watch.wake()
    }

    /// Records that everything stored at present was seen.
    private mutating func markAllSeen() throws(StoreError) {
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

    /// Records that a check failed, so that the next one returns ``ExternalChanges/unknown``.
    ///
    /// The watch continues, because a database that can't be read now may become readable again, for example if it was
    /// removed and is restored. If a lock was held for too long, another check is scheduled. Most errors aren't thrown,
    /// because the next read of the store meets them too.
    ///
    /// - Throws: ``StoreError/corruptStore(movedTo:reason:)`` only, if that is the error.
    private func recordFailedCheck(_ error: StoreError) throws(StoreError) {
      watch?.seen = nil
      switch error {
      case .corruptStore: throw error
      case .readFailed(let systemError) where systemError.isLockout: watch?.scheduleRecheck(otherWriter: .present)
      default: break
      }
    }

    #if canImport(Darwin)
      private mutating func watchLog() throws(StoreError) {
        let path = try perform(StoreError.readFailed) { (_, connection) throws(SystemError) in
          // The first read of the database creates the log.
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

#if SQLite
  import Foundation
  import Multicast
  import Testing

  @testable import DataStore

  #if canImport(Darwin)
    import Darwin
  #elseif canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #endif

  /// The external changes that a backend reports.
  @Suite(.timeLimit(.minutes(15))) struct SQLiteWatchTests {
    private let place = SQLitePlace()
    private let bytes = Data("bytes".utf8)

    /// Starts a watch and returns a stream of its wakes.
    ///
    /// The stream buffers only one element, so several wakes may yield a single one.
    private func startWatching(_ backend: inout SQLiteBackend) throws -> AsyncStream<Void> {
      let (wakes, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
      try backend.startWatching { continuation.yield() }
      return wakes
    }

    @Test func `Saves and removals of other backends are reported in the order of the changes`() throws {
      var backend = place.backend()
      var other = place.backend()
      for name in ["a", "b", "c"] { try other.write(bytes, to: name) }
      let wakes = try startWatching(&backend)
      #expect(try backend.takeExternalChanges() == .names([]))
      for name in ["b", "d", "a", "b"] { try other.write(bytes, to: name) }
      try other.remove("c")
      #expect(try backend.takeExternalChanges() == .names(["b", "d", "a", "b", "c"]))
      #expect(try backend.takeExternalChanges() == .names([]))
      #expect(try other.quarantine(bytes, of: "d", at: Date()) != nil)
      #expect(try backend.takeExternalChanges() == .names(["d"]))
      extendLifetime(wakes)
    }

    @Test func `A backend's own changes are not reported`() throws {
      var backend = place.backend()
      var other = place.backend()
      try backend.write(bytes, to: "a")
      let wakes = try startWatching(&backend)
      for name in ["a", "b", "c"] { try backend.write(bytes, to: name) }
      try backend.remove("b")
      #expect(try backend.takeExternalChanges() == .names([]))
      try other.write(bytes, to: "d")
      try backend.write(bytes, to: "e")
      #expect(try backend.takeExternalChanges() == .names(["d"]))
      extendLifetime(wakes)
    }

    @Test func `More changes than the log of changes keeps are reported as unknown`() throws {
      var backend = place.backend()
      var other = place.backend()
      try other.write(bytes, to: "a")
      let wakes = try startWatching(&backend)
      let connection = try #require(try other.database.connect(creating: false).get())
      try connection.run("PRAGMA synchronous = OFF")
      let changeCount = SQLiteLayout.keptChangeCount + SQLiteLayout.truncationInterval
      for _ in 0...changeCount / 2 {
        try other.write(bytes, to: "b")
        try other.remove("b")
      }
      #expect(try backend.takeExternalChanges() == .unknown)
      #expect(try backend.takeExternalChanges() == .names([]))
      try other.remove("a")
      #expect(try backend.takeExternalChanges() == .names(["a"]))
      let keptCount = try #require(try connection.first("SELECT count(*) FROM change") { $0.integer(0) })
      #expect(keptCount >= SQLiteLayout.keptChangeCount && keptCount < changeCount)
      extendLifetime(wakes)
    }

    @Test func `A removed database, and then another one at its path, are reported as unknown changes`() throws {
      var backend = place.backend()
      try backend.write(bytes, to: "a")
      let wakes = try startWatching(&backend)
      #expect(try backend.takeExternalChanges() == .names([]))
      let elsewhere = SQLitePlace()
      var other = elsewhere.backend()
      try other.write(bytes, to: "b")
      for name in try place.contents { try FileManager.default.removeItem(at: place.folder.appending(path: name)) }
      #expect(try backend.takeExternalChanges() == .unknown)
      for name in try elsewhere.contents {
        try FileManager.default.moveItem(
          at: elsewhere.folder.appending(path: name), to: place.folder.appending(path: name))
      }
      #expect(try backend.takeExternalChanges() == .unknown)
      #expect(try backend.takeExternalChanges() == .names([]))
      #expect(try backend.read("b") == bytes)
      extendLifetime(wakes)
    }

    @Test func `When the watched folder is replaced, the next call of the backend watches the new one`() throws {
      let file = place.folder.appending(path: "outer/inner/store.sqlite")
      var backend = SQLiteBackend(file: file)
      try backend.write(bytes, to: "a")
      try backend.startWatching {}
      try FileManager.default.moveItem(
        at: place.folder.appending(path: "outer"), to: place.folder.appending(path: "elsewhere"))
      var other = SQLiteBackend(file: file)
      try other.write(bytes, to: "b")
      #expect(try backend.read("b") == bytes)
      #expect(try backend.takeExternalChanges() == .unknown)
      try other.write(bytes, to: "c")
      // On Darwin the system reports changes late.
      #if !canImport(Darwin)
        #expect(try #require(backend.watch).folderWatch.takeChangedFiles() != [])
      #endif
      #expect(try backend.takeExternalChanges() == .names(["c"]))
    }

    @Test func `A commit wakes the store, including the first one, which creates the folder`() async throws {
      var backend = place.backend()
      var wakes = try startWatching(&backend).makeAsyncIterator()
      for name in ["a", "b", "c"] {
        var other = place.backend()
        try other.write(bytes, to: name)
        var changes = ExternalChanges.names([])
        while changes == .names([]) {
          await wakes.next()
          changes = try backend.takeExternalChanges()
        }
        #expect(changes == (name == "a" ? .unknown : .names([name])))
      }
    }

    @Test(arguments: [true, false])
    func `A commit that becomes visible long after its pages are written isn't missed`(
      watchStartsFirst: Bool
    ) async throws {
      var backend = place.backend()
      try backend.write(bytes, to: "a")
      let earlierWakes = watchStartsFirst ? try startWatching(&backend).makeAsyncIterator() : nil
      let other = try place.connection()
      try other.run("PRAGMA cache_size = 1")
      try other.run("BEGIN IMMEDIATE")
      // Pages that don't fit into the cache are written to the write-ahead log before the commit.
      for number in 0..<20 {
        try other.run(
          SQLiteLayout.write, .text("b\(number)"), .blob(Data(count: 10_000)))
      }
      var wakes = try earlierWakes ?? startWatching(&backend).makeAsyncIterator()
      // No more pages are written, but checks continue, because the transaction of the other connection is still open.
      for _ in 1...6 {
        await wakes.next()
        #expect(try backend.takeExternalChanges() == .names([]))
      }
      try other.run("COMMIT")
      var changes = ExternalChanges.names([])
      while changes == .names([]) {
        await wakes.next()
        changes = try backend.takeExternalChanges()
      }
      #expect(changes == .names((0..<20).map { "b\($0)" }))
    }

    @Test func `Checkpoints, closed connections and a restarted write-ahead log hide no change`() async throws {
      var backend = place.backend()
      try backend.write(bytes, to: "a")
      var wakes = try startWatching(&backend).makeAsyncIterator()
      for (number, checkpoint) in ["PASSIVE", "FULL", "RESTART", "TRUNCATE", "PASSIVE"].enumerated() {
        do {
          var other = place.backend()
          try other.write(bytes, to: "b\(number)")
          let connection = try #require(try other.database.connect(creating: false).get())
          _ = try connection.first("PRAGMA wal_checkpoint(\(checkpoint))") { $0.integer(0) }
        }
        var changes = ExternalChanges.names([])
        while changes == .names([]) {
          await wakes.next()
          changes = try backend.takeExternalChanges()
        }
        #expect(changes == .names(["b\(number)"]))
      }
    }

    /// A reason why a database can't be used.
    enum Unusable: CaseIterable {
      case newer
      case foreign
      case withoutTables
      case corruptAndImmovable
      case corruptAndMovedBack
      case corruptBesideAFolder
    }

    @Test(arguments: Unusable.allCases)
    func `Reading an unusable database wakes no store`(unusable: Unusable) throws {
      var fileSystem = FileSystem()
      switch unusable {
      case .newer:
        try place.backend().createDatabase()
        try place.execute("PRAGMA user_version = 7")
      case .foreign:
        try place.backend().createDatabase()
        try place.execute("PRAGMA application_id = 1")
      case .withoutTables:
        // A process that is killed while it creates the database leaves it like this.
        try place.makeFolder()
        try Data().write(to: place.file)
        try place.execute("PRAGMA journal_mode = WAL")
      case .corruptAndImmovable:
        try place.makeFolder()
        try Data("no database".utf8).write(to: place.file)
        fileSystem = FileSystem(fault: { $0.operation == "rename" ? EPERM : nil })
      case .corruptAndMovedBack:
        try place.makeFolder()
        try Data("no database".utf8).write(to: place.file)
        // The quarantine moves the files, can't synchronize the folder, and moves them back.
        fileSystem = FileSystem(fault: { $0.operation == "fsync" ? EIO : nil })
      case .corruptBesideAFolder:
        try place.makeFolder()
        try Data("no database".utf8).write(to: place.file)
        // The quarantine throws before it moves anything, because a folder has the name of one of the files to move.
        try FileManager.default.createDirectory(
          at: place.folder.appending(path: "store.sqlite-shm"), withIntermediateDirectories: false)
      }
      var backend = place.backend(fileSystem: fileSystem)
      try backend.startWatching {}
      for _ in 1...2 {
        _ = try backend.takeExternalChanges()
        // A woken store reads in the same way, so a read that changed a file could wake it over and over.
        do { #expect(try backend.read("a") == nil) } catch {}
        // On Darwin the system reports changes late.
        #if !canImport(Darwin)
          #expect(try #require(backend.watch).folderWatch.takeChangedFiles() == [])
        #endif
      }
    }

    @Test(arguments: [true, false])
    func `A failed quarantine is tried again by the next write, and by a read of another corrupt database`(
      readsAnother: Bool
    ) throws {
      try place.makeFolder()
      try Data("no database".utf8).write(to: place.file)
      let fsyncFails = Lock(true)
      let fileSystem = FileSystem(fault: { call in
        call.operation == "fsync" && fsyncFails.withLock { $0 } ? EIO : nil
      })
      var backend = place.backend(fileSystem: fileSystem)
      try backend.startWatching {}
      #expect(throws: StoreError.self) { try backend.write(bytes, to: "a") }
      fsyncFails.withLock { $0 = false }
      guard readsAnother else {
        // The first call quarantines the database, creates a new one, and throws. The second call writes to the new
        // database.
        #expect(throws: StoreError.self) { try backend.write(bytes, to: "a") }
        try backend.write(bytes, to: "a")
        #expect(try backend.read("a") == bytes)
        return
      }
      try Data("no database either".utf8).write(to: place.file)
      do {
        _ = try backend.read("a")
        Issue.record("The corruption wasn't found.")
      } catch {
        guard case .corruptStore = error else { throw error }
      }
      #expect(try backend.read("a") == nil)
    }

    @Test func `If another store adds the missing tables to a database, its changes are reported as unknown`()
      async throws
    {
      try place.makeFolder()
      try Data().write(to: place.file)
      try place.execute("PRAGMA journal_mode = WAL")
      var backend = place.backend()
      var wakes = try startWatching(&backend).makeAsyncIterator()
      #expect(try backend.takeExternalChanges() == .names([]))
      var other = place.backend()
      try other.write(bytes, to: "a")
      var changes = ExternalChanges.names([])
      while changes == .names([]) {
        await wakes.next()
        changes = try backend.takeExternalChanges()
      }
      #expect(changes == .unknown)
      #expect(try backend.read("a") == bytes)
      try other.write(bytes, to: "b")
      #expect(try backend.takeExternalChanges() == .names(["b"]))
    }

    @Test func `Checks continue while another connection writes, or 16 times if it is unknown whether one does`() {
      var schedule = SQLiteWatch.Schedule()
      let delaysWhileWriting = (1...11).map { _ in schedule.next(otherWriter: .present) }
      #expect(delaysWhileWriting == [1, 2, 4, 8, 16, 32, 64, 128, 250, 250, 250])
      #expect(schedule.next(otherWriter: .absent) == nil)
      #expect(schedule.next(otherWriter: .present) == 1)
      schedule.restart()
      let delaysIfUnknown = (1...17).map { _ in schedule.next(otherWriter: .unknown) }
      #expect(delaysIfUnknown == (0..<16).map { 1 << $0 } + [nil])
      schedule.restart()
      #expect(schedule.next(otherWriter: .unknown) == 1)
    }

    @Test func `Whether another connection writes is unknown to a connection that can't write`() throws {
      var backend = place.backend()
      try backend.write(bytes, to: "a")
      let connection = try #require(try backend.database.connect(creating: false).get())
      #expect(try connection.checkForChanges(since: nil, notBy: backend.writer).otherWriter == .absent)
      // The check leaves a transaction open that has the write lock, which the other connection needs.
      connection.rollBack()
      let other = try place.connection()
      try other.run("BEGIN IMMEDIATE")
      #expect(try connection.checkForChanges(since: nil, notBy: backend.writer).otherWriter == .present)
      try connection.run("PRAGMA query_only = ON")
      #expect(try connection.checkForChanges(since: nil, notBy: backend.writer).otherWriter == .unknown)
      connection.rollBack()
      try other.run("ROLLBACK")
    }

    @Test func `Whether another connection writes is unknown to a connection that was opened read-only`() throws {
      var backend = place.backend()
      try backend.write(bytes, to: "a")
      let connection = try place.connection(isReadOnly: true)
      #expect(try connection.checkForChanges(since: nil, notBy: backend.writer).otherWriter == .unknown)
      connection.rollBack()
      let other = try place.connection()
      try other.run("BEGIN IMMEDIATE")
      #expect(try connection.checkForChanges(since: nil, notBy: backend.writer).otherWriter == .unknown)
      connection.rollBack()
      try other.run("ROLLBACK")
    }

    @Test func `No change of many concurrent writers is missed`() async throws {
      let place = place
      var backend = place.backend(busyTimeout: .seconds(60))
      try backend.write(bytes, to: "a")
      var wakes = try startWatching(&backend).makeAsyncIterator()
      let writers = Task {
        try await withThrowingTaskGroup(of: Void.self) { group in
          for writer in 0..<4 {
            group.addTask {
              var other = place.backend(busyTimeout: .seconds(60))
              for number in 0..<25 { try other.write(Data(), to: "w\(writer)-\(number)") }
            }
          }
          try await group.waitForAll()
        }
      }
      var unreported = Set((0..<4).flatMap { writer in (0..<25).map { "w\(writer)-\($0)" } })
      while !unreported.isEmpty {
        await wakes.next()
        guard case .names(let names) = try backend.takeExternalChanges() else {
          Issue.record("The changes are unknown.")
          return
        }
        for name in names { #expect(unreported.remove(name) != nil, "\(name) was reported twice") }
      }
      try await writers.value
    }
  }
#endif

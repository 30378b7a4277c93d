#if SQLite
  import Foundation
  import Multicast
  import TestSupport
  import Testing

  @testable import DataStore

  #if canImport(Darwin)
    import Darwin
  #elseif canImport(Glibc)
    import Glibc
  #elseif canImport(Musl)
    import Musl
  #endif

  /// The location, the permissions and the layout of a database, and its removal.
  @Suite struct SQLiteDatabaseTests {
    private let place = SQLitePlace()
    private let old = Data("old".utf8)
    private let new = Data("new".utf8)

    @Test func `Only the owner can access files and folders, and no temporary file remains`() throws {
      let inner = place.folder.appending(path: "outer/inner")
      do {
        var backend = SQLiteBackend(file: inner.appending(path: "store.sqlite"))
        try backend.write(old, to: "a")
        #expect(try place.permissions(of: "") == 0o700)
        #expect(try place.permissions(of: "outer") == 0o700)
        #expect(try place.permissions(of: "outer/inner") == 0o700)
        let names = try FileManager.default.contentsOfDirectory(atPath: inner.path(percentEncoded: false)).sorted()
        #expect(names == ["store.sqlite", "store.sqlite-shm", "store.sqlite-wal"])
        for name in names { #expect(try place.permissions(of: "outer/inner/\(name)") == 0o600) }
      }
      // The backend is gone, so the database is closed, and SQLite has removed the files beside it.
      #expect(
        try FileManager.default.contentsOfDirectory(atPath: inner.path(percentEncoded: false)) == ["store.sqlite"])
    }

    @Test func `Only writing creates a file`() throws {
      var backend = place.backend()
      #expect(try backend.read("a") == nil)
      #expect(try backend.names() == [])
      try backend.remove("a")
      #expect(try backend.quarantine(old, of: "a", at: Date()) == nil)
      #expect(!FileManager.default.fileExists(atPath: place.folder.path(percentEncoded: false)))
      try place.makeFolder()
      #expect(try backend.read("a") == nil)
      try Data().write(to: place.file)
      #expect(try backend.read("a") == nil)
      #expect(try place.bytes == Data())
      try backend.write(new, to: "a")
      #expect(try backend.read("a") == new)
    }

    @Test func `Symbolic links in place of the database or the files beside it aren't followed`() throws {
      try place.makeFolder()
      let outside = place.folder.appending(path: "outside")
      try FileManager.default.createSymbolicLink(at: place.file, withDestinationURL: outside)
      var backend = place.backend()
      let error = SystemError(code: ELOOP, operation: "open", path: place.path)
      #expect(throws: StoreError.readFailed(error)) { try backend.read("a") }
      #expect(throws: StoreError.writeFailed(error)) { try backend.write(new, to: "a") }
      try FileManager.default.removeItem(at: place.file)

      for suffix in ["-wal", "-shm"] {
        let link = place.folder.appending(path: "store.sqlite\(suffix)")
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: outside)
        #expect(throws: StoreError.self) { try backend.write(new, to: "a") }
        try FileManager.default.removeItem(at: link)
      }
      #expect(!FileManager.default.fileExists(atPath: outside.path(percentEncoded: false)))
      try backend.write(new, to: "a")
      #expect(try backend.read("a") == new)
    }

    @Test func `A symbolic link to the folder works like the folder`() throws {
      try place.makeFolder()
      let link = place.folder.appending(path: "link")
      let inner = place.folder.appending(path: "inner")
      try FileManager.default.createDirectory(at: inner, withIntermediateDirectories: false)
      try FileManager.default.createSymbolicLink(at: link, withDestinationURL: inner)
      // SQLite gets a URI instead of a path. In a URI, an unescaped `#` or `?` would end the path.
      var backend = SQLiteBackend(file: link.appending(path: "store #1?.sqlite"))
      try backend.write(new, to: "a")
      var other = SQLiteBackend(file: inner.appending(path: "store #1?.sqlite"))
      #expect(try other.read("a") == new)
    }

    @Test func `Calls throw and don't block if a named pipe or a folder is at the path of the database`() throws {
      try place.makeFolder()
      var backend = place.backend()
      let error = SystemError(code: EINVAL, operation: "open", path: place.path)
      #expect(mkfifo(place.path, 0o600) == 0)
      #expect(throws: StoreError.readFailed(error)) { try backend.read("a") }
      #expect(throws: StoreError.writeFailed(error)) { try backend.write(new, to: "a") }
      try FileManager.default.removeItem(at: place.file)
      try FileManager.default.createDirectory(at: place.file, withIntermediateDirectories: false)
      #expect(throws: StoreError.readFailed(error)) { try backend.read("a") }
    }

    @Test(arguments: [URL(string: "https://example.com/a")!, URL(string: "file:///tmp/a%00b")!, URL(filePath: "/tmp/")])
    func `Writing throws if the URL can't refer to a file`(url: URL) throws {
      var backend = SQLiteBackend(file: url)
      let error = #expect(throws: StoreError.self) { try backend.write(new, to: "a") }
      guard case .writeFailed(let systemError) = error else {
        Issue.record("\(String(describing: error))")
        return
      }
      #expect(systemError.code == EINVAL)
    }

    @Test func `A database of another program is left unchanged`() throws {
      try place.backend().createDatabase()
      try place.connection().run("PRAGMA application_id = 1")
      let before = try place.bytes
      var backend = place.backend()
      let error = SystemError(code: EINVAL, operation: "opening as a store", path: place.path)
      #expect(throws: StoreError.readFailed(error)) { try backend.read("a") }
      #expect(throws: StoreError.writeFailed(error)) { try backend.write(new, to: "a") }
      #expect(throws: StoreError.removeFailed(error)) { try backend.remove("a") }
      #expect(try place.bytes == before)
      #expect(try place.contents == ["store.sqlite"])
    }

    @Test func `A database of a future layout is left unchanged`() throws {
      try place.backend().createDatabase()
      try place.connection().run("PRAGMA user_version = 3")
      let before = try place.bytes
      var backend = place.backend()
      let error = StoreError.newerStore(path: place.path, found: 3, supported: 2)
      #expect(throws: error) { try backend.read("a") }
      #expect(throws: error) { try backend.write(new, to: "a") }
      #expect(throws: error) { try backend.remove("a") }
      #expect(throws: error) { try backend.names() }
      #expect(try place.bytes == before)
    }

    @Test func `A migration to a future layout by another program is noticed`() throws {
      var backend = place.backend()
      try backend.write(old, to: "a")
      let connection = try place.connection()
      try connection.run("ALTER TABLE value RENAME TO future_value")
      try connection.run("PRAGMA user_version = 3")
      let error = StoreError.newerStore(path: place.path, found: 3, supported: 2)
      #expect(throws: error) { try backend.read("a") }
      #expect(throws: error) { try backend.write(new, to: "a") }
      #expect(try connection.first("SELECT bytes FROM future_value") { $0.blob(0) } == old)
    }

    @Test func `A migration to a future layout is reported by every call, also after a failed write`() throws {
      var backend = place.backend()
      try backend.write(old, to: "a")
      // The table that this program reads stays. Only the version shows that the program must not use the database.
      try place.connection().run("PRAGMA user_version = 3")
      let error = StoreError.newerStore(path: place.path, found: 3, supported: 2)
      for _ in 1...2 {
        #expect(throws: error) { try backend.write(new, to: "a") }
        #expect(throws: error) { try backend.read("a") }
        #expect(throws: error) { try backend.names() }
        #expect(throws: error) { try backend.remove("a") }
      }
    }

    @Test func `A migration to a future layout is noticed after a write that another connection has blocked`() throws {
      var backend = place.backend(busyTimeout: .milliseconds(1))
      try backend.write(old, to: "a")
      let other = try place.connection()
      // The table that this program reads stays. Only the version shows that the program must not use the database.
      try other.run("PRAGMA user_version = 3")
      try other.run("BEGIN IMMEDIATE")
      let lockError = #expect(throws: StoreError.self) { try backend.write(new, to: "a") }
      #expect(lockError?.isLockout == true)
      let error = StoreError.newerStore(path: place.path, found: 3, supported: 2)
      #expect(throws: error) { try backend.read("a") }
      #expect(throws: error) { try backend.names() }
      other.rollBack()
      #expect(throws: error) { try backend.write(new, to: "a") }
    }

    @Test func `Calls throw after the folder was removed, don't create it again, and succeed once it is restored`()
      throws
    {
      var backend = place.backend()
      try backend.write(old, to: "a")
      let elsewhere = TemporaryFolder()
      try FileManager.default.moveItem(at: place.folder, to: elsewhere.url)
      let folderPath = String(place.folder.path(percentEncoded: false).dropLast())
      let error = SystemError(code: ENOENT, operation: "open", path: folderPath)
      #expect(throws: StoreError.readFailed(error)) { try backend.read("a") }
      #expect(throws: StoreError.writeFailed(error)) { try backend.write(new, to: "a") }
      #expect(throws: StoreError.removeFailed(error)) { try backend.remove("a") }
      #expect(!FileManager.default.fileExists(atPath: folderPath))
      try FileManager.default.moveItem(at: elsewhere.url, to: place.folder)
      #expect(try backend.read("a") == old)
      try backend.write(new, to: "a")
      #expect(try backend.read("a") == new)
      extendLifetime(elsewhere)
    }

    @Test func `Calls throw after the database was removed, and don't create it again`() throws {
      var backend = place.backend()
      try backend.write(old, to: "a")
      for name in try place.contents { try FileManager.default.removeItem(at: place.folder.appending(path: name)) }
      let error = SystemError(code: ENOENT, operation: "open", path: place.path)
      #expect(throws: StoreError.writeFailed(error)) { try backend.write(new, to: "a") }
      #expect(throws: StoreError.readFailed(error)) { try backend.read("a") }
      #expect(try place.contents == [])
    }

    @Test func `A database that many backends create at the same time contains all their values`() async throws {
      let place = place
      let lastRound: UInt8 = 4
      try await withThrowingTaskGroup(of: Void.self) { group in
        for number in 0..<8 {
          group.addTask {
            var backend = place.backend(busyTimeout: .seconds(60))
            for round in 0...lastRound { try backend.write(Data([round]), to: "a\(number)") }
          }
        }
        try await group.waitForAll()
      }
      var backend = place.backend()
      for number in 0..<8 { #expect(try backend.read("a\(number)") == Data([lastRound])) }
    }

    @Test func `If any file system call fails, the first write either succeeds, or throws and stores nothing`() throws {
      for callNumber in 1... {
        let failingCall = FailingCall(number: callNumber)
        do {
          var backend = place.backend(fileSystem: failingCall.fileSystem)
          do {
            try backend.write(new, to: "a")
          } catch .writeFailed(let error) {
            #expect(error.code == EIO)
            #expect(try backend.read("a") == nil, "call \(callNumber)")
            try backend.write(new, to: "a")
          }
          #expect(try backend.read("a") == new, "call \(callNumber)")
        }
        #expect(try place.contents == ["store.sqlite"], "call \(callNumber)")
        try FileManager.default.removeItem(at: place.folder)
        if !failingCall.hasFailed { break }
      }
    }

    @Test func `The name of an existing folder is made durable when a database is created in it`() throws {
      try place.makeFolder()
      let calls = Lock<[FileSystem.Call]>([])
      let parent = place.folder.deletingLastPathComponent().path(percentEncoded: false)
      let fileSystem = FileSystem { call in
        calls.withLock { $0.append(call) }
        return nil
      }
      var backend = place.backend(fileSystem: fileSystem)
      try backend.write(new, to: "a")
      #expect(calls.withLock { $0.filter { $0.operation == "fsync" && $0.path == parent }.count } == 1)
    }

    @Test func `If a quarantined database is too large to read, an erasure that needs its bytes throws`() throws {
      var backend = place.backend()
      try backend.write(new, to: "a")
      let quarantineName = "store.sqlite.corrupt-19700101T000000.000Z"
      let path = place.folder.appending(path: quarantineName).path(percentEncoded: false)
      try Data().write(to: place.folder.appending(path: quarantineName))
      // The file is one byte larger than the largest file that is read.
      #expect(truncate(path, (1 << 30) + 1) == 0)
      let error = SystemError(code: EFBIG, operation: "read", path: path)
      #expect(throws: StoreError.eraseFailed(error)) { try backend.erase { $0.bytes == self.old } }
      #expect(try place.contents.contains(quarantineName))
      // An erasure that doesn't need the bytes succeeds.
      try backend.erase { $0.key == nil }
      #expect(try !place.contents.contains(quarantineName))
      #expect(try backend.read("a") == new)
    }

    @Test func `If the removal of a quarantined database isn't durable, the next erasure makes it durable`() throws {
      var reliableBackend = place.backend()
      try reliableBackend.write(new, to: "a")
      try old.write(to: place.folder.appending(path: "store.sqlite.corrupt-19700101T000000.000Z"))
      let synchronizationCount = Lock(0)
      let fails = Lock(true)
      var backend = place.backend(
        fileSystem: FileSystem(fault: { call in
          guard call.operation == "fsync" else { return nil }
          synchronizationCount.withLock { $0 += 1 }
          return fails.withLock { $0 } ? EIO : nil
        }))
      #expect(throws: StoreError.self) { try backend.erase { $0.bytes == self.old } }
      fails.withLock { $0 = false }
      let countBefore = synchronizationCount.withLock { $0 }
      try backend.erase { $0.bytes == self.old }
      #expect(synchronizationCount.withLock { $0 } == countBefore + 1)
      #expect(try !place.contents.contains { $0.contains("corrupt") })
    }

    /// Counts the calls of a file system, and makes the one with the given number fail.
    private final class FailingCall: Sendable {
      private let callCount = Lock(0)
      private let number: Int

      init(number: Int) {
        self.number = number
      }

      var fileSystem: FileSystem {
        FileSystem(fault: { _ in
          self.callCount.withLock {
            $0 += 1
            return $0 == self.number ? EIO : nil
          }
        })
      }

      var hasFailed: Bool { callCount.withLock { $0 >= number } }
    }

    @Test(.enabled(if: getuid() == 0, "The test mounts a volume, which requires root."))
    func `Opening a database on a read-only volume throws an error that names the cause`() async throws {
      try place.makeFolder()
      let path = place.folder.path(percentEncoded: false)
      try #require(Self.runCommand("mount", "-t", "tmpfs", "none", path))
      defer { _ = Self.runCommand("umount", path) }
      let key = StoreKey<String>("text")
      try await SQLiteStore(file: place.file).save("a", for: key)
      #expect(Self.runCommand("mount", "-o", "remount,ro", path))
      let error = SystemError(
        code: EROFS, operation: "creating the files of WAL mode beside the database", path: place.path)
      await #expect(throws: StoreError.readFailed(error)) { try await SQLiteStore(file: place.file).load(key) }
      #expect(error.description.contains("The volume is read-only"))
    }

    /// Runs a command, and returns whether it succeeded.
    private static func runCommand(_ words: String...) -> Bool {
      let process = Process()
      process.executableURL = URL(filePath: "/usr/bin/env")
      process.arguments = words
      do { try process.run() } catch { return false }
      process.waitUntilExit()
      return process.terminationStatus == 0
    }
  }

  extension SQLiteBackend {
    /// Creates the database with one value, and closes it.
    consuming func createDatabase() throws {
      try write(Data("old".utf8), to: "a")
    }
  }
#endif

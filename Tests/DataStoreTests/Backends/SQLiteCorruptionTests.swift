#if SQLite
  import Foundation
  import MulticastTesting
  import TestSupport
  import Testing

  @testable import DataStore

  /// Corrupt databases.
  @Suite struct SQLiteCorruptionTests {
    private let place = SQLitePlace()
    private let old = Data("old".utf8)
    private let new = Data("new".utf8)

    /// Returns the path of the quarantined database that an error reports.
    private func reportedPath(in error: StoreError?) throws -> String {
      guard case .corruptStore(let path, _) = try #require(error) else {
        Issue.record("\(String(describing: error))")
        throw try #require(error)
      }
      return path
    }

    @Test func `A file that is not a database is quarantined once and replaced by a new database`() throws {
      try place.makeFolder()
      let invalidBytes = Data(String(repeating: "no database", count: 1_000).utf8)
      try invalidBytes.write(to: place.file)
      var backend = place.backend()
      let quarantinePath = try reportedPath(in: #expect(throws: StoreError.self) { try backend.read("a") })
      #expect(quarantinePath.contains("/store.sqlite.corrupt-"))
      #expect(try Data(contentsOf: URL(filePath: quarantinePath)) == invalidBytes)
      #expect(try place.connection().first("SELECT count(*) FROM value") { $0.integer(0) } == 0)
      #expect(try backend.read("a") == nil)
      try backend.write(new, to: "a")
      #expect(try backend.read("a") == new)
    }

    @Test func `A value in memory isn't loaded once the file is no longer a database`() async throws {
      let store = SQLiteStore(file: place.file)
      let key = StoreKey<Int>("number")
      try await store.save(1, for: key)
      try await #expect(store.load(key)?.value == 1)
      // Otherwise SQLite could still read the database from its log.
      try FileManager.default.removeItem(at: place.folder.appending(path: "store.sqlite-wal"))
      try Data("no database".utf8).write(to: place.file, options: .atomic)
      _ = try reportedPath(in: await #expect(throws: StoreError.self) { try await store.load(key) })
      try await #expect(store.load(key) == nil)
    }

    @Test func `A database is quarantined with its log, and the next quarantine doesn't replace them`() throws {
      let copy = TemporaryFolder()
      var first = place.backend()
      try first.write(old, to: "a")
      try place.corruptSchema()
      // A killed process leaves the folder like this, with commits that are only in the log.
      try FileManager.default.copyItem(at: place.folder, to: copy.url)
      let corruptFile = copy.url.appending(path: "store.sqlite")
      let log = try Data(contentsOf: copy.url.appending(path: "store.sqlite-wal"))
      #expect(!log.isEmpty)
      let fileCount = try FileManager.default.contentsOfDirectory(atPath: copy.url.path(percentEncoded: false)).count
      var second = SQLiteBackend(file: corruptFile, busyTimeout: .seconds(5), now: { Date(timeIntervalSince1970: 0) })
      let quarantinePath = try reportedPath(in: #expect(throws: StoreError.self) { try second.write(new, to: "a") })
      #expect(quarantinePath == copy.url.path(percentEncoded: false) + "store.sqlite.corrupt-19700101T000000.000Z")
      #expect(try Data(contentsOf: URL(filePath: quarantinePath + "-wal")) == log)
      // Every file was quarantined, and the new database has as many files.
      let newFileCount = try FileManager.default.contentsOfDirectory(atPath: copy.url.path(percentEncoded: false)).count
      #expect(newFileCount == 2 * fileCount)
      second = SQLiteBackend(file: corruptFile, busyTimeout: .seconds(5), now: { Date(timeIntervalSince1970: 0) })
      try Data("no database".utf8).write(to: corruptFile)
      let secondPath = try reportedPath(in: #expect(throws: StoreError.self) { try second.write(new, to: "a") })
      #expect(secondPath == quarantinePath + "-2")
      try second.write(new, to: "a")
      #expect(try second.read("a") == new)
    }

    @Test func `If a corrupt database can't be moved back with its log, both stay quarantined`() throws {
      let copy = TemporaryFolder()
      var first = place.backend()
      try first.write(old, to: "a")
      try place.corruptSchema()
      try FileManager.default.copyItem(at: place.folder, to: copy.url)
      let fileSystem = FileSystem(fault: { call in
        // The path in a call of `rename` is the new one.
        let isMoveBackOfLog = call.operation == "rename" && call.path.hasSuffix("/store.sqlite-wal")
        return call.operation == "fsync" || isMoveBackOfLog ? EIO : nil
      })
      var second = SQLiteBackend(
        file: copy.url.appending(path: "store.sqlite"), busyTimeout: .seconds(5),
        now: { Date(timeIntervalSince1970: 0) }, fileSystem: fileSystem)
      let error = #expect(throws: StoreError.self) { try second.read("a") }
      // The error names the first failure, which is that of the synchronization.
      if case .readFailed(let error) = error {
        #expect(error.operation == "fsync")
      } else {
        Issue.record("\(error as Any)")
      }
      let names = try Set(FileManager.default.contentsOfDirectory(atPath: copy.url.path(percentEncoded: false)))
      let quarantineName = "store.sqlite.corrupt-19700101T000000.000Z"
      #expect(names.isSuperset(of: [quarantineName, quarantineName + "-wal"]))
      #expect(names.isDisjoint(with: ["store.sqlite", "store.sqlite-wal"]))
    }

    @Test func `A log without its database is quarantined, not removed`() throws {
      let copy = TemporaryFolder()
      var first = place.backend()
      try first.write(old, to: "a")
      // The database is missing, or empty.
      for databaseSize in [nil, 0] as [Int?] {
        try FileManager.default.copyItem(at: place.folder, to: copy.url)
        let file = copy.url.appending(path: "store.sqlite")
        try FileManager.default.removeItem(at: file)
        if databaseSize == 0 { try Data().write(to: file) }
        let log = try Data(contentsOf: copy.url.appending(path: "store.sqlite-wal"))
        var second = SQLiteBackend(file: file)
        let quarantinePath = try reportedPath(in: #expect(throws: StoreError.self) { try second.write(new, to: "b") })
        #expect(try Data(contentsOf: URL(filePath: quarantinePath + "-wal")) == log)
        try second.write(new, to: "b")
        #expect(try second.names() == ["b"])
        try FileManager.default.removeItem(at: copy.url)
      }
    }

    @Test func `A database without one of its tables is quarantined`() throws {
      try place.backend().createDatabase()
      try place.connection().run("DROP TABLE quarantine")
      var backend = place.backend()
      let quarantinePath = try reportedPath(in: #expect(throws: StoreError.self) { try backend.read("a") })
      #expect(FileManager.default.fileExists(atPath: quarantinePath))
    }

    @Test func `If two stores find the same corruption, one quarantines the database and the other continues`() throws {
      var backends = [place.backend(), place.backend()]
      try fill(&backends[0])
      for index in backends.indices { #expect(try backends[index].names().count == 50) }
      try place.corruptSchema()
      let error = #expect(throws: StoreError.self) { try backends[0].names() }
      _ = try reportedPath(in: error)
      try backends[0].write(new, to: "a")
      #expect(try backends[1].read("a") == new)
      #expect(try backends[1].names() == ["a"])
      // The name of a quarantined database ends with the time of its quarantine.
      #expect(try place.contents.filter { $0.hasSuffix("Z") }.count == 1)
    }

    @Test func `Reading a corrupt database that can't be quarantined throws and leaves the file in place`() throws {
      try place.makeFolder()
      let invalidBytes = Data("no database".utf8)
      try invalidBytes.write(to: place.file)
      var backend = place.backend(fileSystem: FileSystem(fault: { $0.operation == "rename" ? EIO : nil }))
      for _ in 1...2 {
        let error = #expect(throws: StoreError.self) { try backend.read("a") }
        guard case .readFailed(let systemError) = error else {
          Issue.record("\(String(describing: error))")
          return
        }
        #expect(systemError.operation == "rename")
      }
      #expect(try place.contents == ["store.sqlite"])
      #expect(try place.bytes == invalidBytes)
    }

    @Test(arguments: 0..<200)
    func `Corruption anywhere causes no crash, and unusable files are kept`(seed: UInt64) throws {
      var generator = SplitMix64(seed: seed)
      do {
        var backend = place.backend()
        try fill(&backend)
      }
      var corruptBytes = try place.bytes
      if seed.isMultiple(of: 4) {
        corruptBytes.removeLast(Int.random(in: 1...corruptBytes.count, using: &generator))
      } else {
        for _ in 0..<Int.random(in: 1...64, using: &generator) {
          // Changes at the beginning of the file have the most effect.
          let endIndex = Bool.random(using: &generator) ? min(200, corruptBytes.count) : corruptBytes.count
          corruptBytes[Int.random(in: 0..<endIndex, using: &generator)] ^= UInt8.random(in: 1...255, using: &generator)
        }
      }
      try corruptBytes.write(to: place.file)
      var quarantinePaths: [String] = []
      var hasOtherError = false
      do {
        var backend = place.backend()
        func attempt(_ body: () throws(StoreError) -> Void) {
          do throws(StoreError) {
            try body()
          } catch {
            if case .corruptStore(let path, _) = error { quarantinePaths.append(path) } else { hasOtherError = true }
          }
        }
        attempt { () throws(StoreError) in _ = try backend.names() }
        for number in 0..<50 { attempt { () throws(StoreError) in _ = try backend.read("name\(number)") } }
        attempt { () throws(StoreError) in try backend.write(new, to: "name7") }
        attempt { () throws(StoreError) in try backend.remove("name8") }
        if !quarantinePaths.isEmpty {
          try backend.write(new, to: "name7")
          #expect(try backend.read("name7") == new)
        }
      }
      if let first = quarantinePaths.first {
        #expect(quarantinePaths.count == 1)
        #expect(FileManager.default.fileExists(atPath: first))
        // SQLite may have written to the file before the corruption was found. So the kept bytes may differ from the
        // corrupt ones, and the test only checks that at least a page of them is left.
        let smallestPageSize = 512
        if corruptBytes.count > 0 {
          let keptBytes = try Data(contentsOf: URL(filePath: first))
          #expect(keptBytes.count >= min(corruptBytes.count, smallestPageSize))
        }
      } else if hasOtherError {
        // The file can't be used, but isn't quarantined, because its corrupt header looks like that of another program,
        // of a future layout or of a future file format.
        #expect(try place.bytes == corruptBytes)
      }
    }

    private func fill(_ backend: inout SQLiteBackend) throws {
      for number in 0..<50 {
        try backend.write(Data(repeating: UInt8(number), count: number * 97), to: "name\(number)")
      }
    }
  }
#endif

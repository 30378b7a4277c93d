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

    /// Returns the path of the quarantined database from the error that reports it.
    private func movedTo(_ error: StoreError?) throws -> String {
      guard case .corruptStore(let movedTo, _) = try #require(error) else {
        Issue.record("\(String(describing: error))")
        throw try #require(error)
      }
      return movedTo
    }

    @Test func `A file that is not a database is quarantined once and replaced by a new database`() throws {
      try place.makeFolder()
      let text = Data(String(repeating: "no database", count: 1_000).utf8)
      try text.write(to: place.file)
      var backend = place.backend()
      let movedTo = try movedTo(#expect(throws: StoreError.self) { try backend.read("a") })
      #expect(movedTo.contains("/store.sqlite.corrupt-"))
      #expect(try Data(contentsOf: URL(filePath: movedTo)) == text)
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
      _ = try movedTo(await #expect(throws: StoreError.self) { try await store.load(key) })
      try await #expect(store.load(key) == nil)
    }

    @Test func `A database is quarantined with its log, and the next quarantine doesn't replace them`() throws {
      let copy = TemporaryFolder()
      var first = place.backend()
      try first.write(old, to: "a")
      try place.corruptSchema()
      // A killed process leaves the folder like this, with commits that are only in the log.
      try FileManager.default.copyItem(at: place.folder, to: copy.url)
      let corrupt = copy.url.appending(path: "store.sqlite")
      let log = try Data(contentsOf: copy.url.appending(path: "store.sqlite-wal"))
      #expect(!log.isEmpty)
      let files = try FileManager.default.contentsOfDirectory(atPath: copy.url.path(percentEncoded: false)).count
      var second = SQLiteBackend(file: corrupt, busyTimeout: .seconds(5), now: { Date(timeIntervalSince1970: 0) })
      let quarantinePath = try movedTo(#expect(throws: StoreError.self) { try second.write(new, to: "a") })
      #expect(quarantinePath == copy.url.path(percentEncoded: false) + "store.sqlite.corrupt-19700101T000000.000Z")
      #expect(try Data(contentsOf: URL(filePath: quarantinePath + "-wal")) == log)
      let filesAfter = try FileManager.default.contentsOfDirectory(atPath: copy.url.path(percentEncoded: false)).count
      #expect(filesAfter == 2 * files)
      second = SQLiteBackend(file: corrupt, busyTimeout: .seconds(5), now: { Date(timeIntervalSince1970: 0) })
      try Data("no database".utf8).write(to: corrupt)
      let otherPath = try movedTo(#expect(throws: StoreError.self) { try second.write(new, to: "a") })
      #expect(otherPath == quarantinePath + "-2")
      try second.write(new, to: "a")
      #expect(try second.read("a") == new)
    }

    @Test func `A log without its database is quarantined, not removed`() throws {
      let copy = TemporaryFolder()
      var first = place.backend()
      try first.write(old, to: "a")
      for size in [nil, 0] as [Int?] {
        try FileManager.default.copyItem(at: place.folder, to: copy.url)
        let file = copy.url.appending(path: "store.sqlite")
        try FileManager.default.removeItem(at: file)
        if size == 0 { try Data().write(to: file) }
        let log = try Data(contentsOf: copy.url.appending(path: "store.sqlite-wal"))
        var second = SQLiteBackend(file: file)
        let movedTo = try movedTo(#expect(throws: StoreError.self) { try second.write(new, to: "b") })
        #expect(try Data(contentsOf: URL(filePath: movedTo + "-wal")) == log)
        try second.write(new, to: "b")
        #expect(try second.names() == ["b"])
        try FileManager.default.removeItem(at: copy.url)
      }
    }

    @Test func `A database without one of its tables is quarantined`() throws {
      try place.backend().make()
      try place.connection().run("DROP TABLE quarantine")
      var backend = place.backend()
      let movedTo = try movedTo(#expect(throws: StoreError.self) { try backend.read("a") })
      #expect(FileManager.default.fileExists(atPath: movedTo))
    }

    @Test func `If two stores find the same corruption, one quarantines the database and the other continues`() throws {
      var backends = [place.backend(), place.backend()]
      try fill(&backends[0])
      for index in backends.indices { #expect(try backends[index].names().count == 50) }
      try place.corruptSchema()
      let error = #expect(throws: StoreError.self) { try backends[0].names() }
      _ = try movedTo(error)
      try backends[0].write(new, to: "a")
      #expect(try backends[1].read("a") == new)
      #expect(try backends[1].names() == ["a"])
      #expect(try place.contents.filter { $0.hasSuffix("Z") }.count == 1)
    }

    @Test func `Reading a corrupt database that can't be quarantined throws and leaves the file in place`() throws {
      try place.makeFolder()
      let text = Data("no database".utf8)
      try text.write(to: place.file)
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
      #expect(try place.bytes == text)
    }

    @Test(arguments: 0..<200)
    func `Corruption anywhere causes no crash, and unusable files are kept`(seed: UInt64) throws {
      var generator = SplitMix64(seed: seed)
      do {
        var backend = place.backend()
        try fill(&backend)
      }
      var corrupt = try place.bytes
      if seed.isMultiple(of: 4) {
        corrupt.removeLast(Int.random(in: 1...corrupt.count, using: &generator))
      } else {
        for _ in 0..<Int.random(in: 1...64, using: &generator) {
          // Changes at the beginning of the file have the most effect.
          let end = Bool.random(using: &generator) ? min(200, corrupt.count) : corrupt.count
          corrupt[Int.random(in: 0..<end, using: &generator)] ^= UInt8.random(in: 1...255, using: &generator)
        }
      }
      try corrupt.write(to: place.file)
      var movedTo: [String] = []
      var isRefused = false
      do {
        var backend = place.backend()
        func attempt(_ body: () throws(StoreError) -> Void) {
          do throws(StoreError) {
            try body()
          } catch {
            if case .corruptStore(let place, _) = error { movedTo.append(place) } else { isRefused = true }
          }
        }
        attempt { () throws(StoreError) in _ = try backend.names() }
        for number in 0..<50 { attempt { () throws(StoreError) in _ = try backend.read("name\(number)") } }
        attempt { () throws(StoreError) in try backend.write(new, to: "name7") }
        attempt { () throws(StoreError) in try backend.remove("name8") }
        if !movedTo.isEmpty {
          try backend.write(new, to: "name7")
          #expect(try backend.read("name7") == new)
          isRefused = false
        }
      }
      if let first = movedTo.first {
        #expect(movedTo.count == 1)
        #expect(FileManager.default.fileExists(atPath: first))
        if corrupt.count > 0 { #expect(try Data(contentsOf: URL(filePath: first)).count >= min(corrupt.count, 512)) }
      } else if isRefused {
        // The corrupt header looks like that of another program, of a future layout or of a future file format.
        #expect(try place.bytes == corrupt)
      }
    }

    private func fill(_ backend: inout SQLiteBackend) throws {
      for number in 0..<50 {
        try backend.write(Data(repeating: UInt8(number), count: number * 97), to: "name\(number)")
      }
    }
  }
#endif

#if SQLite
  import Foundation
  import Testing

  @testable import DataStore

  /// What a backend tells of the changes others make.
  @Suite(.timeLimit(.minutes(5))) struct SQLiteWatchTests {
    private let place = SQLitePlace()
    private let bytes = Data("bytes".utf8)

    /// A stream that says each time when the backend wants to be asked.
    private func watching(_ backend: inout SQLiteBackend) throws -> AsyncStream<Void> {
      let (wakes, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
      try backend.startWatching { continuation.yield() }
      return wakes
    }

    @Test func `What others saved or removed is told once, in the order of the last saves`() throws {
      var backend = place.backend()
      var other = place.backend()
      for name in ["a", "b", "c"] { try other.write(bytes, to: name) }
      let wakes = try watching(&backend)
      #expect(try backend.takeOutsideChanges() == .names([]))
      for name in ["b", "d", "a", "b"] { try other.write(bytes, to: name) }
      try other.remove("c")
      #expect(try backend.takeOutsideChanges() == .names(["d", "a", "b", "c"]))
      #expect(try backend.takeOutsideChanges() == .names([]))
      #expect(try other.setAside(bytes, of: "d", at: Date()) != nil)
      #expect(try backend.takeOutsideChanges() == .names(["d"]))
      extendLifetime(wakes)
    }

    @Test func `What the store did itself is not told`() throws {
      var backend = place.backend()
      var other = place.backend()
      try backend.write(bytes, to: "a")
      let wakes = try watching(&backend)
      for name in ["a", "b", "c"] { try backend.write(bytes, to: name) }
      try backend.remove("b")
      #expect(try backend.takeOutsideChanges() == .names([]))
      try other.write(bytes, to: "d")
      try backend.write(bytes, to: "e")
      #expect(try backend.takeOutsideChanges() == .names(["d"]))
      extendLifetime(wakes)
    }

    @Test func `More removals than are kept are told as anything`() throws {
      var backend = place.backend()
      var other = place.backend()
      try other.write(bytes, to: "a")
      let wakes = try watching(&backend)
      let connection = try #require(try other.database.connect(making: false).get())
      try connection.run("PRAGMA synchronous = OFF")
      for _ in 0...SQLiteLayout.removalLimit {
        try other.write(bytes, to: "b")
        try other.remove("b")
      }
      #expect(try backend.takeOutsideChanges() == .unknown)
      #expect(try backend.takeOutsideChanges() == .names([]))
      try other.remove("a")
      #expect(try backend.takeOutsideChanges() == .names(["a"]))
      #expect(try connection.first("SELECT count(*) FROM removed") { $0.integer(0) } == SQLiteLayout.removalLimit)
      extendLifetime(wakes)
    }

    @Test func `Another database in the place is told as anything`() throws {
      var backend = place.backend()
      try backend.write(bytes, to: "a")
      let wakes = try watching(&backend)
      #expect(try backend.takeOutsideChanges() == .names([]))
      let elsewhere = SQLitePlace()
      var other = elsewhere.backend()
      try other.write(bytes, to: "b")
      for name in try place.contents { try FileManager.default.removeItem(at: place.folder.appending(path: name)) }
      #expect(try backend.takeOutsideChanges() == .unknown)
      for name in try elsewhere.contents {
        try FileManager.default.moveItem(
          at: elsewhere.folder.appending(path: name), to: place.folder.appending(path: name))
      }
      #expect(try backend.takeOutsideChanges() == .unknown)
      #expect(try backend.takeOutsideChanges() == .names([]))
      #expect(try backend.read("b") == bytes)
      extendLifetime(wakes)
    }

    @Test func `A commit wakes, also the first that makes the folder`() async throws {
      var backend = place.backend()
      var wakes = try watching(&backend).makeAsyncIterator()
      for name in ["a", "b", "c"] {
        var other = place.backend()
        try other.write(bytes, to: name)
        var changes = OutsideChanges.names([])
        while changes == .names([]) {
          await wakes.next()
          changes = try backend.takeOutsideChanges()
        }
        #expect(changes == (name == "a" ? .unknown : .names([name])))
      }
    }

    @Test func `A commit that is seen only after its wake is not missed`() async throws {
      var backend = place.backend()
      try backend.write(bytes, to: "a")
      var wakes = try watching(&backend).makeAsyncIterator()
      let other = try place.connection()
      try other.run("PRAGMA cache_size = 1")
      try other.run("BEGIN IMMEDIATE")
      // More than fits into its cache is written to the log before the commit.
      for number in 0..<20 {
        try other.run(
          SQLiteLayout.write, .text("b\(number)"), .integer(0), .blob(Data(count: 10_000)))
      }
      // Nothing more is written, and yet there are more wakes, because somebody has not finished.
      for _ in 1...6 {
        await wakes.next()
        #expect(try backend.takeOutsideChanges() == .names([]))
      }
      try other.run("COMMIT")
      var changes = OutsideChanges.names([])
      while changes == .names([]) {
        await wakes.next()
        changes = try backend.takeOutsideChanges()
      }
      #expect(changes == .names((0..<20).map { "b\($0)" }))
    }

    @Test func `Checkpoints, the end of others and a log begun anew hide nothing`() async throws {
      var backend = place.backend()
      try backend.write(bytes, to: "a")
      var wakes = try watching(&backend).makeAsyncIterator()
      for (number, checkpoint) in ["PASSIVE", "FULL", "RESTART", "TRUNCATE", "PASSIVE"].enumerated() {
        do {
          var other = place.backend()
          try other.write(bytes, to: "b\(number)")
          let connection = try #require(try other.database.connect(making: false).get())
          _ = try connection.first("PRAGMA wal_checkpoint(\(checkpoint))") { $0.integer(0) }
        }
        var changes = OutsideChanges.names([])
        while changes == .names([]) {
          await wakes.next()
          changes = try backend.takeOutsideChanges()
        }
        #expect(changes == .names(["b\(number)"]))
      }
    }

    @Test func `Of many writers at once nothing is missed`() async throws {
      let place = place
      var backend = place.backend(busyTimeout: .seconds(60))
      try backend.write(bytes, to: "a")
      var wakes = try watching(&backend).makeAsyncIterator()
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
      var missing = Set((0..<4).flatMap { writer in (0..<25).map { "w\(writer)-\($0)" } })
      while !missing.isEmpty {
        await wakes.next()
        guard case .names(let names) = try backend.takeOutsideChanges() else {
          Issue.record("It cannot be said what was changed.")
          return
        }
        for name in names { #expect(missing.remove(name) != nil, "\(name) was told twice") }
      }
      try await writers.value
    }
  }
#endif

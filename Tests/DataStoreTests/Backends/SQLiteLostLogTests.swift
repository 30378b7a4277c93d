#if SQLite
  import Foundation
  import TestSupport
  import Testing

  @testable import DataStore

  /// A write-ahead log that another program removes or replaces while a store has it open.
  @Suite(.timeLimit(.minutes(15))) struct SQLiteLostLogTests {
    private let place = SQLitePlace()
    private let key = StoreKey<Int>("number")

    private func remove(_ suffix: String) throws {
      try FileManager.default.removeItem(atPath: place.path + suffix)
    }

    /// Returns the value that a store finds if all processes are killed now.
    private func valueAfterKill() async throws -> Int? {
      let copy = TemporaryFolder()
      try FileManager.default.copyItem(at: place.folder, to: copy.url)
      return try await SQLiteStore(file: copy.url.appending(path: "store.sqlite")).load(key)?.value
    }

    @Test(arguments: [["-wal"], ["-shm"], ["-wal", "-shm"]])
    func `Saves after the removal of the log survive a kill, and so do those before it`(
      suffixes: [String]
    ) async throws {
      let store = SQLiteStore(file: place.file)
      let otherKey = StoreKey<Int>("earlier")
      try await store.save(7, for: otherKey)
      try await store.save(0, for: key)
      for suffix in suffixes { try remove(suffix) }
      for number in 1...10 {
        try await store.save(number, for: key)
        #expect(try await valueAfterKill() == number)
        #expect(try await SQLiteStore(file: place.file).load(key)?.value == number)
      }
      #expect(try await SQLiteStore(file: place.file).load(otherKey)?.value == 7)
    }

    @Test(arguments: [["-shm"], ["-wal", "-shm"]])
    func `Saves of two processes after the removal of the index survive`(suffixes: [String]) async throws {
      let store = SQLiteStore(file: place.file)
      try await store.save(0, for: key)
      for suffix in suffixes { try remove(suffix) }
      for number in 1...3 {
        try await store.save(number, for: key)
        #expect(try await ChildProcess.run("save", place.file, ["theirs", "\(number)"]) == .success)
      }
      #expect(try await store.load(key)?.value == 3)
      for number in 1...3 {
        #expect(try await store.load(StoreKey<String>("text", id: "\(number)"))?.value == "theirs")
      }
    }

    @Test func `A store that is suspended after the removal of the log loses no commit`() async throws {
      let store = SQLiteStore(file: place.file)
      try await store.save(1, for: key)
      try remove("-wal")
      await store.suspend()
      #expect(try await valueAfterKill() == 1)
      #expect(try await SQLiteStore(file: place.file).load(key)?.value == 1)
      #expect(try await store.load(key)?.value == 1)
    }

    @Test func `A load after the removal of the log finds the saved value, and makes it durable`() async throws {
      let store = SQLiteStore(file: place.file)
      try await store.save(1, for: key)
      try remove("-wal")
      #expect(try await store.load(key)?.value == 1)
      #expect(try await valueAfterKill() == 1)
    }

    @Test func `A commit whose log is removed before it is acknowledged is made once`() throws {
      var backend = place.backend()
      try backend.write(Data("old".utf8), to: "a")
      var decisionCount = 0
      let isMade = try backend.commit([StoreWrite(name: "a", bytes: Data("new".utf8))]) { backend in
        decisionCount += 1
        try? remove("-wal")
        return .proceed(removing: [])
      }
      #expect(isMade)
      #expect(decisionCount == 1)
      var other = place.backend()
      #expect(try other.read("a") == Data("new".utf8))
      #expect(try backend.read("a") == Data("new".utf8))
    }

    @Test func `A commit is made again if other stores have begun another log`() throws {
      var backend = place.backend()
      try backend.write(Data("old".utf8), to: "a")
      var decisionCount = 0
      let isMade = try backend.commit([StoreWrite(name: "a", bytes: Data("new".utf8))]) { backend in
        decisionCount += 1
        // The files are those of a database that was copied before, with commits in its log.
        if decisionCount == 1 {
          for suffix in ["-wal", "-shm"] {
            let copy = try! Data(contentsOf: URL(filePath: place.path + suffix))
            try! copy.write(to: URL(filePath: place.path + suffix), options: .atomic)
          }
        }
        return .proceed(removing: [])
      }
      #expect(isMade)
      #expect(decisionCount == 2)
      var other = place.backend()
      #expect(try other.read("a") == Data("new".utf8))
    }

    @Test func `The error of a database whose log was cut off doesn't name an unrelated reason`() throws {
      var backend = place.backend()
      try backend.write(Data("old".utf8), to: "a")
      let connection = try place.connection()
      #expect(try connection.first("SELECT count(*) FROM value") { $0.integer(0) } == 1)
      try FileHandle(forWritingTo: URL(filePath: place.path + "-wal")).truncate(atOffset: 0)
      // Leaves the number of an error of the system behind.
      _ = rmdir("/does/not/exist")
      let error = #expect(throws: SystemError.self) { try place.connection().first("SELECT * FROM part") { _ in } }
      #expect(error?.code == 522)
      #expect(error?.description.contains("No such file") == false)
    }

    @Test func `Two stores that are open when the log is removed continue`() async throws {
      let (store, other) = (SQLiteStore(file: place.file), SQLiteStore(file: place.file))
      try await store.save(1, for: key)
      #expect(try await other.load(key)?.value == 1)
      try remove("-wal")
      // Until both have noticed the removal, a call may throw, but an acknowledged save is never lost.
      var acknowledged = 1
      for number in 2...11 {
        let store = number % 2 == 0 ? store : other
        do {
          try await store.save(number, for: key)
          acknowledged = number
        } catch {}
        #expect(try await valueAfterKill() ?? 0 >= acknowledged)
      }
      #expect(acknowledged == 11)
      for store in [store, other] { #expect(try await store.load(key)?.value == 11) }
    }
  }
#endif

#if SQLite
  import Foundation
  import Testing

  @testable import DataStore

  /// The extension of the write-ahead log with zeros, ahead of the commits.
  @Suite struct SQLiteLogSpaceTests {
    private let place = SQLitePlace()

    private var logSize: Int {
      get throws {
        try #require(try FileManager.default.attributesOfItem(atPath: place.path + "-wal")[.size] as? Int)
      }
    }

    /// Returns the bytes that the commit with the given number writes; no other commit writes the same bytes.
    private func bytes(_ number: Int) -> Data { Data(repeating: UInt8(number % 251), count: 3_000 + number) }

    @Test func `A growing log is doubled, up to a limit`() throws {
      var backend = place.backend()
      try backend.write(bytes(0), to: "a")
      var sizes = [try logSize]
      for number in 1...1_500 {
        try backend.write(bytes(number), to: "a")
        let size = try logSize
        if size != sizes.last { sizes.append(size) }
      }
      #expect(try backend.read("a") == bytes(1_500))
      #expect(sizes.count < 16)
      #expect(sizes.last == Int(SQLiteLayout.logSizeLimit))
      // The last step isn't checked, because the limit may cut it off.
      for (smaller, larger) in zip(sizes, sizes.dropFirst().dropLast()) {
        // A step doubles the log, or adds the minimum step if that is more. SQLite itself extends the log by the pages
        // of one commit, which are less than 16 KiB.
        let isStep = larger == smaller + max(smaller, Int(SQLiteLogSpace.minimumStep))
        #expect(isStep || larger - smaller < 16 << 10, "\(sizes)")
      }
    }

    @Test func `A program that makes one commit adds no zeros to the log`() throws {
      // The first backend only creates the database. The second one is the program's.
      do {
        var backend = place.backend()
        try backend.write(bytes(0), to: "a")
      }
      var backend = place.backend()
      try backend.write(bytes(1), to: "a")
      #expect(try logSize < 16 << 10)
    }

    @Test func `Commits of a killed process are found in an extended log`() throws {
      var backend = place.backend()
      for number in 0..<200 {
        try backend.write(bytes(number), to: "\(number % 7)")
        guard number % 10 == 9 else { continue }
        // The copy has the files that a kill of the process at this point would leave. Copying releases this process's
        // locks on the original files. That doesn't matter, because no other connection uses those files.
        let copy = SQLitePlace()
        try copy.makeFolder()
        for suffix in ["", "-wal"] {
          try FileManager.default.copyItem(atPath: place.path + suffix, toPath: copy.path + suffix)
        }
        var copyBackend = copy.backend()
        for name in 0..<7 { #expect(try copyBackend.read("\(name)") == backend.read("\(name)"), "\(number)") }
      }
    }

    @Test func `Two connections that extend one log lose none of each other's commits`() throws {
      var backends = [place.backend(), place.backend()]
      for number in 0..<600 { try backends[number % 2].write(bytes(number), to: "\(number % 5)") }
      // The last five commits, 595 to 599, each wrote the value of a different name.
      for name in 0..<5 {
        #expect(try backends[0].read("\(name)") == bytes(595 + name))
        #expect(try backends[1].read("\(name)") == bytes(595 + name))
      }
      #expect(try logSize <= Int(SQLiteLayout.logSizeLimit))
    }
  }
#endif

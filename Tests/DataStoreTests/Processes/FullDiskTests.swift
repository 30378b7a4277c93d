import Foundation
import TestSupport
import Testing

/// Writes that fail for lack of space: the system limits the size of the child's files.
@Suite(.timeLimit(.minutes(15))) struct FullDiskTests {
  private let temporary = TemporaryFolder()

  @Test func `A save without disk space throws, and leaves only the old value`() async throws {
    var child = try ChildProcess("fill-disk", temporary.url, ["4096"])
    #expect(await child.allLines() == ["refused write \(EFBIG)", "intact", "saved 2"])
    #expect(await child.end() == .success)
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: temporary.url.path(percentEncoded: false)) == ["text.value"])
  }

  #if SQLite
    @Test func `A save to a database without disk space throws, and leaves the old value`() async throws {
      var child = try ChildProcess("fill-disk", DurableStore.database.place(in: temporary), ["200000"])
      // SQLITE_IOERR_WRITE, because the size limit of a process is a different error than a full disk.
      #expect(await child.allLines() == ["refused sqlite3_step 778", "intact", "saved 2"])
      #expect(await child.end() == .success)
    }
  #endif
}

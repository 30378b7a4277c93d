import Foundation
import TestSupport
import Testing

/// Writes that fail for lack of space, simulated by a limit on the size of the files of a child process.
@Suite(.timeLimit(.minutes(15))) struct FullDiskTests {
  private let temporary = TemporaryFolder()

  @Test func `A save without disk space throws, and leaves the old value and no other file`() async throws {
    // The child may write files of up to 4096 bytes. It prints the result of a large save, whether the old value is
    // intact, and the revision of a small save.
    var child = try ChildProcess("fill-disk", temporary.url, ["4096"])
    #expect(await child.allLines() == ["refused write \(EFBIG)", "intact", "saved 2"])
    #expect(await child.end() == .success)
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: temporary.url.path(percentEncoded: false)) == ["text.value"])
  }

  #if SQLite
    @Test func `A save to a database without disk space throws, and leaves the old value`() async throws {
      var child = try ChildProcess("fill-disk", DurableStore.database.place(in: temporary), ["200000"])
      // 778 is SQLITE_IOERR_WRITE. SQLite reports a full disk, but not a limit of the file size, as SQLITE_FULL.
      #expect(await child.allLines() == ["refused sqlite3_step 778", "intact", "saved 2"])
      #expect(await child.end() == .success)
    }
  #endif
}

import Foundation
import TestSupport
import Testing

/// A disk that is really full: the system lets the child's files grow so far and no further.
@Suite(.timeLimit(.minutes(15))) struct FullDiskTests {
  private let temporary = TemporaryFolder()

  @Test func `A save for which there is no space throws, leaves the old value, and nothing else`() async throws {
    var child = try ChildProcess("fill-disk", temporary.url, ["4096"])
    #expect(await child.allLines() == ["refused write \(EFBIG)", "intact", "saved 2"])
    #expect(await child.end() == .success)
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: temporary.url.path(percentEncoded: false)) == ["text.value"])
  }

  #if SQLite
    @Test func `A save for which there is no space in a database throws, and leaves the old value`() async throws {
      var child = try ChildProcess("fill-disk", DurableStore.database.place(in: temporary), ["200000"])
      // SQLITE_IOERR_WRITE, because the limit of a process is another error than a full disk.
      #expect(await child.allLines() == ["refused sqlite3_step 778", "intact", "saved 2"])
      #expect(await child.end() == .success)
    }
  #endif
}

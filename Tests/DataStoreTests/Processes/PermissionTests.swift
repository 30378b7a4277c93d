import Foundation
import TestSupport
import Testing

/// A folder that becomes read-only.
@Suite(.timeLimit(.minutes(15))) struct PermissionTests {
  private let temporary = TemporaryFolder()

  @Test(arguments: DurableStore.allCases)
  func `A save without permission throws, leaves the old value, and works again with permission`(kind: DurableStore)
    async throws
  {
    var child = try ChildProcess("lose-permission", kind.place(in: temporary))
    let lineOfRefusedSave =
      switch kind {
      case .files: "refused create \(EACCES)"
      #if SQLite
        // 8 is SQLITE_READONLY.
        case .database: "refused sqlite3_step 8"
      #endif
      }
    #expect(await child.allLines() == [lineOfRefusedSave, "intact", "saved"])
    #expect(await child.end() == .success)
  }
}

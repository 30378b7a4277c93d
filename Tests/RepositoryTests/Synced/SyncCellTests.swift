import DataStore
import Foundation
import RepositoryTesting
import Testing

@testable import Repository

@Suite struct SyncCellTests {
  private func storedNotes(_ text: String, savedAt seconds: TimeInterval, revision: UInt64) -> StoredValue<Notes> {
    StoredValue(
      value: Notes(text), savedAt: Date(timeIntervalSince1970: seconds), revision: revision, tag: StoreTag())
  }

  @Test func `An external change sets the base and its time of fetch only if the change is newer than the base`() {
    let source = NotesSource(
      fetch: { (_) throws(NotesFailure) in throw .offline },
      send: { (_, _, _) throws(NotesFailure) in throw .offline })
    let cell = SyncCell(key: "a", storeKey: .notes("a"), SourceCapabilities(source))
    _ = cell.open(storedNotes("opened", savedAt: 20, revision: 2), nil)
    cell.receive(.saved(.notes("a"), storedNotes("older", savedAt: 10, revision: 1)))
    #expect(cell.fetchedAt == Date(timeIntervalSince1970: 20))
    #expect(cell.state.baseAsFetched == Notes("opened"))
    cell.receive(.saved(.notes("a"), storedNotes("newer", savedAt: 30, revision: 3)))
    #expect(cell.fetchedAt == Date(timeIntervalSince1970: 30))
    #expect(cell.state.baseAsFetched == Notes("newer"))
  }
}

import DataStore
import Foundation
import RepositoryTesting
import Testing

@testable import Repository

@Suite struct KeyStateTests {
  private func storedNotes(_ text: String, savedAt seconds: TimeInterval, revision: UInt64) -> StoredValue<Notes> {
    StoredValue(
      value: Notes(text), savedAt: Date(timeIntervalSince1970: seconds), revision: revision, tag: StoreTag())
  }

  @Test func `An external change sets the base and its time of fetch only if the change is newer than the base`() {
    let source = NotesSource(
      fetch: { (_) throws(NotesFailure) in throw .offline },
      send: { (_, _, _) throws(NotesFailure) in throw .offline })
    var state = KeyState<NotesSource>(KeyID(key: "a", number: 1), .notes("a"), SourceCapabilities(source))
    _ = state.open(storedNotes("opened", savedAt: 20, revision: 2), nil)
    state.receive(.saved(.notes("a"), storedNotes("older", savedAt: 10, revision: 1)))
    #expect(state.fetchedAt == Date(timeIntervalSince1970: 20))
    #expect(state.state.baseAsFetched == Notes("opened"))
    state.receive(.saved(.notes("a"), storedNotes("newer", savedAt: 30, revision: 3)))
    #expect(state.fetchedAt == Date(timeIntervalSince1970: 30))
    #expect(state.state.baseAsFetched == Notes("newer"))
  }
}

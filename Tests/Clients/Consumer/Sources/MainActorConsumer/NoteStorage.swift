import DataStore
import MulticastTesting
import Repository

extension StoreKey where Value == Note {
  static let draft = Self("draft")
}

extension MainActorConsumer {
  static func storeNotes() async throws {
    let store = InMemoryStore()
    let changes = try await store.changes(of: .draft).subscribe()
    for text in ["Milk", "Oat milk"] { try await store.save(Note(id: "1", text: text), for: .draft) }
    var texts: [String] = []
    for await change in changes {
      texts.append(change.stored?.value.text ?? "")
      if texts.count == 2 { break }
    }
    report("DataStore", texts, expected: ["Milk", "Oat milk"])
  }

  static func changeNotes() async throws {
    let repository = SyncedRepository(NotesSource(client: LocalNotesClient()), store: InMemoryStore())
    let key = NotesKey(folder: "home")
    let notes = Observed(repository.values(of: key, loading: .whileObserved()))
    let running = Task { await notes.run() }
    await until { notes.value?.isEmpty == false }
    let result = try await repository.perform(.add(Note(id: "2", text: "Bread")), on: key)
    await until { notes.value?.count == 2 }
    running.cancel()
    report("Repository", result, expected: .confirmed)
  }
}

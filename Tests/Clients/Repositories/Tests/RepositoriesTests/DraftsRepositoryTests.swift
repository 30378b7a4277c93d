import DataStore
import Repositories
import Repository
import Testing

@Suite(.timeLimit(.minutes(15))) struct DraftsRepositoryTests {
  @Test func `A draft is visible at once, survives a relaunch, and is empty again when it is removed`() async throws {
    let storage = InMemoryStorage()
    do {
      let drafts = draftsRepository(store: InMemoryStore(storage: storage))
      let values = drafts.values(of: "post").subscribe()
      #expect(await values.first(1) == [Draft()])
      for text in ["O", "On", "On the river"] { try await drafts.update("post") { $0.text = text } }
      #expect(await values.first(3).map(\.text) == ["O", "On", "On the river"])
    }
    let drafts = draftsRepository(store: InMemoryStore(storage: storage))
    try await #expect(drafts.value(of: "post") == Draft(text: "On the river"))
    let values = drafts.values(of: "post").subscribe()
    #expect(await values.first(1) == [Draft(text: "On the river")])
    try await drafts.remove("post")
    #expect(await values.first(1) == [Draft()])
    try await #expect(drafts.value(of: "post") == Draft())
  }
}

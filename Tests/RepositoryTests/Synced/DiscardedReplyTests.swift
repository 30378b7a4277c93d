import DataStore
import Multicast
import MulticastTesting
import RepositoryTesting
import TestSupport
import Testing

@testable import Repository

/// Fetches beside changes: how many requests they make, and what observers see.
@Suite(.timeLimit(.minutes(15))) struct DiscardedReplyTests {
  private let fixture = ListFixture(count: 40)

  @Test func `During a drain, a load makes one request`() async throws {
    let repository = try await fixture.makeRepository(pages: 1)
    let gate = Gate()
    fixture.holdFetches(at: gate, afterServing: true)
    let loads = [
      Task { try await repository.reload("a") }, Task { try await repository.loadMore("a") },
    ]
    await gate.arrivals(2)
    for number in 1...60 {
      #expect(try await repository.perform(.rename(number % 20 + 1, "\(number)"), on: "a") == .confirmed)
    }
    gate.open()
    for load in loads { try await load.value }
    let stored = try await fixture.stored()
    #expect(stored == fixture.server.value(of: "a"))
    #expect(fixture.requests.value.count == 3, "The page that arrives second is fetched again, for the first one.")
  }

  @Test func `A value that the server sent with the reply to a mutation ends a reload that began before`() async throws
  {
    let (gate, count) = (Gate(), Counter())
    let source = NotesSource(
      fetch: { (_) async throws(NotesFailure) in
        let number = count.next()
        if number == 2 { await gate.pass() }
        return Notes("fetched \(number)")
      }, send: { (_, _, _) throws(NotesFailure) in .value(Notes("sent")) })
    let repository = NotesRepository(source, store: InMemoryStore())
    try await repository.reload("a")
    let reload = Task { try await repository.reload("a") }
    await gate.arrivals()
    #expect(try await repository.perform(.add("1"), on: "a") == .confirmed)
    gate.open()
    try await reload.value
    #expect(count.value == 2)
    #expect(await repository.values(of: "a").first(1) == [Notes("sent")])
  }

  @Test func `Eight repositories that reload the same value make eight requests`() async throws {
    let gate = Gate()
    fixture.holdFetches(at: gate)
    let repositories = (0..<8).map { _ in fixture.makeRepository() }
    let reloads = repositories.map { repository in Task { try await repository.reload("a") } }
    await gate.arrivals(8)
    gate.open()
    for reload in reloads { try await reload.value }
    #expect(fixture.requests.value.count == 8)
  }

  @Test func `A cancelled load isn't repeated`() async throws {
    let repository = try await fixture.makeRepository(pages: 1)
    fixture.onFetch = {
      [server = fixture.server, requests = fixture.requests] (cursor, limit) async throws(NotesFailure) in
      let page = server.page(of: "a", after: cursor, limit: limit)
      if requests.value.count < 10 { _ = try? await repository.perform(.increment(1), on: "a") }
      return page
    }
    let reload = Task { try await repository.reload("a") }
    await fixture.clock.sleepers()
    reload.cancel()
    await #expect(throws: RepositoryError<NotesFailure>.cancelled) { try await reload.value }
    fixture.clock.advance(by: .seconds(3600))
    fixture.onFetch = nil
    try await repository.reload("a")
    #expect(fixture.requests.value.count == 3)
  }

  // MARK: - Equal values

  @Test func `Observers see each value once, however often it is fetched`() async throws {
    let repository = try await fixture.makeRepository(pages: 1)
    let values = repository.values(of: "a").subscribe()
    for _ in 1...3 { try await repository.reload("a") }
    #expect(try await repository.perform(.rename(1, ""), on: "a") == .confirmed)
    #expect(try await repository.perform(.rename(1, "new"), on: "a") == .confirmed)
    #expect(await values.first(2).map { $0.elements[0].title } == ["", "new"])
  }

  /// A text whose `note` doesn't count for equality.
  private struct Annotated: Codable, Equatable, Sendable {
    var text: String
    var note = ""

    static func == (first: Self, second: Self) -> Bool { first.text == second.text }
  }

  private struct SetText: RepositoryMutation {
    let text: String

    func apply(to value: inout Annotated) { value.text = text }
  }

  @Test func `A value that equals the visible one is stored, even if a part differs that doesn't count`() async throws {
    let store = InMemoryStore()
    let source = ScriptedSource<String, Annotated, SetText, NotesFailure>(
      "texts", fetch: { (_) throws(NotesFailure) in Annotated(text: "old") },
      send: { (mutation, _, _) throws(NotesFailure) in .value(Annotated(text: mutation.text, note: "from the server")) }
    )
    let repository = SyncedRepository(source, store: store)
    try await repository.reload("a")
    #expect(try await repository.perform(SetText(text: "new"), on: "a") == .confirmed)
    let stored = try await store.load(StoreKey<Annotated>("texts", id: "a"))?.value
    #expect(stored?.note == "from the server")
  }

  // MARK: - Pauses

  @Test func `A load beside changes that can't be joined is repeated with pauses, and ends after them`() async throws {
    let repository = try await fixture.makeRepository(pages: 1)
    fixture.onFetch = { [server = fixture.server] (cursor, limit) async throws(NotesFailure) in
      let page = server.page(of: "a", after: cursor, limit: limit)
      // Each request overlaps with a change, as long as there are any.
      if fixture.requests.value.count < 5 { _ = try? await repository.perform(.increment(1), on: "a") }
      return page
    }
    let reload = Task { try await repository.reload("a") }
    for requestCount in 2...4 {
      await fixture.clock.sleepers()
      #expect(fixture.requests.value.count == requestCount)
      fixture.clock.advance(by: .seconds(3600))
    }
    try await reload.value
    #expect(fixture.requests.value.count == 5)
    #expect(try await fixture.stored().elements[0].count == 4)
  }
}

import DataStore
import Foundation
import Multicast
import MulticastTesting
import Repository
import RepositoryTesting
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(15))) struct SyncedRepositoryTests {
  private let store = InMemoryStore()
  private let server = NotesServer(empty: Notes())

  @Test func `A fetched value is stored and published`() async throws {
    server.edit("a") { $0 = Notes("one") }
    let repository = NotesRepository(NotesSource(server), store: store)
    let values = repository.values(of: "a").subscribe()
    try await repository.reload("a")
    #expect(await values.first(1) == [Notes("one")])
    try await #expect(store.load(.notes("a"))?.value == Notes("one"))
  }

  @Test func `A new observer receives the stored value first`() async throws {
    try await store.save(Notes("stored"), for: .notes("a"))
    let repository = NotesRepository(NotesSource(server), store: store)
    #expect(await repository.values(of: "a").subscribe().first(1) == [Notes("stored")])
  }

  @Test func `A mutation is visible at once, is sent, and is confirmed with the value of the reply`() async throws {
    try await store.save(Notes("stored"), for: .notes("a"))
    server.edit("a") { $0 = Notes("stored", "other") }
    let gate = Gate()
    let repository = NotesRepository(
      NotesSource(
        fetch: { [server] in server.value(of: $0) },
        send: { [server] (mutation, key, id) async throws(NotesFailure) in
          await gate.pass()
          return .value(try server.take(mutation, key, id))
        }), store: store)
    let values = repository.values(of: "a").subscribe()
    #expect(await values.first(1) == [Notes("stored")])
    let call = Task { try await repository.perform(.add("mine"), on: "a") }
    #expect(await values.first(1) == [Notes("stored", "mine")])
    await gate.arrivals()
    try await #expect(repository.mutations.list().map(\.standing) == [.inFlight])
    gate.open()
    #expect(try await call.value == .confirmed)
    #expect(await values.first(1) == [Notes("stored", "other", "mine")])
    try await #expect(store.load(.notes("a"))?.value == Notes("stored", "other", "mine"))
    try await #expect(repository.mutations.list() == [])
  }

  @Test func `A mutation is queued while the server can't be reached, and the next repository sends it`() async throws {
    try await store.save(Notes("stored"), for: .notes("a"))
    server.edit("a") { $0 = Notes("stored") }
    do {
      let offlineRepository = NotesRepository(
        NotesSource(
          fetch: { (_) throws(NotesFailure) in throw .offline },
          send: { (_, _, _) throws(NotesFailure) in throw .offline }), store: store)
      #expect(try await offlineRepository.perform(.add("1"), on: "a") == .queued)
      #expect(try await offlineRepository.perform(.add("2"), on: "a") == .queued)
      #expect(try await offlineRepository.perform(.add("3"), on: "a") == .queued)
      #expect(await offlineRepository.values(of: "a").subscribe().first(1) == [Notes("stored", "1", "2", "3")])
      try await #expect(store.load(.notes("a"))?.value == Notes("stored"))
    }
    let onlineRepository = NotesRepository(NotesSource(server), store: store)
    let values = onlineRepository.values(of: "a").subscribe()
    #expect(await values.first(1) == [Notes("stored", "1", "2", "3")])
    try await onlineRepository.waitForPendingMutations()
    #expect(server.applied.map(\.mutation) == [.add("1"), .add("2"), .add("3")])
    try await #expect(store.load(.notes("a"))?.value == Notes("stored", "1", "2", "3"))
  }

  @Test func `A refused mutation is rolled back, and its call throws`() async throws {
    try await store.save(Notes("stored"), for: .notes("a"))
    let gate = Gate()
    let repository = NotesRepository(
      NotesSource(
        fetch: { [server] in server.value(of: $0) },
        send: { (_, _, _) async throws(NotesFailure) in
          await gate.pass()
          throw .refused
        }), store: store)
    let values = repository.values(of: "a").subscribe()
    #expect(await values.first(1) == [Notes("stored")])
    let call = Task { try await repository.perform(.add("mine"), on: "a") }
    #expect(await values.first(1) == [Notes("stored", "mine")])
    gate.open()
    await #expect(throws: NotesError.server(.refused)) { try await call.value }
    #expect(await values.first(1) == [Notes("stored")])
    try await #expect(repository.mutations.list() == [])
  }
}

import DataStore
import Foundation
import Multicast
import MulticastTesting
import RepositoryTesting
import TestSupport
import Testing

@testable import Repository

/// A mutation whose record becomes corrupt is lost, and its call doesn't report that it was confirmed.
@Suite(.timeLimit(.minutes(15))) struct QuarantinedRecordTests: NotesSuite {
  let fixture: NotesFixture
  private let storage = InMemoryStorage()

  init() {
    fixture = NotesFixture(storage: storage)
  }

  private func corrupt(_ id: MutationID) throws {
    storage[try MutationKeys(repository: "notes").record(id).keyName.encoded()] = Data("corrupt".utf8)
  }

  /// Expects that a call has thrown the error of the corrupt record, and that nothing is shown or queued any more.
  private func expectLoss(
    of id: MutationID, _ call: Task<MutationResult, any Error>, in repository: NotesRepository
  ) async throws {
    let error = await #expect(throws: NotesError.self) { try await call.value }
    guard case .store(.undecodable(let key, movedTo: .some, _)) = error else {
      Issue.record("Unexpected error \(String(describing: error))")
      return
    }
    #expect(key == MutationKeys(repository: "notes").record(id).keyName)
    try await #expect(repository.value(of: "a") == Notes("stored"))
    try await #expect(repository.mutations.list().isEmpty)
    #expect(await repository.state(of: "a").isPending == false)
  }

  @Test func `If the store quarantines the record of a waiting mutation, its call throws and it is no longer shown`()
    async throws
  {
    try await put(Notes("stored"))
    var configuration = configuration
    configuration.leadership = NeverLeading()
    let repository = makeRepository(configuration: configuration)
    let values = repository.values(of: "a").subscribe()
    let call = Task { try await repository.perform(.add("lost"), on: "a") }
    #expect(await values.first(2) == [Notes("stored"), Notes("stored", "lost")])
    var id: MutationID?
    for await list in repository.mutations.changes where !list.isEmpty {
      id = list.first?.id
      break
    }
    let mutationID = try #require(id)
    for await event in repository.events { if case .mutationEnqueued = event { break } }
    try corrupt(mutationID)
    await #expect(throws: StoreError.self) {
      try await memory.load(MutationKeys(repository: "notes").record(mutationID))
    }
    #expect(await values.first(1) == [Notes("stored")])
    try await expectLoss(of: mutationID, call, in: repository)
  }

  @Test func `If marking a mutation quarantines its record, its call throws and it isn't sent`() async throws {
    try await put(Notes("stored"))
    let (gate, sent) = (Gate(), Setting<[NotesMutation]>([]))
    let repository = makeRepository(onSend: { mutation in
      sent.value.append(mutation)
      await gate.pass()
    })
    let first = Task { try await repository.perform(.add("first"), on: "a") }
    await gate.arrivals()
    let events = repository.events.subscribe()
    let second = Task { try await repository.perform(.add("lost"), on: "a") }
    for await event in events {
      guard case .mutationEnqueued(let id, _) = event, let item = try await repository.mutations.list().last,
        item.id == id, item.mutation == .add("lost")
      else { continue }
      try corrupt(id)
      break
    }
    gate.open()
    try await #expect(first.value == .confirmed)
    let error = await #expect(throws: NotesError.self) { try await second.value }
    guard case .store(.undecodable(_, movedTo: .some, _)) = error else {
      Issue.record("Unexpected error \(String(describing: error))")
      return
    }
    #expect(sent.value == [.add("first")])
    try await #expect(repository.value(of: "a") == Notes("stored", "first"))
  }

  @Test func `A mutation that is confirmed by the commit that quarantines its record is confirmed`() async throws {
    try await put(Notes("stored"))
    let (gate, ids) = (Gate(), Setting<[MutationID]>([]))
    let repository = NotesRepository(
      NotesSource(
        fetch: { [server] in server.value(of: $0) },
        send: { [server] (mutation, key, id) async throws(NotesFailure) in
          ids.value.append(id)
          await gate.pass()
          return .value(try server.take(mutation, key, id))
        }), store: store, configuration: configuration)
    let call = Task { try await repository.perform(.add("kept"), on: "a") }
    await gate.arrivals()
    try corrupt(try #require(ids.value.first))
    gate.open()
    try await #expect(call.value == .confirmed)
    try await #expect(repository.value(of: "a") == Notes("stored", "kept"))
  }

  @Test func `The error of a quarantine is found in the last events of the store`() async throws {
    let repository = makeRepository()
    let id = MutationID()
    let key = MutationKeys(repository: "notes").record(id)
    try corrupt(id)
    await #expect(throws: StoreError.self) { try await memory.load(key) }
    guard case .undecodable(key.keyName, movedTo: .some, _) = await repository.engine.quarantine(of: id) else {
      Issue.record("Expected the error of the quarantine")
      return
    }
    #expect(await repository.engine.quarantine(of: MutationID()) == nil)
  }
}

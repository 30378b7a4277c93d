import DataStore
import Foundation
import Multicast
import MulticastTesting
import RepositoryTesting
import TestSupport
import Testing

@testable import Repository

/// Values and records that another version of the program has stored, and that this one can't decode.
///
/// They are never lost: they stay as they are, or are quarantined by the commit that replaces or removes them.
@Suite(.timeLimit(.minutes(15))) struct OtherVersionsTests: NotesSuite {
  private let storage = InMemoryStorage()
  let fixture: NotesFixture

  init() {
    fixture = NotesFixture(storage: storage)
  }

  /// What another version of the program stores, of which no type of this one can be decoded.
  private struct Foreign: Codable, Hashable {
    var foreign = 7
  }

  /// Stores a foreign value, as another version of the program would, and returns its bytes.
  @discardableResult
  private func saveForeign(_ key: StoreKeyName) async throws -> Data {
    try await InMemoryStore(storage: storage).save(Foreign(), for: StoreKey<Foreign>(key))
    return try #require(storage[try key.encoded()])
  }

  /// The bytes that are quarantined, also those that the store of the other version has quarantined.
  private var quarantined: [Data] {
    storage.names.filter { $0.contains(".corrupt-") }.compactMap { storage[$0] }
  }

  // MARK: - Values

  @Test func `A value that can't be decoded is fetched, and its bytes are quarantined when the reply is stored`()
    async throws
  {
    let bytes = try await saveForeign(StoreKey<Notes>.notes("a").keyName)
    server.edit("a") { $0 = Notes("server") }
    let repository = makeRepository()
    let observer = repository.values(of: "a").subscribe()
    #expect(quarantined == [])
    try await repository.refresh("a")
    #expect(await observer.first(1) == [Notes("server")])
    try await #expect(memory.load(.notes("a"))?.value == Notes("server"))
    #expect(quarantined == [bytes])
  }

  @Test func `A value that another version makes undecodable stays visible, isn't fetched, and is replaced by replies`()
    async throws
  {
    let fetchCount = Counter()
    let repository = makeRepository(onFetch: { (_) in fetchCount.next() })
    server.edit("a") { $0 = Notes("1") }
    try await repository.refresh("a")
    let observer = repository.values(of: "a").subscribe()
    #expect(await observer.first(1) == [Notes("1")])
    let key = StoreKey<Notes>.notes("a").keyName
    let bytes = try await saveForeign(key)
    await #expect(throws: StoreError.self) { try await memory.load(.notes("a")) }
    #expect(storage[try key.encoded()] == bytes)
    #expect(await repository.values(of: "a").subscribe().first(1) == [Notes("1")])
    #expect(fetchCount.value == 1)
    try await #expect(repository.perform(.add("2"), on: "a") == .confirmed)
    try await #expect(memory.load(.notes("a"))?.value == Notes("1", "2"))
    await observer.reaches { $0 == Notes("1", "2") }
    #expect(quarantined.contains(bytes))
  }

  @Test func `If the write over an undecodable value fails, the next readable value of another process is shown`()
    async throws
  {
    let repository = makeRepository()
    server.edit("a") { $0 = Notes("1") }
    try await repository.refresh("a")
    let observer = repository.values(of: "a").subscribe()
    #expect(await observer.first(1) == [Notes("1")])
    try await saveForeign(StoreKey<Notes>.notes("a").keyName)
    let attempts = Counter()
    store.set {
      // The first commit finds that the value has changed, and the second one fails.
      $0.onCommit = { _ throws(StoreError) in if attempts.next() == 2 { throw .writeFailed(InterceptedStore.error) } }
    }
    await #expect(throws: NotesError.self) { try await repository.reload("a") }
    try await InMemoryStore(storage: storage).save(Notes("theirs"), for: .notes("a"))
    _ = try await memory.load(.notes("a"))
    await observer.reaches { $0 == Notes("theirs") }
    server.edit("a") { $0 = Notes("2") }
    try await repository.reload("a")
    try await #expect(memory.load(.notes("a"))?.value == Notes("2"))
  }

  /// A value as a newer version of the program stores it.
  private struct FutureNotes: VersionedValue {
    static let schema = StoreSchema(version: 2, migrations: [StoreMigration(from: 1) { $0 }])
  }

  @Test func `A mutation whose reply can't be stored over a newer program's value waits until the value can be read`()
    async throws
  {
    let newer = InMemoryStore(storage: storage)
    let key = StoreKey<FutureNotes>("notes", id: "a")
    let sentCount = Counter()
    let repository = makeRepository(onSend: { (_) in
      if sentCount.next() == 1 { _ = try? await newer.save(FutureNotes(), for: key) }
    })
    try await repository.refresh("a")
    try await #expect(repository.perform(.add("1"), on: "a") == .queued)
    let events = repository.events.subscribe()
    await repository.retryNow()
    await events.reaches { if case .retryScheduled(_, attempt: 2, _, _) = $0 { true } else { false } }
    // It isn't sent while nothing that is received could be stored.
    #expect(sentCount.value == 1)
    let pending = try #require(try await repository.mutations.list().first)
    #expect(pending.standing == .waiting)
    await #expect(repository.report().lanes.map(\.status) == [.held])
    await #expect(repository.drain(within: .seconds(20)) == .paused(.unreadable(1)))
    let record = try await memory.load(MutationKeys(repository: "notes").record(pending.id))
    #expect(record?.value.isOutcomeUnknown == true)
    try await newer.remove(key)
    await repository.retryNow()
    try await repository.waitForPendingMutations()
    #expect(sentCount.value == 2)
    #expect(server.applied.map(\.mutation) == [.add("1")])
    try await #expect(memory.load(.notes("a"))?.value == Notes("1"))
  }

  @Test(arguments: [true, false])
  func `A mutation that a newer program confirms with a value that this one can't read isn't pending any more`(
    isRecordReportedFirst: Bool
  ) async throws {
    let repository = makeRepository(onSend: { (_) throws(NotesFailure) in throw .offline })
    try await repository.refresh("a")
    let lists = repository.mutations.changes.subscribe()
    try await #expect(repository.perform(.add("1"), on: "a") == .queued)
    let id = try #require(try await repository.mutations.list().first?.id)
    try await waitUntilUnmarked(id)
    let record = MutationKeys(repository: "notes").record(id)
    var batch = StoreBatch()
    batch.save(FutureNotes(), for: StoreKey("notes", id: "a"))
    batch.remove(record)
    try await InMemoryStore(storage: storage).commit(batch)
    // The store notices the change of the key with which it is used.
    if isRecordReportedFirst {
      try await #expect(memory.load(record) == nil)
    } else {
      await #expect(throws: StoreError.self) { try await memory.load(.notes("a")) }
      try await #expect(memory.load(record) == nil)
    }
    await lists.reaches { $0.isEmpty }
    await #expect(repository.state(of: "a").isPending == false)
    await #expect(throws: NotesError.self) { try await repository.reload("a") }
    #expect(quarantined == [])
  }

  @Test func `A mutation that a newer program confirms with a value that this one can't read stays visible`()
    async throws
  {
    let repository = makeRepository(onSend: { (_) throws(NotesFailure) in throw .offline })
    try await repository.refresh("a")
    let values = repository.values(of: "a").subscribe()
    for text in ["1", "2"] { try await #expect(repository.perform(.add(text), on: "a") == .queued) }
    #expect(await values.first(3) == [Notes(), Notes("1"), Notes("1", "2")])
    let id = try #require(try await repository.mutations.list().first?.id)
    try await waitUntilUnmarked(id)
    let lists = repository.mutations.changes.subscribe()
    var batch = StoreBatch()
    batch.save(FutureNotes(), for: StoreKey("notes", id: "a"))
    batch.remove(MutationKeys(repository: "notes").record(id))
    try await InMemoryStore(storage: storage).commit(batch)
    // The next attempt finds that the record is gone, and reads all that is stored.
    await repository.retryNow()
    await lists.reaches { $0.count == 1 }
    try await #expect(repository.value(of: "a") == Notes("1", "2"))
    try await #expect(repository.perform(.add("3"), on: "a") == .queued)
    #expect(await values.first(1) == [Notes("1", "2", "3")])
  }

  // MARK: - Mutations

  /// The same repository in a version of the program whose mutations have another form.
  private typealias OtherSource = ScriptedSource<String, Notes, OtherMutation, NotesFailure>

  private enum OtherMutation: RepositoryMutation, Equatable {
    case append(Foreign)

    func apply(to value: inout Notes) {}
  }

  @Test func `A mutation that this version can't decode is reported and not sent, and a repaired version sends it`()
    async throws
  {
    do {
      let repository = makeRepository(onSend: { (_) throws(NotesFailure) in throw .offline })
      try await #expect(repository.perform(.add("1"), on: "a") == .queued)
      try await waitUntilUnmarked(try #require(try await repository.mutations.list().first?.id))
    }
    let record = try #require(storage.names.first { $0.hasPrefix("notes%2emutations.") })
    let bytes = storage[record]
    let otherStore = InMemoryStore(storage: storage)
    do {
      let source = OtherSource(
        "notes", fetch: { (_) in Notes() }, send: { (_, _, _) in .done }, disposition: { $0.disposition })
      let wrong = SyncedRepository(source, store: otherStore, configuration: configuration)
      let events = wrong.events.subscribe()
      try await #expect(wrong.mutations.list().isEmpty)
      let id = MutationID(rawValue: String(record.dropFirst("notes%2emutations.".count)))
      await events.reaches { event in
        guard case .mutationUnreadable(id, movedTo: nil, _) = event else { return false }
        #expect(event.description.contains("its bytes are left unchanged"))
        return true
      }
      try await #expect(wrong.perform(.append(Foreign()), on: "b") == .confirmed)
    }
    #expect(storage[record] == bytes)
    #expect(quarantined == [])
    let repaired = makeRepository(store: InMemoryStore(storage: storage))
    _ = try await repaired.mutations.list()
    // Ends the delay after the failed attempt.
    await repaired.retryNow()
    try await repaired.waitForPendingMutations()
    #expect(server.value(of: "a") == Notes("1"))
  }

  @Test func `A known mutation whose record another version makes undecodable is held, and not taken as finished`()
    async throws
  {
    let isOffline = Setting(true)
    let sentCount = Counter()
    let repository = makeRepository(onSend: { (_) throws(NotesFailure) in
      if isOffline.value { throw .offline }
      sentCount.next()
    })
    try await #expect(repository.perform(.add("1"), on: "a") == .queued)
    let id = try #require(try await repository.mutations.list().first?.id)
    try await waitUntilUnmarked(id)
    let record = MutationKeys(repository: "notes").record(id).keyName
    let bytes = try await saveForeign(record)
    isOffline.value = false
    let events = repository.events.subscribe()
    await repository.retryNow()
    _ = try await memory.load(MutationKeys(repository: "notes").record(id))
    await events.reaches { if case .mutationUnreadable(id, movedTo: nil, _) = $0 { true } else { false } }
    #expect(sentCount.value == 0)
    #expect(storage[try record.encoded()] == bytes)
    try await #expect(repository.mutations.unreadable().map(\.id) == [id])
    // Another process stores a value, for which the records of the pending mutations are checked.
    try await InMemoryStore(storage: storage).save(Notes("theirs"), for: .notes("a"))
    _ = try await memory.load(.notes("a"))
    await repository.values(of: "a").subscribe().reaches { $0 == Notes("theirs") }
    try await #expect(repository.mutations.unreadable().map(\.id) == [id])
  }

  @Test func `The counter and the withdrawals that this version can't decode are replaced, and their bytes kept`()
    async throws
  {
    let keys = MutationKeys(repository: "notes")
    let bytes = [try await saveForeign(keys.counter.keyName), try await saveForeign(keys.withdrawals.keyName)]
    let repository = makeRepository(onSend: { (_) throws(NotesFailure) in throw .offline })
    try await #expect(repository.perform(.add("1"), on: "a") == .queued)
    #expect(quarantined == [bytes[0]])
    let id = try #require(try await repository.mutations.list().first?.id)
    try await waitUntilUnmarked(id)
    try await repository.mutations.cancel(id)
    #expect(Set(quarantined) == Set(bytes))
    try await #expect(repository.mutations.list().isEmpty)
  }
}

import DataStore
import Foundation
import Multicast
import MulticastTesting
import RepositoryTesting
import TestSupport
import Testing

@testable import Repository

/// The effect of a mutation stays visible to observers if another process completes the mutation or sends it too.
@Suite(.timeLimit(.minutes(15))) struct ExternalMutationTests {
  private let memory = InMemoryStore()
  private let store: InterceptedStore
  private let server = NotesServer(empty: Notes())
  /// Whether sending a mutation fails; fetches don't depend on it.
  private let isOffline = Setting(true)
  private let configuration = RepositoryConfiguration(clock: ManualClock(), leadership: NoLeadership())

  init() { store = InterceptedStore(memory) }

  /// Creates a repository on the intercepted store.
  private func makeRepository() -> NotesRepository {
    NotesRepository(NotesSource(server, isOffline: isOffline), store: store, configuration: configuration)
  }

  /// Simulates another process that sends the only mutation of the key `a`: stores the result and removes the record.
  private static func storeExternally(_ value: Notes, confirming id: MutationID, in store: InMemoryStore) async throws {
    var batch = StoreBatch()
    batch.save(value, for: .notes("a"))
    batch.remove(MutationKeys(repository: "notes").record(id))
    try await store.commit(batch)
  }

  /// Makes a mutation, and waits until the store has the result of its failed first attempt.
  private func enqueueOffline(in repository: NotesRepository) async throws -> MutationID {
    try await memory.save(Notes(), for: .notes("a"))
    #expect(try await repository.perform(.add("1"), on: "a") == .queued)
    let id = try #require(try await repository.mutations.list().first?.id)
    try await waitForEndOfAttempt(id)
    // Once this later mutation is queued, the repository has processed the changed record of the first one.
    #expect(try await repository.perform(.add("1"), on: "b") == .queued)
    return id
  }

  private func waitForEndOfAttempt(_ id: MutationID) async throws {
    let record = MutationKeys(repository: "notes").record(id)
    let changes = try await memory.changes(of: record)
    // A record is marked until the end of the attempt is stored.
    for await change in changes where change.stored?.value.isMarked == false { break }
  }

  /// Waits until a repository has processed all earlier commits.
  ///
  /// Another repository makes a mutation of the key `z`, and the repository has processed the earlier commits when it
  /// lists that mutation.
  private func waitForEarlierCommits(in repository: NotesRepository) async throws {
    let other = NotesRepository(
      NotesSource(
        fetch: { (_) throws(NotesFailure) in throw .offline },
        send: { (_, _, _) throws(NotesFailure) in throw .offline }), store: memory, configuration: configuration)
    #expect(try await other.perform(.add("2"), on: "z") == .queued)
    for await list in repository.mutations.changes where list.contains(where: { $0.key == "z" }) { break }
  }

  @Test func `A mutation stays visible if another process completes it during a write`() async throws {
    let values: MulticastSubscription<Notes, Never>
    do {
      let repository = makeRepository()
      let id = try await enqueueOffline(in: repository)
      values = repository.values(of: "a").subscribe()
      server.edit("a") { $0 = Notes("other") }
      let writeGate = Gate()
      store.set { $0.onCommit = { (keys) async in if !keys.hasNotesMutation { await writeGate.pass() } } }
      let call = Task { try await repository.reload("a") }
      await writeGate.arrivals()
      server.edit("a") { $0 = Notes("other", "1") }
      try await Self.storeExternally(Notes("other", "1"), confirming: id, in: memory)
      try await waitForEarlierCommits(in: repository)
      writeGate.open()
      try await call.value
    }
    await expectMutationStaysVisible(in: values)
  }

  /// Receives all values until the repository is released, and expects that the added text `1` appears and then stays.
  private func expectMutationStaysVisible(in values: MulticastSubscription<Notes, Never>) async {
    var received: [Notes] = []
    for await value in values { received.append(value) }
    let sinceVisible = received.drop { !$0.texts.contains("1") }
    #expect(!sinceVisible.isEmpty && sinceVisible.allSatisfy { $0.texts.contains("1") }, "\(received)")
  }

  @Test func `A reply that may repeat an earlier reply to another process doesn't restore an old value`() async throws {
    try await memory.save(Notes(), for: .notes("a"))
    let replyGate = Gate()
    let first = NotesRepository(
      NotesSource(
        fetch: { (_) throws(NotesFailure) in throw .offline },
        send: { [server, isOffline] (mutation, key, id) async throws(NotesFailure) in
          if isOffline.value { throw .offline }
          let reply = try server.take(mutation, key, id)
          await replyGate.pass()
          return .value(reply)
        }), store: memory, configuration: configuration)
    #expect(try await first.perform(.add("1"), on: "a") == .queued)
    let id = try #require(try await first.mutations.list().first?.id)
    try await waitForEndOfAttempt(id)
    // The second repository finds the mutation and fails to send it. The test waits until the first repository has
    // received the record of this attempt.
    let isSecondOffline = Setting(true)
    var laterConfiguration = configuration
    // The delay after the failed attempt has passed.
    laterConfiguration.now = { Date().addingTimeInterval(3600) }
    let second = NotesRepository(
      NotesSource(server, isOffline: isSecondOffline), store: store, configuration: laterConfiguration)
    for await list in first.mutations.changes where list.first?.attempts == 2 { break }
    isOffline.value = false
    await first.retryNow()
    await replyGate.arrivals()
    server.edit("a") { $0.texts.append("2") }
    isSecondOffline.value = false
    let values = second.values(of: "a").subscribe()
    try await second.reload("a")
    try await second.waitForPendingMutations()
    #expect(try await memory.load(.notes("a"))?.value == Notes("1", "2"))
    #expect(await values.first(2) == [Notes("1"), Notes("1", "2")])
    replyGate.open()
  }

  @Test(arguments: [MutationReply<Notes>.done, .patch { $0.texts.removeAll { $0 == "1" } }])
  func `A mutation is applied to the base only after the mutations made before it`(reply: MutationReply<Notes>) throws {
    var state = SyncState<Notes, NotesMutation>()
    state.open(.init(value: Notes(), tag: StoreTag(), revision: 1))
    let ids = [MutationID(), MutationID()]
    try state.add(ids[0], .add("1"))
    try state.add(ids[1], .remove("1"))
    // The reply to the first mutation isn't trusted, so that mutation isn't applied to the base. The second mutation
    // was made after it, so the second one isn't applied either, although its reply is trusted.
    for (id, isTrusted) in zip(ids, [false, true]) {
      let requestedAt = state.beginSending(id)
      state.receive(.mutation(id, reply, isTrusted: isTrusted), requestedAt: requestedAt)
      let write = state.beginWriting()
      #expect(write?.confirmed == [])
      state.commit(revision: 2, tag: StoreTag())
      _ = state.fold()
      #expect(state.visible == Notes())
    }
    #expect(state.idsThatNeedWholeValue == ids)
  }
}

import DataStore
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
  private let isOffline = Setting(true)
  private let configuration = RepositoryConfiguration(clock: ManualClock(), leadership: NoLeadership())

  init() { store = InterceptedStore(memory) }

  /// Creates a repository on the intercepted store.
  private func makeRepository() -> NotesRepository {
    NotesRepository(NotesSource(server, isOffline: isOffline), store: store, configuration: configuration)
  }

  /// Simulates another process that sends the only mutation of a key: stores the result and removes the record.
  private static func storeExternally(_ value: Notes, confirming id: MutationID, in store: InMemoryStore) async throws {
    var batch = StoreBatch()
    batch.save(value, for: .notes("a"))
    batch.remove(MutationKeys<NotesMutation>(repository: "notes").record(id))
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
    let record = MutationKeys<NotesMutation>(repository: "notes").record(id)
    let changes = try await memory.changes(of: record)
    for await change in changes where change.stored?.value.isMarked == false { break }
  }

  /// Waits until a repository has processed all earlier commits.
  private func flush(_ repository: NotesRepository) async throws {
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
      let writing = Gate()
      store.set { $0.onCommit = { (keys) async in if !keys.hasNotesMutation { await writing.pass() } } }
      let call = Task { try await repository.reload("a") }
      await writing.arrivals()
      server.edit("a") { $0 = Notes("other", "1") }
      try await Self.storeExternally(Notes("other", "1"), confirming: id, in: memory)
      try await flush(repository)
      writing.open()
      try await call.value
    }
    await expectNothingDisappears(from: values)
  }

  @Test func `A mutation stays visible if another process completes it before this one sends it`() async throws {
    let values: MulticastSubscription<Notes, Never>
    do {
      let repository = makeRepository()
      let isLate = Setting(false)
      let late = Gate()
      store.set {
        $0.onChange = { (_) async in if isLate.value { await late.pass() } }
        $0.onChanges = { (_) async in if isLate.value { await late.pass() } }
      }
      let id = try await enqueueOffline(in: repository)
      values = repository.values(of: "a").subscribe()
      isLate.value = true
      try await Self.storeExternally(Notes("1"), confirming: id, in: memory)
      server.edit("a") { $0 = Notes("1") }
      isOffline.value = false
      await repository.retryNow()
      try await repository.waitForPendingMutations()
      // Performing another mutation publishes the current value.
      isOffline.value = true
      #expect(try await repository.perform(.add("3"), on: "a") == .queued)
      late.open()
    }
    await expectNothingDisappears(from: values)
  }

  @Test func `A mutation stays visible if another process completes it while this one receives an older value`()
    async throws
  {
    let values: MulticastSubscription<Notes, Never>
    do {
      let repository = makeRepository()
      let id = try await enqueueOffline(in: repository)
      values = repository.values(of: "a").subscribe()
      // The repository reads the record when it receives a change of the value.
      store.set { [memory] in
        $0.onLoad = { (key) async in
          if key.collection == "notes.mutations" {
            try? await Self.storeExternally(Notes("other", "1"), confirming: id, in: memory)
          }
        }
      }
      try await memory.save(Notes("other"), for: .notes("a"))
      for await list in repository.mutations.changes where !list.contains(where: { $0.key == "a" }) { break }
    }
    await expectNothingDisappears(from: values)
  }

  @Test func `A mutation of another process isn't in conflict, even if the value it changes hasn't arrived yet`()
    async throws
  {
    try await memory.save(Notes(), for: .notes("a"))
    let repository = makeRepository()
    let values = repository.values(of: "a").subscribe()
    #expect(await values.first(1) == [Notes()])
    let late = Gate()
    store.set { $0.onChange = { (_) async in await late.pass() } }
    try await memory.save(Notes("1"), for: .notes("a"))
    let other = NotesRepository(
      NotesSource(
        fetch: { (_) throws(NotesFailure) in throw .offline },
        send: { (_, _, _) throws(NotesFailure) in throw .offline }), store: memory, configuration: configuration)
    #expect(try await other.perform(.replace("1", with: "2"), on: "a") == .queued)
    try await flush(repository)
    for item in try await repository.mutations.list() {
      if case .conflicted(let conflict) = item.standing { Issue.record("\(conflict)") }
    }
    late.open()
    for await value in values where value == Notes("2") { break }
  }

  private func expectNothingDisappears(from values: MulticastSubscription<Notes, Never>) async {
    var all: [Notes] = []
    for await value in values { all.append(value) }
    let visible = all.drop { !$0.texts.contains("1") }
    #expect(!visible.isEmpty && visible.allSatisfy { $0.texts.contains("1") }, "\(all)")
  }

  @Test func `A reply that may only repeat an earlier one to another process doesn't restore an old value`()
    async throws
  {
    try await memory.save(Notes(), for: .notes("a"))
    let sent = Gate()
    let first = NotesRepository(
      NotesSource(
        fetch: { (_) throws(NotesFailure) in throw .offline },
        send: { [server, isOffline] (mutation, key, id) async throws(NotesFailure) in
          if isOffline.value { throw .offline }
          let reply = try server.take(mutation, key, id)
          await sent.pass()
          return .value(reply)
        }), store: memory, configuration: configuration)
    #expect(try await first.perform(.add("1"), on: "a") == .queued)
    let id = try #require(try await first.mutations.list().first?.id)
    try await waitForEndOfAttempt(id)
    // The second repository finds the mutation and fails to send it. The test waits until the first repository has
    // received the record of this attempt.
    let isSecondOffline = Setting(true)
    let second = NotesRepository(
      NotesSource(server, isOffline: isSecondOffline), store: store, configuration: configuration)
    for await list in first.mutations.changes where list.first?.attempts == 2 { break }
    isOffline.value = false
    await first.retryNow()
    await sent.arrivals()
    server.edit("a") { $0.texts.append("2") }
    isSecondOffline.value = false
    let values = second.values(of: "a").subscribe()
    try await second.reload("a")
    try await second.waitForPendingMutations()
    #expect(try await memory.load(.notes("a"))?.value == Notes("1", "2"))
    #expect(await values.first(2) == [Notes("1"), Notes("1", "2")])
    sent.open()
  }

  @Test(arguments: [MutationReply<Notes>.done, .patch { $0.texts.removeAll { $0 == "1" } }])
  func `A mutation is applied to the base only after the mutations made before it`(reply: MutationReply<Notes>) throws {
    var state = SyncState<Notes, NotesMutation>()
    state.open(.init(value: Notes(), tag: StoreTag(), revision: 1))
    let ids = [MutationID(), MutationID()]
    try state.add(ids[0], .add("1"))
    try state.add(ids[1], .remove("1"))
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

import DataStore
import DataStoreTesting
import Foundation
import Multicast
import MulticastTesting
import RepositoryTesting
import TestRounds
import TestSupport
import Testing

@testable import Repository

@Suite(.timeLimit(.minutes(15))) struct EvictionTests: NotesSuite {
  let fixture: NotesFixture
  private let storage = InMemoryStorage()
  /// The current date, from which the repositories compute whether a value is idle.
  ///
  /// Their timers use `clock` instead.
  private let currentDate = Setting(Date(timeIntervalSince1970: 1_000))

  init() {
    fixture = NotesFixture(storage: storage) { [currentDate] in currentDate.value }
  }

  private func makeConfiguration(_ policy: EvictionPolicy) -> RepositoryConfiguration {
    var configuration = configuration
    (configuration.eviction, configuration.now) = (policy, { [currentDate] in currentDate.value })
    return configuration
  }

  /// The ids of the stored values, in the order in which the values were saved.
  private func storedIDs() async throws -> [String?] {
    try await memory.observe(collection: "notes", as: Notes.self).stored.map(\.key.id)
  }

  /// Waits until the ids of the stored values are exactly the given ones.
  private func waitUntilStoredIDs(are ids: Set<String>) async throws {
    try await waitUntilStoredIDs { $0 == ids }
  }

  private func waitUntilStoredIDs(_ areExpected: (Set<String>) -> Bool) async throws {
    let observation = try await memory.observe(collection: "notes", as: Notes.self)
    var ids = Set(observation.stored.compactMap(\.key.id))
    if areExpected(ids) { return }
    for await changes in observation.changes {
      for change in changes {
        guard let id = change.key.id else { continue }
        if change.stored == nil { ids.remove(id) } else { ids.insert(id) }
      }
      if areExpected(ids) { return }
    }
  }

  // MARK: - Limits

  @Test func `A call that exceeds the limit evicts the least recently used value before it returns`() async throws {
    let repository = makeRepository(configuration: makeConfiguration(EvictionPolicy(maximumCount: 2)))
    let events = repository.events.subscribe()
    for key in ["a", "b"] { try await repository.refresh(key) }
    try await repository.refresh("a")
    try await repository.refresh("c")
    try await #expect(storedIDs() == ["a", "c"])
    try await repository.refresh("b")
    try await #expect(storedIDs() == ["c", "b"])
    var evicted: [String] = []
    for await event in events {
      if case .valueEvicted(let key) = event { evicted.append(key) }
      if evicted.count == 2 { break }
    }
    #expect(evicted == ["b", "a"])
  }

  @Test func `The stored values are within the byte limit after each call`() async throws {
    let keyCount = Rounds.count(200, full: 2000)
    let limit = keyCount * 10
    let repository = makeRepository(
      configuration: makeConfiguration(EvictionPolicy(maximumBytes: limit)), store: memory)
    for key in 0..<keyCount {
      try await repository.refresh("\(key)")
      let stored = try #require(await repository.report().stored)
      #expect(stored.byteCount <= limit)
    }
    let stored = try #require(await repository.report().stored)
    let entries = try await memory.observe(collection: "notes", as: Notes.self).stored
    #expect(entries.compactMap(\.stored.byteCount).reduce(0, +) == stored.byteCount)
    // The values that stay are the most recent ones that fit within the limit.
    #expect(entries.map(\.key.id) == (keyCount - stored.count..<keyCount).map { "\($0)" })
    let newestByteCount = try #require(entries.last?.stored.byteCount)
    #expect(limit - stored.byteCount < newestByteCount)
  }

  @Test func `An idle value is evicted`() async throws {
    let repository = makeRepository(configuration: makeConfiguration(EvictionPolicy(idleTime: .seconds(60))))
    try await repository.refresh("a")
    currentDate.value += 30
    try await repository.refresh("b")
    await clock.sleepers(1)
    currentDate.value += 30
    clock.advance(by: .seconds(60))
    try await waitUntilStoredIDs(are: ["b"])
    await clock.sleepers(1)
    currentDate.value += 30
    clock.advance(by: .seconds(30))
    try await waitUntilStoredIDs(are: [])
  }

  @Test func `Values of an earlier process are evicted in the order of their last saves`() async throws {
    for key in ["c", "a", "b"] { try await memory.save(Notes(key), for: .notes(key)) }
    let repository = makeRepository(configuration: makeConfiguration(EvictionPolicy(maximumCount: 1)))
    try await waitUntilStoredIDs(are: ["b"])
    _ = repository
  }

  @Test func `Values of another repository count toward the limit`() async throws {
    let repository = makeRepository(configuration: makeConfiguration(EvictionPolicy(maximumCount: 2)), store: memory)
    for key in ["a", "b"] { try await repository.refresh(key) }
    let other = makeRepository(store: InMemoryStore(storage: storage))
    try await other.refresh("c")
    // The first repository may notice this value only after it has stored the next one.
    try await repository.refresh("d")
    try await waitUntilStoredIDs(are: ["c", "d"])
  }

  @Test func `Without a limit everything stays and nothing is counted`() async throws {
    let repository = makeRepository()
    for key in 0..<100 { try await repository.refresh("\(key)") }
    try await #expect(storedIDs().count == 100)
    #expect(await repository.report().stored == nil)
  }

  // MARK: - Kept values

  @Test func `Observed values stay until their observers leave, and a newer value is evicted instead`() async throws {
    let repository = makeRepository(configuration: makeConfiguration(EvictionPolicy(maximumCount: 1)))
    try await repository.refresh("a")
    do {
      let values = repository.values(of: "a").subscribe()
      #expect(await values.first(1) == [Notes()])
      let states = repository.states(of: "b", loading: .whileObserved()).subscribe()
      for await state in states where state.value != nil { break }
      try await repository.refresh("c")
      try await waitUntilStoredIDs(are: ["a", "b"])
    }
    // The observers have left in an unspecified order, so either value may stay.
    try await waitUntilStoredIDs { $0.count == 1 && $0 != ["c"] }
  }

  @Test func `A value with an unsent mutation stays until the server has the mutation`() async throws {
    let isOffline = Setting(true)
    let repository = makeRepository(
      configuration: makeConfiguration(EvictionPolicy(maximumCount: 2)),
      onSend: { _ throws(NotesFailure) in if isOffline.value { throw .offline } })
    try await repository.refresh("a")
    #expect(try await repository.perform(.add("x"), on: "a") == .queued)
    for key in ["b", "c", "d"] { try await repository.refresh(key) }
    try await #expect(storedIDs() == ["a", "d"])
    isOffline.value = false
    await repository.retryNow()
    try await repository.waitForPendingMutations()
    for key in ["e", "f"] { try await repository.refresh(key) }
    try await #expect(storedIDs() == ["e", "f"])
    #expect(server.value(of: "a") == Notes("x"))
  }

  @Test func `A value with a pending mutation of another process stays`() async throws {
    try await put(Notes("a"), "a")
    do {
      let offlineRepository = makeRepository(onSend: { _ throws(NotesFailure) in throw .offline })
      #expect(try await offlineRepository.perform(.add("x"), on: "a") == .queued)
    }
    try await put(Notes("b"), "b")
    var configuration = makeConfiguration(EvictionPolicy(maximumCount: 1))
    // A leader would send the mutation, and the attempt alone would keep the value.
    configuration.leadership = NeverLeading()
    let repository = makeRepository(configuration: configuration)
    try await waitUntilStoredIDs(are: ["a"])
    #expect(await repository.values(of: "a").subscribe().first(1) == [Notes("a", "x")])
  }

  @Test func `A pinned value stays`() async throws {
    let repository = NotesRepository(
      NotesSource(
        "notes", fetch: { [server] in server.value(of: $0) }, send: { (_, _, _) in .done }, isPinned: { $0 == "a" }),
      store: store, configuration: makeConfiguration(EvictionPolicy(maximumCount: 2, idleTime: .seconds(60))))
    for key in ["a", "b", "c"] { try await repository.refresh(key) }
    try await #expect(storedIDs() == ["a", "c"])
    currentDate.value += 100
    try await repository.refresh("d")
    try await #expect(storedIDs() == ["a", "d"])
    try await repository.evict(.all)
    try await #expect(storedIDs() == ["a"])
  }

  @Test func `A value that another process stores during the eviction stays`() async throws {
    let repository = makeRepository(configuration: makeConfiguration(EvictionPolicy(maximumCount: 2)))
    for key in ["a", "b"] { try await repository.refresh(key) }
    let isFirstRemoval = Setting(true)
    store.set { [memory] hooks in
      hooks.onCommit = { keys throws(StoreError) in
        guard isFirstRemoval.value, keys == [StoreKey<Notes>.notes("a").keyName] else { return }
        isFirstRemoval.value = false
        try await memory.save(Notes("newer"), for: .notes("a"))
      }
    }
    try await repository.refresh("c")
    // The value of `b` is evicted instead.
    try await #expect(storedIDs() == ["c", "a"])
    #expect(!isFirstRemoval.value)
  }

  @Test func `An observer that subscribes during the removal of a value never gets that value`() {
    let executor = ManualTaskExecutor()
    var configuration = makeConfiguration(EvictionPolicy(maximumCount: 1))
    configuration.taskExecutor = executor
    let gate = Gate()
    var hooks = SimulatedStore.Hooks()
    let isRemovalHeld = Setting(false)
    hooks.onCommit = { keys in
      if isRemovalHeld.value, keys == [StoreKey<Notes>.notes("a").keyName] { await gate.pass() }
    }
    let repository = makeRepository(configuration: configuration, store: SimulatedStore(hooks: hooks))
    let startRefresh = { (key: String) in
      let task = Task(executorPreference: executor) { try await repository.refresh(key) }
      executor.runUntilIdle()
      return task
    }
    var refreshes = [startRefresh("a")]
    isRemovalHeld.value = true
    refreshes.append(startRefresh("b"))
    let shownValues = Setting<[Notes?]>([])
    let observer = Task(executorPreference: executor) {
      for await state in repository.states(of: "a") { shownValues.value.append(state.value) }
    }
    executor.runUntilIdle()
    gate.open()
    executor.runUntilIdle()
    // The observer gets a state without a value, possibly twice, and never the removed value.
    #expect(shownValues.value == [nil, nil] || shownValues.value == [nil])
    server.edit("a") { $0 = Notes("new") }
    isRemovalHeld.value = false
    refreshes.append(startRefresh("a"))
    #expect(shownValues.value.last == Notes("new"))
    for task in refreshes { task.cancel() }
    observer.cancel()
    executor.runUntilIdle()
  }

  @Test func `A value that the store fails to remove is removed at the next eviction`() async throws {
    let repository = makeRepository(configuration: makeConfiguration(EvictionPolicy(maximumCount: 1)))
    try await repository.refresh("a")
    let events = repository.events.subscribe()
    let removalFails = Setting(true)
    store.set { hooks in
      hooks.onCommit = { keys throws(StoreError) in
        if removalFails.value, keys == [StoreKey<Notes>.notes("a").keyName] {
          throw .writeFailed(InterceptedStore.error)
        }
      }
    }
    try await repository.refresh("b")
    try await #expect(storedIDs() == ["a", "b"])
    for await event in events { if case .storeFailed = event { break } }
    removalFails.value = false
    try await repository.refresh("c")
    try await #expect(storedIDs() == ["c"])
  }

  @Test func `A quarantined value doesn't count toward the limit`() async throws {
    let repository = makeRepository(configuration: makeConfiguration(EvictionPolicy(maximumCount: 2)))
    for key in ["a", "b"] { try await repository.refresh(key) }
    storage[try StoreKey<Notes>.notes("a").keyName.encoded()] = Data("corrupt".utf8)
    // The load quarantines the corrupt bytes.
    _ = try? await memory.load(.notes("a"))
    try await repository.refresh("c")
    try await #expect(storedIDs() == ["b", "c"])
    #expect(await repository.report().stored?.count == 2)
  }

  @Test func `A failed removal is retried after a delay`() async throws {
    let repository = makeRepository(configuration: makeConfiguration(EvictionPolicy(idleTime: .seconds(60))))
    try await repository.refresh("a")
    await clock.sleepers(1)
    let attempts = Counter()
    let commitsFail = Setting(true)
    store.set { hooks in
      hooks.onCommit = { _ throws(StoreError) in
        attempts.next()
        if commitsFail.value { throw .writeFailed(InterceptedStore.error) }
      }
    }
    let events = repository.events.subscribe()
    currentDate.value += 60
    clock.advance(by: .seconds(60))
    await events.reaches { if case .storeFailed = $0 { true } else { false } }
    await clock.sleepers(1)
    #expect(attempts.value == 1)
    commitsFail.value = false
    clock.advance(by: .seconds(60))
    try await waitUntilStoredIDs(are: [])
    #expect(attempts.value == 2)
  }

  // MARK: - Several repositories

  /// Creates a second repository on the store of the first one, or on another store over the same storage.
  private func makeSecondRepository(onOtherStore: Bool) -> NotesRepository {
    makeRepository(store: onOtherStore ? InMemoryStore(storage: storage) : store)
  }

  @Test(arguments: [false, true])
  func `What another repository of this process observes isn't evicted by a call`(onOtherStore: Bool) async throws {
    for key in ["a", "b", "c"] { try await put(Notes(key), key) }
    let repository = makeRepository()
    let second = makeSecondRepository(onOtherStore: onOtherStore)
    do {
      let values = second.values(of: "a").subscribe()
      #expect(await values.first(1) == [Notes("a")])
      let states = second.states(of: "b", loading: .whileObserved()).subscribe()
      #expect(await states.first { $0.value != nil }?.value == Notes("b"))
      try await repository.evict(.key("a"))
      try await repository.evict(.all)
      try await #expect(storedIDs() == ["a", "b"])
    }
    // The observation with a loading policy ends in a task.
    while await second.engine.isInUse("b") { await Task.yield() }
    try await repository.evict(.all)
    try await #expect(storedIDs() == [])
  }

  @Test(arguments: [false, true])
  func `What another repository of this process observes isn't evicted by a policy until its observers leave`(
    onOtherStore: Bool
  ) async throws {
    try await put(Notes("a"), "a")
    let second = makeSecondRepository(onOtherStore: onOtherStore)
    let repository = makeRepository(configuration: makeConfiguration(EvictionPolicy(maximumCount: 1)))
    do {
      let values = second.values(of: "a").subscribe()
      #expect(await values.first(1) == [Notes("a")])
      try await repository.refresh("b")
      try await waitUntilStoredIDs(are: ["a"])
    }
    try await repository.refresh("c")
    try await waitUntilStoredIDs(are: ["c"])
  }

  @Test func `The newest value stays if another repository of this process is observed as a whole`() async throws {
    for key in ["a", "b"] { try await put(Notes(key), key) }
    let repository = makeRepository()
    let second = makeSecondRepository(onOtherStore: false)
    let values = second.everyValue.subscribe()
    #expect(await values.first(2) == [Notes("a"), Notes("b")])
    try await repository.evict(.all)
    try await #expect(storedIDs() == ["b"])
    try await memory.save(Notes("c"), for: .notes("c"))
    #expect(await values.first(1) == [Notes("c")])
    try await repository.evict(.all)
    try await #expect(storedIDs() == ["c"])
  }

  @Test func `A repository in another place keeps no values of this one`() async throws {
    try await put(Notes("a"), "a")
    let otherStore = InMemoryStore()
    try await otherStore.save(Notes("other"), for: .notes("a"))
    let other = makeRepository(store: otherStore)
    let values = other.values(of: "a").subscribe()
    #expect(await values.first(1) == [Notes("other")])
    try await makeRepository().evict(.all)
    try await #expect(storedIDs() == [])
    #expect(await other.state(of: "a").value == Notes("other"))
  }

  // MARK: - Explicit eviction

  @Test func `An evicted value is fetched again`() async throws {
    let requests = Counter()
    let repository = makeRepository(
      configuration: makeConfiguration(EvictionPolicy()), onFetch: { _ in requests.next() })
    try await repository.refresh("a")
    // The stored value is fresh, so this call doesn't fetch it.
    try await repository.refresh("a")
    #expect(requests.value == 1)
    try await repository.evict(.key("a"))
    try await #expect(storedIDs() == [])
    #expect(await repository.states(of: "a").subscribe().first(1).map(\.value) == [nil])
    try await repository.refresh("a")
    #expect(requests.value == 2)
  }

  @Test func `A value in use isn't evicted`() async throws {
    let isOffline = Setting(true)
    let repository = makeRepository(onSend: { _ throws(NotesFailure) in if isOffline.value { throw .offline } })
    for key in ["a", "b", "c"] { try await repository.refresh(key) }
    let values = repository.values(of: "a").subscribe()
    #expect(await values.first(1) == [Notes()])
    #expect(try await repository.perform(.add("x"), on: "b") == .queued)
    for key in ["a", "b", "c"] { try await repository.evict(.key(key)) }
    try await #expect(storedIDs() == ["a", "b"])
    try await repository.evict(.all)
    try await #expect(storedIDs() == ["a", "b"])
  }

  @Test func `The values of a single user can be evicted`() async throws {
    let repository = SyncedRepository("pages", store: memory) { (key: UserKey) throws(NotesFailure) in Notes(key.id) }
    for key in [UserKey("1", "a"), UserKey("2", "a"), UserKey("1", "b")] { try await repository.refresh(key) }
    try await repository.evict(.user("1"))
    let remaining = try await memory.observe(collection: "pages", as: Notes.self).stored
    #expect(remaining.map(\.key.id) == ["2/a"])
  }

  @Test func `An eviction that fails in the store throws, and the value stays`() async throws {
    let repository = makeRepository()
    try await repository.refresh("a")
    store.set { $0.onCommit = { _ throws(StoreError) in throw .writeFailed(InterceptedStore.error) } }
    await #expect(throws: StoreError.writeFailed(InterceptedStore.error)) { try await repository.evict(.all) }
    store.set { $0.onCommit = { _ in } }
    #expect(await repository.values(of: "a").subscribe().first(1) == [Notes()])
  }
}

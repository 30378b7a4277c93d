import DataStore
import Foundation
import Multicast
import MulticastTesting
import TestRounds
import TestSupport
import Testing

@testable import Repository

@Suite(.timeLimit(.minutes(15))) struct LocalRepositoryTests {
  private typealias Drafts = LocalRepository<String, Notes>

  private let store = InMemoryStore()

  private func makeRepository(in store: any KeyValueStore) -> Drafts {
    Drafts("notes", default: Notes("default"), store: store)
  }

  // MARK: - Values

  @Test func `If nothing is stored, observers get the default value, and nothing is written`() async throws {
    let drafts = makeRepository(in: store)
    try await #expect(drafts.value(of: "a") == Notes("default"))
    #expect(await drafts.values(of: "a").subscribe().first(1) == [Notes("default")])
    try await drafts.update("a") { _ in }
    try await #expect(store.load(.notes("a")) == nil)
  }

  @Test func `Observers get the stored value first`() async throws {
    try await store.save(Notes("stored"), for: .notes("a"))
    let drafts = makeRepository(in: store)
    #expect(await drafts.values(of: "a").subscribe().first(1) == [Notes("stored")])
  }

  @Test func `Observers get every update of their key, in order`() async throws {
    let drafts = makeRepository(in: store)
    let observers = [drafts.values(of: "a").subscribe(), drafts.values(of: "a").subscribe()]
    let observerOfB = drafts.values(of: "b").subscribe()
    for observer in observers { #expect(await observer.first(1) == [Notes("default")]) }
    for number in 1...100 { try await drafts.update("a") { $0 = Notes("\(number)") } }
    for observer in observers { #expect(await observer.first(100) == (1...100).map { Notes("\($0)") }) }
    try await drafts.update("b") { $0 = Notes("other") }
    #expect(await observerOfB.first(2) == [Notes("default"), Notes("other")])
    #expect(await drafts.values(of: "a").subscribe().first(1) == [Notes("100")])
  }

  @Test func `An update that changes nothing writes nothing and notifies no observer`() async throws {
    let saveCount = CurrentValueRelay(0)
    let drafts = makeRepository(
      in: InterposedStore(store, beforeSaving: { (_) throws(StoreError) in saveCount.update { $0 += 1 } }))
    let observer = drafts.values(of: "a").subscribe()
    #expect(await observer.first(1) == [Notes("default")])
    try await drafts.update("a") { $0 = Notes("default") }
    #expect(saveCount.value == 0)
    try await drafts.update("a") { $0 = Notes("one") }
    try await drafts.update("a") { $0 = Notes("one") }
    try await drafts.update("a") { $0 = Notes("default") }
    #expect(saveCount.value == 2)
    #expect(await observer.first(2) == [Notes("one"), Notes("default")])
  }

  @Test func `After a removal, observers get the default value`() async throws {
    let drafts = makeRepository(in: store)
    let observer = drafts.values(of: "a").subscribe()
    #expect(await observer.first(1) == [Notes("default")])
    try await drafts.update("a") { $0 = Notes("one") }
    try await drafts.remove("a")
    try await drafts.remove("a")
    #expect(await observer.first(2) == [Notes("one"), Notes("default")])
    try await #expect(drafts.value(of: "a") == Notes("default"))
    try await drafts.update("a") { $0.texts.append("two") }
    #expect(await observer.first(1) == [Notes("default", "two")])
  }

  @Test func `The value of a single-value repository has no id in the store`() async throws {
    let drafts = LocalRepository<OnlyKey, Notes>("notes", default: Notes(), store: store)
    let observer = drafts.values(of: .only).subscribe()
    #expect(await observer.first(1) == [Notes()])
    try await drafts.update(.only) { $0 = Notes("one") }
    #expect(await observer.first(1) == [Notes("one")])
    try await #expect(store.load(StoreKey<Notes>("notes"))?.value == Notes("one"))
    // The key itself has a non-empty `storeID` nevertheless, as every key must.
    #expect(OnlyKey(storeID: OnlyKey.only.storeID) == .only)
    #expect(OnlyKey(storeID: "") == nil)
  }

  @Test func `Sequences end when the repository is released`() async throws {
    var drafts: Drafts? = makeRepository(in: store)
    weak let weakDrafts = drafts
    let sequence = try #require(drafts?.values(of: "a"))
    let observer = sequence.subscribe()
    #expect(await observer.first(1) == [Notes("default")])
    drafts = nil
    #expect(await observer.first(1) == [])
    #expect(await sequence.first(1) == [])
    #expect(weakDrafts == nil)
  }

  // MARK: - Concurrent updates

  @Test func `Concurrent updates are all made`() async throws {
    let drafts = makeRepository(in: store)
    try await withThrowingTaskGroup { group in
      for number in 0..<100 { group.addTask { try await drafts.update("a") { $0.texts.append("\(number)") } } }
      try await group.waitForAll()
    }
    let texts = try await drafts.value(of: "a").texts
    #expect(texts.count == 101)
    #expect(Set(texts) == Set((0..<100).map { "\($0)" }).union(["default"]))
  }

  @Test(arguments: [false, true])
  func `Two repositories make all their concurrent updates, and read the same result`(hasTwoStores: Bool) async throws {
    let storage = InMemoryStorage()
    let firstStore = InMemoryStore(storage: storage)
    let secondStore = hasTwoStores ? InMemoryStore(storage: storage) : firstStore
    let repositories = [makeRepository(in: firstStore), makeRepository(in: secondStore)]
    try await withThrowingTaskGroup { group in
      for number in 0..<60 {
        group.addTask { try await repositories[number % 2].update("a") { $0.texts.append("\(number)") } }
      }
      try await group.waitForAll()
    }
    let texts = try await repositories[0].value(of: "a").texts
    #expect(texts.count == 61)
    #expect(Set(texts) == Set((0..<60).map { "\($0)" }).union(["default"]))
    try await #expect(repositories[1].value(of: "a").texts == texts)
  }

  @Test func `Observers of two repositories on one store see the same values in the same order`() async throws {
    let repositories = [makeRepository(in: store), makeRepository(in: store)]
    let observers = repositories.map { $0.values(of: "a").subscribe() }
    for observer in observers { #expect(await observer.first(1) == [Notes("default")]) }
    try await withThrowingTaskGroup { group in
      for number in 0..<40 {
        group.addTask { try await repositories[number % 2].update("a") { $0.texts.append("\(number)") } }
      }
      try await group.waitForAll()
    }
    let seen = await observers[0].first(40)
    #expect(seen.map(\.texts.count) == Array(2...41))
    #expect(await observers[1].first(40) == seen)
  }

  @Test func `An update waits for the previous one`() async throws {
    let (gate, isFirstSave) = (Gate(), CurrentValueRelay(true))
    let drafts = makeRepository(
      in: InterposedStore(
        store,
        beforeSaving: { (_) async throws(StoreError) in
          if !isFirstSave.value { return }
          isFirstSave.send(false)
          await gate.pass()
        }))
    let firstUpdate = Task { try await drafts.update("a") { $0.texts.append("first") } }
    await gate.arrivals()
    let secondUpdate = Task { try await drafts.update("a") { $0.texts.append("second") } }
    // If the second update didn't wait, it would be made during these yields.
    for _ in 0..<1000 { await Task.yield() }
    gate.open()
    try await firstUpdate.value
    try await secondUpdate.value
    try await #expect(drafts.value(of: "a") == Notes("default", "first", "second"))
  }

  @Test func `An update whose closure is called again returns the result of the last call`() async throws {
    let rivalDrafts = makeRepository(in: store)
    let remainingRivalUpdateCount = CurrentValueRelay(1)
    let drafts = makeRepository(
      in: InterposedStore(
        store,
        beforeSaving: { (_) async throws(StoreError) in
          if remainingRivalUpdateCount.value == 0 { return }
          remainingRivalUpdateCount.send(0)
          try await rivalDrafts.update("a") { $0 = Notes("rival") }
        }))
    let callCount = CurrentValueRelay(0)
    let notesBeforeChange = try await drafts.update("a") { notes in
      callCount.update { $0 += 1 }
      defer { notes.texts.append("mine") }
      return notes
    }
    #expect(callCount.value == 2)
    #expect(notesBeforeChange == Notes("rival"))
    try await #expect(drafts.value(of: "a") == Notes("rival", "mine"))
  }

  @Test func `A change of another process reaches observers and the next update`() async throws {
    let folder = TemporaryFolder()
    let drafts = makeRepository(in: FileStore(folder: folder.url))
    let observer = drafts.values(of: "a").subscribe()
    #expect(await observer.first(1) == [Notes("default")])
    // The second store on the folder simulates another process.
    try await FileStore(folder: folder.url).save(Notes("theirs"), for: .notes("a"))
    #expect(await observer.first(1) == [Notes("theirs")])
    try await drafts.update("a") { $0.texts.append("mine") }
    #expect(await observer.first(1) == [Notes("theirs", "mine")])
  }

  @Test func `A cancelled task still completes its update`() async throws {
    let drafts = makeRepository(in: store)
    let update = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      try await drafts.update("a") { $0 = Notes("one") }
    }
    try await update.value
    try await #expect(store.load(.notes("a"))?.value == Notes("one"))
  }

  @Test func `An update during the load for the first observer reaches that observer`() async throws {
    for round in 0..<Rounds.count(20, full: 500) {
      let gate = Gate()
      let drafts = makeRepository(in: GatedStore(base: InMemoryStore(), gate: gate))
      let observer = drafts.values(of: "a").subscribe()
      await gate.arrivals()
      let update = Task(priority: .background) { try await drafts.update("a") { $0 = Notes("one") } }
      // If the update didn't wait for the load, it could commit during these yields, which would open the gate.
      for _ in 0..<1000 { await Task.yield() }
      gate.open()
      try await update.value
      try await drafts.update("a") { $0 = Notes("two") }
      var seen: [Notes] = []
      for await value in observer {
        seen.append(value)
        if value == Notes("two") { break }
      }
      #expect(seen == [Notes("default"), Notes("one"), Notes("two")], "round \(round)")
    }
  }

  // MARK: - Failures

  @Test func `After a failure of the store, the next update is made and reaches observers`() async throws {
    let remainingFailureCount = CurrentValueRelay(1)
    let failure = StoreError.writeFailed(FaultyBackend.error)
    let drafts = makeRepository(
      in: InterposedStore(
        store,
        beforeSaving: { (_) throws(StoreError) in
          if remainingFailureCount.value == 0 { return }
          remainingFailureCount.send(0)
          throw failure
        }))
    let observer = drafts.values(of: "a").subscribe()
    #expect(await observer.first(1) == [Notes("default")])
    await #expect(throws: failure) { try await drafts.update("a") { $0.texts.append("lost") } }
    try await #expect(drafts.value(of: "a") == Notes("default"))
    try await drafts.update("a") { $0.texts.append("kept") }
    #expect(await observer.first(1) == [Notes("default", "kept")])
    try await #expect(store.load(.notes("a"))?.value == Notes("default", "kept"))
  }

  @Test func `A failed update lets the next one run`() async throws {
    let (gate, remainingFailureCount) = (Gate(), CurrentValueRelay(1))
    let drafts = makeRepository(
      in: InterposedStore(
        store,
        beforeSaving: { (_) async throws(StoreError) in
          if remainingFailureCount.value == 0 { return }
          remainingFailureCount.send(0)
          await gate.pass()
          throw .writeFailed(FaultyBackend.error)
        }))
    let failingUpdate = Task { try await drafts.update("a") { $0.texts.append("lost") } }
    await gate.arrivals()
    let nextUpdate = Task { try await drafts.update("a") { $0.texts.append("kept") } }
    gate.open()
    await #expect(throws: StoreError.writeFailed(FaultyBackend.error)) { try await failingUpdate.value }
    try await nextUpdate.value
    try await #expect(drafts.value(of: "a") == Notes("default", "kept"))
  }

  @Test func `An observer that subscribed while the store was unreadable gets the next update`() async throws {
    let plan = FaultPlan { _ in nil }
    plan.readsFail = true
    let drafts = makeRepository(in: BackedStore(backend: FaultyBackend(storage: InMemoryStorage(), plan: plan)))
    let observer = drafts.values(of: "a").subscribe()
    await #expect(throws: StoreError.readFailed(FaultyBackend.error)) { try await drafts.value(of: "a") }
    await #expect(throws: StoreError.readFailed(FaultyBackend.error)) { try await drafts.update("a") { _ in } }
    plan.readsFail = false
    try await drafts.update("a") { $0 = Notes("one") }
    await observer.reaches { $0 == Notes("one") }
  }

  @Test func `An observer that subscribed while the store was unreadable gets its value without another call`()
    async throws
  {
    let (plan, clock) = (FaultPlan { _ in nil }, ManualClock())
    plan.readsFail = true
    let drafts = Drafts(
      "notes", default: Notes("default"),
      store: BackedStore(backend: FaultyBackend(storage: InMemoryStorage(), plan: plan)), clock: clock)
    let observer = drafts.values(of: "a").subscribe()
    await clock.sleepers(1)
    clock.advance(by: .seconds(60))
    await clock.sleepers(1)
    plan.readsFail = false
    clock.advance(by: .seconds(60))
    #expect(await observer.first(1) == [Notes("default")])
  }

  @Test func `A read by a call shows that an observed value can be read again`() async throws {
    let (plan, clock) = (FaultPlan { _ in nil }, ManualClock())
    plan.readsFail = true
    let drafts = Drafts(
      "notes", default: Notes("default"),
      store: BackedStore(backend: FaultyBackend(storage: InMemoryStorage(), plan: plan)), clock: clock)
    let observer = drafts.values(of: "a").subscribe()
    await clock.sleepers(1)
    plan.readsFail = false
    try await #expect(drafts.value(of: "a") == Notes("default"))
    #expect(await observer.first(1) == [Notes("default")])
  }

  @Test func `Sequences end when the repository is released before the store can be read`() async throws {
    let (plan, clock) = (FaultPlan { _ in nil }, ManualClock())
    plan.readsFail = true
    var drafts: Drafts? = Drafts(
      "notes", default: Notes("default"),
      store: BackedStore(backend: FaultyBackend(storage: InMemoryStorage(), plan: plan)), clock: clock)
    let observer = try #require(drafts?.values(of: "a").subscribe())
    await clock.sleepers(1)
    drafts = nil
    #expect(await observer.first(1) == [])
  }

  @Test func `Corrupt bytes are reported once, and then the default value is used`() async throws {
    let storage = InMemoryStorage()
    let name = try StoreKey.notes("a").keyName.encoded()
    storage[name] = Data("no value".utf8)
    let drafts = makeRepository(in: InMemoryStore(storage: storage))
    let error = try await #require(throws: StoreError.self) { try await drafts.update("a") { $0.texts = [] } }
    guard case .undecodable(_, let movedTo?, _) = error else {
      Issue.record("Unexpected error \(error)")
      return
    }
    #expect(storage[movedTo] == Data("no value".utf8))
    try await #expect(drafts.value(of: "a") == Notes("default"))
    #expect(await drafts.values(of: "a").subscribe().first(1) == [Notes("default")])
  }

  @Test func `A value that another version stored and this one can't decode is kept until it is removed`() async throws
  {
    let storage = InMemoryStorage()
    let key = StoreKey<Notes>.notes("a").keyName
    try await InMemoryStore(storage: storage).save(7, for: StoreKey<Int>(key))
    let bytes = storage[try key.encoded()]
    let drafts = makeRepository(in: InMemoryStore(storage: storage))
    let observer = drafts.values(of: "a").subscribe()
    for _ in 1...2 {
      let error = try await #require(throws: StoreError.self) { try await drafts.update("a") { $0.texts = [] } }
      guard case .undecodable(key, movedTo: nil, _) = error else {
        Issue.record("Unexpected error \(error)")
        return
      }
    }
    await #expect(throws: StoreError.self) { try await drafts.value(of: "a") }
    #expect(storage[try key.encoded()] == bytes)
    try await drafts.remove("a")
    #expect(storage.names.map { storage[$0] } == [bytes])
    // The observer got no value before the removal.
    #expect(await observer.first(1) == [Notes("default")])
    try await drafts.update("a") { $0 = Notes("new") }
    #expect(await observer.first(1) == [Notes("new")])
  }
}

/// A store whose first load waits at a gate, which the first commit opens.
private struct GatedStore: ForwardingStore {
  let base: InMemoryStore
  let gate: Gate
  private let loadCount = CurrentValueRelay(0)

  init(base: InMemoryStore, gate: Gate) {
    (self.base, self.gate) = (base, gate)
  }

  func load<Value>(_ key: StoreKey<Value>) async throws(StoreError) -> StoredValue<Value>? {
    var loadNumber = 0
    loadCount.update {
      $0 += 1
      loadNumber = $0
    }
    if loadNumber == 1 { await gate.pass() }
    return try await base.load(key)
  }

  func commit(_ batch: StoreBatch) async throws(StoreError) -> StoreCommit {
    let commit = try await base.commit(batch)
    gate.open()
    return commit
  }
}

import Foundation
import Multicast
import Testing

@testable import DataStore

/// Values whose checksum is right, and that the running program's type can't be decoded from.
@Suite(.timeLimit(.minutes(15))) struct UndecodableValueTests {
  private let storage = InMemoryStorage()
  private let key = StoreKey<String>("text", id: "0")
  private let name: String

  /// The key as another version of the program uses it, whose values are numbers.
  private var numberKey: StoreKey<Int> { StoreKey(key.keyName) }

  init() throws {
    name = try key.keyName.encoded()
  }

  private func makeStore() -> InMemoryStore { InMemoryStore(storage: storage) }

  /// The names and bytes of all that the storage keeps.
  private var contents: [String: Data] {
    Dictionary(uniqueKeysWithValues: storage.names.map { ($0, storage[$0] ?? Data()) })
  }

  @Test func `A value that becomes undecodable is hidden, and its observers receive it when it can be decoded again`()
    async throws
  {
    let store = makeStore()
    let observation = try await store.observe(collection: "text", as: String.self)
    let changes = try await store.changes(of: key).subscribe()
    let first = try await store.save("first", for: key)
    let bytes = storage[name]
    let events = store.events.subscribe()
    storage[name] = try encodedEnvelope(7)
    // A late observer receives no first value.
    let lateChanges = try await store.changes(of: key).subscribe()
    var eventIterator = events.makeAsyncIterator()
    guard case .undecodableValueLeftUntouched(key.keyName, _) = await eventIterator.next() else {
      Issue.record("no event")
      return
    }
    await #expect(throws: StoreError.self) { try await store.load(key) }
    storage[name] = bytes
    let again = try #require(try await store.load(key))
    #expect(again == StoredValue(value: "first", savedAt: first.savedAt, revision: 2, tag: first.tag))
    for subscription in [changes, lateChanges] {
      var iterator = subscription.makeAsyncIterator()
      if subscription === changes { #expect(await iterator.next() == .saved(key, first)) }
      #expect(await iterator.next() == .saved(key, again))
    }
    var iterator = observation.changes.makeAsyncIterator()
    #expect(await iterator.next() == [.saved(key, first)])
    #expect(await iterator.next() == [.saved(key, again)])
    #expect(storage.names == [name])
  }

  @Test(arguments: [
    // A header without a tag, one without a format, and one without a value.
    #","format":3,"savedAt":0,"schema":1}"# + "\n\"text\"", "}\n\"text\"", #","format":2,"savedAt":0,"schema":1}"#,
  ])
  func `Bytes whose header can't be decoded are left untouched if their checksum is right, and always have one tag`(
    line: String
  ) async throws {
    let checksum = CRC32C.checksum(of: Data(line.utf8)).hexadecimalDigits
    let bytes = Data((#"{"checksum":"\#(checksum)""# + line).utf8)
    storage[name] = bytes
    for _ in 1...2 {
      let store = makeStore()
      for _ in 1...2 {
        let error = await #expect(throws: StoreError.self) { try await store.load(key) }
        guard case .undecodable(key.keyName, movedTo: nil, _) = error else {
          Issue.record("\(String(describing: error))")
          return
        }
      }
      var requiringAbsence = StoreBatch()
      requiringAbsence.require(nil, of: key)
      await #expect(throws: StoreError.preconditionFailed(key.keyName)) { try await store.commit(requiringAbsence) }
      var requiringTag = StoreBatch()
      requiringTag.require(StoreTag(of: bytes), of: key)
      try await store.commit(requiringTag)
    }
    #expect(contents == [name: bytes])
    try await makeStore().remove(key)
    #expect(Array(contents.values) == [bytes])
    #expect(try await makeStore().load(key) == nil)
  }

  @Test func `Undecodable bytes of format 1 are quarantined by a load, because they have no checksum`() async throws {
    let bytes = Data("{\"format\":1,\"savedAt\":0,\"schema\":1}\n7".utf8)
    storage[name] = bytes
    let error = await #expect(throws: StoreError.self) { try await makeStore().load(key) }
    guard case .undecodable(key.keyName, let movedTo?, _) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(contents == [movedTo: bytes])
  }

  @Test func `A commit that fails doesn't quarantine an undecodable value, and one whose preconditions hold does`()
    async throws
  {
    let old = try await makeStore().save(7, for: numberKey)
    let bytes = try #require(storage[name])
    let store = makeStore()
    let missingKey = StoreKey<String>("text", id: "missing")
    for isRemoval in [true, false] {
      var batch = StoreBatch()
      if isRemoval { batch.remove(key) } else { batch.save("new", for: key) }
      batch.require(old.tag, of: missingKey)
      await #expect(throws: StoreError.preconditionFailed(missingKey.keyName)) { try await store.commit(batch) }
    }
    #expect(contents == [name: bytes])
    var batch = StoreBatch()
    batch.require(old.tag, of: key)
    batch.save("new", for: key)
    try await store.commit(batch)
    #expect(try await store.load(key)?.value == "new")
    #expect(contents.contains { $0.key != name && $0.value == bytes })
  }

  @Test func `While a save replaces and quarantines an undecodable value, none is missing`() async throws {
    try await makeStore().save(7, for: numberKey)
    let states = Lock<[[String]]>([])
    let backend = RecordingBackend(base: InMemoryBackend(storage: storage)) { [storage] in
      let names = storage.names.sorted()
      states.withLock { $0.append(names) }
    }
    let store = BackedStore(backend: backend)
    // The store of the other version is notified of changes, and must not receive a removal.
    let other = makeStore()
    let changes = try await other.observe(collection: "text", as: Int.self).changes
    try await store.save("new", for: key)
    try await store.remove(key)
    let quarantineName = try #require(storage.names.first)
    #expect(states.withLock { $0 } == [[name], [name, quarantineName].sorted(), [quarantineName]])
    let again = try await other.save(8, for: numberKey)
    var iterator = changes.makeAsyncIterator()
    #expect(await iterator.next() == [.saved(numberKey, again)])
  }

  @Test func `A removal of a whole collection quarantines its undecodable values`() async throws {
    try await makeStore().save(7, for: numberKey)
    let bytes = try #require(storage[name])
    let store = makeStore()
    let changes = try await store.observe(collection: "text", as: String.self).changes
    let saved = try await store.save("good", for: StoreKey("text", id: "1"))
    try await store.removeAll(in: "text")
    #expect(contents.values.map { $0 } == [bytes])
    var iterator = changes.makeAsyncIterator()
    #expect(await iterator.next() == [.saved(StoreKey("text", id: "1"), saved)])
    #expect(
      await iterator.next() == [.removed(key, revision: 2), .removed(StoreKey("text", id: "1"), revision: 2)])
  }

  @Test func `A commit that requires what a load has found replaces nothing but an undecodable value`() async throws {
    func commit(_ value: String, requiring tag: StoreTag?) async throws {
      var batch = StoreBatch()
      batch.requireFound(tag, of: key)
      batch.save(value, for: key)
      try await makeStore().commit(batch)
    }
    try await commit("first", requiring: nil)
    await #expect(throws: StoreError.preconditionFailed(key.keyName)) { try await commit("second", requiring: nil) }
    let first = try #require(try await makeStore().load(key))
    try await makeStore().save(7, for: numberKey)
    await #expect(throws: StoreError.preconditionFailed(key.keyName)) {
      try await commit("second", requiring: first.tag)
    }
    #expect(try await makeStore().load(numberKey)?.value == 7)
    try await commit("second", requiring: nil)
    let second = try #require(try await makeStore().load(key))
    #expect(second.value == "second")
    try await commit("third", requiring: second.tag)
  }

  // MARK: - Parts

  private struct Numbers: PartitionedValue, Hashable {
    var head = 0
    var elements: [Int]
  }

  /// The same value in a version of the program whose decoder is wrong.
  private struct Texts: PartitionedValue, Hashable {
    var head: Int
    var elements: [String]
  }

  @Test func `An undecodable value in parts is left untouched, and a repaired program reads all of it`() async throws {
    let (numbersKey, textsKey) = (StoreKey<Numbers>("list"), StoreKey<Texts>("list"))
    let numbers = Numbers(elements: Array(0..<300))
    try await makeStore().save(numbers, for: numbersKey)
    let contentsBefore = contents
    let store = makeStore()
    let error = await #expect(throws: StoreError.self) { try await store.load(textsKey) }
    guard case .undecodable(textsKey.keyName, movedTo: nil, _) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(contents == contentsBefore)
    #expect(try await makeStore().load(numbersKey)?.value == numbers)
    let texts = Texts(head: 1, elements: (0..<300).map(String.init))
    try await store.save(texts, for: textsKey)
    #expect(try await makeStore().load(textsKey)?.value == texts)
    // The parts stay beside the quarantined value, which refers to them.
    #expect(Set(contentsBefore.values).isSubset(of: contents.values))
    try await store.erase { $0.key == textsKey.keyName }
    #expect(storage.names == [])
  }

  @Test func `A value in parts is quarantined if one of its parts is missing`() async throws {
    let numbersKey = StoreKey<Numbers>("list")
    try await makeStore().save(Numbers(elements: Array(0..<300)), for: numbersKey)
    let part = try #require(storage.names.first(where: StorePartName.isPart))
    storage[part] = nil
    let error = await #expect(throws: StoreError.self) { try await makeStore().load(StoreKey<Texts>("list")) }
    guard case .undecodable(numbersKey.keyName, _?, _) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
  }

  @Test func `The texts of the error and the event say that the value was left untouched`() {
    let error = StoreError.undecodable(key.keyName, movedTo: nil, reason: "no text")
    #expect(
      error.description == """
        The stored value \(key.keyName) could not be decoded (no text). It was left untouched: update the app to a \
        version that can decode it, or save a new value.
        """)
    let event = StoreEvent.undecodableValueLeftUntouched(key.keyName, reason: "no text")
    #expect(
      event.description == """
        The stored value \(key.keyName) could not be decoded (no text). It was left untouched: update the app to a \
        version that can decode it.
        """)
  }
}

/// A backend that calls a closure after each call that may change the medium.
private struct RecordingBackend: StoreBackend {
  var base: InMemoryBackend
  let record: @Sendable () -> Void

  func read(_ name: String) -> Data? { base.read(name) }

  mutating func commit(
    _ writes: [StoreWrite], deciding decide: (inout Self) throws(StoreError) -> CommitDecision
  ) throws(StoreError) -> Bool {
    defer { record() }
    let record = record
    return try base.commit(writes) { (base: inout InMemoryBackend) throws(StoreError) in
      var backend = Self(base: base, record: record)
      return try decide(&backend)
    }
  }

  func quarantine(_ bytes: Data, of name: String, at time: Date) -> String? {
    defer { record() }
    return base.quarantine(bytes, of: name, at: time)
  }

  func names() -> [String] { base.names() }
}

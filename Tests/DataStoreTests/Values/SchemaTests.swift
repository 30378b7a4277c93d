import DataStore
import Foundation
import Multicast
import Testing

@Suite(.timeLimit(.minutes(15))) struct SchemaTests {
  /// A person in schema 1.
  private struct PersonOfSchema1: Codable, Hashable {
    var name: String
  }

  /// A person in schema 2.
  private struct PersonOfSchema2: Codable {
    var names: [String]
  }

  /// A person in schema 3.
  private struct Person: VersionedValue, Hashable {
    static let schema = StoreSchema(
      version: 3,
      migrations: [
        StoreMigration(from: 1, decoding: PersonOfSchema1.self) {
          PersonOfSchema2(names: $0.name.split(separator: " ").map(String.init))
        },
        StoreMigration(from: 2, decoding: PersonOfSchema2.self) { old in
          guard old.names.count == 2 else { throw WrongCount(count: old.names.count) }
          return Person(first: old.names[0], last: old.names[1])
        },
      ])

    var first: String
    var last: String
  }

  /// A person in a different schema 2, whose migration returns JSON that can't be decoded.
  private struct UndecodablePerson: VersionedValue, Hashable {
    static let schema = StoreSchema(version: 2, migrations: [StoreMigration(from: 1) { _ in Data("{}".utf8) }])

    var first: String
  }

  private struct WrongCount: Error, CustomStringConvertible {
    let count: Int

    var description: String { "\(count) names" }
  }

  private let storage = InMemoryStorage()
  private let key = StoreKey<Person>("person", id: "0")
  private let encodedName: String

  init() throws {
    encodedName = try key.keyName.encoded()
  }

  /// Stores a person of schema 1.
  ///
  /// If the name isn't two words, the migration from schema 2 to schema 3 fails.
  private func savePersonOfSchema1(named name: String) async throws -> StoredValue<PersonOfSchema1> {
    try await InMemoryStore(storage: storage).save(PersonOfSchema1(name: name), for: StoreKey(key.keyName))
  }

  @Test func `A value of an older schema is migrated step by step when it is read, and replaced by the next save`()
    async throws
  {
    let old = try await savePersonOfSchema1(named: "Jake Lin")
    let bytes = storage[encodedName]
    let person = Person(first: "Jake", last: "Lin")
    let migrated = StoredValue(value: person, savedAt: old.savedAt, revision: 0, tag: old.tag)
    for _ in 1...2 {
      let store = InMemoryStore(storage: storage)
      #expect(try await store.load(key) == migrated)
      var changes = try await store.changes(of: key).makeAsyncIterator()
      #expect(await changes.next() == .saved(key, migrated))
      let observation = try await store.observe(collection: "person", as: Person.self)
      #expect(observation.stored == [.init(key: key, stored: migrated)])
      #expect(storage[encodedName] == bytes)
    }
    let saved = try await InMemoryStore(storage: storage).save(person, for: key)
    let text = String(decoding: storage[encodedName] ?? Data(), as: UTF8.self)
    #expect(text.contains("\"schema\":3,"))
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    try #require(lines.count == 2)
    #expect(
      try JSONDecoder().decode([String: String].self, from: Data(lines[1].utf8)) == ["first": "Jake", "last": "Lin"])
    #expect(try await InMemoryStore(storage: storage).load(key)?.savedAt == saved.savedAt)
  }

  @Test func `A value whose migration fails is left untouched until a save quarantines it`() async throws {
    _ = try await savePersonOfSchema1(named: "Mattt")
    let bytes = try #require(storage[encodedName])
    let store = InMemoryStore(storage: storage)
    let events = store.events.subscribe()
    for _ in 1...2 {
      await #expect(throws: StoreError.migrationFailed(key.keyName, from: 2, reason: "1 names")) {
        try await store.load(key)
      }
    }
    let changes = try await store.changes(of: key).subscribe()
    #expect(try await store.observe(collection: "person", as: Person.self).stored.isEmpty)
    #expect(storage.names == [encodedName])
    #expect(storage[encodedName] == bytes)

    let saved = try await store.save(Person(first: "Jake", last: "Lin"), for: key)
    #expect(try await store.load(key) == saved)
    var changeIterator = changes.makeAsyncIterator()
    #expect(await changeIterator.next() == .saved(key, saved))
    let quarantineName = try #require(storage.names.first { $0 != encodedName })
    #expect(storage[quarantineName] == bytes)
    let failure = StoreEvent.migrationFailed(key.keyName, from: 2, reason: "1 names")
    let reason = "the migration from schema 2 failed: 1 names"
    var eventIterator = events.makeAsyncIterator()
    // The calls of `changes(of:)` and `observe(collection:as:)` have each sent a failure. The calls of `load(_:)` threw
    // theirs, and sent no event.
    for event in [failure, failure, .valueQuarantined(key.keyName, movedTo: quarantineName, reason: reason)] {
      #expect(await eventIterator.next() == event)
    }
  }

  @Test func `A commit that fails doesn't quarantine a value whose migration fails`() async throws {
    let old = try await savePersonOfSchema1(named: "Mattt")
    let bytes = storage[encodedName]
    let store = InMemoryStore(storage: storage)
    let person = Person(first: "Jake", last: "Lin")
    let missingKey = StoreKey<Int>("number")

    var requiringAbsence = StoreBatch()
    requiringAbsence.require(nil, of: key)
    requiringAbsence.save(person, for: key)
    await #expect(throws: StoreError.preconditionFailed(key.keyName)) { try await store.commit(requiringAbsence) }
    var requiringMissingValue = StoreBatch()
    requiringMissingValue.save(person, for: key)
    requiringMissingValue.require(old.tag, of: missingKey)
    await #expect(throws: StoreError.preconditionFailed(missingKey.keyName)) {
      try await store.commit(requiringMissingValue)
    }
    #expect(storage.names == [encodedName])
    #expect(storage[encodedName] == bytes)

    var requiringOldValue = StoreBatch()
    requiringOldValue.require(old.tag, of: key)
    requiringOldValue.save(person, for: key)
    try await store.commit(requiringOldValue)
    #expect(try await store.load(key)?.value == person)
    #expect(storage.names.contains { $0 != encodedName && storage[$0] == bytes })
  }

  /// Schema 1 of a list that is stored in parts.
  private struct OldList: PartitionedValue {
    var head = "old"
    var elements: [Int]
  }

  /// Schema 2 of the list, whose migration adds elements.
  private struct List: PartitionedValue, VersionedValue {
    static let schema = StoreSchema(
      version: 2,
      migrations: [
        StoreMigration(from: 1) { _ in Data(#"{"elements":\#(Array(0..<300)),"head":"new"}"#.utf8) }
      ])

    var head: String
    var elements: [Int]
  }

  @Test func `A value that had no parts before its migration is replaced by the next save`() async throws {
    // A list without elements has no parts. The migration adds elements, so the next save must write all parts.
    try await InMemoryStore(storage: storage).save(OldList(elements: []), for: StoreKey("list"))
    let key = StoreKey<List>("list")
    let store = InMemoryStore(storage: storage)
    var list = try #require(try await store.load(key)).value
    #expect(list == List(head: "new", elements: Array(0..<300)))
    list.elements.append(300)
    try await store.save(list, for: key)
    #expect(try await InMemoryStore(storage: storage).load(key)?.value == list)
  }

  /// A list type as an older version of the program declares it.
  private struct UnsortedList: PartitionedValue {
    var head = 0
    var elements: [Int]
  }

  /// The same type and schema in a newer version of the program, where the initializer sorts the elements.
  private struct SortedList: PartitionedValue {
    var head: Int
    var elements: [Int]

    init(head: Int, elements: [Int]) { (self.head, self.elements) = (head, elements.sorted()) }
  }

  @Test func `A value in parts whose type reorders its elements is saved in the new order`() async throws {
    try await InMemoryStore(storage: storage).save(UnsortedList(elements: (0..<300).reversed()), for: StoreKey("list"))
    let key = StoreKey<SortedList>("list")
    let store = InMemoryStore(storage: storage)
    var list = try #require(try await store.load(key)).value
    #expect(list.elements == Array(0..<300))
    list.elements[299] = 1_000
    try await store.save(list, for: key)
    #expect(try await InMemoryStore(storage: storage).load(key)?.value == list)
  }

  @Test func `A removal of a value whose migration fails quarantines it`() async throws {
    _ = try await savePersonOfSchema1(named: "Mattt")
    let bytes = storage[encodedName]
    let store = InMemoryStore(storage: storage)
    var changes = try await store.observe(collection: "person", as: Person.self).changes.makeAsyncIterator()
    try await store.remove(key)
    #expect(storage.names.count == 1)
    #expect(storage.names.first.map { storage[$0] } == bytes)
    #expect(await changes.next() == [.removed(key, revision: 1)])
  }

  @Test func `If the result of the migrations can't be decoded, the last migration counts as failed`() async throws {
    _ = try await savePersonOfSchema1(named: "Jake Lin")
    let error = await #expect(throws: StoreError.self) {
      try await InMemoryStore(storage: storage).load(StoreKey<UndecodablePerson>(key.keyName))
    }
    guard case .migrationFailed(key.keyName, from: 1, _) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
  }

  @Test func `Migrations must lead from each schema to the next`() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = StoreSchema(version: 4, migrations: [StoreMigration(from: 1) { $0 }, StoreMigration(from: 3) { $0 }])
    }
    #expect(
      message(of: result).contains(
        "A schema of version 4 needs one migration from each version before it, in order: [1, 2, 3], not [1, 3]."))
  }

  @Test func `A schema's version must be at least 1`() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      _ = StoreSchema(version: 0)
    }
    #expect(message(of: result).contains("A schema's version is at least 1, not 0."))
  }

  private func message(of result: ExitTest.Result?) -> String {
    String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
  }
}

import DataStore
import DataStoreTesting
import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(15))) struct ConformanceTests {
  @Test(arguments: StoreConformance.checks)
  func `A store in memory keeps the rules`(check: StoreConformance.Check) async throws {
    let storage = InMemoryStorage()
    let harness = StoreHarness(isWatched: true) {
      InMemoryStore(storage: storage)
    } contents: {
      storage.names.flatMap { [Data($0.utf8), storage[$0] ?? Data()] }
    } corrupt: { key in
      storage[try key.encoded()] = Data("corrupt".utf8)
    }
    try await check.run(on: harness)
  }

  @Test(arguments: StoreConformance.checks)
  func `A store in files keeps the rules`(check: StoreConformance.Check) async throws {
    let temporary = TemporaryFolder()
    let folder = temporary.url
    let harness = StoreHarness(isWatched: true) {
      FileStore(folder: folder)
    } contents: {
      try temporary.namesAndBytes
    } corrupt: { key in
      try Data("corrupt".utf8).write(to: folder.appending(path: "\(try key.encoded()).value"))
    }
    try await check.run(on: harness)
    extendLifetime(temporary)
  }

  @Test(arguments: StoreConformance.checks)
  func `A store in user defaults keeps the rules`(check: StoreConformance.Check) async throws {
    let suiteName = "DataStoreTests-\(UUID().uuidString)"
    defer { UserDefaults.standard.removePersistentDomain(forName: suiteName) }
    let harness = StoreHarness(isWatched: true, hasLocks: false) {
      UserDefaultsStore(suiteName: suiteName)
    } contents: {
      UserDefaults(suiteName: suiteName)!.dictionaryRepresentation().flatMap { name, object in
        [Data(name.utf8), object as? Data ?? Data()]
      }
    } corrupt: { key in
      UserDefaults(suiteName: suiteName)!.set(Data("corrupt".utf8), forKey: "DataStore.\(try key.encoded())")
    }
    try await check.run(on: harness)
  }

  #if SQLite
    @Test(arguments: StoreConformance.checks)
    func `A store in a database keeps the rules`(check: StoreConformance.Check) async throws {
      let place = SQLitePlace()
      let harness = StoreHarness(isWatched: true) {
        SQLiteStore(file: place.file)
      } contents: {
        try place.temporary.namesAndBytes
      } corrupt: { key in
        try place.corrupt(key.encoded())
      }
      try await check.run(on: harness)
    }
  #endif

  #if PostgreSQL
    @Test(
      .disabled(if: PostgreSQLPlace.isMissing, "MOMENTS_POSTGRESQL is not set."),
      arguments: StoreConformance.checks)
    func `A store on a server keeps the rules`(check: StoreConformance.Check) async throws {
      let place = try PostgreSQLPlace()
      let harness = StoreHarness(isWatched: true) {
        place.store()
      } corrupt: { key in
        try place.corrupt(key.encoded())
      }
      try await check.run(on: harness)
      extendLifetime(place)
    }
  #endif

  @Test func `A caller works unchanged with stores in memory, in files and in user defaults`() async throws {
    let temporary = TemporaryFolder()
    let suiteName = "DataStoreTests-\(UUID().uuidString)"
    defer { UserDefaults.standard.removePersistentDomain(forName: suiteName) }
    let stores: [any KeyValueStore] = [
      InMemoryStore(), FileStore(folder: temporary.url), UserDefaultsStore(suiteName: suiteName),
    ]
    for store in stores {
      let counter = VisitCounter(store: store)
      #expect(try await counter.visit() == 1)
      #expect(try await counter.visit() == 2)
    }
  }

  /// A caller that uses only the protocol.
  private struct VisitCounter {
    let store: any KeyValueStore
    let key = StoreKey<Int>("visits")

    func visit() async throws(StoreError) -> Int {
      let count = try await store.load(key)?.value ?? 0
      return try await store.save(count + 1, for: key).value
    }
  }
}

import DataStoreTesting
import Foundation
import Multicast
import MulticastTesting
import TestSupport
import Testing

@testable import DataStore

/// Feeds beyond the rules of `StoreConformance`.
@Suite(.timeLimit(.minutes(15))) struct StoreFeedTests {
  private let storage = InMemoryStorage()
  private let key = StoreKey<Int>("a", id: "0")

  private var store: InMemoryStore { InMemoryStore(storage: storage) }

  @Test func `The elements finish when the store is released, and calls for the feed then do nothing`() async throws {
    var store: InMemoryStore? = store
    let feed = try #require(await store?.feed())
    try await feed.follow(key)
    try await store?.save(1, for: key)
    store = nil
    var count = 0
    for await _ in feed.elements { count += 1 }
    #expect(count == 2)
    try await feed.follow(collection: "b", as: Int.self)
    try await feed.catchUp()
  }

  @Test func `A feed that was released costs nothing`() async throws {
    let store = BackedStore(backend: InMemoryBackend(storage: storage))
    for number in 1...3 {
      let feed = await store.feed()
      try await feed.follow(key)
      try await feed.follow(collection: "b", as: Int.self)
      // The jobs that remove the earlier feeds have arrived before this call.
      #expect(await store.feedCount == 1, "\(number)")
      #expect(await store.observedCount(in: "a") == 1)
      extendLifetime(feed)
    }
    #expect(await store.feedCount == 0)
    #expect(await store.observedCount(in: "a") == 0)
  }

  @Test func `A key of another type can't be followed`() async throws {
    let store = store
    try await store.save(1, for: key)
    let feed = await store.feed()
    await #expect(throws: StoreError.self) { try await feed.follow(StoreKey<String>("a", id: "1")) }
    await #expect(throws: StoreError.self) { try await feed.follow(collection: "a", as: String.self) }
    await #expect(throws: StoreError.self) { try await feed.follow(collection: "", as: Int.self) }
    await #expect(throws: StoreError.self) { try await feed.follow(StoreKey<Int>("c", id: "")) }
  }

  @Test func `A feed of a collection and of one of its keys receives each change once`() async throws {
    let store = store
    let feed = await store.feed()
    try await feed.follow(collection: "a", as: Int.self)
    try await feed.follow(key)
    try await store.save(1, for: key)
    try await store.remove(key)
    let changes = await feed.elements.first(4).dropFirst(2).map { element in
      if case .committed(let transaction) = element { transaction.changes.count } else { 0 }
    }
    #expect(changes == [1, 1])
  }

  @Test func `A call that notices a part of a commit of another store sends all of it as one element`() async throws {
    let store = BackedStore(backend: SteppedBackend(SteppedBackend.Control(), storage: storage, wakes: false))
    let feed = await store.feed()
    let keys = [key, StoreKey<Int>("b", id: "0"), StoreKey<Int>("c")]
    for key in keys { try await feed.follow(key) }
    var batch = StoreBatch()
    for key in keys { batch.save(1, for: key) }
    try await InMemoryStore(storage: storage).commit(batch)
    #expect(try await store.load(keys[1])?.value == 1)
    guard case .committed(let transaction) = await feed.elements.first(4).last else {
      Issue.record("expected the commit")
      return
    }
    #expect(Set(transaction.changes.map(\.key)) == Set(keys.map(\.keyName)))
    #expect(transaction.ownTag == nil)
  }

  @Test func `A feed tells what this program can't read, and then what replaces it`() async throws {
    let store = store
    let future = StoreKey<Future>("a", id: "future")
    try await InMemoryStore(storage: storage).save(Future(number: 7), for: future)
    let feed = await store.feed()
    try await feed.follow(collection: "a", as: Present.self)
    guard case .began(_, let found) = await feed.elements.first(1).first,
      case .unusable(future.keyName, schema: 2, let reason, let byteCount) = found.first
    else {
      Issue.record("expected a value that can't be used")
      return
    }
    #expect(reason == "it is stored in format 3, schema 2, and this program supports format 3, schema 1")
    #expect((byteCount ?? 0) > 0)
    try await InMemoryStore(storage: storage).remove(future)
    try await feed.catchUp()
    guard case .committed(let transaction) = await feed.elements.first(1).first,
      case .removed(future.keyName, _) = transaction.changes.first
    else {
      Issue.record("expected the removal")
      return
    }
  }

  private struct Present: Codable, Hashable {
    var number: Int
  }

  private struct Future: VersionedValue, Hashable {
    static let schema = StoreSchema(
      version: 2, migrations: [StoreMigration(from: 1, decoding: Present.self) { Future(number: $0.number) }])

    var number: Int
  }

  /// Two writers on two stores change pairs of values while a feed of a third store follows them.
  @Test(arguments: [true, false])
  func `After each element, the followed part is what the store held at one instant`(watches: Bool) async throws {
    let temporary = TemporaryFolder()
    let folder = temporary.url
    let reader = watches ? FileStore(folder: folder) : nil
    let store: any KeyValueStore = reader ?? store
    let (storage, count) = (storage, 100)
    let feed = await store.feed()
    let (first, second) = (StoreKey<Int>("first"), StoreKey<Int>("second"))
    try await feed.follow(first)
    try await feed.follow(collection: "second", as: Int.self)
    let writers = (0..<2).map { writer in
      Task {
        let other: any KeyValueStore = watches ? FileStore(folder: folder) : InMemoryStore(storage: storage)
        for number in 0..<count {
          var batch = StoreBatch()
          batch.save(2 * number + writer, for: first)
          batch.save(2 * number + writer, for: second)
          try await other.commit(batch)
        }
      }
    }
    for writer in writers { try await writer.value }
    try await feed.catchUp()
    try await store.save(-1, for: second)
    var values: (Int?, Int?)
    for await case .committed(let transaction) in feed.elements {
      for change in transaction.changes {
        values.0 = change.stored(for: first)?.value ?? values.0
        values.1 = change.stored(for: second)?.value ?? values.1
      }
      if values.1 == -1 { break }
      #expect(values.0 == values.1)
    }
    #expect((values.0 ?? 0) >= 2 * (count - 1))
    extendLifetime(temporary)
  }
}

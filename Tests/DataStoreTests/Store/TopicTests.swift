import Foundation
import Multicast
import Testing

@testable import DataStore

/// The state that a store keeps for ids without a stored value.
@Suite(.timeLimit(.minutes(15))) struct TopicTests {
  private let storage = InMemoryStorage()

  private func makeStore() -> BackedStore<InMemoryBackend> {
    BackedStore(backend: InMemoryBackend(storage: storage))
  }

  private func key(_ number: Int) -> StoreKey<String> { StoreKey("text", id: "\(number)") }

  @Test func `An observed collection keeps no state for ids whose values were removed`() async throws {
    let store = makeStore()
    let changes = try await store.observe(collection: "text", as: String.self).changes
    for number in 0..<1_000 { try await store.save("a", for: key(number)) }
    #expect(await store.knownCount(in: "text") == 1_000)
    for number in 0..<1_000 { try await store.remove(key(number)) }
    // The store keeps no state for ids that never had a value, either.
    for number in 1_000..<1_010 { #expect(try await store.load(key(number)) == nil) }
    // Nor does it keep any for ids whose corrupt bytes were quarantined.
    storage[try key(2_000).keyName.encoded()] = Data("hello".utf8)
    await #expect(throws: StoreError.self) { try await store.load(key(2_000)) }
    #expect(await store.knownCount(in: "text") == 0)

    var iterator = changes.makeAsyncIterator()
    for number in 1...1_000 { #expect(await iterator.next()?.map(\.revision) == [UInt64(number)]) }
    for number in 0..<1_000 {
      #expect(await iterator.next() == [.removed(key(number), revision: UInt64(1_001 + number))])
    }
  }

  @Test func `The state of removed values is discarded when their collection is first observed`() async throws {
    let store = makeStore()
    for number in 0..<10 { try await store.save("a", for: key(number)) }
    for number in 1..<10 { try await store.remove(key(number)) }
    // Until the collection is observed, a value that a read finds for an id without state counts as stored all along.
    // So the state of a removed value is kept, and a value that a later read finds for its id is an external change.
    #expect(await store.knownCount(in: "text") == 10)
    _ = try await store.observe(collection: "text", as: String.self)
    #expect(await store.knownCount(in: "text") == 1)
  }

  @Test func `In an observed collection, an external save for an id without any state is a change`() async throws {
    let store = makeStore()
    let changes = try await store.observe(collection: "text", as: String.self).changes
    try await store.save("a", for: key(0))
    try await store.remove(key(0))
    let external = try await makeStore().save("b", for: key(0))
    let stored = StoredValue(value: "b", savedAt: external.savedAt, revision: 3, tag: external.tag)
    #expect(try await store.load(key(0)) == stored)
    var iterator = changes.makeAsyncIterator()
    #expect(await iterator.next()?.map(\.stored?.value) == ["a"])
    #expect(await iterator.next() == [.removed(key(0), revision: 2)])
    #expect(await iterator.next() == [.saved(key(0), stored)])
  }
}

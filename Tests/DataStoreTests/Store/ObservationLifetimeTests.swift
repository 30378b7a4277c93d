import Foundation
import Multicast
import Testing

@testable import DataStore

/// The lifetime of the channels that a store keeps for observers.
@Suite(.timeLimit(.minutes(15))) struct ObservationLifetimeTests {
  private let store = BackedStore(backend: InMemoryBackend(storage: InMemoryStorage()))

  private func key(_ number: Int) -> StoreKey<Int> { StoreKey("number", id: "\(number)") }

  @Test func `A key has a channel only while a stream or a subscription of the channel exists`() async throws {
    var streams: [MulticastStream<StoreChange<Int>, Never>] = []
    for number in 0..<2_000 { streams.append(try await store.changes(of: key(number))) }
    #expect(await store.observedCount(in: "number") == 2_000)
    var subscription: MulticastSubscription? = streams[7].subscribe()
    streams = []
    #expect(await store.observedCount(in: "number") == 1)
    let saved = try await store.save(7, for: key(7))
    if let subscription { for await change in subscription { #expect(change == .saved(key(7), saved)); break } }
    subscription = nil
    #expect(await store.observedCount(in: "number") == 0)
  }

  @Test func `A stream starts with the value that is stored when its iteration begins, and every later change follows`()
    async throws
  {
    try await store.save(1, for: key(0))
    let stream = try await store.changes(of: key(0))
    let second = try await store.save(2, for: key(0))
    var iterator = stream.makeAsyncIterator()
    #expect(await iterator.next() == .saved(key(0), second))
    let third = try await store.save(3, for: key(0))
    #expect(await iterator.next() == .saved(key(0), third))
  }

  @Test func `If a key is observed again, its new stream starts with a value saved while the key had no observer`()
    async throws
  {
    _ = try await store.changes(of: key(0))
    let saved = try await store.save(1, for: key(0))
    var iterator = try await store.changes(of: key(0)).makeAsyncIterator()
    #expect(await iterator.next() == .saved(key(0), saved))
  }
}

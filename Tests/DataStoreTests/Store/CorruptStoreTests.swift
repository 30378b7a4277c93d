import DataStore
import Foundation
import Multicast
import Testing

/// The behavior of a store whose backend finds the whole store corrupt.
@Suite(.timeLimit(.minutes(15))) struct CorruptStoreTests {
  private let key = StoreKey<String>("text", id: "0")
  private let backend = CorruptibleBackend()
  private let corruptStoreError = CorruptibleBackend.error(reason: "a reason")

  /// Expects that the store has sent one event, and corrupts the store again to show that no other event follows.
  private func expectOneEventUntilNextCorruption(of store: BackedStore<CorruptibleBackend>) async throws {
    var events = store.events.subscribe().makeAsyncIterator()
    #expect(await events.next() == .storeQuarantined(movedTo: "a place", reason: "a reason"))
    // The next event is that of the next corruption, so there was no other event in between.
    backend.corrupt(reason: "another reason")
    await #expect(throws: CorruptibleBackend.error(reason: "another reason")) { try await store.load(key) }
    #expect(await events.next() == .storeQuarantined(movedTo: "a place", reason: "another reason"))
  }

  @Test func `A load reports a corrupt store once`() async throws {
    let store = BackedStore(backend: backend)
    try await store.save("a", for: key)
    backend.corrupt()
    await #expect(throws: corruptStoreError) { try await store.load(key) }
    #expect(try await store.load(key) == nil)
    try await expectOneEventUntilNextCorruption(of: store)
  }

  @Test func `A save to a corrupt store succeeds, and an event reports the corruption`() async throws {
    let store = BackedStore(backend: backend)
    try await store.save("a", for: key)
    backend.corrupt()
    let saved = try await store.save("b", for: key)
    #expect(try await store.load(key) == saved)
    try await expectOneEventUntilNextCorruption(of: store)
  }

  @Test func `A removal from a corrupt store succeeds, and an event reports the corruption`() async throws {
    let store = BackedStore(backend: backend)
    try await store.save("a", for: key)
    backend.corrupt()
    try await store.remove(key)
    #expect(try await store.load(key) == nil)
    try await expectOneEventUntilNextCorruption(of: store)
  }

  @Test func `After a corruption, existing observers receive later saves, and new observers receive no lost value`()
    async throws
  {
    let store = BackedStore(backend: backend)
    let otherKey = StoreKey<String>("other")
    var changes = try await store.changes(of: key).subscribe().makeAsyncIterator()
    var otherChanges = try await store.changes(of: otherKey).subscribe().makeAsyncIterator()
    let first = try await store.save("a", for: key)
    let otherFirst = try await store.save("b", for: otherKey)
    backend.corrupt()
    #expect(try await store.observe(collection: "text", as: String.self).stored == [])
    var lateChanges = try await store.changes(of: otherKey).subscribe().makeAsyncIterator()
    let second = try await store.save("c", for: key)
    let otherSecond = try await store.save("d", for: otherKey)
    for expected in [first, second] { #expect(await changes.next() == .saved(key, expected)) }
    for expected in [otherFirst, otherSecond] { #expect(await otherChanges.next() == .saved(otherKey, expected)) }
    #expect(await lateChanges.next() == .saved(otherKey, otherSecond))
    try await expectOneEventUntilNextCorruption(of: store)
  }

  @Test func `A save succeeds, with an event, if it finds the corruption while it reads external changes`()
    async throws
  {
    let store = BackedStore(backend: backend)
    let changes = try await store.observe(collection: "text", as: String.self).changes
    let first = try await store.save("a", for: key)
    backend.reportsChanges.withLock { $0 = true }
    backend.corrupt()
    let second = try await store.save("b", for: key)
    backend.reportsChanges.withLock { $0 = false }
    var iterator = changes.makeAsyncIterator()
    for saved in [first, second] { #expect(await iterator.next() == [.saved(key, saved)]) }
    #expect(try await store.load(key) == second)
    try await expectOneEventUntilNextCorruption(of: store)
  }

  @Test func `External changes that a save reads before it finds the corruption are not sent`() async throws {
    let store = BackedStore(backend: backend)
    let changes = try await store.observe(collection: "text", as: String.self).changes
    let first = try await store.save("a", for: key)
    try await BackedStore(backend: backend).save("external", for: StoreKey("text", id: "1"))
    backend.reportsChanges.withLock { $0 = true }
    backend.corruptAtWrite()
    let second = try await store.save("b", for: key)
    backend.reportsChanges.withLock { $0 = false }
    var iterator = changes.makeAsyncIterator()
    for saved in [first, second] { #expect(await iterator.next() == [.saved(key, saved)]) }
    try await expectOneEventUntilNextCorruption(of: store)
  }

  @Test func `An observer receives the next save even if the call to observe was the first to find the corruption`()
    async throws
  {
    backend.corrupt()
    let store = BackedStore(backend: backend)
    var changes = try await store.changes(of: key).subscribe().makeAsyncIterator()
    let saved = try await store.save("a", for: key)
    #expect(await changes.next() == .saved(key, saved))
    try await expectOneEventUntilNextCorruption(of: store)
  }
}

/// An in-memory backend that a test corrupts.
///
/// The next access to its contents then finds the whole store corrupt, quarantines it, and throws
/// ``error(reason:)``.
private final class CorruptibleBackend: StoreBackend, Sendable {
  static func error(reason: String) -> StoreError { .corruptStore(movedTo: "a place", reason: reason) }

  /// The reason of a corruption that wasn't found yet.
  private let corruption = Lock<String?>(nil)
  private let isCorruptAtWrite = Lock(false)
  /// Whether ``takeExternalChanges()`` reports that any name may have changed.
  let reportsChanges = Lock(false)
  private let contents = Lock<[String: Data]>([:])

  /// Lets the next access to the contents find the corruption.
  func corrupt(reason: String = "a reason") {
    corruption.withLock { $0 = reason }
  }

  /// Lets the next write, and no read before it, find the corruption.
  func corruptAtWrite() {
    isCorruptAtWrite.withLock { $0 = true }
  }

  func takeExternalChanges() -> ExternalChanges {
    reportsChanges.withLock { $0 } ? .unknown : .names([])
  }

  private func checkForCorruption() throws(StoreError) {
    guard let reason = corruption.withLock({ exchange(&$0, with: nil) }) else { return }
    contents.withLock { $0 = [:] }
    throw Self.error(reason: reason)
  }

  func read(_ name: String) throws(StoreError) -> Data? {
    try checkForCorruption()
    return contents.withLock { $0[name] }
  }

  func commit(
    _ writes: [StoreWrite], deciding decide: (inout CorruptibleBackend) throws(StoreError) -> CommitDecision
  ) throws(StoreError) -> Bool {
    var backend = self
    guard case .proceed(let removals) = try decide(&backend) else { return false }
    if isCorruptAtWrite.withLock({ exchange(&$0, with: false) }) { corrupt() }
    try checkForCorruption()
    contents.withLock { contents in
      for name in removals { contents[name] = nil }
      for write in writes { contents[write.name] = write.bytes }
    }
    return true
  }

  func quarantine(_ bytes: Data, of name: String, at time: Date) throws(StoreError) -> String? {
    try checkForCorruption()
    contents.withLock { $0[name] = nil }
    return "quarantine"
  }

  func names() throws(StoreError) -> [String] {
    try checkForCorruption()
    return contents.withLock { Array($0.keys) }
  }
}

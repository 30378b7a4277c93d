import Foundation
import Multicast
import Testing

@testable import DataStore

/// The changes of one key, while it is changed externally.
@Suite(.timeLimit(.minutes(15))) struct ChangesOfKeyTests {
  @Test func `If a key changes while its stream is created, the stream starts with the newest value`() async throws {
    let key = StoreKey<String>("text", id: "0")
    let backend = ReportingBackend()
    let store = BackedStore(backend: backend)
    let collectionChanges = try await store.observe(collection: "text", as: String.self).changes
    let secondBytes = try encodedEnvelope("second")
    backend.storage["text.0"] = try encodedEnvelope("first")
    // Creating the stream reads "first", and so finds an external change. The collection is observed too, and its
    // observers receive the changes of one external commit together. Therefore, the store checks for other changes
    // before it sends the change to "first". The check takes a snapshot, and the key changes again when that begins.
    backend.onSnapshot.withLock {
      $0 = { [backend] in
        backend.storage["text.0"] = secondBytes
        backend.changedNames.withLock { $0 = ["text.0"] }
      }
    }
    var changes = try await store.changes(of: key).makeAsyncIterator()
    #expect(await changes.next()?.stored?.value == "second")
    var collectionIterator = collectionChanges.makeAsyncIterator()
    // The check found "second" before "first" was sent, so both are in one element, although they are two commits.
    #expect(await collectionIterator.next()?.map(\.stored?.value) == ["first", "second"])
  }
}

/// An in-memory backend that reports the changes that a test sets.
private final class ReportingBackend: StoreBackend, Sendable {
  let storage = InMemoryStorage()
  /// The names that the next call of `takeExternalChanges()` returns.
  let changedNames = Lock<[String]>([])
  /// Called once, when the next snapshot begins.
  let onSnapshot = Lock<(@Sendable () -> Void)?>(nil)
  private var base: InMemoryBackend { InMemoryBackend(storage: storage) }

  func read(_ name: String) -> Data? { base.read(name) }

  func snapshot<Result>(
    _ body: (inout ReportingBackend) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    onSnapshot.withLock { exchange(&$0, with: nil) }?()
    var backend = self
    return try body(&backend)
  }

  func commit(
    _ writes: [StoreWrite], deciding decide: (inout ReportingBackend) throws(StoreError) -> CommitDecision
  ) throws(StoreError) -> Bool {
    var backend = self
    return try base.make(writes, try decide(&backend))
  }

  func quarantine(_ bytes: Data, of name: String, at time: Date) -> String? {
    base.quarantine(bytes, of: name, at: time)
  }

  func names() -> [String] { base.names() }

  func takeExternalChanges() -> ExternalChanges {
    .names(changedNames.withLock { exchange(&$0, with: []) })
  }
}

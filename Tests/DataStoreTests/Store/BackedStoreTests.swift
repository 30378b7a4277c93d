import DataStore
import Dispatch
import Foundation
import Multicast
import Testing

@Suite(.timeLimit(.minutes(15))) struct BackedStoreTests {
  private let key = StoreKey<String>("text", id: "0")
  /// Bytes of format 9, whose schema is unknown: errors and events name the supported schema instead.
  private let futureFormatBytes = Data("{\"checksum\":\"71f92dee\",\"format\":9}\nunknown".utf8)
  private let supportedVersion = StoredVersion(format: 3, schema: 1)

  @Test func `The time of a save is that of the store's clock`() async throws {
    let time = Lock(Date(timeIntervalSinceReferenceDate: 1.1))
    let storage = InMemoryStorage()
    let store = InMemoryStore(storage: storage) { time.withLock { $0 } }
    try await store.save("a", for: key)
    time.withLock { $0 = Date(timeIntervalSinceReferenceDate: 2.2) }
    #expect(try await store.load(key)?.savedAt == Date(timeIntervalSinceReferenceDate: 1.1))
    #expect(try await store.save("b", for: key).savedAt == Date(timeIntervalSinceReferenceDate: 2.2))
  }

  @Test func `An observation has its values in the order of saving, even if the clock is set back`() async throws {
    let time = Lock(Date(timeIntervalSinceReferenceDate: 10))
    let storage = InMemoryStorage()
    let store = InMemoryStore(storage: storage) {
      time.withLock { time in
        time -= 1
        return time
      }
    }
    for id in ["b", "c", "a"] { try await store.save(id, for: StoreKey("text", id: id)) }
    let observation = try await store.observe(collection: "text", as: String.self)
    #expect(observation.stored.map(\.key.id) == ["b", "c", "a"])

    // A new store object knows only the times of the saves, which are in reverse order.
    let laterObservation = try await InMemoryStore(storage: storage).observe(collection: "text", as: String.self)
    #expect(laterObservation.stored.map(\.key.id) == ["a", "c", "b"])
  }

  @Test func `A value of a future format is neither read nor replaced nor removed`() async throws {
    let storage = InMemoryStorage()
    let name = try key.keyName.encoded()
    storage[name] = futureFormatBytes
    let store = InMemoryStore(storage: storage)
    let error = StoreError.newerFormat(
      key.keyName, found: StoredVersion(format: 9, schema: 1), supported: supportedVersion)
    await #expect(throws: error) { try await store.load(key) }
    await #expect(throws: error) { try await store.save("a", for: key) }
    await #expect(throws: error) { try await store.remove(key) }
    await #expect(throws: error) { try await store.changes(of: key) }
    #expect(storage[name] == futureFormatBytes)
    #expect(storage.names == [name])
  }

  @Test func `An observation has a value that another process stores right before a quarantine`() async throws {
    let storage = InMemoryStorage()
    let name = try key.keyName.encoded()
    storage[name] = Data("corrupt".utf8)
    // The first replacement is corrupt too, so the store must read two more times.
    let externalBytes = Lock([Data("corrupt again".utf8), try encodedEnvelope("theirs")])
    let backend = OvertakenBackend(storage: storage) {
      externalBytes.withLock { $0.isEmpty ? nil : $0.removeFirst() }
    }
    let store = BackedStore(backend: backend)
    let observation = try await store.observe(collection: "text", as: String.self)
    #expect(observation.stored.map(\.key) == [key])
    #expect(observation.stored.map(\.stored.value) == ["theirs"])
    #expect(externalBytes.withLock { $0 } == [])
    #expect(storage.names == [name])
    let ours = try await store.save("ours", for: key)
    var changes = observation.changes.makeAsyncIterator()
    #expect(await changes.next() == [.saved(key, ours)])
  }

  @Test func `A value of a future format is left out of an observation, and reported as an event`() async throws {
    let storage = InMemoryStorage()
    storage[try key.keyName.encoded()] = futureFormatBytes
    let store = InMemoryStore(storage: storage)
    try await store.save("a", for: StoreKey("text"))
    let observation = try await store.observe(collection: "text", as: String.self)
    #expect(observation.stored.map(\.stored.value) == ["a"])
    var events = store.events.makeAsyncIterator()
    let event = await events.next()
    #expect(
      event
        == .newerValueLeftUntouched(
          key.keyName, found: StoredVersion(format: 9, schema: 1), supported: supportedVersion))
  }

  @Test func `Corrupt bytes are quarantined unchanged, and the error and the event say where`() async throws {
    let storage = InMemoryStorage()
    let corruptBytes = Data([0xFF, 0x00, 0x0A, 0xFE])
    storage[try key.keyName.encoded()] = corruptBytes
    let store = InMemoryStore(storage: storage) { Date(timeIntervalSince1970: 1_605_521_360) }
    let error = await #expect(throws: StoreError.self) { try await store.load(key) }
    guard case .undecodable(key.keyName, let movedTo?, let reason) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(movedTo == "text.0.corrupt-20201116T100920.000Z")
    #expect(storage[movedTo] == corruptBytes)
    #expect(storage.names == [movedTo])
    var events = store.events.makeAsyncIterator()
    let event = await events.next()
    #expect(event == .valueQuarantined(key.keyName, movedTo: movedTo, reason: reason))
  }

  @Test func `Removing corrupt bytes quarantines them, and observers receive a removal`() async throws {
    let storage = InMemoryStorage()
    let store = InMemoryStore(storage: storage)
    let saved = try await store.save("good", for: key)
    var changes = try await store.changes(of: key).subscribe().makeAsyncIterator()
    let corruptBytes = Data("corrupt".utf8)
    storage["text.0"] = corruptBytes
    try await store.remove(key)
    var events = store.events.makeAsyncIterator()
    guard case .valueQuarantined(key.keyName, let movedTo, _) = await events.next() else {
      Issue.record("no valueQuarantined event")
      return
    }
    #expect(storage[movedTo] == corruptBytes)
    #expect(storage["text.0"] == nil)
    #expect(await changes.next() == .saved(key, saved))
    #expect(await changes.next() == .removed(key, revision: 2))
  }

  @Test func `A save or removal that cannot be written throws, is not sent, and has no revision`() async throws {
    let backend = SwitchableBackend()
    let store = BackedStore(backend: backend)
    let changes = try await store.changes(of: key).subscribe()
    let collectionChanges = try await store.observe(collection: "text", as: String.self).changes
    let first = try await store.save("first", for: key)
    backend.isBroken.withLock { $0 = true }
    await #expect(throws: StoreError.writeFailed(SwitchableBackend.error)) { try await store.save("lost", for: key) }
    await #expect(throws: StoreError.removeFailed(SwitchableBackend.error)) { try await store.remove(key) }
    backend.isBroken.withLock { $0 = false }
    #expect(try await store.load(key) == first)
    let second = try await store.save("second", for: key)
    #expect(second.revision == 2)
    var iterator = changes.makeAsyncIterator()
    var collectionIterator = collectionChanges.makeAsyncIterator()
    for saved in [first, second] {
      #expect(await iterator.next() == .saved(key, saved))
      #expect(await collectionIterator.next() == [.saved(key, saved)])
    }
  }

  @Test func `Streams finish when the store is released, after their buffered elements`() async throws {
    var store: InMemoryStore? = InMemoryStore()
    let changes = try await store!.changes(of: key).subscribe()
    let collectionChanges = try await store!.observe(collection: "text", as: String.self).changes
    let events = store!.events.subscribe()
    let saved = try await store!.save("last", for: key)
    store = nil
    var received: [StoreChange<String>] = []
    for await change in changes { received.append(change) }
    for await commit in collectionChanges { received += commit }
    #expect(received == [.saved(key, saved), .saved(key, saved)])
    for await event in events { Issue.record("\(event)") }
  }

  @Test func `A store that blocks does not occupy a thread that tasks share`() async throws {
    let storeCount = ProcessInfo.processInfo.activeProcessorCount * 4
    let gate = DispatchSemaphore(value: 0)
    let arrivals = MulticastRelay<Void>(buffering: .unbounded)
    let arrivalSubscription = arrivals.stream.subscribe()
    await withTaskGroup { group in
      for _ in 0..<storeCount {
        group.addTask {
          let store = BackedStore(backend: BlockingBackend(gate: gate, arrivals: arrivals))
          await #expect(throws: Never.self) { try await store.load(StoreKey<Int>("number")) }
        }
      }
      // All stores block before the first one continues. If they used shared threads, none would be left for this task.
      var iterator = arrivalSubscription.makeAsyncIterator()
      for _ in 0..<storeCount { await iterator.next() }
      for _ in 0..<storeCount { gate.signal() }
    }
  }

  @Test func `Calls of a store are isolated on its executor`() async throws {
    let store = BackedStore(
      backend: BlockingBackend(gate: DispatchSemaphore(value: 0), arrivals: MulticastRelay(buffering: .unbounded)))
    await store.checkIsolation()
  }
}

extension BackedStore {
  fileprivate func checkIsolation() {
    preconditionIsolated()
  }
}

/// An in-memory backend whose changes fail while it is broken.
private final class SwitchableBackend: StoreBackend, Sendable {
  /// The error of a full disk: 28 is ENOSPC.
  static let error = SystemError(code: 28, operation: "write", path: "a full disk")
  let isBroken = Lock(false)
  private let storage = InMemoryStorage()
  private var base: InMemoryBackend { InMemoryBackend(storage: storage) }

  func read(_ name: String) -> Data? { base.read(name) }

  func commit(
    _ writes: [StoreWrite], deciding decide: (inout SwitchableBackend) throws(StoreError) -> CommitDecision
  ) throws(StoreError) -> Bool {
    var backend = self
    guard case .proceed(let removals) = try decide(&backend) else { return false }
    if isBroken.withLock({ $0 }) { throw writes.isEmpty ? .removeFailed(Self.error) : .writeFailed(Self.error) }
    for name in removals { storage[name] = nil }
    for write in writes { storage[write.name] = write.bytes }
    return true
  }

  func quarantine(_ bytes: Data, of name: String, at time: Date) -> String? {
    base.quarantine(bytes, of: name, at: time)
  }

  func names() -> [String] { base.names() }
}

/// A backend that blocks its thread in each read until the gate is signaled.
private struct BlockingBackend: StoreBackend {
  let gate: DispatchSemaphore
  /// Receives an element when a read begins.
  let arrivals: MulticastRelay<Void>

  func read(_ name: String) -> Data? {
    arrivals.send(())
    gate.wait()
    return nil
  }

  func commit(
    _ writes: [StoreWrite], deciding decide: (inout Self) throws(StoreError) -> CommitDecision
  ) throws(StoreError) -> Bool { true }
  func quarantine(_ bytes: Data, of name: String, at time: Date) -> String? { name }
  func names() -> [String] { [] }
}

/// An in-memory backend in which another process may store other bytes right before a quarantine.
private struct OvertakenBackend: StoreBackend, Sendable {
  let storage: InMemoryStorage
  /// Returns the bytes that another process stores, or `nil` if it stores none.
  let nextExternalBytes: @Sendable () -> Data?

  private var base: InMemoryBackend { InMemoryBackend(storage: storage) }

  func read(_ name: String) -> Data? { storage[name] }

  mutating func commit(
    _ writes: [StoreWrite], deciding decide: (inout Self) throws(StoreError) -> CommitDecision
  ) throws(StoreError) -> Bool {
    try base.make(writes, decide(&self))
  }

  func quarantine(_ bytes: Data, of name: String, at time: Date) -> String? {
    if let externalBytes = nextExternalBytes() { storage[name] = externalBytes }
    return base.quarantine(bytes, of: name, at: time)
  }

  func names() -> [String] { base.names() }
}

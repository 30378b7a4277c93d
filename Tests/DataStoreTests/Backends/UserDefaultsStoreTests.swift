import DataStore
import Dispatch
import Foundation
import Multicast
import Testing

@Suite struct UserDefaultsStoreTests {
  private let key = StoreKey<String>("text", id: "0")

  @Test func `Only keys with the store's prefix are changed`() async throws {
    let suiteName = "DataStoreTests-\(UUID().uuidString)"
    defer { UserDefaults.standard.removePersistentDomain(forName: suiteName) }
    let defaults = UserDefaults(suiteName: suiteName)!
    defaults.set("foreign", forKey: "text.0")
    let store = UserDefaultsStore(suiteName: suiteName)
    try await store.save("a", for: key)
    let readKeys = { Set((UserDefaults.standard.persistentDomain(forName: suiteName) ?? [:]).keys) }
    #expect(readKeys() == ["text.0", "DataStore.text.0"])
    let observation = try await store.observe(collection: "text", as: String.self)
    #expect(observation.stored.map(\.key) == [key])
    try await store.remove(key)
    #expect(readKeys() == ["text.0"])
    #expect(defaults.string(forKey: "text.0") == "foreign")
  }

  @Test(.timeLimit(.minutes(5)))
  func `An observer hears of the saves, removals and erasures of another store at once`() async throws {
    let suiteName = "DataStoreTests-\(UUID().uuidString)"
    defer { UserDefaults.standard.removePersistentDomain(forName: suiteName) }
    let (store, other) = (UserDefaultsStore(suiteName: suiteName), UserDefaultsStore(suiteName: suiteName))
    var changes = try await store.changes(of: key).makeAsyncIterator()
    // No call of `store` follows, so only a watch can notice the changes.
    try await other.save("a", for: key)
    #expect(await changes.next()?.stored?.value == "a")
    try await other.remove(key)
    #expect(await changes.next()?.stored == nil)
    let secondKey = StoreKey<String>("text", id: "1")
    try await other.save("b", for: key)
    #expect(await changes.next()?.stored?.value == "b")
    try await other.erase { $0.key == key.keyName }
    #expect(await changes.next()?.stored == nil)
    // A store of another suite isn't concerned.
    let otherSuiteName = "DataStoreTests-\(UUID().uuidString)"
    defer { UserDefaults.standard.removePersistentDomain(forName: otherSuiteName) }
    try await UserDefaultsStore(suiteName: otherSuiteName).save("c", for: key)
    try await other.save("d", for: key)
    try await other.save("e", for: secondKey)
    #expect(await changes.next()?.stored?.value == "d")
    extendLifetime(store)
  }

  @Test func `Corrupt bytes are quarantined under another key`() async throws {
    let suiteName = "DataStoreTests-\(UUID().uuidString)"
    defer { UserDefaults.standard.removePersistentDomain(forName: suiteName) }
    let corrupt = Data([0xFF, 0x00])
    let defaults = UserDefaults(suiteName: suiteName)!
    defaults.set(corrupt, forKey: "DataStore.text.0")
    let store = UserDefaultsStore(suiteName: suiteName) { Date(timeIntervalSince1970: 1_605_521_360) }
    let error = await #expect(throws: StoreError.self) { try await store.load(key) }
    guard case .undecodable(key.keyName, "DataStore.text.0.corrupt-20201116T100920.000Z", _) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(defaults.data(forKey: "DataStore.text.0.corrupt-20201116T100920.000Z") == corrupt)
    #expect(defaults.data(forKey: "DataStore.text.0") == nil)
  }

  @Test(arguments: ["load", "save", "remove"])
  func `A stored object that isn't a Data value is quarantined under another key`(call: String) async throws {
    let suiteName = "DataStoreTests-\(UUID().uuidString)"
    defer { UserDefaults.standard.removePersistentDomain(forName: suiteName) }
    let defaults = UserDefaults(suiteName: suiteName)!
    defaults.set(["not", "bytes"], forKey: "DataStore.text.0")
    let store = UserDefaultsStore(suiteName: suiteName) { Date(timeIntervalSince1970: 1_605_521_360) }
    switch call {
    case "save": try await store.save("a", for: key)
    case "remove": try await store.remove(key)
    default: await #expect(throws: StoreError.self) { try await store.load(key) }
    }
    #expect(
      defaults.stringArray(forKey: "DataStore.text.0.corrupt-20201116T100920.000Z") == ["not", "bytes"])
    #expect(try await store.load(key)?.value == (call == "save" ? "a" : nil))
    // An event reports the quarantine, even if the call throws no error.
    #expect(await store.events.first { _ in true } != nil)
  }

  @Test func `A quarantine by one store never moves a value that another store has just saved`() throws {
    let suiteName = "DataStoreTests-\(UUID().uuidString)"
    defer { UserDefaults.standard.removePersistentDomain(forName: suiteName) }
    var backend = UserDefaultsBackend(suiteName: suiteName)
    let (corrupt, new) = (Data("corrupt".utf8), Data("new".utf8))
    for round in 1...200 {
      try backend.write(corrupt, to: "a")
      let savingThread = OtherThread {
        var other = UserDefaultsBackend(suiteName: suiteName)
        try other.write(new, to: "a")
      }
      _ = try backend.quarantine(corrupt, of: "a", at: Date(timeIntervalSince1970: Double(round)))
      try savingThread.wait()
      #expect(try backend.read("a") == new, "round \(round)")
    }
  }

  @Test func `A snapshot sees another store's commit completely or not at all`() throws {
    let suiteName = "DataStoreTests-\(UUID().uuidString)"
    defer { UserDefaults.standard.removePersistentDomain(forName: suiteName) }
    let names = (0..<10).map { "\($0)" }
    let isDone = Lock(false)
    let savingThread = OtherThread {
      defer { isDone.withLock { $0 = true } }
      var other = UserDefaultsBackend(suiteName: suiteName)
      for round in 1...300 {
        let writes = names.map { StoreWrite(name: $0, bytes: Data("\(round)".utf8)) }
        _ = try other.commit(writes) { _ in .proceed(removing: []) }
      }
    }
    var backend = UserDefaultsBackend(suiteName: suiteName)
    while !isDone.withLock({ $0 }) {
      let found = try backend.snapshot { (backend: inout UserDefaultsBackend) throws(StoreError) in
        var values: [Data?] = []
        for name in names { values.append(try backend.read(name)) }
        // A nested snapshot reads the same state as the outer one.
        return try backend.snapshot { (backend: inout UserDefaultsBackend) throws(StoreError) in
          values + [try backend.read(names[0])]
        }
      }
      #expect(Set(found).count == 1)
    }
    try savingThread.wait()
  }

  @Test func `The decision of a commit may take a snapshot, and a snapshot may contain a commit`() throws {
    let suiteName = "DataStoreTests-\(UUID().uuidString)"
    defer { UserDefaults.standard.removePersistentDomain(forName: suiteName) }
    let (old, new) = (Data("old".utf8), Data("new".utf8))
    var backend = UserDefaultsBackend(suiteName: suiteName)
    try backend.write(old, to: "a")
    _ = try backend.commit([StoreWrite(name: "b", bytes: new)]) { (backend) throws(StoreError) in
      let found = try backend.snapshot { (backend: inout UserDefaultsBackend) throws(StoreError) in
        try backend.read("a")
      }
      return found == old ? .proceed(removing: ["a"]) : .abandon
    }
    let movedTo = try backend.snapshot { (backend: inout UserDefaultsBackend) throws(StoreError) in
      // `write` makes a commit of one change.
      try backend.write(old, to: "c")
      return try backend.quarantine(new, of: "b", at: Date())
    }
    #expect(movedTo != nil)
    #expect(try backend.names() == ["c"])
  }

  /// Work on a separate thread, because it may block.
  private final class OtherThread: Sendable {
    private let result = Lock<Result<Void, any Error>?>(nil)
    private let completion = DispatchSemaphore(value: 0)

    init(_ work: @escaping @Sendable () throws -> Void) {
      Thread.detachNewThread {
        let outcome = Result { try work() }
        self.result.withLock { $0 = outcome }
        self.completion.signal()
      }
    }

    func wait() throws {
      completion.wait()
      try result.withLock { $0 }?.get()
    }
  }

  @Test(arguments: ["", "../outside", "a/b"])
  func `An impossible suite name makes every call throw`(suiteName: String) async throws {
    let store = UserDefaultsStore(suiteName: suiteName)
    let error = await #expect(throws: StoreError.self) { try await store.load(key) }
    #expect(error?.description.hasSuffix("choose another name.") == true)
    await #expect(throws: StoreError.self) { try await store.save("a", for: key) }
    await #expect(throws: StoreError.self) { try await store.remove(key) }
    await #expect(throws: StoreError.self) { try await store.changes(of: key) }
    await #expect(throws: StoreError.self) { try await store.observe(collection: "text", as: String.self) }
  }
}

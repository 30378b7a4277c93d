import Foundation
import Multicast
import MulticastTesting
import Synchronization
import TestSupport
import Testing

@testable import DataStore

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// The behavior of a store when another store or program changes the same folder or storage.
///
/// All stores of a test are in one process, but they behave as in separate processes.
@Suite(.timeLimit(.minutes(15))) struct WatchingTests {
  private let temporary = TemporaryFolder()
  private let key = StoreKey<String>("text", id: "0")

  private var folder: URL { temporary.url }

  private var file: URL { folder.appending(path: "text.0.value") }

  private static func path(of folder: URL) -> String { String(folder.path(percentEncoded: false).dropLast()) }

  private static func exists(_ folder: URL) -> Bool {
    FileManager.default.fileExists(atPath: folder.path(percentEncoded: false))
  }

  /// Makes file system calls fail as the current rule, if any, says.
  private final class Faults: Sendable {
    let rule = Lock<(@Sendable (FileSystem.Call) -> CInt?)?>(nil)

    func makeStore(in folder: URL) -> FileStore {
      let fileSystem = FileSystem { call in self.rule.withLock { $0 }?(call) }
      return FileStore(folder: folder, fileSystem: fileSystem)
    }
  }

  @Test func `A folder that does not exist yet is observed once it exists`() async throws {
    let inner = folder.appending(path: "a/b/c", directoryHint: .isDirectory)
    let store = FileStore(folder: inner)
    var changes = try await store.changes(of: key).makeAsyncIterator()
    try await FileStore(folder: inner).save("theirs", for: key)
    #expect(await changes.next()?.stored?.value == "theirs")
    try await FileStore(folder: inner).save("again", for: key)
    #expect(await changes.next()?.stored?.value == "again")
  }

  @Test(arguments: DurableStore.allCases)
  func `A value that is stored while a check finds no folder isn't missed`(kind: DurableStore) async throws {
    let inner = folder.appending(path: "inner", directoryHint: .notDirectory)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let bytes = try encodedEnvelope("theirs")
    let isArmed = Lock(false)
    // When the check opens the folder, the value is stored, and the call fails as if the folder didn't exist yet.
    let fileSystem = FileSystem { call in
      guard call.operation == "open", call.path == inner.path(percentEncoded: false) else { return nil }
      guard isArmed.withLock({ exchange(&$0, with: false) }) else { return nil }
      do {
        try kind.write(bytes, to: "text.0", inFolder: inner)
      } catch {
        Issue.record(error)
      }
      return ENOENT
    }
    let store = kind.openPatiently(at: kind.place(inFolder: inner), fileSystem: fileSystem)
    var changes = try await store.changes(of: key).makeAsyncIterator()
    isArmed.withLock { $0 = true }
    try FileManager.default.createDirectory(at: inner, withIntermediateDirectories: false)
    #expect(await changes.next()?.stored?.value == "theirs")
    #expect(isArmed.withLock { !$0 })
  }

  #if !canImport(Darwin)
    @Test func `A folder can be watched after the descriptor of an active dispatch source was closed`() async {
      // Like URLSession, this test closes a descriptor while a dispatch source watches it. From then on, libdispatch
      // reports no events of descriptors with that number, so the store's watch must use another one. The test runs in
      // its own process, because descriptors of other tests may get the number too.
      await #expect(processExitsWith: .success) {
        var pipeEnds: [CInt] = [-1, -1]
        guard pipe(&pipeEnds) == 0 else { exit(2) }
        let source = DispatchSource.makeWriteSource(fileDescriptor: pipeEnds[0], queue: DispatchQueue(label: "source"))
        let isSourceRegistered = Gate()
        source.setRegistrationHandler { isSourceRegistered.open() }
        source.activate()
        await isSourceRegistered.pass()
        close(pipeEnds[0])

        let temporary = TemporaryFolder()
        let key = StoreKey<String>("text", id: "0")
        let store = FileStore(folder: temporary.url)
        var changes = try await store.changes(of: key).makeAsyncIterator()
        try await FileStore(folder: temporary.url).save("theirs", for: key)
        // Ends the process with a failure if no change arrives.
        Task {
          try await Task.sleep(for: .seconds(60))
          exit(3)
        }
        #expect(await changes.next()?.stored?.value == "theirs")
        withExtendedLifetime((source, temporary, store)) {}
      }
    }
  #endif

  @Test func `If a value can't be read when its collection is observed, the next change includes it`() async throws {
    let other = FileStore(folder: folder)
    try await other.save("theirs", for: key)
    let faults = Faults()
    faults.rule.withLock { $0 = { $0.operation == "open" && $0.path.hasSuffix("text.0.value") ? EIO : nil } }
    let store = faults.makeStore(in: folder)
    let observation = try await store.observe(collection: "text", as: String.self)
    #expect(observation.stored == [])
    faults.rule.withLock { $0 = nil }
    try await other.save("again", for: StoreKey("text", id: "1"))
    var changes = observation.changes.makeAsyncIterator()
    #expect(await changes.next()?.map(\.stored?.value) == ["theirs", "again"])
  }

  @Test func `A folder that disappears is reported, and is observed again when it returns`() async throws {
    let store = FileStore(folder: folder)
    try await store.save("first", for: key)
    var changes = try await store.changes(of: key).makeAsyncIterator()
    #expect(await changes.next()?.stored?.value == "first")
    var events = store.events.makeAsyncIterator()
    let elsewhere = TemporaryFolder()
    try FileManager.default.moveItem(at: folder, to: elsewhere.url)
    let path = String(folder.path(percentEncoded: false).dropLast())
    let error = StoreError.readFailed(SystemError(code: ENOENT, operation: "open", path: path))
    #expect(await events.next() == .watchingFailed(error))
    try await FileStore(folder: elsewhere.url).save("elsewhere", for: key)
    try FileManager.default.moveItem(at: elsewhere.url, to: folder)
    #expect(await changes.next()?.stored?.value == "elsewhere")
    try await FileStore(folder: folder).save("again", for: key)
    #expect(await changes.next()?.stored?.value == "again")
    extendLifetime(elsewhere)
  }

  @Test(arguments: DurableStore.allCases)
  func `A folder that returns after a check has found no folder isn't missed`(kind: DurableStore) async throws {
    let (folder, elsewhere) = (folder, TemporaryFolder())
    let bytes = try encodedEnvelope("elsewhere")
    // The check of the folder's disappearance opens the folder. Then the folder returns, and the call fails as if it
    // had been made before. So the folder's return is reported before the check takes the report of its disappearance.
    let fileSystem = FileSystem { call in
      guard call.operation == "open", call.path == Self.path(of: folder), Self.exists(elsewhere.url) else { return nil }
      do {
        try kind.write(bytes, to: "text.0", inFolder: elsewhere.url)
        try FileManager.default.moveItem(at: elsewhere.url, to: folder)
      } catch {
        Issue.record(error)
      }
      return ENOENT
    }
    let store = kind.openPatiently(at: kind.place(inFolder: folder), fileSystem: fileSystem)
    try await store.save("first", for: key)
    var changes = try await store.changes(of: key).makeAsyncIterator()
    #expect(await changes.next()?.stored?.value == "first")
    try FileManager.default.moveItem(at: folder, to: elsewhere.url)
    #expect(await changes.next()?.stored?.value == "elsewhere")
    try await kind.openPatiently(at: kind.place(inFolder: folder)).save("again", for: key)
    #expect(await changes.next()?.stored?.value == "again")
  }

  #if !canImport(Darwin)
    @Test(arguments: DurableStore.allCases)
    func `A folder that is replaced while a check reads the old one isn't missed`(kind: DurableStore) async throws {
      let (folder, elsewhere, replacement) = (folder, TemporaryFolder(), TemporaryFolder())
      try kind.write(try encodedEnvelope("replacement"), to: "text.0", inFolder: replacement.url)
      let isArmed = Lock(false)
      // A check takes the report while it has the folder open.
      let fileSystem = FileSystem { call in
        guard call.operation == "inotify_read", isArmed.withLock({ exchange(&$0, with: false) }) else { return nil }
        do {
          try FileManager.default.moveItem(at: folder, to: elsewhere.url)
          try FileManager.default.moveItem(at: replacement.url, to: folder)
        } catch {
          Issue.record(error)
        }
        return nil
      }
      let store = kind.openPatiently(at: kind.place(inFolder: folder), fileSystem: fileSystem)
      try await store.save("first", for: key)
      let file = folder.appending(path: "other")
      try Data().write(to: file)
      var changes = try await store.changes(of: key).makeAsyncIterator()
      #expect(await changes.next()?.stored?.value == "first")
      isArmed.withLock { $0 = true }
      // The removal causes a check. It fails if an earlier check has already moved the folder.
      try? FileManager.default.removeItem(at: file)
      #expect(await changes.next()?.stored?.value == "replacement")
      try await kind.openPatiently(at: kind.place(inFolder: folder)).save("again", for: key)
      #expect(await changes.next()?.stored?.value == "again")
      extendLifetime(elsewhere)
    }

    @Test(arguments: DurableStore.allCases)
    func `A folder that disappears while a check reads it is reported`(kind: DurableStore) async throws {
      let (folder, elsewhere) = (folder, TemporaryFolder())
      let isArmed = Lock(false)
      // A check takes the report while it has the folder open.
      let fileSystem = FileSystem { call in
        guard call.operation == "inotify_read", isArmed.withLock({ exchange(&$0, with: false) }) else { return nil }
        do {
          try FileManager.default.moveItem(at: folder, to: elsewhere.url)
        } catch {
          Issue.record(error)
        }
        return nil
      }
      let store = kind.openPatiently(at: kind.place(inFolder: folder), fileSystem: fileSystem)
      try await store.save("first", for: key)
      let file = folder.appending(path: "other")
      try Data().write(to: file)
      let stream = try await store.changes(of: key)
      var events = store.events.makeAsyncIterator()
      isArmed.withLock { $0 = true }
      // The removal causes a check. It fails if an earlier check has already moved the folder.
      try? FileManager.default.removeItem(at: file)
      let error = StoreError.readFailed(SystemError(code: ENOENT, operation: "open", path: Self.path(of: folder)))
      #expect(await events.next() == .watchingFailed(error))
      extendLifetime((elsewhere, stream))
    }
  #endif

  @Test func `A failure of checks is reported once until a check succeeds`() async throws {
    let storage = InMemoryStorage()
    let backend = FailingSnapshotsBackend(base: InMemoryBackend(storage: storage))
    let store = BackedStore(backend: backend)
    let changes = try await store.changes(of: key)
    /// Makes a check, and waits for it: a call runs after the check that `reportUnknownChange()` has scheduled.
    func check(failing failureCount: Int) async throws {
      backend.failNextSnapshots(failureCount)
      backend.reportUnknownChange()
      _ = try await store.load(StoreKey<String>("text", id: "1"))
    }
    for failureCount in [2, 2, 2, 0, 2] { try await check(failing: failureCount) }
    // Corrupt bytes cause the last event.
    storage[try key.keyName.encoded()] = Data("corrupt".utf8)
    await #expect(throws: StoreError.self) { try await store.load(key) }
    var failureCount = 0
    for await event in store.events {
      guard case .watchingFailed = event else { break }
      failureCount += 1
    }
    #expect(failureCount == 2)
    extendLifetime(changes)
  }

  @Test(arguments: [1, 2])
  func `A check that cannot begin is made once more, and is reported only if it cannot begin then either`(
    failureCount: Int
  ) async throws {
    let storage = InMemoryStorage()
    let backend = FailingSnapshotsBackend(base: InMemoryBackend(storage: storage))
    let store = BackedStore(backend: backend)
    var changes = try await store.changes(of: key).makeAsyncIterator()
    backend.failNextSnapshots(failureCount)
    storage[try key.keyName.encoded()] = try encodedEnvelope("theirs")
    backend.reportUnknownChange()
    // This call runs after the check that `reportUnknownChange()` has scheduled.
    _ = try await store.load(StoreKey<String>("text", id: "1"))
    try #require(backend.snapshotCount == 2)
    if failureCount == 1 { #expect(await changes.next()?.stored?.value == "theirs") }
    // Corrupt bytes cause another event, which must be the next one.
    storage[try key.keyName.encoded()] = Data("corrupt".utf8)
    await #expect(throws: StoreError.self) { try await store.load(key) }
    var events = store.events.makeAsyncIterator()
    if failureCount == 2 { #expect(await events.next() == .watchingFailed(FailingSnapshotsBackend.error)) }
    guard case .valueQuarantined = await events.next() else {
      Issue.record("unexpected event")
      return
    }
  }

  /// A backend in memory whose snapshots fail on request.
  private final class FailingSnapshotsBackend: StoreBackend, Sendable {
    static let error = StoreError.readFailed(SystemError(code: EIO, operation: "open", path: "/folder"))

    private struct State {
      var onChange: @Sendable () -> Void = {}
      var failureCount = 0
      var snapshotCount = 0
    }

    private let base: InMemoryBackend
    private let state = Lock(State())

    init(base: InMemoryBackend) {
      self.base = base
    }

    /// The number of snapshots since the last call of ``failNextSnapshots(_:)``.
    var snapshotCount: Int { state.withLock { $0.snapshotCount } }

    func failNextSnapshots(_ count: Int) {
      state.withLock { ($0.failureCount, $0.snapshotCount) = (count, 0) }
    }

    func reportUnknownChange() {
      state.withLock { $0.onChange }()
    }

    func read(_ name: String) -> Data? { base.read(name) }
    func commit(
      _ writes: [StoreWrite], deciding decide: (inout FailingSnapshotsBackend) throws(StoreError) -> CommitDecision
    ) throws(StoreError) -> Bool {
      var backend = self
      return try base.make(writes, decide(&backend))
    }
    func snapshot<Result>(
      _ body: (inout FailingSnapshotsBackend) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
      let fails = state.withLock { state in
        state.snapshotCount += 1
        return state.snapshotCount <= state.failureCount
      }
      if fails { throw Self.error }
      var backend = self
      return try body(&backend)
    }
    func quarantine(_ bytes: Data, of name: String, at time: Date) -> String? {
      base.quarantine(bytes, of: name, at: time)
    }
    func names() -> [String] { base.names() }
    func startWatching(_ onChange: @escaping @Sendable () -> Void) { state.withLock { $0.onChange = onChange } }
    func takeExternalChanges() -> ExternalChanges { .unknown }
  }

  @Test func `Bytes that another program corrupts are quarantined, and the next valid value arrives`() async throws {
    let store = FileStore(folder: folder)
    let first = try await store.save("first", for: key)
    var changes = try await store.changes(of: key).makeAsyncIterator()
    #expect(await changes.next() == .saved(key, first))
    var events = store.events.makeAsyncIterator()
    let corruptBytes = Data("corrupt".utf8)
    try corruptBytes.write(to: file, options: .atomic)
    guard case .valueQuarantined(key.keyName, let movedTo, _) = await events.next() else {
      Issue.record("unexpected event")
      return
    }
    #expect(try Data(contentsOf: URL(filePath: movedTo)) == corruptBytes)
    try await FileStore(folder: folder).save("good", for: key)
    let good = await changes.next()
    #expect(good?.stored?.value == "good")
    #expect(good?.revision == 2)
  }

  @Test func `A value of a future format is reported as an event, and left untouched`() async throws {
    let store = FileStore(folder: folder)
    try await store.save("first", for: key)
    var changes = try await store.changes(of: key).subscribe().makeAsyncIterator()
    #expect(await changes.next()?.stored?.value == "first")
    var events = store.events.makeAsyncIterator()
    let newerBytes = Data("{\"checksum\":\"71f92dee\",\"format\":9}\nunknown".utf8)
    try newerBytes.write(to: file, options: .atomic)
    let (found, supported) = (StoredVersion(format: 9, schema: 1), StoredVersion(format: 3, schema: 1))
    #expect(await events.next() == .newerValueLeftUntouched(key.keyName, found: found, supported: supported))
    await #expect(throws: StoreError.newerFormat(key.keyName, found: found, supported: supported)) {
      try await store.save("old", for: key)
    }
    #expect(try Data(contentsOf: file) == newerBytes)
    try FileManager.default.removeItem(at: file)
    try await FileStore(folder: folder).save("old again", for: key)
    #expect(await changes.next()?.stored?.value == "old again")
  }

  @Test(arguments: ["open", "fstat", "read"])
  func `A value that cannot be read is reported, and is read again when another value changes`(operation: String)
    async throws
  {
    let faults = Faults()
    let store = faults.makeStore(in: folder)
    let other = FileStore(folder: folder)
    var changes = try await store.changes(of: key).makeAsyncIterator()
    var events = store.events.makeAsyncIterator()
    let path = file.path(percentEncoded: false)
    faults.rule.withLock { $0 = { $0.operation == operation && $0.path == path ? EIO : nil } }
    try await other.save("missed", for: key)
    #expect(
      await events.next()
        == .valueUnreadable(
          key.keyName, .readFailed(SystemError(code: EIO, operation: operation, path: path))))
    faults.rule.withLock { $0 = nil }
    try await other.save("another key", for: StoreKey("text", id: "1"))
    let change = await changes.next()
    #expect(change?.stored?.value == "missed")
    #expect(change?.revision == 1)
  }

  #if !canImport(Darwin)
    @Test func `A watch that breaks is reported, and its replacement misses no change`() async throws {
      let faults = Faults()
      let store = faults.makeStore(in: folder)
      let other = FileStore(folder: folder)
      try await other.save("first", for: key)
      var changes = try await store.changes(of: key).makeAsyncIterator()
      #expect(await changes.next()?.stored?.value == "first")
      var events = store.events.makeAsyncIterator()
      let failsNextRead = Atomic(true)
      let path = String(folder.path(percentEncoded: false).dropLast())
      faults.rule.withLock { rule in
        rule = { call in
          guard call.operation == "inotify_read" else { return nil }
          return failsNextRead.exchange(false, ordering: .relaxed) ? EIO : nil
        }
      }
      try await other.save("second", for: key)
      #expect(
        await events.next()
          == .watchingFailed(.readFailed(SystemError(code: EIO, operation: "inotify_read", path: path))))
      #expect(await changes.next()?.stored?.value == "second")
      try await other.save("third", for: key)
      #expect(await changes.next()?.stored?.value == "third")
    }

    @Test(arguments: ["inotify_init", "inotify_add_watch"])
    func `A watch that cannot start is reported, and is started for the next observer`(operation: String) async throws {
      let faults = Faults()
      let store = faults.makeStore(in: folder)
      let other = FileStore(folder: folder)
      try await other.save("first", for: key)
      faults.rule.withLock { $0 = { $0.operation == operation ? EMFILE : nil } }
      var changes = try await store.changes(of: key).makeAsyncIterator()
      #expect(await changes.next()?.stored?.value == "first")
      let path = String(folder.path(percentEncoded: false).dropLast())
      var events = store.events.makeAsyncIterator()
      #expect(
        await events.next()
          == .watchingFailed(.readFailed(SystemError(code: EMFILE, operation: operation, path: path))))
      faults.rule.withLock { $0 = nil }
      try await other.save("second", for: key)
      _ = try await store.observe(collection: "letter", as: Int.self)
      #expect(await changes.next()?.stored?.value == "second")
      try await other.save("third", for: key)
      #expect(await changes.next()?.stored?.value == "third")
    }
  #endif

  @Test(arguments: [EACCES, EIO, ESTALE])
  func `A folder that is temporarily inaccessible stays watched`(code: CInt) async throws {
    let faults = Faults()
    let store = faults.makeStore(in: folder)
    let other = FileStore(folder: folder)
    try await other.save("first", for: key)
    var changes = try await store.changes(of: key).makeAsyncIterator()
    #expect(await changes.next()?.stored?.value == "first")
    faults.rule.withLock { $0 = { ["open", "inotify_add_watch"].contains($0.operation) ? code : nil } }
    await #expect(throws: StoreError.self) { try await store.load(key) }
    // This call runs after any check that the failure may have scheduled.
    await #expect(throws: StoreError.self) { try await store.load(key) }
    faults.rule.withLock { $0 = nil }
    try await other.save("second", for: key)
    #expect(await changes.next()?.stored?.value == "second")
  }

  @Test func `If an observed value gets a future schema, new observers cause a single event and no error`()
    async throws
  {
    let storage = InMemoryStorage()
    let store = InMemoryStore(storage: storage)
    let name = try key.keyName.encoded()
    var earlyChanges = try await store.changes(of: key).makeAsyncIterator()
    let newerBytes = try encodedEnvelope("newer", schema: 2)
    storage[name] = newerBytes
    for _ in 1...2 { _ = try await store.changes(of: key) }
    storage[name] = nil
    let last = try await store.save("last", for: key)
    #expect(await earlyChanges.next() == .saved(key, last))
    // Corrupt bytes cause another event, which must be the second one.
    storage[name] = Data("corrupt".utf8)
    await #expect(throws: StoreError.self) { try await store.load(key) }
    var events = store.events.makeAsyncIterator()
    let (found, supported) = (StoredVersion(format: 3, schema: 2), StoredVersion(format: 3, schema: 1))
    #expect(await events.next() == .newerValueLeftUntouched(key.keyName, found: found, supported: supported))
    guard case .valueQuarantined = await events.next() else {
      Issue.record("unexpected second event")
      return
    }
  }

  @Test func `If the bytes of an observed key can't be quarantined, new observers cause a single event and no error`()
    async throws
  {
    let storage = InMemoryStorage()
    let store = BackedStore(backend: QuarantineFailingBackend(base: InMemoryBackend(storage: storage)))
    let stream = try await store.changes(of: key)
    storage[try key.keyName.encoded()] = Data("corrupt".utf8)
    _ = try await store.changes(of: key)
    _ = try await store.changes(of: key)
    await #expect(throws: StoreError.readFailed(QuarantineFailingBackend.error)) { try await store.load(key) }
    // A value of a future schema causes another event, which must be the second one.
    storage[try key.keyName.encoded()] = try encodedEnvelope("newer", schema: 2)
    _ = try await store.changes(of: key)
    var events = store.events.makeAsyncIterator()
    #expect(await events.next() == .watchingFailed(.writeFailed(QuarantineFailingBackend.error)))
    guard case .newerValueLeftUntouched = await events.next() else {
      Issue.record("unexpected second event")
      return
    }
    extendLifetime(stream)
  }

  /// An in-memory backend that can't quarantine bytes.
  private struct QuarantineFailingBackend: StoreBackend, Sendable {
    static let error = SystemError(code: EPERM, operation: "rename", path: "/quarantine")
    let base: InMemoryBackend

    func read(_ name: String) -> Data? { base.read(name) }
    mutating func commit(
      _ writes: [StoreWrite], deciding decide: (inout Self) throws(StoreError) -> CommitDecision
    ) throws(StoreError) -> Bool {
      try base.make(writes, decide(&self))
    }
    func quarantine(_ bytes: Data, of name: String, at time: Date) throws(StoreError) -> String? {
      throw .writeFailed(Self.error)
    }
    func names() -> [String] { base.names() }
  }

  @Test func `A call notices external changes, and observers receive them`() async throws {
    let storage = InMemoryStorage()
    let (store, other) = (InMemoryStore(storage: storage), InMemoryStore(storage: storage))
    var changes = try await store.changes(of: key).makeAsyncIterator()
    try await other.save("theirs", for: key)
    let theirs = try await store.load(key)
    #expect(theirs?.value == "theirs")
    #expect(theirs?.revision == 1)
    try await other.save("theirs too", for: key)
    let ours = try await store.save("ours", for: key)
    #expect(ours.revision == 3)
    try await other.remove(key)
    #expect(try await store.load(key) == nil)
    #expect(await changes.next() == theirs.map { .saved(key, $0) })
    #expect(await changes.next()?.stored?.value == "theirs too")
    #expect(await changes.next() == .saved(key, ours))
    #expect(await changes.next() == .removed(key, revision: 4))
  }

  @Test func `A new observer receives the stored value first, even if another store has changed it`() async throws {
    let storage = InMemoryStorage()
    let (store, other) = (InMemoryStore(storage: storage), InMemoryStore(storage: storage))
    try await store.save("ours", for: key)
    var firstChanges = try await store.changes(of: key).subscribe().makeAsyncIterator()
    try await other.save("theirs", for: key)
    var secondChanges = try await store.changes(of: key).subscribe().makeAsyncIterator()
    #expect(await secondChanges.next()?.stored?.value == "theirs")
    try await other.remove(key)
    var thirdChanges = try await store.changes(of: key).subscribe().makeAsyncIterator()
    let last = try await store.save("last", for: key)
    #expect(await thirdChanges.next() == .saved(key, last))
    for expected in ["ours", "theirs", nil, "last"] { #expect(await firstChanges.next()?.stored?.value == expected) }
  }

  @Test func `After unknown external changes, only the changed values are decoded again`() async throws {
    let storage = InMemoryStorage()
    let backend = UnknownChangesBackend(base: InMemoryBackend(storage: storage))
    let store = BackedStore(backend: backend)
    let keys = (0..<5).map { StoreKey<Counted>("counted", id: "\($0)") }
    var streams: [MulticastStream<StoreChange<Counted>, Never>] = []
    for key in keys {
      try await store.save(Counted(number: 0), for: key)
      streams.append(try await store.changes(of: key))
    }
    // `observe` reads this value, so `changes` doesn't contain it.
    try await InMemoryStore(storage: storage).save(Counted(number: 1), for: keys[3])
    var changes = try await store.observe(collection: "counted", as: Counted.self).changes.makeAsyncIterator()
    let countBefore = Counted.decodingCount.load(ordering: .relaxed)
    try await InMemoryStore(storage: storage).save(Counted(number: 2), for: keys[3])
    // The other store decodes the value that it replaces.
    #expect(Counted.decodingCount.load(ordering: .relaxed) == countBefore + 1)
    backend.reportUnknownChange()
    #expect(await changes.next()?.map(\.stored?.value.number) == [2])
    // This call runs after the check that `reportUnknownChange()` has scheduled.
    _ = try await store.load(key)
    #expect(Counted.decodingCount.load(ordering: .relaxed) == countBefore + 2)
  }

  /// A value that counts the decodings of its type.
  private struct Counted: Codable {
    static let decodingCount = Atomic(0)
    let number: Int

    init(number: Int) {
      self.number = number
    }

    init(from decoder: any Decoder) throws {
      Self.decodingCount.add(1, ordering: .relaxed)
      number = try decoder.container(keyedBy: CodingKeys.self).decode(Int.self, forKey: .number)
    }
  }

  /// An in-memory backend that reports external changes, but not which values changed.
  private final class UnknownChangesBackend: StoreBackend, Sendable {
    private let base: InMemoryBackend
    private let onChange = Lock<(@Sendable () -> Void)?>(nil)

    init(base: InMemoryBackend) {
      self.base = base
    }

    func reportUnknownChange() {
      onChange.withLock { $0 }?()
    }

    func read(_ name: String) -> Data? { base.read(name) }
    func commit(
      _ writes: [StoreWrite], deciding decide: (inout UnknownChangesBackend) throws(StoreError) -> CommitDecision
    ) throws(StoreError) -> Bool {
      var backend = self
      return try base.make(writes, decide(&backend))
    }
    func quarantine(_ bytes: Data, of name: String, at time: Date) -> String? {
      base.quarantine(bytes, of: name, at: time)
    }
    func names() -> [String] { base.names() }
    func startWatching(_ onChange: @escaping @Sendable () -> Void) { self.onChange.withLock { $0 = onChange } }
    func takeExternalChanges() -> ExternalChanges { .unknown }
  }

  @Test func `Bytes that cannot be quarantined are reported once, and the next load quarantines them`() async throws {
    let faults = Faults()
    let store = faults.makeStore(in: folder)
    let keys = [key, StoreKey("text", id: "1")]
    var streams: [MulticastStream<StoreChange<String>, Never>] = []
    for key in keys {
      try await store.save("good", for: key)
      streams.append(try await store.changes(of: key))
    }
    var events = store.events.makeAsyncIterator()
    faults.rule.withLock {
      $0 = { $0.operation == "rename" && $0.path.contains(".corrupt-") ? EPERM : nil }
    }
    // The check that the second key's bytes cause must not report those of the first key again.
    for key in keys {
      try Data("corrupt".utf8).write(to: folder.appending(path: "\(key.keyName.encoded()).value"), options: .atomic)
      guard case .watchingFailed(.writeFailed(let error)) = await events.next() else {
        Issue.record("unexpected event")
        return
      }
      #expect(error.path.contains("/text.\(key.id!).corrupt-"))
    }
    faults.rule.withLock { $0 = nil }
    await #expect(throws: StoreError.self) { try await store.load(key) }
    guard case .valueQuarantined(key.keyName, _, _) = await events.next() else {
      Issue.record("unexpected event")
      return
    }
  }

  @Test func `A watch does not keep a store alive`() async throws {
    var store: FileStore? = FileStore(folder: folder)
    let changes = try await store!.changes(of: key).subscribe()
    try await store!.save("last", for: key)
    store = nil
    var received: [String?] = []
    for await change in changes { received.append(change.stored?.value) }
    #expect(received == ["last"])
  }

  @Test func `If two stores save concurrently, they converge, and each sends its own changes once, in order`()
    async throws
  {
    let stores = [FileStore(folder: folder), FileStore(folder: folder)]
    var observers: [MulticastSubscription<StoreChange<String>, Never>] = []
    for store in stores { observers.append(try await store.changes(of: key).subscribe()) }
    let savesByStore = try await withThrowingTaskGroup(of: (Int, [StoredValue<String>]).self) { group in
      for (index, store) in stores.enumerated() {
        group.addTask { [key] in
          var saved: [StoredValue<String>] = []
          for number in 1...50 { saved.append(try await store.save("\(index) \(number)", for: key)) }
          return (index, saved)
        }
      }
      return try await group.reduce(into: [Int: [StoredValue<String>]]()) { $0[$1.0] = $1.1 }
    }
    try await stores[0].save("end", for: key)
    for (index, observer) in observers.enumerated() {
      var received: [StoredValue<String>] = []
      for await change in observer {
        // Nothing is removed, so each change has a value.
        received.append(try #require(change.stored))
        if change.stored?.value == "end" { break }
      }
      #expect(received.filter { $0.value.hasPrefix("\(index) ") } == savesByStore[index])
      #expect(received.map(\.revision) == Array(1...UInt64(received.count)))
      #expect(Set(received.map(\.value)).count == received.count)
    }
  }
}

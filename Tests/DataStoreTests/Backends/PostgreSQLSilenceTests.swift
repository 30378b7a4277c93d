#if PostgreSQL
  import Foundation
  import Multicast
  import MulticastTesting
  import TestSupport
  import Testing

  @testable import DataStore

  /// The behavior of a store whose server, or a proxy in front of it, stops to answer and leaves the connection open.
  @Suite(
    .disabled(if: PostgreSQLPlace.isMissing, "MOMENTS_POSTGRESQL is not set."), .timeLimit(.minutes(5)), .serialized)
  struct PostgreSQLSilenceTests {
    private static let timeout = Duration.milliseconds(300)
    /// Far more than the timeout and a second, for a busy machine, and far less than a call without a limit takes.
    private static let limit = Duration.seconds(60)

    private let place: PostgreSQLPlace
    private let proxy: PostgreSQLProxy
    private let key = StoreKey<Int>("counter")

    init() throws {
      place = try PostgreSQLPlace()
      proxy = try PostgreSQLProxy(to: try #require(place.serverFolder))
    }

    private func store() -> PostgreSQLStore { place.store(timeout: Self.timeout, host: proxy.host) }

    /// Calls `body` again until the server has answered in time, which takes longer on a busy machine.
    @discardableResult
    private func answered<Result>(_ body: () async throws(StoreError) -> Result) async throws(StoreError) -> Result {
      while true {
        do throws(StoreError) {
          return try await body()
        } catch {
          guard error.isLostConnection || error.systemError?.isUnknownOutcome == true else { throw error }
        }
      }
    }

    /// Calls `body`, which must throw an error before the limit.
    private func failure(
      sourceLocation: SourceLocation = #_sourceLocation, of body: () async throws(StoreError) -> Void
    ) async throws -> StoreError {
      var thrown: StoreError?
      let duration = await ContinuousClock().measure {
        do throws(StoreError) { try await body() } catch { thrown = error }
      }
      #expect(duration < Self.limit, sourceLocation: sourceLocation)
      return try #require(thrown, sourceLocation: sourceLocation)
    }

    private func save(_ value: Int, in store: PostgreSQLStore) async throws(StoreError) {
      try await answered { () throws(StoreError) in _ = try await store.save(value, for: key) }
    }

    private func loaded(by store: PostgreSQLStore) async throws(StoreError) -> Int? {
      try await answered { () throws(StoreError) in try await store.load(key)?.value }
    }

    private func heldLock(of store: PostgreSQLStore) async throws -> StoreLock {
      while true {
        let lock = try await answered { () throws(StoreError) in try await store.acquireLock("leader") }.lock
        if let lock, await lock.isHeld() { return lock }
      }
    }

    enum Moment: CaseIterable {
      case connecting, request, answer
    }

    @Test(arguments: Moment.allCases)
    func `A call of a silent server ends, and the next one after the silence succeeds`(moment: Moment) async throws {
      try await place.store().save(1, for: key)
      let store = store()
      if moment != .connecting { #expect(try await loaded(by: store) == 1) }
      if moment == .answer { proxy.fallSilentInNextAnswer() } else { proxy.fallSilent() }
      let error = try await failure { () throws(StoreError) in _ = try await store.load(key) }
      guard case .readFailed(let cause) = error else {
        Issue.record("\(error)")
        return
      }
      #expect(cause.isLostConnection)
      #expect(cause.operation == (moment == .connecting ? "connecting" : "running"))
      #expect(error.description.contains("the server has not answered for "), "\(error)")
      #expect(error.description.contains("Check that the server is running and can be reached"), "\(error)")
      proxy.speak()
      #expect(try await loaded(by: store) == 1)
      try await save(2, in: store)
      #expect(try await place.store().load(key)?.value == 2)
    }

    @Test(arguments: PostgreSQLProxy.Cut.allCases, PostgreSQLProxy.Commit.allCases)
    func `If the server falls silent during a commit, the outcome is unknown, and later commits succeed`(
      cut: PostgreSQLProxy.Cut, commit: PostgreSQLProxy.Commit
    ) async throws {
      let (store, other) = (store(), place.store())
      try await save(1, in: store)
      // A commit after a change of another writer is made in a transaction that locks the store.
      if commit == .transaction { try await other.save(0, for: StoreKey("other")) }
      proxy.fallSilentAtNext(commit, cut)
      let error = try await failure { () throws(StoreError) in try await store.save(2, for: key) }
      #expect(proxy.hasNoPendingCut)
      guard case .writeFailed(let cause) = error, cause.isUnknownOutcome else {
        Issue.record("\(error)")
        return
      }
      #expect(error.description.hasPrefix("The change may or may not have been made. "))
      #expect(error.description.contains("the server has not answered for "), "\(error)")
      if cut == .after { #expect(try await other.load(key)?.value == 2) }
      proxy.speak()
      try await save(3, in: store)
      #expect(try await other.load(key)?.value == 3)
    }

    @Test func `Preconditions that can't be checked are an error of their own, and not of unknown outcome`()
      async throws
    {
      let store = store()
      try await save(1, in: store)
      let tag = try await answered { () throws(StoreError) in try await store.load(key)?.tag }
      proxy.fallSilent()
      let error = try await failure { () throws(StoreError) in
        var batch = StoreBatch()
        batch.require(tag, of: key)
        try await store.commit(batch)
      }
      guard case .checkFailed(let cause) = error else {
        Issue.record("\(error)")
        return
      }
      #expect(!cause.isUnknownOutcome && cause.isLostConnection)
    }

    @Test
    func `A lock of a silent connection counts as lost, and another store gets it once the server ends the session`()
      async throws
    {
      let (holder, other) = (store(), place.store())
      let lock = try await heldLock(of: holder)
      proxy.fallSilent()
      var isHeld = true
      let duration = await ContinuousClock().measure { isHeld = await lock.isHeld() }
      #expect(!isHeld)
      #expect(duration < Self.limit)
      // The proxy hasn't closed its connection to the server, so the server still keeps the lock.
      #expect(try await other.acquireLock("leader").lock == nil)
      try place.endConnections()
      let otherLock = try #require(try await other.acquireLock("leader").lock)
      proxy.speak()
      #expect(await !lock.isHeld())
      #expect(await otherLock.isHeld())
      try await save(1, in: holder)
      #expect(try await answered { () throws(StoreError) in try await holder.acquireLock("leader") }.lock == nil)
    }

    @Test func `A lock counts as lost while a call waits for a silent server, and its release doesn't block`()
      async throws
    {
      let store = store()
      var lock: StoreLock? = try await heldLock(of: store)
      proxy.fallSilent()
      let load = Task { [key] in
        do throws(StoreError) { return try await store.load(key)?.value } catch { throw error }
      }
      let held = lock
      let duration = await ContinuousClock().measure {
        await withTaskGroup(of: Bool.self) { group in
          for _ in 0..<20 { group.addTask { await held?.isHeld() ?? false } }
          for await isHeld in group { #expect(!isHeld) }
        }
      }
      #expect(duration < Self.limit)
      await #expect(throws: StoreError.self) { try await load.value }
      extendLifetime(held)
      lock = nil
      proxy.speak()
      try await save(1, in: store)
    }

    @Test func `Calls that wait behind one that the server doesn't answer end at the same time`() async throws {
      let store = store()
      try await save(1, in: store)
      proxy.fallSilent()
      let duration = await ContinuousClock().measure {
        await withTaskGroup(of: StoreError?.self) { group in
          for number in 0..<300 {
            group.addTask { [key] in
              do throws(StoreError) {
                switch number % 6 {
                case 0: _ = try await store.load(key)
                case 1: try await store.save(number, for: key)
                case 2: _ = try await store.observe(collection: "counter", as: Int.self)
                case 3: try await store.commit(StoreBatch(saving: number, for: key, requiring: StoreTag()))
                case 4: _ = try await store.acquireLock("leader")
                default: try await store.removeAll(in: "counter")
                }
                return nil
              } catch {
                return error
              }
            }
          }
          for await error in group { #expect(error?.systemError != nil, "\(String(describing: error))") }
        }
      }
      // One after the other, the calls would take at least 300 times the timeout, which is 90 seconds.
      #expect(duration < Self.limit)
      proxy.speak()
      #expect(try await loaded(by: store) != nil)
    }

    @Test func `An observed store on a silent server ends its calls, and reads the changes after the silence`()
      async throws
    {
      let (store, other) = (store(), place.store())
      try await save(1, in: store)
      let stream = try await answered { () throws(StoreError) in try await store.changes(of: key) }
      var changes = stream.subscribe().makeAsyncIterator()
      #expect(await changes.next()?.stored?.value == 1)
      proxy.fallSilent()
      try await other.save(2, for: key)
      _ = try await failure { () throws(StoreError) in _ = try await store.load(key) }
      _ = try await failure { () throws(StoreError) in _ = try await store.changes(of: StoreKey<Int>("other")) }
      proxy.speak()
      #expect(await changes.next()?.stored?.value == 2)
    }

    @Test func `A host that accepts connections and is silent doesn't keep the store from the next host`() async throws
    {
      proxy.fallSilent()
      let store = place.store(timeout: .seconds(2), host: "\(proxy.host),\(try #require(place.serverFolder))")
      try await save(1, in: store)
      #expect(try await place.store().load(key)?.value == 1)
    }

    @Test func `A wait for another client's lock that began late ends with the timeout of the call`() throws {
      let other = try place.connection()
      var backend = place.backend()
      #expect(try backend.names() == [])
      try other.run(script: PostgreSQLLayout.beginChange)
      let connection = try PostgreSQLConnection(
        place.address, timeout: .seconds(60), deadline: PostgreSQLDeadline(after: .milliseconds(100)))
      try connection.run(script: PostgreSQLLayout.settings(timeout: .seconds(60)))
      let error = #expect(throws: SystemError.self) { try connection.begin(PostgreSQLLayout.beginChange) }
      #expect(error?.isLockout == true)
      #expect(!connection.isLost)
    }

    // MARK: - Decisions

    private let start = ContinuousClock.now

    @Test func `A call ends with its timeout and a grace, and its last exchange has at least the grace`() {
      var deadline = PostgreSQLDeadline(after: .seconds(5), from: start)
      #expect(deadline.limit(at: start) == start + .seconds(5.5))
      for _ in 0..<PostgreSQLDeadline.largeStepCount { deadline.recordStep() }
      #expect(deadline.limit(at: start + .seconds(3)) == start + .seconds(5.5))
      #expect(deadline.limit(at: start + .seconds(6)) == start + .seconds(6.5))
      #expect(!deadline.hasPassed(at: start + .seconds(4.9)) && deadline.hasPassed(at: start + .seconds(5)))
      #expect(deadline.graceEnd == start + .seconds(5.5))
      #expect(deadline.remaining(at: start + .seconds(2)) == .seconds(3))
      #expect(deadline.remaining(at: start + .seconds(6)) == .zero)
    }

    @Test func `A large call ends if nothing arrives for the timeout and a grace`() {
      var deadline = PostgreSQLDeadline(after: .seconds(5), from: start)
      for _ in 0...PostgreSQLDeadline.largeStepCount { deadline.recordStep() }
      #expect(deadline.limit(at: start) == start + .seconds(5.5))
      #expect(deadline.limit(at: start + .seconds(60)) == start + .seconds(65.5))
    }

    @Test func `The server has a second more for each 16 MiB`() {
      var deadline = PostgreSQLDeadline(after: .seconds(5), from: start)
      deadline.recordWork(byteCount: 10_000)
      #expect(deadline.limit(at: start) == start + .seconds(5.5))
      deadline.recordWork(byteCount: 1_000_000_000)
      #expect((start + .seconds(60))...(start + .seconds(70)) ~= deadline.limit(at: start))
    }

    @Test(arguments: [Duration.zero, .seconds(Int64.max), .seconds(-1)])
    func `A timeout of any length is a deadline`(timeout: Duration) {
      let deadline = PostgreSQLDeadline(after: timeout, from: start)
      #expect(deadline.limit(at: start) >= start + PostgreSQLDeadline.grace)
    }

    @Test func `The hosts of an address are listed, and a silent one is left out`() {
      var hosts = PostgreSQLHosts(host: "a,b,a", address: "", port: "1,2,3")
      #expect(hosts.hosts.map(\.name) == ["a", "b", "a"])
      hosts.remove(host: "a", port: "3")
      #expect(hosts.options.map { "\($0.0)=\($0.1)" } == ["host=a,b", "port=1,2"])
      hosts.remove(host: "unknown", port: "1")
      #expect(hosts.hosts.isEmpty)
      var addresses = PostgreSQLHosts(host: ",b", address: "10.0.0.1,10.0.0.2", port: "5432")
      #expect(addresses.hosts.map(\.port) == ["5432", "5432"])
      addresses.remove(host: "10.0.0.1", port: "5432")
      #expect(addresses.options.map { "\($0.0)=\($0.1)" } == ["host=b", "port=5432", "hostaddr=10.0.0.2"])
      #expect(PostgreSQLHosts(host: "", address: "", port: "").hosts.count == 1)
    }
  }

  extension StoreLockResult {
    fileprivate var lock: StoreLock? { if case .acquired(let lock) = self { lock } else { nil } }
  }
#endif

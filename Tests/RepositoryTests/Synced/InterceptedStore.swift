import DataStore
import Dispatch
import Foundation
import Multicast
import MulticastTesting
import Repository
import RepositoryTesting

/// A store whose calls a test can delay or make fail.
///
/// It forwards all calls to another store, except that it supports locks only if `supportsLocks` is `true`.
final class InterceptedStore: ForwardingStore {
  /// The closures that the store calls before and after its operations.
  struct Hooks: Sendable {
    /// Called with the keys of the batch before a commit.
    ///
    /// If the hook throws, the call throws the same error.
    var onCommit: @Sendable ([StoreKeyName]) async throws(StoreError) -> Void = { _ in }
    /// Called with the keys of the batch after a commit, before the call returns.
    var onCommitted: @Sendable ([StoreKeyName]) async -> Void = { _ in }
    /// Called before a load, and before a feed begins to follow a key.
    ///
    /// If the hook throws, the call throws the same error.
    var onLoad: @Sendable (StoreKeyName) async throws(StoreError) -> Void = { _ in }
    /// Called before a collection is observed, and before a feed begins to follow it.
    ///
    /// If the hook throws, the call throws the same error.
    var onObserve: @Sendable (String) async throws(StoreError) -> Void = { _ in }
    /// Called after a feed has begun to follow a collection.
    ///
    /// An error of the hook is ignored.
    var onFollowed: @Sendable (String) async throws -> Void = { _ in }
    /// Called before a feed catches up.
    ///
    /// If the hook throws, the call throws the same error.
    var onCatchUp: @Sendable () async throws(StoreError) -> Void = {}
    /// Called before keys are erased.
    ///
    /// If the hook throws, the call throws the same error.
    var onErase: @Sendable () async throws(StoreError) -> Void = {}
    /// Returns `false` if the locks of the store count as lost.
    var isHeld: @Sendable () async -> Bool = { true }
    /// Called before an element of a feed is delivered.
    var onElement: @Sendable (StoreFeedElement) async -> Void = { _ in }
  }

  /// An error that hooks throw; code 5 is `EIO`, an input/output error.
  static let error = SystemError(code: 5, operation: "testing", path: "memory")

  let base: InMemoryStore
  private let hooks: Lock<Hooks>
  private let supportsLocks: Bool

  init(_ base: InMemoryStore, _ hooks: Hooks = Hooks(), supportsLocks: Bool = false) {
    (self.base, self.supportsLocks) = (base, supportsLocks)
    self.hooks = Lock(hooks)
  }

  func set(_ change: (inout Hooks) -> Void) {
    hooks.withLock { change(&$0) }
  }

  private var currentHooks: Hooks { hooks.withLock { $0 } }

  func load<Value>(_ key: StoreKey<Value>) async throws(StoreError) -> StoredValue<Value>? {
    try await currentHooks.onLoad(key.keyName)
    return try await base.load(key)
  }

  func commit(_ batch: StoreBatch) async throws(StoreError) -> StoreCommit {
    try await currentHooks.onCommit(batch.keys)
    let commit = try await base.commit(batch)
    await currentHooks.onCommitted(batch.keys)
    return commit
  }

  func observe<Value>(
    collection: String, as type: Value.Type
  ) async throws(StoreError) -> StoreObservation<Value> where Value: Codable & Sendable {
    try await currentHooks.onObserve(collection)
    return try await base.observe(collection: collection, as: type)
  }

  func feed() async -> any StoreFeed { InterceptedFeed(await base.feed(), of: self) }

  /// A feed whose elements and calls wait for the hooks of its store.
  private final class InterceptedFeed: StoreFeed {
    let elements: MulticastSubscription<StoreFeedElement, Never>
    private let base: any StoreFeed
    private let store: InterceptedStore

    init(_ base: any StoreFeed, of store: InterceptedStore) {
      (self.base, self.store) = (base, store)
      let relay = MulticastRelay<StoreFeedElement>(buffering: .unbounded)
      elements = relay.stream.subscribe()
      Task { [elements = base.elements] in
        for await element in elements {
          await store.currentHooks.onElement(element)
          relay.send(element)
        }
      }
    }

    func follow<Value>(_ key: StoreKey<Value>) async throws(StoreError) {
      try await store.currentHooks.onLoad(key.keyName)
      try await base.follow(key)
    }

    func follow<Value: Codable & Sendable>(collection: String, as type: Value.Type) async throws(StoreError) {
      try await store.currentHooks.onObserve(collection)
      try await base.follow(collection: collection, as: type)
      try? await store.currentHooks.onFollowed(collection)
    }

    func endFollowing(_ part: StoreFeedPart) async { await base.endFollowing(part) }

    func catchUp() async throws(StoreError) {
      try await store.currentHooks.onCatchUp()
      try await base.catchUp()
    }
  }

  func erase(where isErased: @escaping @Sendable (StoredItem) -> Bool) async throws(StoreError) {
    try await currentHooks.onErase()
    try await base.erase(where: isErased)
  }

  /// Locks nothing unless the store supports locks.
  ///
  /// Without locks, the repositories on the store are independent.
  func acquireLock(_ name: String) async throws(StoreError) -> StoreLockResult {
    guard supportsLocks else { return .unsupported }
    let result = try await base.acquireLock(name)
    guard case .acquired(let lock) = result else { return result }
    // Only `check` retains the lock of the base store, so that lock is deallocated, and unlocks the name, when the new
    // lock is deallocated.
    return .acquired(
      StoreLock(check: { [self] in await currentHooks.isHeld() ? await lock.isHeld() : false }, unlock: {}))
  }
}

extension StoreFeedElement {
  /// The collections that the element changes.
  var collections: Set<String> {
    switch self {
    case .began: []
    case .committed(let transaction): Set(transaction.changes.map(\.key.collection))
    case .caughtUp: []
    }
  }

  /// Whether the element changes mutations of the notes.
  var hasNotesMutation: Bool { collections.contains("notes.mutations") }
}

extension [StoreKeyName] {
  /// Whether a batch with these keys changes a mutation of the notes.
  var hasNotesMutation: Bool { contains { $0.collection == "notes.mutations" } }

  /// Whether a batch with these keys adds a mutation of the notes, and therefore saves the counter of mutations.
  var addsNotesMutation: Bool { contains { $0.collection == "notes.mutation-counter" } }
}

/// A counter whose first number is 1.
final class Counter: Sendable {
  private let count = Lock(0)

  var value: Int { count.withLock { $0 } }

  @discardableResult
  func next() -> Int {
    count.withLock {
      $0 += 1
      return $0
    }
  }

  func reset() {
    count.withLock { $0 = 0 }
  }
}

/// A value that a test changes while the code under test reads it.
///
/// A change in place, such as `setting.value += 1`, is atomic: tests count and collect from concurrent tasks.
final class Setting<Value: Sendable>: @unchecked Sendable {
  // Unchecked because no closure can hold a lock while an accessor yields: each access of `current` has the lock.
  private let lock = NSLock()
  private var current: Value

  init(_ value: Value) { current = value }

  var value: Value {
    get { lock.withLock { current } }
    _modify {
      lock.lock()
      defer { lock.unlock() }
      yield &current
    }
  }
}

/// A task executor that holds its jobs until a test runs them, and after ``open()`` runs them on the system's threads.
///
/// When ``runUntilIdle()`` returns, the tasks on the executor have run as far as they can.
final class SteppingExecutor: TaskExecutor {
  /// The jobs that wait for the test; `nil` after ``open()``.
  private let heldJobs = Lock<[UnownedJob]?>([])

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let isHeld = heldJobs.withLock { heldJobs in
      heldJobs?.append(job)
      return heldJobs != nil
    }
    if !isHeld { dispatch(job) }
  }

  /// Runs jobs, including newly enqueued ones, until none is ready.
  ///
  /// A test must not call it after ``open()``, because the executor would then hold later jobs again.
  func runUntilIdle() {
    while true {
      let readyJobs = heldJobs.withLock { heldJobs in
        defer { heldJobs = [] }
        return heldJobs ?? []
      }
      if readyJobs.isEmpty { return }
      for job in readyJobs { job.runSynchronously(on: asUnownedTaskExecutor()) }
    }
  }

  /// Runs the held jobs and all later ones on the system's threads.
  func open() {
    let jobs = heldJobs.withLock { heldJobs in
      defer { heldJobs = nil }
      return heldJobs ?? []
    }
    for job in jobs { dispatch(job) }
  }

  private func dispatch(_ job: UnownedJob) {
    DispatchQueue.global().async { [self] in job.runSynchronously(on: asUnownedTaskExecutor()) }
  }
}

/// Returns whether work returns or throws before `limit`, if any, and before the time limit of the test.
///
/// On a busy machine, work that doesn't hang may take minutes. So only a test that expects the work not to finish
/// passes a limit.
func finishes(within limit: Duration? = nil, _ work: @escaping @Sendable () async throws -> Void) async -> Bool {
  let (results, continuation) = AsyncStream.makeStream(of: Bool.self)
  let workTask = Task {
    do {
      try await work()
    } catch {}
    continuation.yield(true)
  }
  let limitTask = limit.map { limit in
    Task {
      try? await Task.sleep(for: limit)
      continuation.yield(false)
    }
  }
  defer {
    workTask.cancel()
    limitTask?.cancel()
  }
  // The iteration ends without a result if the test is cancelled at its time limit.
  for await isFinished in results { return isFinished }
  return false
}

/// A count that each application of its mutation increments, so that a mutation that is applied twice is noticed.
struct Sum: Codable, Equatable, Sendable {
  var count = 0
}

enum SumMutation: RepositoryMutation, Equatable {
  case increment

  func apply(to value: inout Sum) throws(MutationConflict) {
    value.count += 1
  }
}

typealias SumServer = InMemoryServer<String, Sum, SumMutation>
typealias SumSource = ScriptedSource<String, Sum, SumMutation, NotesFailure>

extension ScriptedSource where Key == String, Value == Sum, Mutation == SumMutation, Failure == NotesFailure {
  init(
    _ server: SumServer, onFetch: @escaping @Sendable () async throws(NotesFailure) -> Void = {},
    onSend: @escaping @Sendable () async throws(NotesFailure) -> Void = {}
  ) {
    self.init(
      "tally",
      fetch: { (key) async throws(NotesFailure) in
        try await onFetch()
        return server.value(of: key)
      },
      send: { (mutation, key, id) async throws(NotesFailure) in
        try await onSend()
        do throws(MutationConflict) {
          return .value(try server.apply(mutation, to: key, id: id))
        } catch {
          throw .conflict
        }
      }, disposition: { $0.disposition })
  }
}

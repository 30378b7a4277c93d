internal import DataStore
internal import Foundation
internal import Multicast

/// Signs users out: decides whether a user can be signed out, and erases the user's data.
///
/// 1. This repository rejects new calls for the user.
/// 2. A commit begins the sign-out. Unless the policy discards unsent mutations, there must be none, and the commit
///    requires that no process has added a mutation since they were counted.
/// 3. Every repository on the store that learns of that commit forgets the user. A commit that saves a value or adds a
///    mutation of the user now fails, because it requires the user's earlier record.
/// 4. The stored data is erased, and another commit records that.
///
/// If the process ends after the second step, another process on the store completes the sign-out. A process erases
/// only while it holds the lock ``lockName``, so that it doesn't erase data that was stored after a new sign-in.
///
/// Directly before the erasure, the process checks the lock and reads the user's record. But an erasure has no
/// preconditions. Without the lock, it may be delayed until another process has completed the sign-out, and then erases
/// what was stored after a new sign-in. That can happen if the store supports no locks, or loses the lock after the
/// check.
///
/// Belongs to one ``SyncEngine`` and is used in its isolation only.
final class SignOuts<Source: RepositorySource> {
  typealias Engine = SyncEngine<Source>
  typealias Key = Source.Key

  /// The time after which an attempt to acquire the lock is repeated, even if the store has reported no release.
  private static var lockInterval: Duration { .milliseconds(250) }

  private let store: any KeyValueStore
  private let name: String
  private let clock: ElapsedClock
  private let events: RepositoryEvents
  private let queueVersion: CurrentValueRelay<UInt64>
  /// Makes the sign-outs of this repository run one at a time.
  private let turns = AsyncSerialQueue()

  init(
    _ store: any KeyValueStore, repository name: String, clock: ElapsedClock, queueVersion: CurrentValueRelay<UInt64>,
    events: RepositoryEvents
  ) {
    (self.store, self.name, self.clock) = (store, name, clock)
    (self.queueVersion, self.events) = (queueVersion, events)
  }

  private var lockName: String { "\(name).sign-out" }

  /// Signs a user out.
  func signOut(_ userID: String, _ policy: UnsentPolicy, in engine: isolated Engine) async throws(SignOutError) {
    let user = UserDigest(userID)
    try await SignOutError.mappingStoreErrors { () async throws(StoreError) in
      try await engine.start()
      try await engine.users.start(in: engine)
    }
    engine.users.beginRejectingCalls(of: user)
    defer { engine.users.endRejectingCalls(of: user) }
    if case .send(let time) = policy { await waitUntilSent(user, atMost: time, in: engine) }
    if Task.isCancelled { throw .cancelled }
    try await turns.run { () async throws(SignOutError) in
      let lock = try await SignOutError.mappingStoreErrors { () async throws(StoreError) -> HeldLock? in
        try await waitForLock(in: engine)
      }
      guard let lock else { throw .cancelled }
      defer { withExtendedLifetime(lock) {} }
      let unsentCount = try await SignOutError.mappingStoreErrors { () async throws(StoreError) -> Int in
        try await engine.users.reload(user, in: engine)
        return try await commitSignOut(of: user, discardsUnsent: policy == .discard, in: engine)
      }
      if unsentCount > 0 { throw .unsent(unsentCount) }
      try await SignOutError.mappingStoreErrors { () async throws(StoreError) in
        try await eraseOrRetryLater(user, holding: lock, in: engine)
      }
    }
  }

  /// Completes a sign-out that another call or another process has begun.
  func finish(_ user: UserDigest, in engine: isolated Engine) async {
    await turns.run {
      var attempt = 0
      while !engine.canStopEarly, engine.users.record(of: user).phase == .signingOut {
        do throws(StoreError) {
          guard let lock = try await waitForLock(in: engine) else { return }
          defer { withExtendedLifetime(lock) {} }
          try await erase(user, holding: lock, in: engine)
        } catch {
          events.emit(.storeFailed(error))
          attempt += 1
          await engine.backoff.wait(afterAttempt: attempt)
        }
      }
    }
  }

  // MARK: - Deciding

  /// Ends the backoff delays, and waits until a user has no live mutations, or until a time limit.
  ///
  /// See ``SyncEngine/endWaits()`` and ``MutationLedger/Entry/isLive``. Cancellation ends the wait.
  private func waitUntilSent(_ user: UserDigest, atMost time: Duration, in engine: isolated Engine) async {
    engine.endWaits()
    await clock.wait(until: clock.elapsed() + time) { [queueVersion, weak engine] in
      for await _ in queueVersion.stream {
        guard let engine, await engine.hasLiveMutations(of: user) else { return }
      }
    }
  }

  /// Commits that a user's sign-out begins, unless the user has unsent mutations and `discardsUnsent` is `false`.
  ///
  /// - Returns: The number of unsent mutations that prevent the sign-out. If it is 0, the sign-out has begun or is
  ///   complete.
  private func commitSignOut(
    of user: UserDigest, discardsUnsent: Bool, in engine: isolated Engine
  ) async throws(StoreError) -> Int {
    while true {
      var record = engine.users.record(of: user)
      var batch = StoreBatch()
      if !discardsUnsent, record.phase == .signedIn {
        let counter = engine.recordKeys.counter
        // Every addition of a mutation changes the tag.
        let tag = try await engine.feed.load(counter)?.tag
        batch.requireFound(tag, of: counter)
        try await engine.reader.read(in: engine)
        let count = engine.queue.unsentCount(of: user) + (try await countMissingFromQueue(of: user, in: engine))
        if count > 0 {
          // If a mutation was added meanwhile, the count may lack it.
          if try await engine.feed.load(counter)?.tag == tag { return count }
          continue
        }
      }
      // Incremented in any phase. A sign-in that began earlier and isn't stored yet gives up when it reads the new
      // count.
      record.signOutCount += 1
      if record.phase == .signedIn { record.phase = .signingOut }
      if try await engine.users.commit(record, of: user, batch, in: engine) { return 0 }
    }
  }

  /// Returns the number of a user's stored mutations that the queue doesn't have, because this program can't read
  /// their records or this repository is read-only.
  private func countMissingFromQueue(of user: UserDigest, in engine: isolated Engine) async throws(StoreError) -> Int {
    let (mutationCollection, queuedIDs) = (engine.recordKeys.collection, engine.queue.ids)
    let missingIDs = Lock<Set<String>>([])
    // Only an erasure passes on the bytes of values that can't be decoded. This one erases nothing.
    try await store.erase { item in
      guard let key = item.key, key.collection == mutationCollection, let id = key.id,
        !queuedIDs.contains(MutationID(rawValue: id)), Self.owner(of: item.bytes) == user
      else { return false }
      missingIDs.withLock { _ = $0.insert(id) }
      return false
    }
    return missingIDs.withLock { $0.count }
  }

  // MARK: - Locking

  /// A lock that is held, or a substitute for it in a store that doesn't support locks.
  private struct HeldLock {
    let lock: StoreLock?

    /// Throws if the lock is no longer held, for example because the connection to its server was lost.
    func checkIsHeld(isolation: isolated (any Actor)? = #isolation, name: String) async throws(StoreError) {
      guard let lock, await !lock.isHeld() else { return }
      throw .eraseFailed(SystemError(code: POSIXErrorCode.ENOLCK.rawValue, operation: "keeping the lock", path: name))
    }
  }

  /// Waits for the lock that allows one sign-out at a time.
  ///
  /// - Returns: `nil` if the calling task was cancelled or the repository was released first.
  private func waitForLock(in engine: isolated Engine) async throws(StoreError) -> HeldLock? {
    var releases: MulticastStream<Void, Never>?
    while !engine.canStopEarly {
      // Subscribed before the attempt, so that no release is missed. The first attempt is made without a subscription,
      // because the stream isn't known yet. If the lock is held, the second attempt follows at once.
      let subscription = releases?.subscribe()
      switch try await store.acquireLock(lockName) {
      case .acquired(let lock): return HeldLock(lock: lock)
      case .unsupported: return HeldLock(lock: nil)
      case .held(let stream):
        releases = stream
        if let subscription { await clock.wait(until: clock.elapsed() + Self.lockInterval, or: subscription) }
      }
    }
    return nil
  }

  // MARK: - Erasing

  /// Erases the stored data of a user.
  ///
  /// If that fails, throws the error and retries in the background.
  private func eraseOrRetryLater(
    _ user: UserDigest, holding lock: HeldLock, in engine: isolated Engine
  ) async throws(StoreError) {
    do throws(StoreError) {
      while engine.users.record(of: user).phase == .signingOut { try await erase(user, holding: lock, in: engine) }
    } catch {
      engine.start { engine in
        await engine.backoff.wait(afterAttempt: 1)
        await engine.signOuts.finish(user, in: engine)
      }
      throw error
    }
  }

  /// Erases the stored data of a user and records that, unless another process has done so.
  ///
  /// Records nothing if the user's record changes during the erasure. So the caller repeats the call while the phase of
  /// the record is `signingOut`.
  private func erase(
    _ user: UserDigest, holding lock: HeldLock, in engine: isolated Engine
  ) async throws(StoreError) {
    let (valueCollection, mutationCollection) = (name, engine.recordKeys.collection)
    try await lock.checkIsHeld(name: lockName)
    // The previous holder of the lock may have completed the sign-out.
    try await engine.users.reload(user, in: engine)
    let recordBefore = engine.users.record(of: user)
    guard recordBefore.phase == .signingOut else { return }
    try await store.erase { item in
      // Without a key, the owner of the bytes can't be determined, so they may be the user's.
      guard let key = item.key else { return true }
      switch key.collection {
      case valueCollection: return key.id.map { user.owns(storeID: $0, as: Key.self) } ?? false
      case mutationCollection:
        let bytes = item.bytes
        return Self.owner(of: bytes).map { $0 == user } ?? Self.isMentioned(user, in: bytes)
      default: return false
      }
    }
    // Without locks, another process may have completed the sign-out, and the user may have signed in again.
    guard engine.users.record(of: user) == recordBefore else { return }
    var record = recordBefore
    record.phase = .signedOut
    _ = try await engine.users.commit(record, of: user, in: engine)
    // Events that were reported since the sign-out began may contain the user's keys.
    events.forget()
  }

  /// Returns the user of a mutation's record; `nil` if the bytes don't show the user.
  private static func owner(of bytes: Data) -> UserDigest? {
    guard let record = MutationRecord.decode(bytes) else { return nil }
    if let user = record.user { return UserDigest(text: user) }
    return record.keys.first.flatMap { Key(storeID: $0) }.map { UserDigest($0.userID) }
  }

  /// Returns whether bytes that can't be decoded contain, as a JSON string, the user's id or the id of one of the
  /// user's keys.
  private static func isMentioned(_ user: UserDigest, in bytes: Data) -> Bool {
    var isEscaped = false
    // A quotation mark after a backslash doesn't end a string.
    let segments = bytes.split { byte in
      defer { isEscaped = !isEscaped && byte == UInt8(ascii: "\\") }
      return !isEscaped && byte == UInt8(ascii: "\"")
    }
    return segments.contains { segment in
      let text = string(of: segment)
      return UserDigest(text) == user || user.owns(storeID: text, as: Key.self)
    }
  }

  /// Returns the string that bytes between quotation marks represent in JSON.
  private static func string(of bytes: Data) -> String {
    do {
      return try JSONDecoder().decode(String.self, from: Data("\"".utf8) + bytes + Data("\"".utf8))
    } catch {
      return String(decoding: bytes, as: UTF8.self)
    }
  }
}

extension SignOutError {
  /// Returns the result of a closure, and throws an error of the store as ``store(_:)``.
  fileprivate static func mappingStoreErrors<Result>(
    isolation: isolated (any Actor)? = #isolation, _ body: () async throws(StoreError) -> Result
  ) async throws(SignOutError) -> Result {
    do throws(StoreError) {
      return try await body()
    } catch {
      throw .store(error)
    }
  }
}

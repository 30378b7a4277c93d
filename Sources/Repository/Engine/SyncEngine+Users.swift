internal import DataStore
internal import Foundation
internal import Multicast

/// A lock that is held, or a substitute for it in a store that doesn't support locks.
private struct HeldLock {
  let lock: StoreLock?

  /// Throws if the lock is no longer held, for example because the connection to its server was lost.
  func checkIsHeld(isolation: isolated (any Actor)? = #isolation, name: String) async throws(StoreError) {
    guard let lock, await !lock.isHeld() else { return }
    throw .eraseFailed(SystemError(code: POSIXErrorCode.ENOLCK.rawValue, operation: "keeping the lock", path: name))
  }
}

/// Signing in and out.
///
/// A sign-out has these steps:
/// 1. This repository rejects new calls for the user.
/// 2. A commit begins the sign-out. Unless the policy discards unsent mutations, there must be none, and the commit
///    requires that no process has added a mutation since they were counted.
/// 3. Every repository on the store that learns of that commit forgets the user. A commit that saves a value or adds a
///    mutation of the user now fails, because it requires the user's earlier record.
/// 4. The stored data is erased, and another commit records that.
///
/// If the process ends after the second step, another process on the store completes the sign-out. A process erases
/// only while it holds a lock, so that it doesn't erase data that was stored after a new sign-in.
///
/// Directly before the erasure, the process checks the lock and reads the user's record. But an erasure has no
/// preconditions. Without the lock, it may be delayed until another process has completed the sign-out, and then erases
/// what was stored after a new sign-in. That can happen if the store supports no locks, or loses the lock after the
/// check.
extension SyncEngine {
  /// The time after which an attempt to acquire the lock is repeated, even if the store has reported no release.
  private static var lockInterval: Duration { .milliseconds(250) }

  // MARK: - Records

  /// Reads the stored record of a user again.
  private func reload(_ user: UserDigest) async throws(StoreError) {
    let tag = core.users.tag(of: user)
    let stored = try await load(core.userKey(of: user))
    update { core in
      if let stored { core.receive(stored, of: user) } else { core.users.recordAbsence(of: user, tag: tag) }
    }
  }

  /// Stores a record of a user together with other changes, if the stored record is the known one.
  ///
  /// - Returns: Whether the commit was made; `false` if another record is stored, which is then read, or if a
  ///   requirement of the batch doesn't hold.
  private func commit(
    _ record: UserRecord, of user: UserDigest, _ batch: StoreBatch = StoreBatch()
  ) async throws(StoreError) -> Bool {
    var batch = batch
    let key = core.userKey(of: user)
    batch.save(record, for: key)
    batch.requireFound(core.users.tag(of: user), of: key)
    do throws(StoreError) {
      try await commit(batch)
      return true
    } catch {
      guard case .preconditionFailed = error else { throw error }
      try await reload(user)
      return false
    }
  }

  // MARK: - Signing in

  /// Records that the credentials of a user have changed, and notifies every repository on the store.
  ///
  /// If that can't be stored, retries in the background until it is, the user has signed out, or the repository is
  /// released. Cancelling the calling task has no effect.
  func signIn(userID: String?) async {
    update { $0.resumeMutations(of: userID) }
    let user = UserDigest(userID)
    let (error, signOutCount) = await runToCompletion { engine in await engine.trySignIn(user, nil) }
    guard let error else { return }
    events.emit(.storeFailed(error))
    // A sign-out that begins during the retries must prevail. It increases the number of sign-outs. If the first
    // attempt didn't read that number, the retries compare with that of the last known record. If the records haven't
    // been read yet, they compare with the first number that is read later.
    let knownCount = signOutCount ?? (hasReadUsers ? core.users.record(of: user).signOutCount : nil)
    start { engine in await engine.keepSigningIn(user, knownCount) }
  }

  private func keepSigningIn(_ user: UserDigest, _ knownCount: UInt64?) async {
    var (attempt, signOutCount, error) = (0, knownCount, StoreError?.none)
    repeat {
      attempt += 1
      await wait(afterAttempt: attempt)
      if canStopEarly { return }
      // Another call, such as a sign-out, may have made the first read of the records meanwhile. A sign-out of this
      // repository begins only after that read, so the numbers of the read don't include it.
      if signOutCount == nil, hasReadUsers { signOutCount = core.signOutCountsAtStart[user] ?? 0 }
      (error, signOutCount) = await trySignIn(user, signOutCount)
    } while error != nil
  }

  /// Stores that the credentials of a user have changed, unless the user has signed out since.
  ///
  /// - Parameters:
  ///   - user: The user.
  ///   - signOutCount: The number of the user's sign-outs that had begun when the credentials changed; `nil` if it
  ///     isn't known.
  /// - Returns: The error of the store if the change could not be stored, and the number as soon as it is known.
  private func trySignIn(_ user: UserDigest, _ signOutCount: UInt64?) async -> (StoreError?, UInt64?) {
    var signOutCount = signOutCount
    do throws(StoreError) {
      try await readUsers()
      try await reload(user)
      let count = signOutCount ?? core.users.record(of: user).signOutCount
      signOutCount = count
      while !canStopEarly {
        if core.users.record(of: user).phase == .signingOut { await finishSignOut(of: user) }
        var record = core.users.record(of: user)
        if record.phase == .signingOut { continue }
        if record.signOutCount != count { break }
        (record.phase, record.signInCount) = (.signedIn, record.signInCount + 1)
        if try await commit(record, of: user) { break }
      }
      return (nil, signOutCount)
    } catch {
      return (error, signOutCount)
    }
  }

  // MARK: - Signing out

  /// Signs a user out.
  func signOut(userID: String, unsent policy: UnsentPolicy) async throws(SignOutError) {
    let user = UserDigest(userID)
    try await SignOutError.mappingStoreErrors { () async throws(StoreError) in
      try await start()
      try await readUsers()
    }
    core.users.beginRejectingCalls(of: user)
    defer { core.users.endRejectingCalls(of: user) }
    if case .send(let time) = policy { await waitUntilSent(user, atMost: time) }
    if Task.isCancelled { throw .cancelled }
    try await signOutTurns.run { () async throws(SignOutError) in
      let lock = try await SignOutError.mappingStoreErrors { () async throws(StoreError) -> HeldLock? in
        try await waitForLock()
      }
      guard let lock else { throw .cancelled }
      defer { withExtendedLifetime(lock) {} }
      let unsentCount = try await SignOutError.mappingStoreErrors { () async throws(StoreError) -> Int in
        try await reload(user)
        return try await commitSignOut(of: user, discardsUnsent: policy == .discard)
      }
      if unsentCount > 0 { throw .unsent(unsentCount) }
      try await SignOutError.mappingStoreErrors { () async throws(StoreError) in
        try await eraseOrRetryLater(user, holding: lock)
      }
    }
  }

  /// Completes a sign-out that another call or another process has begun.
  func finishSignOut(of user: UserDigest) async {
    await signOutTurns.run {
      var attempt = 0
      while !canStopEarly, core.users.record(of: user).phase == .signingOut {
        do throws(StoreError) {
          guard let lock = try await waitForLock() else { return }
          defer { withExtendedLifetime(lock) {} }
          try await erase(user, holding: lock)
        } catch {
          events.emit(.storeFailed(error))
          attempt += 1
          await wait(afterAttempt: attempt)
        }
      }
    }
  }

  /// Ends the backoff delays, and waits until a user has no live mutations, or until a time limit.
  ///
  /// Cancellation ends the wait.
  private func waitUntilSent(_ user: UserDigest, atMost time: Duration) async {
    update { $0.endWaits() }
    await wait(until: clock.elapsed() + time) { !$0.queue.hasLiveMutations(of: user) }
  }

  /// Commits that a user's sign-out begins, unless the user has unsent mutations and `discardsUnsent` is `false`.
  ///
  /// - Returns: The number of unsent mutations that prevent the sign-out. If it is 0, the sign-out has begun or is
  ///   complete.
  private func commitSignOut(of user: UserDigest, discardsUnsent: Bool) async throws(StoreError) -> Int {
    while true {
      var record = core.users.record(of: user)
      var batch = StoreBatch()
      if !discardsUnsent, record.phase == .signedIn {
        // Every addition of a mutation changes the tag.
        let tag = try await load(recordKeys.counter)?.tag
        batch.requireFound(tag, of: recordKeys.counter)
        try await readQueue()
        let count = core.queue.unsentCount(of: user) + (try await countMissingFromQueue(of: user))
        if count > 0 {
          // If a mutation was added meanwhile, the count may lack it.
          if try await load(recordKeys.counter)?.tag == tag { return count }
          continue
        }
      }
      // Incremented in any phase. A sign-in that began earlier and isn't stored yet gives up when it reads the new
      // count.
      record.signOutCount += 1
      if record.phase == .signedIn { record.phase = .signingOut }
      if try await commit(record, of: user, batch) { return 0 }
    }
  }

  /// Returns the number of a user's stored mutations that the queue doesn't have, because this program can't read
  /// their records or this repository is read-only.
  private func countMissingFromQueue(of user: UserDigest) async throws(StoreError) -> Int {
    let (data, queuedIDs) = (data(of: user), core.queue.ids)
    let missingIDs = Lock<Set<MutationID>>([])
    // Only an erasure passes on the bytes of values that can't be decoded. This one erases nothing.
    try await store.erase { item in
      if let id = data.mutationID(of: item), !queuedIDs.contains(id) { missingIDs.withLock { _ = $0.insert(id) } }
      return false
    }
    return missingIDs.withLock { $0.count }
  }

  private func data(of user: UserDigest) -> UserData<Key> {
    UserData(user: user, valueCollection: name, mutationCollection: recordKeys.collection)
  }

  // MARK: - Locking

  private var lockName: String { "\(name).sign-out" }

  /// Waits for the lock that allows one sign-out at a time.
  ///
  /// - Returns: `nil` if the calling task was cancelled or the repository was released first.
  private func waitForLock() async throws(StoreError) -> HeldLock? {
    var releases: MulticastStream<Void, Never>?
    while !canStopEarly {
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
  private func eraseOrRetryLater(_ user: UserDigest, holding lock: HeldLock) async throws(StoreError) {
    do throws(StoreError) {
      while core.users.record(of: user).phase == .signingOut { try await erase(user, holding: lock) }
    } catch {
      start { engine in await engine.finishSignOutLater(of: user) }
      throw error
    }
  }

  private func finishSignOutLater(of user: UserDigest) async {
    await wait(afterAttempt: 1)
    await finishSignOut(of: user)
  }

  /// Erases the stored data of a user and records that, unless another process has done so.
  ///
  /// Records nothing if the user's record changes during the erasure. So the caller repeats the call while the phase of
  /// the record is `signingOut`.
  private func erase(_ user: UserDigest, holding lock: HeldLock) async throws(StoreError) {
    try await lock.checkIsHeld(name: lockName)
    // The previous holder of the lock may have completed the sign-out.
    try await reload(user)
    let recordBefore = core.users.record(of: user)
    guard recordBefore.phase == .signingOut else { return }
    let data = data(of: user)
    try await store.erase { data.mayOwn($0) }
    // Without locks, another process may have completed the sign-out, and the user may have signed in again.
    guard core.users.record(of: user) == recordBefore else { return }
    var record = recordBefore
    record.phase = .signedOut
    _ = try await commit(record, of: user)
    // Events that were reported since the sign-out began may contain the user's keys.
    events.forget()
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

internal import DataStore
internal import Foundation
internal import Multicast

/// Signs users out: decides whether that is possible, and erases what is theirs.
///
/// 1. The user begins nothing new in this repository.
/// 2. What isn't sent is counted. The commit that says that the user signs out requires that nothing was added meanwhile, by
///    any process.
/// 3. Every repository on the store that learns of that commit forgets the user. A commit with data of the user can't be
///    made any more, because each requires the user's record from before.
/// 4. What is stored is erased, and another commit says so.
///
/// If a process ends in between, another one goes on from the third step, with the lock ``lockName`` so that nobody erases
/// what comes after a new sign-in.
///
/// Belongs to one ``SyncEngine`` and is used in its isolation only.
final class SignOuts<Source: RepositorySource> {
  typealias Engine = SyncEngine<Source>
  typealias Key = Source.Key

  /// How long to wait before the lock is tried again.
  private static var lockInterval: Duration { .milliseconds(250) }

  private let store: any KeyValueStore
  private let name: String
  private let clock: ElapsedClock
  private let events: RepositoryEvents
  private let liveCounts: CurrentValueRelay<Int>
  /// Lets one sign-out of this repository come after the other.
  private let turns = AsyncSerialQueue()

  init(
    _ store: any KeyValueStore, repository name: String, clock: ElapsedClock, liveCounts: CurrentValueRelay<Int>,
    events: RepositoryEvents
  ) {
    (self.store, self.name, self.clock) = (store, name, clock)
    (self.liveCounts, self.events) = (liveCounts, events)
  }

  private var lockName: String { "\(name).sign-out" }

  /// Signs a user out.
  func signOut(_ userID: String, _ policy: UnsentPolicy, in engine: isolated Engine) async throws(SignOutError) {
    let user = UserDigest(userID)
    try await SignOutError.mapping { () async throws(StoreError) in
      try await engine.start()
      try await engine.users.start(in: engine)
    }
    engine.users.beginLeaving(user)
    defer { engine.users.endLeaving(user) }
    if case .send(let time) = policy { await waitUntilSent(user, atMost: time, in: engine) }
    if Task.isCancelled { throw .cancelled }
    try await turns.run { () async throws(SignOutError) in
      let lock = try await SignOutError.mapping { () async throws(StoreError) -> Held? in
        try await waitForLock(in: engine)
      }
      guard let lock else { throw .cancelled }
      defer { withExtendedLifetime(lock) {} }
      let unsentCount = try await SignOutError.mapping { () async throws(StoreError) -> Int in
        try await engine.users.reload(user, in: engine)
        return try await beginErasing(user, discards: policy == .discard, in: engine)
      }
      if unsentCount > 0 { throw .unsent(unsentCount) }
      try await SignOutError.mapping { () async throws(StoreError) in try await eraseNow(user, in: engine) }
    }
  }

  /// Goes on with a sign-out that another call, or another process, has begun, until it is done.
  func finish(_ user: UserDigest, in engine: isolated Engine) async {
    await turns.run {
      var attempt = 0
      while !engine.hasEnded, engine.users.record(of: user).phase == .signingOut {
        do throws(StoreError) {
          guard let lock = try await waitForLock(in: engine) else { return }
          defer { withExtendedLifetime(lock) {} }
          // Whoever had the lock may be done.
          try await engine.users.reload(user, in: engine)
          if engine.users.record(of: user).phase == .signingOut { try await erase(user, in: engine) }
        } catch {
          events.emit(.storeFailed(error))
          attempt += 1
          await engine.backoff.wait(afterAttempt: attempt)
        }
      }
    }
  }

  // MARK: - Deciding

  /// Waits until the server has all of a user's mutations that it can be sent.
  private func waitUntilSent(_ user: UserDigest, atMost time: Duration, in engine: isolated Engine) async {
    engine.endWaits()
    await clock.wait(until: clock.elapsed() + time) { [liveCounts, weak engine] in
      for await _ in liveCounts.stream {
        guard let engine, await engine.hasLiveMutations(of: user) else { return }
      }
    }
  }

  /// Records that a user signs out, unless mutations are left.
  ///
  /// - Returns: The number of mutations that are left. If there is none, the user has signed out, or is about to.
  private func beginErasing(
    _ user: UserDigest, discards: Bool, in engine: isolated Engine
  ) async throws(StoreError) -> Int {
    while true {
      var record = engine.users.record(of: user)
      var batch = StoreBatch()
      if !discards, record.phase == .signedIn {
        let tag = try await engine.queue.read(in: engine)
        let count = engine.queue.unsentCount(of: user)
        if count > 0 { return count }
        // Whatever is added changes it.
        batch.require(tag, of: engine.queue.records.keys.counter)
      }
      // Counted in any case, so that a sign-in from before that isn't stored yet has no effect any more.
      record.signOutCount += 1
      if record.phase == .signedIn { record.phase = .signingOut }
      if try await engine.users.commit(record, of: user, batch, in: engine) { return 0 }
    }
  }

  // MARK: - Locking

  /// A lock; without one where the store knows none.
  private struct Held {
    let lock: StoreLock?
  }

  /// Waits for the lock that one sign-out at a time has.
  ///
  /// - Returns: `nil` if the calling task was cancelled first, or the repository is released.
  private func waitForLock(in engine: isolated Engine) async throws(StoreError) -> Held? {
    var releases: MulticastStream<Void, Never>?
    while !engine.hasEnded {
      // Before the attempt, so that no release is missed.
      let subscription = releases?.subscribe()
      switch try await store.acquireLock(lockName) {
      case .acquired(let lock): return Held(lock: lock)
      case .unsupported: return Held(lock: nil)
      case .held(let stream):
        releases = stream
        if let subscription { await clock.wait(until: clock.elapsed() + Self.lockInterval, or: subscription) }
      }
    }
    return nil
  }

  // MARK: - Erasing

  /// Erases what is stored of a user, or has it done later if that fails.
  private func eraseNow(_ user: UserDigest, in engine: isolated Engine) async throws(StoreError) {
    do throws(StoreError) {
      while engine.users.record(of: user).phase == .signingOut { try await erase(user, in: engine) }
    } catch {
      engine.start { engine in
        await engine.backoff.wait(afterAttempt: 1)
        await engine.signOuts.finish(user, in: engine)
      }
      throw error
    }
  }

  /// Erases what is stored of a user, and records it.
  private func erase(_ user: UserDigest, in engine: isolated Engine) async throws(StoreError) {
    let (values, mutations) = (name, engine.queue.records.keys.collection)
    let begun = engine.users.record(of: user)
    let owners = try await engine.queue.owners()
    try await store.erase { item in
      // Nobody can tell whose it is.
      guard let key = item.key else { return true }
      switch key.collection {
      case values: return key.id.map { Self.isKey($0, of: user) } ?? false
      case mutations:
        if let owner = key.id.flatMap({ owners[$0] }) { return owner == user }
        return Self.isMentioned(user, in: item.bytes)
      default: return false
      }
    }
    // Where the store has no locks, another process may have been faster, and the user may be back.
    guard engine.users.record(of: user) == begun else { return }
    var record = begun
    record.phase = .signedOut
    _ = try await engine.users.commit(record, of: user, in: engine)
    events.forget()
  }

  private static func isKey(_ storeID: String, of user: UserDigest) -> Bool {
    Key(storeID: storeID)?.userID.map { UserDigest($0) == user } ?? false
  }

  /// Whether bytes that can't be decoded have a key of a user, or the user's id, in quotation marks.
  private static func isMentioned(_ user: UserDigest, in bytes: Data) -> Bool {
    bytes.split(separator: UInt8(ascii: "\"")).contains { segment in
      let text = String(decoding: segment, as: UTF8.self).replacing("\\/", with: "/")
      return UserDigest(text) == user || isKey(text, of: user)
    }
  }
}

extension SignOutError {
  /// Runs what the store may refuse.
  fileprivate static func mapping<Result>(
    isolation: isolated (any Actor)? = #isolation, _ body: () async throws(StoreError) -> Result
  ) async throws(SignOutError) -> Result {
    do throws(StoreError) {
      return try await body()
    } catch {
      throw .store(error)
    }
  }
}

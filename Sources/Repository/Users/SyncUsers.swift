internal import DataStore

/// Observes the stored records of users who have signed in or out, and applies changed records to the engine.
///
/// Belongs to one ``SyncEngine`` and is used in its isolation only.
final class SyncUsers<Source: RepositorySource> {
  typealias Engine = SyncEngine<Source>

  private let store: any KeyValueStore
  private let collection: String
  private let events: RepositoryEvents
  private let starting = AsyncSerialQueue()
  private var hasStarted = false
  /// The number of sign-outs of each user in the records that ``start(in:)`` has read.
  private var signOutCountsAtStart: [UserDigest: UInt64] = [:]
  private var access = UserAccess()

  init(_ store: any KeyValueStore, repository name: String, events: RepositoryEvents) {
    (self.store, self.events) = (store, events)
    collection = UserRecord.collection(ofRepository: name)
  }

  /// Begins to follow the stored records, unless it follows them already.
  func start(in engine: isolated Engine) async throws(StoreError) {
    if hasStarted { return }
    try await starting.run { () async throws(StoreError) in
      if hasStarted { return }
      try await engine.feed.follow(collection: collection, as: UserRecord.self, in: engine) { changes, engine in
        for change in changes {
          if let user = change.key.id.map(UserDigest.init(text:)) {
            let stored = change.stored(for: engine.users.key(of: user))
            engine.users.signOutCountsAtStart[user] = stored?.value.signOutCount
          }
          engine.users.receive(change, in: engine)
        }
      }
      hasStarted = true
    }
  }

  // MARK: - State

  /// Whether the repository may hold data of a user.
  ///
  /// The id `nil` stands for data that belongs to no user. The repository may always hold such data.
  func isOpen(_ userID: String?) -> Bool { userID.map { access.isOpen(UserDigest($0)) } ?? true }

  /// Whether the repository may hold data of a user.
  func isOpen(_ user: UserDigest) -> Bool { access.isOpen(user) }

  /// Whether new calls may begin for a user, or for data that belongs to no user.
  func mayBegin(_ userID: String?) -> Bool { userID.map { access.mayBegin(UserDigest($0)) } ?? true }

  /// The number of a user's sign-outs that are known to have begun; 0 for data that belongs to no user.
  func signOutCount(of userID: String?) -> UInt64 { userID.map { record(of: UserDigest($0)).signOutCount } ?? 0 }

  /// The last known record of a user, or a new record if none is known.
  func record(of user: UserDigest) -> UserRecord { access.record(of: user) }

  /// The precondition of a commit with data of a user, or `nil` if the data belongs to no user.
  func requirement(of userID: String?) -> UserRequirement? {
    userID.map { requirement(of: UserDigest($0)) }
  }

  /// The precondition of a commit with data of a user.
  func requirement(of user: UserDigest) -> UserRequirement {
    UserRequirement(key: key(of: user), tag: access.tag(of: user))
  }

  private func key(of user: UserDigest) -> StoreKey<UserRecord> { StoreKey(collection, id: user.text) }

  // MARK: - Changes

  /// Rejects new calls for a user until each call of this function is balanced by a call of ``endRejectingCalls(of:)``.
  func beginRejectingCalls(of user: UserDigest) {
    access.beginRejectingCalls(of: user)
  }

  /// Balances a call of ``beginRejectingCalls(of:)``.
  func endRejectingCalls(of user: UserDigest) {
    access.endRejectingCalls(of: user)
  }

  /// Applies a change that the store reports, unless it is that of another collection.
  func receive(_ change: StoreFeedChange, in engine: isolated Engine) {
    guard change.key.collection == collection, let user = change.key.id.map(UserDigest.init(text:)) else { return }
    switch change {
    case .saved:
      if let stored = change.stored(for: key(of: user)) { receive(stored, of: user, in: engine) }
    case .removed(_, let revision): access.recordRemoval(of: user, revision: revision)
    // The last known record stays in force.
    case .unusable: break
    }
  }

  private func receive(_ stored: StoredValue<UserRecord>, of user: UserDigest, in engine: isolated Engine) {
    let record = stored.value
    let effects = access.receive(record, of: user, tag: stored.tag, revision: stored.revision)
    if effects.isClosed { engine.close(user) }
    if effects.isReopened { engine.reopen(user) }
    if effects.hasSignedIn { engine.takeSignIn(of: user) }
    if record.phase == .signingOut { engine.start { engine in await engine.signOuts.finish(user, in: engine) } }
  }

  /// Reads the stored record of a user again, and applies it to the engine.
  func reload(_ user: UserDigest, in engine: isolated Engine) async throws(StoreError) {
    let tag = access.tag(of: user)
    guard let stored = try await load(user) else { return access.recordAbsence(of: user, tag: tag) }
    receive(stored, of: user, in: engine)
  }

  /// Returns the stored record of a user; `nil` if there is none, or none that can be decoded.
  private func load(
    _ user: UserDigest, isolation: isolated (any Actor)? = #isolation
  ) async throws(StoreError) -> StoredValue<UserRecord>? {
    do throws(StoreError) {
      return try await store.load(key(of: user))
    } catch {
      guard case .undecodable = error else { throw error }
      return nil
    }
  }

  /// Stores a record of a user together with other changes, if the stored record is the known one.
  ///
  /// - Returns: Whether the commit was made; `false` if another record is stored, which is then read, or if a
  ///   requirement of the batch doesn't hold.
  func commit(
    _ record: UserRecord, of user: UserDigest, _ batch: StoreBatch = StoreBatch(), in engine: isolated Engine
  ) async throws(StoreError) -> Bool {
    var batch = batch
    let key = key(of: user)
    batch.save(record, for: key)
    batch.requireFound(access.tag(of: user), of: key)
    do throws(StoreError) {
      try await engine.feed.commit(batch, in: engine)
      return true
    } catch {
      guard case .preconditionFailed = error else { throw error }
      try await reload(user, in: engine)
      return false
    }
  }

  // MARK: - Signing in

  /// Stores that the credentials of a user have changed.
  ///
  /// If that fails, retries in the background until the change is stored, the user has signed out, or the repository is
  /// released. Cancelling the calling task has no effect.
  func signIn(_ user: UserDigest, in engine: isolated Engine) async {
    let (error, signOutCount) = await engine.runToCompletion { engine in
      var signOutCount: UInt64?
      let error = await engine.users.trySignIn(user, &signOutCount, in: engine)
      return (error, signOutCount)
    }
    guard let error else { return }
    events.emit(.storeFailed(error))
    // A sign-out that begins during the retries must prevail. It increases the number of sign-outs. If the first
    // attempt didn't read that number, the retries compare with that of the last known record. If the records haven't
    // been read yet, they compare with the first number that is read later.
    engine.start { [knownCount = signOutCount ?? (hasStarted ? access.record(of: user).signOutCount : nil)] engine in
      var (attempt, signOutCount) = (1, knownCount)
      var retryError: StoreError?
      repeat {
        await engine.backoff.wait(afterAttempt: attempt)
        attempt += 1
        if engine.canStopEarly { return }
        // Another call, such as a sign-out, may have made the first read of the records meanwhile. A sign-out of this
        // repository begins only after that read, so the numbers of the read don't include it.
        if signOutCount == nil, engine.users.hasStarted {
          signOutCount = engine.users.signOutCountsAtStart[user] ?? 0
        }
        retryError = await engine.users.trySignIn(user, &signOutCount, in: engine)
      } while retryError != nil
    }
  }

  /// Stores that the credentials of a user have changed, unless the user has signed out since.
  ///
  /// - Parameters:
  ///   - user: The user.
  ///   - signOutCount: The number of the user's sign-outs that had begun when the credentials changed. Pass `nil` if
  ///     that is unknown; the function sets it as soon as it has read the user's record.
  ///   - engine: The engine.
  /// - Returns: The error of the store if the change could not be stored.
  private func trySignIn(
    _ user: UserDigest, _ signOutCount: inout UInt64?, in engine: isolated Engine
  ) async -> StoreError? {
    do throws(StoreError) {
      try await start(in: engine)
      try await reload(user, in: engine)
      let count = signOutCount ?? access.record(of: user).signOutCount
      signOutCount = count
      while !engine.canStopEarly {
        if access.record(of: user).phase == .signingOut { await engine.signOuts.finish(user, in: engine) }
        var record = access.record(of: user)
        if record.phase == .signingOut { continue }
        if record.signOutCount != count { return nil }
        (record.phase, record.signInCount) = (.signedIn, record.signInCount + 1)
        if try await commit(record, of: user, in: engine) { return nil }
      }
      return nil
    } catch {
      return error
    }
  }
}

internal import DataStore
internal import Foundation

/// Writes the results of replies to the store.
///
/// For each key there is one write at a time, with all replies that have arrived. A write is one commit: the new value,
/// and the removal of the mutations that it includes. The commit requires that the value that the replies were judged
/// against is still stored. If another repository or process has changed it, the replies are judged again.
///
/// Belongs to one ``SyncEngine`` and is only used in its isolation.
final class SyncWrites<Source: RepositorySource> {
  typealias Engine = SyncEngine<Source>
  typealias Cell = SyncCell<Source>
  typealias Write = SyncState<Source.Value, Source.Mutation>.Write

  private let now: @Sendable () -> Date
  private let events: RepositoryEvents
  /// The cells whose writing task was started, but hasn't begun to run.
  ///
  /// The task takes its cell from here, because it can't capture a cell, which isn't `Sendable`. It doesn't take the
  /// engine's cell for the key: if the user has signed out and in again, that is a new one.
  private var cellsToWrite: [ObjectIdentifier: Cell] = [:]
  /// The writes in progress whose commits the feed hasn't shown yet, by the tags of the commits.
  private var commits: [StoreTag: (write: Write, cell: Cell)] = [:]

  init(now: @escaping @Sendable () -> Date, events: RepositoryEvents) {
    (self.now, self.events) = (now, events)
  }

  /// Starts a task that writes the replies that have arrived, unless one is running or the cell is closed.
  func write(_ cell: Cell, in engine: isolated Engine) {
    guard !cell.isWriting, !cell.isClosed else { return }
    cell.isWriting = true
    let id = ObjectIdentifier(cell)
    cellsToWrite[id] = cell
    engine.startToCompletion { engine in
      guard let cell = engine.writes.cellsToWrite.removeValue(forKey: id) else { return }
      await engine.writes.writeAll(cell, in: engine)
    }
  }

  private func writeAll(_ cell: Cell, in engine: isolated Engine) async {
    while !cell.isClosed, let write = cell.state.beginWriting() {
      do throws(StoreError) {
        try await perform(write, cell, in: engine)
        cell.failedWrites = 0
      } catch {
        let writesAgain = await recover(from: error, write, cell, in: engine)
        if !writesAgain { break }
      }
    }
    cell.isWriting = false
    if !cell.isClosed, cell.state.needsWholeValue { engine.loader.fetchWhole(cell, in: engine) }
    engine.release(cell)
  }

  private func perform(_ write: Write, _ cell: Cell, in engine: isolated Engine) async throws(StoreError) {
    var commit: StoreCommit?
    if write.isEmpty {
      // Without a commit there is no new base, so the revision and the tag aren't used.
      apply(write, StoreCommit(revision: 0, tag: StoreTag(), savedAt: now()), cell, in: engine)
    } else {
      var batch = StoreBatch()
      // Required even if no value is saved, because another repository may have stored a value that lacks the mutations
      // whose records are removed.
      // Without a base, the commit may replace a value that can't be decoded; the store then quarantines its bytes.
      batch.requireFound(write.baseTag, of: cell.storeKey)
      engine.users.requirement(of: cell.key.userID)?.add(to: &batch)
      if let value = write.value { batch.save(value, for: cell.storeKey) }
      for id in write.confirmed { batch.remove(engine.recordKeys.record(id)) }
      let tag = batch.tag
      commits[tag] = (write, cell)
      defer { commits[tag] = nil }
      let made = try await engine.feed.commit(batch, in: engine)
      // Has no effect unless the repository was released, because the feed has applied the commit already.
      apply(made, in: engine)
      commit = made
    }
    if let value = write.value, let commit {
      await engine.evictions.makeRoom(afterSaving: value, of: cell, commit, in: engine)
    }
    for id in write.confirmed {
      events.emit(.mutationDelivered(id))
      engine.calls.end(id, .success(.confirmed))
    }
    for fetch in write.accepted { engine.loader.end(fetch, .success(true)) }
    for fetch in write.rejected { engine.loader.end(fetch, .success(false)) }
    engine.performer.reportChanges(in: engine)
  }

  /// Applies a commit if it is that of a write, when the feed shows it.
  func apply(_ commit: StoreCommit, in engine: isolated Engine) {
    guard let (write, cell) = commits.removeValue(forKey: commit.tag) else { return }
    apply(write, commit, cell, in: engine)
  }

  private func apply(_ write: Write, _ commit: StoreCommit, _ cell: Cell, in engine: isolated Engine) {
    cell.state.commit(revision: commit.revision, tag: commit.tag)
    // The time according to the store, which is also the time that the next process will read.
    if write.isRefreshed { cell.recordFetch(at: write.value == nil ? now() : commit.savedAt) }
    engine.performer.confirm(write.confirmed, in: engine)
    engine.publish(cell)
  }

  /// Handles a failed write.
  ///
  /// - Returns: Whether to write again immediately.
  private func recover(
    from error: StoreError, _ write: Write, _ cell: Cell, in engine: isolated Engine
  ) async -> Bool {
    // A released repository doesn't learn what others have stored. The next one on the store sends the mutations again.
    if case .preconditionFailed(let keyName) = error, !engine.feed.hasEnded {
      do throws(StoreError) {
        if let userID = cell.key.userID, engine.users.requirement(of: userID)?.key.keyName == keyName {
          // The user has signed out, or in.
          try await engine.users.reload(UserDigest(userID), in: engine)
        }
        let hasChanged = cell.isClosed ? false : try await catchUp(cell, keyName, after: write, in: engine)
        if hasChanged, !cell.isClosed { return true }
      } catch let loadError {
        return await recover(from: loadError, write, cell, in: engine)
      }
    }
    if cell.isClosed {
      // The sign-out itself ends the calls of the mutations.
      for fetch in write.accepted + write.rejected { engine.loader.end(fetch, .failure(.signedOut)) }
      return false
    }
    events.emit(.storeFailed(error))
    cell.state.abandon(keepsFetches: false)
    for fetch in write.accepted + write.rejected { engine.loader.end(fetch, .failure(.store(error))) }
    engine.publish(cell)
    if case .newerFormat = error {
      cell.hasFutureValue = true
      for id in write.confirmed {
        cell.state.fail(id)
        await engine.performer.returnAnswered(id, in: engine)
      }
      let hasOtherReplies = cell.state.discardReplies(to: write.confirmed)
      engine.publish(cell)
      return hasOtherReplies
    }
    if error.isPermanent {
      // The same write would fail every time, so the mutations are refused and their callers get the error, although
      // the server has the mutations. Their outcome counts as unknown, so that they keep their ids if they are sent
      // again.
      for id in write.confirmed {
        await engine.performer.refuse(id, .unstorable(error), .store(error), isOutcomeUnknown: true, in: engine)
      }
      let hasOtherReplies = cell.state.discardReplies(to: write.confirmed)
      return hasOtherReplies
    }
    // The mutations' callers don't wait until the store works again. The mutations stay visible, and the replies to
    // them are written later.
    for id in write.confirmed { engine.calls.end(id, .success(.queued)) }
    // A fetch whose reply arrived during the write must not wait for the backoff, so the next write begins immediately.
    // The fetch ends with that write, even if the write fails.
    if cell.state.hasFetchReplies { return true }
    cell.failedWrites += 1
    let (key, attempt) = (cell.key, cell.failedWrites)
    engine.start { engine in
      await engine.backoff.wait(afterAttempt: attempt)
      // The repository is released. The next repository sends the mutations again.
      if Task.isCancelled { return }
      if let cell = engine.cell(key) { engine.writes.write(cell, in: engine) }
    }
    return false
  }

  /// Applies what is stored now, so that the next write judges the replies against it.
  ///
  /// - Returns: Whether the next write may succeed.
  private func catchUp(
    _ cell: Cell, _ failedKey: StoreKeyName, after write: Write, in engine: isolated Engine
  ) async throws(StoreError) -> Bool {
    try await engine.feed.catchUp(in: engine)
    if cell.isClosed { return false }
    if failedKey == cell.storeKey.keyName, cell.state.base?.tag == write.baseTag {
      // The feed hasn't reported the stored value. Usually the reason is that this program can't use it.
      if let stored = try await engine.feed.load(cell.storeKey) {
        cell.receive(.saved(cell.storeKey, stored))
        if cell.state.base?.tag == write.baseTag { return false }
      } else {
        cell.state.removeBase()
      }
    }
    cell.state.abandon(keepsFetches: true)
    engine.publish(cell)
    return true
  }
}

extension StoreError {
  /// Whether the same save would fail every time.
  fileprivate var isPermanent: Bool {
    switch self {
    case .encodingFailed, .invalidKey, .collectionHasAnotherType: true
    default: false
    }
  }
}

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

  private let store: any KeyValueStore
  private let now: @Sendable () -> Date
  private let events: RepositoryEvents
  /// The cells whose writing task was started, but hasn't begun to run.
  ///
  /// The task takes its cell from here, because it can't capture a cell, which isn't `Sendable`. It doesn't take the
  /// engine's cell for the key: if the user has signed out and in again, that is a new one.
  private var cellsToWrite: [ObjectIdentifier: Cell] = [:]

  init(_ store: any KeyValueStore, now: @escaping @Sendable () -> Date, events: RepositoryEvents) {
    (self.store, self.now, self.events) = (store, now, events)
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
    let records = engine.performer.records
    var commit: StoreCommit?
    var savedAt = now()
    records.beginWriting(write.confirmed)
    defer { records.endWriting(write.confirmed) }
    if !write.isEmpty {
      var batch = StoreBatch()
      // Required even if no value is saved, because another repository may have stored a value that lacks the mutations
      // whose records are removed.
      // Without a base, the commit may replace a value that can't be decoded; the store then quarantines its bytes.
      batch.requireFound(write.baseTag, of: cell.storeKey)
      engine.users.requirement(of: cell.key.userID)?.add(to: &batch)
      if let value = write.value { batch.save(value, for: cell.storeKey) }
      for id in write.confirmed { batch.remove(records.keys.record(id)) }
      commit = try await store.commit(batch)
      // The time according to the store, which is also the time that the next process will read.
      if write.value != nil, let commit { savedAt = commit.savedAt }
    }
    // Without a commit there is no new base, so `revision` and `tag` aren't used.
    cell.state.commit(revision: commit?.revision ?? 0, tag: commit?.tag ?? StoreTag())
    if write.isRefreshed { cell.recordFetch(at: savedAt) }
    engine.performer.confirm(write.confirmed, commit, in: engine)
    applyHeldChanges(of: cell, in: engine)
    engine.publish(cell)
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

  /// Applies the changes that were reported during a write, in tasks of their own.
  ///
  /// The write's own change isn't newer than the base, and is ignored.
  ///
  /// The tasks are needed because an external change is applied together with the mutations that it confirms. Finding
  /// these requires reading records from the store.
  private func applyHeldChanges(of cell: Cell, in engine: isolated Engine) {
    let (changes, removals) = (cell.heldChanges, cell.heldRemovals)
    (cell.heldChanges, cell.heldRemovals) = ([], [])
    let (key, newChanges) = (cell.key, changes.filter { cell.state.isNew($0.revision) })
    if !newChanges.isEmpty {
      engine.start { engine in
        for change in newChanges { await engine.receive(change, key) }
      }
    }
    for id in removals {
      engine.start { engine in
        if let entry = engine.queue[id] { await engine.external.receiveRemoval(of: entry, in: engine) }
      }
    }
  }

  /// Handles a failed write.
  ///
  /// - Returns: Whether to write again immediately.
  private func recover(
    from error: StoreError, _ write: Write, _ cell: Cell, in engine: isolated Engine
  ) async -> Bool {
    if case .preconditionFailed(let keyName) = error {
      do throws(StoreError) {
        if let userID = cell.key.userID, engine.users.requirement(of: userID)?.key.keyName == keyName {
          // The user has signed out, or in.
          try await engine.users.reload(UserDigest(userID), in: engine)
        }
        if !cell.isClosed { try await reloadBase(of: cell, in: engine) }
        if !cell.isClosed { return true }
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
    applyHeldChanges(of: cell, in: engine)
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

  /// Replaces the base by the value that is stored now, so that the next write judges the replies against it.
  private func reloadBase(of cell: Cell, in engine: isolated Engine) async throws(StoreError) {
    let finished = await engine.external.finishedMutations(of: cell, in: engine).ids
    let stored = try await engine.external.load(cell.storeKey)
    cell.state.abandon(keepsFetches: true)
    applyHeldChanges(of: cell, in: engine)
    if let stored {
      cell.receive(.saved(cell.storeKey, stored))
    } else {
      cell.state.removeBase()
    }
    engine.external.finish(finished, of: cell.key, in: engine)
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

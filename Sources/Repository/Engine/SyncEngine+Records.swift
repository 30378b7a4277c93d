internal import DataStore
internal import Multicast

/// A write of a record, and the call that waits for it.
struct WaitingWrite {
  let write: RecordWrite
  let continuation: CheckedContinuation<Result<Bool, StoreError>, Never>

  fileprivate func end(_ outcome: Result<Bool, StoreError>) { continuation.resume(returning: outcome) }
}

/// Writes the records of mutations when they change; ``RecordCommit`` decides what the next commit contains.
extension SyncEngine {
  /// Performs a write of a record, after those that were requested before.
  ///
  /// Writes that arrive during a commit share the next commit. A write runs to completion: cancelling the caller
  /// doesn't cancel it.
  ///
  /// - Returns: Whether it was made; `false` if it no longer applies.
  func perform(_ write: RecordWrite) async throws(StoreError) -> Bool {
    if case .remove = write.change { core.idsBeingRemoved.insert(write.id) }
    defer { if case .remove = write.change { core.idsBeingRemoved.remove(write.id) } }
    return try await withCheckedContinuation { continuation in
      waitingWrites.append(WaitingWrite(write: write, continuation: continuation))
      guard !isWritingRecords else { return }
      isWritingRecords = true
      startToCompletion { engine in await engine.writeRecords() }
    }.get()
  }

  private func writeRecords() async {
    while !waitingWrites.isEmpty {
      let writes = waitingWrites
      waitingWrites = []
      await write(writes)
    }
    isWritingRecords = false
  }

  private func write(_ writes: [WaitingWrite]) async {
    var writes = writes
    var failed: (commit: RecordCommit<Key, Mutation>, key: StoreKeyName, error: StoreError)?
    while true {
      var commit = makeCommit(of: &writes)
      if let failed, case let stuck = commit.writes(stuckOn: failed.key, since: failed.commit), !stuck.isEmpty {
        // This program can't use what is stored. A record that it can't use isn't overwritten. If it was quarantined, the
        // mutation ends before the write does.
        let isRecord = failed.key.collection == recordKeys.collection
        for index in stuck {
          let outcome = isRecord ? await outcome(ofStuck: writes[index].write.id) : .failure(failed.error)
          writes[index].end(outcome)
        }
        writes = writes.enumerated().filter { !stuck.contains($0.offset) }.map(\.element)
        commit = makeCommit(of: &writes)
      }
      if writes.isEmpty { return }
      do throws(StoreError) {
        let made = try await self.commit(commit.batch, adding: commit.added)
        if feed.hasEnded { core.apply(commit, made) }
        for write in writes { write.end(.success(true)) }
        return
      } catch {
        var error = error
        if case .preconditionFailed(let key) = error {
          failed = (commit, key, error)
          do throws(StoreError) {
            try await catchUp()
            continue
          } catch let reason {
            error = reason
          }
        } else if writes.count > 1 {
          // Written one by one, so that a write that fails doesn't fail the others.
          for write in writes { await self.write([write]) }
          return
        }
        for write in writes { write.end(.failure(error)) }
        return
      }
    }
  }

  private func outcome(ofStuck id: MutationID) async -> Result<Bool, StoreError> {
    do throws(StoreError) {
      if let tag = core.queue[id]?.tag { try await endIfMissing(id, tag) }
      return .success(false)
    } catch {
      return .failure(error)
    }
  }

  /// Makes a commit of writes, and removes those from the array that it doesn't contain.
  private func makeCommit(of writes: inout [WaitingWrite]) -> RecordCommit<Key, Mutation> {
    while true {
      let commit = core.makeCommit(of: writes.map(\.write))
      var included: [WaitingWrite] = []
      for (write, fate) in zip(writes, commit.fates) {
        switch fate {
        case .included: included.append(write)
        case .void: write.end(.success(false))
        case .made: write.end(.success(true))
        case .postponed: waitingWrites.append(write)
        }
      }
      if included.count == writes.count { return commit }
      writes = included
    }
  }

  /// Stores the present record of a mutation, unless it isn't durable yet: its addition then stores it.
  ///
  /// - Returns: The error if the write failed.
  func write(_ id: MutationID, _ change: RecordWrite.Change = .save) async -> StoreError? {
    guard core.queue[id]?.tag != nil else { return nil }
    if case .save = change { core.queue.recordNeedForSave(of: id) }
    do throws(StoreError) {
      let isMade = try await perform(RecordWrite(id: id, change: change))
      // A mark that this repository still owns isn't stored, because the record can't be read.
      if case .mark = change, !isMade { core.queue.unmark([id]) }
      return nil
    } catch {
      return error
    }
  }

  /// Stores the present record of a mutation.
  ///
  /// If the write fails, retries in the background until a write doesn't fail, the mutation is removed, or the
  /// repository is released.
  func save(_ id: MutationID) async {
    guard let error = await write(id) else { return }
    events.emit(.storeFailed(error))
    start { engine in await engine.saveLater(id) }
  }

  /// Stores the present record of a mutation after the first delay of the backoff.
  ///
  /// Retries until a write doesn't fail, the mutation is removed, or the repository is released.
  func saveLater(_ id: MutationID) async {
    var attempt = 1
    repeat {
      await wait(afterAttempt: attempt)
      attempt += 1
      if Task.isCancelled { return }
    } while await write(id) != nil
  }

  /// Waits until every mutation before this one is known, and then lets this one be sent.
  ///
  /// A store that isn't watching its medium reports late what other processes have stored.
  func readPredecessors(of id: MutationID, _ sequence: UInt64) async {
    await keepTrying { () async throws(StoreError) in
      guard core.queue[id] != nil, core.queue.knownSequence < sequence else { return }
      do throws(StoreError) {
        try await catchUp()
      } catch {
        // The mutation now waits for the store, and not only for its turn.
        update { $0.end(id, .success(.queued)) }
        throw error
      }
      core.queue.recordReading(upTo: sequence)
    }
    if Task.isCancelled { return }
    update { $0.queue.recordPredecessors(of: id) }
  }

  /// Ends a mutation whose record this program can't use anymore, unless the record is still stored.
  func checkRecord(of id: MutationID, _ tag: StoreTag) async {
    await keepTrying { () async throws(StoreError) in try await endIfMissing(id, tag) }
  }

  private func endIfMissing(_ id: MutationID, _ tag: StoreTag) async throws(StoreError) {
    guard try await isMissing(id) else { return }
    let quarantine = await quarantine(of: id)
    update { $0.endMissing(id, tag, quarantine) }
  }

  /// Whether no record is stored, or one that this call quarantines.
  private func isMissing(_ id: MutationID) async throws(StoreError) -> Bool {
    do throws(StoreError) {
      return try await store.load(recordKeys.record(id)) == nil
    } catch {
      switch error {
      case .undecodable(_, let movedTo, _): return movedTo != nil
      // Another version of the program can read it.
      case .newerFormat, .migrationFailed: return false
      default: throw error
      }
    }
  }

  /// Returns the error of a missing record that the store has quarantined; `nil` if the record is missing for another
  /// reason, as far as the store's last events tell.
  func quarantine(of id: MutationID) async -> StoreError? {
    let recentEvents = store.events.buffering(.unbounded).subscribe()
    // A later subscription counts the replayed events, so that no further one is awaited.
    let counting = store.events.buffering(.unbounded).subscribe()
    counting.cancel()
    var iterator = recentEvents.makeAsyncIterator()
    for _ in 0..<counting.droppedCount {
      guard let (quarantined, error) = await iterator.next()?.quarantine(in: recordKeys.collection) else { continue }
      if quarantined == id { return error }
    }
    return nil
  }
}

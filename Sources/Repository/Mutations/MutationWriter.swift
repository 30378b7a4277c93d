internal import DataStore

/// Writes the records of a repository's mutations when they change.
///
/// Writes that arrive during a commit share the next commit, whose contents ``RecordCommit`` decides.
///
/// Belongs to one ``SyncEngine`` and is used in its isolation only.
final class MutationWriter<Source: RepositorySource> {
  typealias Engine = SyncEngine<Source>

  /// A write, and the call that waits for it.
  private struct Turn {
    let write: RecordWrite
    let continuation: CheckedContinuation<Result<Bool, StoreError>, Never>
  }

  private let keys: MutationKeys
  private let events: RepositoryEvents
  /// The writes that wait for the next commit.
  private var waiting: [Turn] = []
  private var isWriting = false
  /// The records that are being removed.
  private var beingRemoved: Set<MutationID> = []
  /// The tasks that write the marks of mutations whose turn comes next; see ``mark(_:in:)``.
  private var marking: [MutationID: Task<Void, Never>] = [:]

  init(_ keys: MutationKeys, events: RepositoryEvents) {
    (self.keys, self.events) = (keys, events)
  }

  // MARK: - Committing

  /// Performs a write, after those that were requested before.
  ///
  /// The write runs to completion: cancelling the caller doesn't cancel it.
  ///
  /// - Returns: Whether it was made; `false` if it no longer applies.
  func perform(_ write: RecordWrite, in engine: isolated Engine) async throws(StoreError) -> Bool {
    if case .remove = write.change { beingRemoved.insert(write.id) }
    defer { if case .remove = write.change { beingRemoved.remove(write.id) } }
    return try await withCheckedContinuation { continuation in
      waiting.append(Turn(write: write, continuation: continuation))
      guard !isWriting else { return }
      isWriting = true
      engine.startToCompletion { engine in await engine.writer.writeAll(in: engine) }
    }.get()
  }

  /// Whether this repository is removing a record, so that the removal need not be another one's.
  func isBeingRemoved(_ id: MutationID) -> Bool { beingRemoved.contains(id) }

  private func writeAll(in engine: isolated Engine) async {
    while !waiting.isEmpty {
      let turns = waiting
      waiting = []
      await write(turns, in: engine)
    }
    isWriting = false
  }

  private func write(_ turns: [Turn], in engine: isolated Engine) async {
    var turns = turns
    var failed: (commit: RecordCommit<Source.Key, Source.Mutation>, key: StoreKeyName, error: StoreError)?
    while true {
      var commit = makeCommit(of: &turns, in: engine)
      if let failed, case let stuck = commit.writes(stuckOn: failed.key, since: failed.commit), !stuck.isEmpty {
        // This program can't use what is stored. A record that it can't use isn't overwritten.
        let isRecord = failed.key.collection == keys.collection
        for index in stuck { end(turns[index], isRecord ? .success(false) : .failure(failed.error)) }
        turns = turns.enumerated().filter { !stuck.contains($0.offset) }.map(\.element)
        commit = makeCommit(of: &turns, in: engine)
      }
      if turns.isEmpty { return }
      do throws(StoreError) {
        let made = try await engine.feed.commit(commit.batch, adding: commit.added, in: engine)
        if engine.feed.hasEnded { commit.apply(made, to: &engine.queue, &engine.reader.shared) }
        for turn in turns { end(turn, .success(true)) }
        return
      } catch {
        if case .preconditionFailed(let key) = error {
          failed = (commit, key, error)
          do throws(StoreError) {
            try await engine.feed.catchUp(in: engine)
            continue
          } catch {
            return fail(turns, error)
          }
        }
        if turns.count == 1 { return fail(turns, error) }
        // Written one by one, so that a write that fails doesn't fail the others.
        for turn in turns { await write([turn], in: engine) }
        return
      }
    }
  }

  /// Makes a commit of writes, and removes those from the array that it doesn't contain.
  private func makeCommit(
    of turns: inout [Turn], in engine: isolated Engine
  ) -> RecordCommit<Source.Key, Source.Mutation> {
    while true {
      let commit = RecordCommit(turns.map(\.write), of: engine.queue, engine.reader.shared, keys) {
        engine.users.requirement(of: $0)
      }
      var included: [Turn] = []
      for (turn, fate) in zip(turns, commit.fates) {
        switch fate {
        case .included: included.append(turn)
        case .void: end(turn, .success(false))
        case .made: end(turn, .success(true))
        case .postponed: waiting.append(turn)
        }
      }
      if included.count == turns.count { return commit }
      turns = included
    }
  }

  private func end(_ turn: Turn, _ outcome: Result<Bool, StoreError>) {
    turn.continuation.resume(returning: outcome)
  }

  private func fail(_ turns: [Turn], _ error: StoreError) {
    for turn in turns { end(turn, .failure(error)) }
  }

  // MARK: - Records

  /// Stores the present record of a mutation, unless it isn't durable yet: ``MutationAdder`` then stores it.
  ///
  /// - Returns: The error if the write failed.
  func write(_ id: MutationID, _ change: RecordWrite.Change = .save, in engine: isolated Engine) async -> StoreError? {
    guard engine.queue[id]?.tag != nil else { return nil }
    if case .save = change { engine.queue.recordNeedForSave(of: id) }
    do throws(StoreError) {
      let isMade = try await perform(RecordWrite(id: id, change: change), in: engine)
      // A mark that this repository still owns isn't stored, because the record can't be read.
      if case .mark = change, !isMade { engine.queue.unmark([id]) }
      return nil
    } catch {
      return error
    }
  }

  /// Applies what other processes have stored, because a write has found that they have changed a record.
  ///
  /// If that fails, the next write of the record finds the same.
  func catchUp(in engine: isolated Engine) async {
    do throws(StoreError) {
      try await engine.feed.catchUp(in: engine)
    } catch {
      events.emit(.storeFailed(error))
    }
  }

  /// Writes the present record of a mutation.
  ///
  /// If the write fails, retries in the background until a write doesn't fail, the mutation is removed, or the
  /// repository is released.
  func save(_ id: MutationID, in engine: isolated Engine) async {
    guard let error = await write(id, in: engine) else { return }
    events.emit(.storeFailed(error))
    saveLater(id, in: engine)
  }

  /// Writes the present record of a mutation in the background, after the first delay of the backoff.
  ///
  /// Retries until a write doesn't fail, the mutation is removed, or the repository is released.
  func saveLater(_ id: MutationID, in engine: isolated Engine) {
    engine.start { engine in
      var attempt = 1
      repeat {
        await engine.backoff.wait(afterAttempt: attempt)
        attempt += 1
        if Task.isCancelled { return }
      } while await engine.writer.write(id, in: engine) != nil
    }
  }

  /// Stores the verdicts on mutations of a lane that aren't stored yet, before a later mutation of the lane is sent.
  ///
  /// A server may remember only the changes that it has made. If this process ended with a verdict that isn't stored,
  /// the next process would send the mutation again, and the server might make the change after the later one.
  ///
  /// - Throws: A `StoreError` if a verdict can't be written.
  func storeVerdicts(in lane: LaneID, in engine: isolated Engine) async throws(StoreError) {
    for id in engine.queue.unstoredVerdicts(in: lane) where engine.queue.hasUnstoredVerdict(id) {
      if let error = await write(id, in: engine) { throw error }
    }
  }

  /// Stores what the next leader has to know before this repository gives the lead up: the verdicts on mutations, and
  /// that waiting mutations aren't being sent.
  ///
  /// A record that can't be written is written later.
  func storeStandings(in engine: isolated Engine) async {
    for id in engine.queue.unstoredVerdicts where engine.queue[id]?.tag != nil { await save(id, in: engine) }
    for id in engine.queue.waitingWithMarks {
      await marking[id]?.value
      if engine.queue.removeMark(of: id) { await save(id, in: engine) }
    }
  }

  // MARK: - Marks

  /// Marks a mutation: stores that an attempt to send it will begin, in case this process ends during the attempt.
  ///
  /// The next mutations of the lane are marked too, without waiting for these marks to be stored. A record that another
  /// process has changed stays as it is. If its mutation is live, ``MutationQueue/needsMark(_:)`` stays `true`.
  ///
  /// - Throws: A `StoreError` if the mark can't be written. It then counts as not written.
  func mark(_ id: MutationID, in engine: isolated Engine) async throws(StoreError) {
    // The mark may be one of those that are being written beside an earlier attempt.
    await marking[id]?.value
    let ids = engine.queue.mark(id)
    let next = ids.filter { $0 != id }
    if !next.isEmpty {
      let writing = Task(executorPreference: engine.tasks.executor) { await engine.writeMarks(of: next) }
      for nextID in next { marking[nextID] = writing }
    }
    guard ids.contains(id), let error = await write(id, .mark, in: engine) else { return }
    engine.queue.unmark([id])
    throw error
  }

  /// Writes the marks of mutations whose turn comes next.
  ///
  /// A mark that can't be written counts as not written, and is written again when it is the mutation's turn.
  func writeMarks(of ids: [MutationID], in engine: isolated Engine) async {
    await withTaskGroup(of: Void.self) { group in
      for id in ids { group.addTask { await engine.writeMark(of: id) } }
    }
    for id in ids { marking[id] = nil }
    // If sending was paused during the writes, ``removeMarks(of:in:)`` skipped these marks, so they are removed now.
    if engine.queue.isPaused { for id in ids { removeMark(of: id, in: engine) } }
  }

  /// Writes the mark of a mutation whose turn comes next, unless another process has changed its record.
  func writeMark(of id: MutationID, in engine: isolated Engine) async {
    guard let error = await write(id, .mark, in: engine) else { return }
    events.emit(.storeFailed(error))
    engine.queue.unmark([id])
  }

  /// Removes the mark of a waiting mutation, so that a later process doesn't count an attempt that never began.
  func removeMark(of id: MutationID, in engine: isolated Engine) {
    guard engine.queue.removeMark(of: id) else { return }
    engine.start { engine in await engine.writer.save(id, in: engine) }
  }

  /// Removes the marks of mutations that have to wait, except marks that are still being written.
  func removeMarks(of ids: [MutationID], in engine: isolated Engine) {
    for id in ids where marking[id] == nil { removeMark(of: id, in: engine) }
  }
}

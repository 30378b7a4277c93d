internal import DataStore

/// Writes the records of a repository's mutations when they change.
///
/// Belongs to one ``SyncEngine`` and is used in its isolation only.
final class MutationWriter<Source: RepositorySource> {
  typealias Engine = SyncEngine<Source>

  private let records: MutationRecords
  private let events: RepositoryEvents
  /// The tasks that write the marks of mutations whose turn comes next; see ``mark(_:in:)``.
  private var marking: [MutationID: Task<Void, Never>] = [:]

  init(_ records: MutationRecords, events: RepositoryEvents) {
    (self.records, self.events) = (records, events)
  }

  /// Writes the present record of a mutation.
  ///
  /// - Parameters:
  ///   - id: The id of the mutation.
  ///   - unlessChanged: Whether to write nothing if the stored record no longer has the last known tag.
  ///   - engine: The engine.
  /// - Returns: The error if the write failed.
  func write(_ id: MutationID, unlessChanged: Bool = false, in engine: isolated Engine) async -> StoreError? {
    // A mutation without a tag isn't durable yet: ``MutationAdder`` is writing it.
    while let entry = engine.queue[id], let tag = entry.tag {
      do throws(StoreError) {
        switch try await records.replace(id, by: entry.record, tag: tag, unlessChanged: unlessChanged) {
        case .kept:
          await catchUp(in: engine)
          guard let changed = engine.queue[id], changed.ownsMark else { return nil }
          // This repository still owns the mark, so no other repository has written the record. If the tag is new,
          // another write of this repository has changed it.
          if changed.tag != tag { continue }
          // The change could not be read, so the mark isn't stored.
          engine.queue.unmark([id])
        case .gone, .keptVerdict: await catchUp(in: engine)
        case .written, .removed, .unchanged: break
        }
        return nil
      } catch {
        return error
      }
    }
    return nil
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
    guard ids.contains(id), let error = await write(id, unlessChanged: true, in: engine) else { return }
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
    guard let error = await write(id, unlessChanged: true, in: engine) else { return }
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

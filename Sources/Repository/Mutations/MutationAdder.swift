internal import DataStore
internal import Foundation

/// Adds mutations to the queue of a repository: applies them, reserves their places, and makes them durable.
///
/// A new mutation becomes visible and gets its place in its lane in one step. It isn't sent before its record is
/// stored, and it is rolled back if the record can't be stored.
///
/// Belongs to one ``SyncEngine`` and is used in its isolation only.
final class MutationAdder<Source: RepositorySource> {
  typealias Engine = SyncEngine<Source>
  typealias Key = Source.Key
  typealias Mutation = Source.Mutation
  typealias Failure = RepositoryError<Source.Failure>
  typealias Entry = MutationQueue<Key, Mutation>.Entry
  typealias Record = MutationRecord

  private let capabilities: SourceCapabilities<Source>
  private let keys: MutationKeys
  private let calls: MutationCalls<Source>
  private let limits: QueueLimits
  private let now: @Sendable () -> Date
  private let events: RepositoryEvents
  private let format: MutationFormat<Mutation>

  init(
    _ capabilities: SourceCapabilities<Source>, _ keys: MutationKeys, _ calls: MutationCalls<Source>,
    configuration: RepositoryConfiguration, events: RepositoryEvents
  ) {
    (self.capabilities, self.keys, self.calls, self.events) = (capabilities, keys, calls, events)
    (limits, now) = (configuration.queueLimits, configuration.now)
    format = MutationFormat(repository: capabilities.source.name)
  }

  /// Applies a mutation on top of all others of its key, and makes it durable.
  ///
  /// - Parameters:
  ///   - mutation: The mutation.
  ///   - key: The key of the value that it changes.
  ///   - id: The id of the mutation. A mutation that the server may have applied keeps its id when it is sent again.
  ///   - replaced: The refused or conflicted entry that the mutation replaces, or `nil`. Its id is `id` if the mutation
  ///     is sent again under its old id.
  ///   - hasCaller: Whether a call will wait for its result.
  ///   - engine: The engine.
  func add(
    _ mutation: Mutation, on key: Key, as id: MutationID = MutationID(), replacing replaced: Entry?, hasCaller: Bool,
    in engine: isolated Engine
  ) async throws(Failure) -> MutationID {
    let cell = try await engine.use(key)
    defer { engine.endUse(cell) }
    // Another process may have decided about the replaced mutation while the value was read.
    if let replaced, engine.queue[replaced.id]?.isLive ?? true { throw .cancelled }
    let lane = capabilities.lane(of: mutation, on: key)
    var record = try makeRecord(of: mutation, as: id, on: key, lane)
    record.isOutcomeUnknown = replaced?.id == id
    guard replaced != nil || engine.queue.hasRoom(for: record.byteCount, limits: limits, now: now()) else {
      throw .queueFull
    }
    do throws(MutationConflict) {
      try cell.state.add(id, mutation)
    } catch {
      // Applying it may have shown that earlier mutations are in conflict too.
      engine.publish(cell)
      throw .conflict(error)
    }
    // The mutation isn't sent until ``makeDurable(_:replacing:in:)`` has stored its record.
    engine.queue.add(id, mutation, key: key, lane: lane, record: record)
    if hasCaller { calls.open(id) }
    // If another repository sends the mutation, that repository decides whether the mutation is in conflict.
    if let entry = engine.queue[id], !engine.queue.sends(entry) { cell.deferDecision(on: id) }
    // The value is published before the changes of the queue, because the user waits for the value.
    engine.publish(cell)
    engine.performer.reportChanges(in: engine)
    let isAdded: Bool
    do throws(StoreError) {
      isAdded = try await makeDurable(id, replacing: replaced, in: engine)
    } catch {
      endAddition(of: id, on: key, in: engine)
      throw .store(error)
    }
    guard isAdded else {
      endAddition(of: id, on: key, in: engine)
      // If the user hasn't signed out, another process has decided about the mutation that this one replaces.
      throw cell.isClosed ? .signedOut : .cancelled
    }
    return id
  }

  /// Ends an addition that has failed.
  private func endAddition(of id: MutationID, on key: Key, in engine: isolated Engine) {
    engine.removeFromOverlay([id], of: key)
    engine.reader.endAddition(of: id, in: engine)
  }

  /// Returns the record of a new mutation, which gets its sequence number when it is stored.
  private func makeRecord(
    of mutation: Mutation, as id: MutationID, on key: Key, _ lane: LaneID
  ) throws(Failure) -> Record {
    do {
      return try format.makeRecord(of: mutation, key: key, lane: lane, madeAt: now())
    } catch {
      throw .store(.encodingFailed(keys.record(id).keyName, reason: String(describing: error)))
    }
  }

  /// Makes an added mutation durable, and lets it be sent unless it has come into conflict meanwhile.
  ///
  /// If the record isn't stored, the mutation is forgotten. If it was to be sent again under its old id, it is instead
  /// refused or in conflict as before.
  ///
  /// - Parameters:
  ///   - id: The id of the mutation.
  ///   - replaced: The refused or conflicted entry that the mutation replaces, or `nil`. Its id is `id` if the mutation
  ///     is sent again under its old id.
  ///   - engine: The engine.
  /// - Returns: Whether the record was stored. It wasn't if its user signed out before that, or if another process has
  ///   requeued, resolved or discarded the mutation that it replaces.
  /// - Throws: A `StoreError` if the record could not be written.
  private func makeDurable(
    _ id: MutationID, replacing replaced: Entry?, in engine: isolated Engine
  ) async throws(StoreError) -> Bool {
    guard let entry = engine.queue[id] else { return false }
    // The repository attempts to lead beside the write. The order of the writes is that of the additions, so none of
    // them may wait.
    let acquiring =
      entry.ownsMark && !engine.queue.sends
      ? Task(executorPreference: engine.tasks.executor) { await engine.acquireLead() } : nil
    do throws(StoreError) {
      let addition = RecordWrite(id: id, change: .add(replacing: replaced?.id))
      guard try await engine.writer.perform(addition, in: engine) else {
        forgetUndurable(id, replacing: replaced, in: engine)
        return false
      }
    } catch {
      // It is durable nevertheless if the feed has shown its record.
      if engine.queue[id]?.tag == nil {
        forgetUndurable(id, replacing: replaced, in: engine)
        throw error
      }
    }
    guard engine.queue[id]?.isLive ?? false else {
      // It came into conflict while it was being written. If its user signed out instead, after the record was stored,
      // these statements do nothing.
      await engine.writer.save(id, in: engine)
      calls.end(id, .success(.conflicted(id)))
      engine.sender.pump(in: engine)
      return true
    }
    events.emit(.mutationEnqueued(id, orderingKey: "\(entry.lane)"))
    engine.queue.release(id)
    engine.performer.reportChanges(in: engine)
    engine.sender.pump(in: engine)
    // If this repository sends and the lane was free, the record was stored with a mark; see
    // ``MutationRecord/isMarked``. If sending was paused during the write, the attempt that the mark announces doesn't
    // begin.
    // A repository that is being suspended removes it before it gives the lead up.
    if engine.queue.isPaused, !engine.queue.isSuspended { engine.writer.removeMark(of: id, in: engine) }
    if let acquiring {
      engine.start { engine in if await !acquiring.value { engine.writer.removeMark(of: id, in: engine) } }
    }
    // A waiting call ends at once if the lane is stalled, and after a timeout if another repository sends the mutation.
    if engine.queue.isStalled(entry.lane) {
      calls.end(id, .success(.queued))
    } else if !engine.queue.sends {
      calls.startTimeout(of: id, in: engine)
    }
    return true
  }

  /// Forgets a mutation that could not be made durable.
  ///
  /// If it was to be sent again under its old id, it is instead refused or in conflict as before.
  private func forgetUndurable(_ id: MutationID, replacing replaced: Entry?, in engine: isolated Engine) {
    // If the user has signed out meanwhile, the mutation is no longer in the queue.
    if let replaced, replaced.id == id, engine.queue[id] != nil {
      engine.queue.restoreRefused(replaced)
    } else {
      engine.queue.remove(id)
    }
    calls.close(id)
    engine.performer.reportChanges(in: engine)
    engine.sender.pump(in: engine)
  }
}

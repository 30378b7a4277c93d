internal import DataStore

/// Acts on the decisions of the app about single mutations; see ``PendingMutations``.
///
/// Belongs to one ``SyncEngine`` and is used in its isolation only.
final class MutationDecisions<Source: RepositorySource> {
  typealias Engine = SyncEngine<Source>
  typealias Mutation = Source.Mutation
  typealias Entry = MutationQueue<Source.Key, Mutation>.Entry

  private let calls: MutationCalls<Source>
  private let events: RepositoryEvents

  init(_ calls: MutationCalls<Source>, events: RepositoryEvents) {
    (self.calls, self.events) = (calls, events)
  }

  /// Cancels a mutation that is waiting, needs a sign-in, or is in conflict.
  func cancel(_ id: MutationID, in engine: isolated Engine) async throws(PendingMutationError) {
    let entry = try await find(id, in: engine)
    switch engine.queue.standing(of: entry) {
    case .inFlight, .refused: throw .alreadySent(id)
    case .waiting, .needsSignIn, .conflicted: break
    }
    // The outcome of an earlier attempt to send the mutation may be unknown. If a value received since has the change,
    // the write of that value confirms the mutation, which can't be cancelled during that write.
    if isBeingConfirmed(entry, in: engine) { throw .alreadySent(id) }
    // The mutation stays visible, and keeps its place in its lane, until its removal is certain.
    engine.queue.hold(id)
    let isRemoved: Bool
    do throws(StoreError) {
      isRemoved = try await remove(id, if: .unsent, in: engine)
    } catch {
      release(id, in: engine)
      throw .store(error)
    }
    guard isRemoved else {
      // Another process has removed it, or may be sending it.
      if engine.queue[id] == nil { engine.reader.endCall(of: id) }
      release(id, in: engine)
      throw .alreadySent(id)
    }
    events.emit(.mutationCancelled(id))
    calls.end(id, .failure(.cancelled))
    engine.performer.reportChanges(in: engine)
    engine.sender.pump(in: engine)
  }

  private func isBeingConfirmed(_ entry: Entry, in engine: isolated Engine) -> Bool {
    engine.cell(entry.key)?.state.isBeingConfirmed(entry.id) ?? false
  }

  /// Requeues a refused mutation.
  func requeue(
    _ id: MutationID, in engine: isolated Engine
  ) async throws(PendingMutationError) -> MutationID {
    let entry = try await find(id, in: engine)
    guard case .refused = engine.queue.standing(of: entry) else { throw .notRefused(id) }
    return try await requeue(entry, in: engine)
  }

  /// Resolves a conflicted mutation.
  func resolve(
    _ id: MutationID, _ resolution: Resolution<Mutation>, in engine: isolated Engine
  ) async throws(PendingMutationError) -> MutationID? {
    let entry = try await find(id, in: engine)
    guard case .conflicted = engine.queue.standing(of: entry) else { throw .notConflicted(id) }
    switch resolution {
    case .retry: return try await requeue(entry, in: engine)
    case .replace(let mutation): return try await replace(entry, by: mutation, in: engine)
    case .discard:
      try await discard(entry, in: engine)
      return nil
    }
  }

  /// Discards a mutation that was refused or is in conflict, or that this program can't read.
  func discard(_ id: MutationID, in engine: isolated Engine) async throws(PendingMutationError) {
    if engine.queue.heldMutation(id) != nil { return try await discardHeld(id, in: engine) }
    let entry = try await find(id, in: engine)
    switch engine.queue.standing(of: entry) {
    case .refused, .conflicted: try await discard(entry, in: engine)
    case .waiting, .inFlight, .needsSignIn: throw .notRefused(id)
    }
  }

  /// Sends a mutation again, at the end of its lane.
  ///
  /// A mutation that the server may have applied keeps its id, so that the server doesn't apply it twice.
  private func requeue(
    _ entry: Entry, in engine: isolated Engine
  ) async throws(PendingMutationError) -> MutationID {
    try await replace(
      entry, by: entry.mutation, as: entry.record.isOutcomeUnknown ? entry.id : MutationID(), in: engine)
  }

  private func replace(
    _ entry: Entry, by mutation: Mutation, as id: MutationID = MutationID(), in engine: isolated Engine
  ) async throws(PendingMutationError) -> MutationID {
    engine.queue.hold(entry.id)
    do throws(Engine.Failure) {
      _ = try await engine.adder.add(mutation, on: entry.key, as: id, replacing: entry, hasCaller: false, in: engine)
      events.emit(.mutationRequeued(entry.id))
      release(entry.id, in: engine)
      return id
    } catch {
      release(entry.id, in: engine)
      switch error {
      case .conflict(let conflict): throw .conflict(conflict)
      case .store(let error): throw .store(error)
      // The user has signed out, or another process has decided about the mutation. The errors `server` and `queueFull`
      // don't occur here.
      case .server, .queueFull, .signedOut, .cancelled:
        await engine.writer.catchUp(in: engine)
        throw .unknown(entry.id)
      }
    }
  }

  private func discard(_ entry: Entry, in engine: isolated Engine) async throws(PendingMutationError) {
    engine.queue.hold(entry.id)
    let isRemoved: Bool
    do throws(StoreError) {
      isRemoved = try await remove(entry.id, if: .undecided, in: engine)
    } catch {
      release(entry.id, in: engine)
      throw .store(error)
    }
    // If the mutation wasn't removed, another process has already decided about it, or its user has signed out.
    guard isRemoved else {
      release(entry.id, in: engine)
      await engine.writer.catchUp(in: engine)
      throw .unknown(entry.id)
    }
    events.emit(.mutationDiscarded(entry.id))
    engine.performer.reportChanges(in: engine)
    release(entry.id, in: engine)
  }

  /// Discards a mutation that this program can't read, unless a program that can read it may be sending it.
  private func discardHeld(_ id: MutationID, in engine: isolated Engine) async throws(PendingMutationError) {
    guard let held = engine.queue.heldMutation(id) else { throw .unknown(id) }
    // While this repository leads, no program that can read the mutation is sending it.
    if held.record.isMarked, !engine.election.leads {
      _ = await engine.election.acquire(in: engine)
      guard engine.election.leads else { throw .alreadySent(id) }
    }
    let isRemoved: Bool
    do throws(StoreError) {
      isRemoved = try await remove(id, if: .held(held.tag), in: engine)
    } catch {
      throw .store(error)
    }
    guard isRemoved else {
      // If it still is held, a program that can read it has changed its record.
      throw engine.queue.heldMutation(id) == nil ? .unknown(id) : .alreadySent(id)
    }
    calls.end(id, .failure(.cancelled))
    events.emit(.mutationDiscarded(id))
  }

  /// Returns a durable mutation about which no other decision is in progress.
  private func find(_ id: MutationID, in engine: isolated Engine) async throws(PendingMutationError) -> Entry {
    do throws(StoreError) {
      try await engine.start()
    } catch {
      throw .store(error)
    }
    guard let entry = engine.queue[id], !entry.isBeingDecided else { throw .unknown(id) }
    // A mutation that isn't durable yet will be shortly, and may then be sent at once.
    guard entry.tag != nil else { throw .alreadySent(id) }
    return entry
  }

  /// Ends a decision about a mutation, so that the mutation may be sent if it still exists.
  private func release(_ id: MutationID, in engine: isolated Engine) {
    engine.queue.release(id)
    engine.sender.pump(in: engine)
  }

  /// Removes the record of a mutation if a condition holds.
  ///
  /// - Returns: Whether it was removed.
  private func remove(
    _ id: MutationID, if condition: RecordWrite.RemovalCondition, in engine: isolated Engine
  ) async throws(StoreError) -> Bool {
    try await engine.writer.perform(RecordWrite(id: id, change: .remove(condition)), in: engine)
  }
}
